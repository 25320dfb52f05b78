import type { Id } from '../kernel/ids.ts'
import { record } from '../storage/audit.ts'
import type { Query } from '../storage/transaction.ts'
import type { Attempts, Tried } from './attempts.ts'
import type { PeopleParts } from './parts.ts'
import { hashOf } from './tokens.ts'
import { byPerson, type Visitor } from './visitor.ts'

/** Wrong codes in a row. Whoever is asked for one knows the password, so its owner is told, and then it has to be another. */

/** As many as a person's window has. */
const TOLD_AT = 10
export const MOST_FAILURES = 20

type Failed = {
  readonly personId: Id
  readonly email: string
  /** Those before this one. */
  readonly failures: number
  readonly at: string
  readonly visitor: Visitor
}
type Parts = Pick<PeopleParts, 'sendMail' | 'attempts' | 'settings'>

export function createFactorFailures({ sendMail, attempts, settings }: Parts) {
  return {
    /** Within a transaction that has locked the person. */
    async noteFailure(query: Query, { personId, email: to, at, visitor, ...before }: Failed): Promise<void> {
      const failures = before.failures + 1
      await query('update people set factor_failures = $2 where id = $1', [personId, failures])
      if (failures !== TOLD_AT && failures !== MOST_FAILURES) return
      const isOver = failures === MOST_FAILURES
      await record(query, byPerson(personId, visitor), {
        ...{ action: 'person.second_factor_guessed', subject: personId },
        ...{ before: {}, after: { failures, mustResetPassword: isOver } },
      })
      const resetUrl = `${settings.siteUrl}/reset`
      await sendMail(query, { what: 'factor_guessed', to, failures, isOver, at, address: visitor.address, resetUrl })
      // From now on it is the password that is missing, and not time.
      if (isOver) await attempts.forget(triedByPerson(attempts, personId), query)
    },
  }
}

export async function forgetFailures(query: Query, personId: Id): Promise<void> {
  await query('update people set factor_failures = 0 where id = $1 and factor_failures > 0', [personId])
}

/** What whoever signs in may try, whichever session they do it in. */
export function triedByPerson({ limits }: Attempts, personId: Id): readonly Tried[] {
  const key = hashOf(personId)
  return [
    { limit: limits.codeOfPerson, key },
    { limit: limits.recoveryCodeOfPerson, key },
    { limit: limits.factorChangeOfPerson, key },
  ]
}
