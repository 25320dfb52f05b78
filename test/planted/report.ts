import type { TestEvent } from 'node:test/reporters'

/** What came of one test. */
export type Reported = {
  /** The titles of the suites around it and its own. */
  readonly title: string
  readonly passed: boolean
  /** How it failed: `testCodeFailure` where the test itself threw. */
  readonly failure: string | null
  /** What it threw, and what caused that. */
  readonly errors: readonly { readonly name: string; readonly code: string; readonly message: string }[]
}

/** Makes of node:test's events what a program can judge by; its own reporters write for people. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<Reported> {
  const titles: string[] = []
  for await (const { type, data } of events) {
    // Starts are reported in the order of the source, so the titles above a test are those that started last.
    if (type === 'test:start') titles.splice(data.nesting, titles.length, data.name)
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const error: unknown = type === 'test:fail' ? data.details.error : undefined
    const failure = error instanceof Error && 'failureType' in error ? String(error.failureType) : null
    // A suite passes and fails with its tests, but for its hooks.
    if (data.details.type === 'suite' && (type === 'test:pass' || failure === 'subtestsFailed')) continue
    yield {
      title: [...titles.slice(0, data.nesting), data.name].join(' '),
      passed: type === 'test:pass',
      failure,
      errors: causesOf(error instanceof Error ? error.cause : undefined),
    }
  }
}

const DEPTH = 5

function causesOf(error: unknown, depth = DEPTH): Reported['errors'] {
  if (!(error instanceof Error) || depth === 0) return []
  const code = 'code' in error ? String(error.code) : ''
  return [{ name: error.name, code, message: error.message }, ...causesOf(error.cause, depth - 1)]
}
