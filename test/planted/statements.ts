/** Where today's text of a stored function stands. */
export function storedFunction(name: string): string {
  return `server/src/storage/functions/${name}.sql`
}

export const BEGIN = storedFunction('begin_attributed_calls')
export const EXTEND = storedFunction('extend_calls')
export const END = storedFunction('end_attributed_calls')
export const SETTLE = storedFunction('settle_allowances')

/** The comment before the accounts of a batch are locked, in each of the three. */
export const BEFORE_THE_LOCK = '-- Who waits for a lock is given the row as it is then'

/** An account is changed by charges of calls that have no hold any more, too. */
export const CHANGED_WITHOUT_A_HOLD = [
  { file: END, find: 'account_release[place] > 0;', replace: 'account_release[place] + account_charge[place] > 0;' },
]
