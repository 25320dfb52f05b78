/** What PostgreSQL says of the statement itself: its data, its constraints, its text, our own exceptions. */
const FINAL = /^(22|23|42|P0)/

/** Whether PostgreSQL itself judged the statement and will judge it so again. */
export function isRefusal(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && FINAL.test(code)
}

/** PostgreSQL's own code of an error; undefined where it did not come from PostgreSQL. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('severity' in error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

const QUERY_CANCELED = '57014'

/** Whether PostgreSQL gave a statement up that took longer than one may: nothing was carried out. */
export function wasCanceled(error: unknown): boolean {
  return codeOf(error) === QUERY_CANCELED
}
