/** A check of the official suite that failed, with what the suite says of it. */
type Failed = { readonly check: string; readonly why: string }

export type Judged = {
  readonly passed: boolean
  readonly summary: string
  readonly checks_that_do_not_apply: readonly { readonly check: string; readonly reason: string }[]
}

/** Within a scenario that applies, a check may be of what is not here. By the name of the check, or by what the suite says. */
const REASONS: readonly (readonly [(failed: Failed) => boolean, string])[] = [
  [({ check }) => check === 'PromptsListCachingHints', 'there are no prompts'],
  [({ check }) => /^Resources\w*CachingHints$/.test(check), 'there are no resources'],
  [
    ({ why }) => /^Not testable: server does not list the/.test(why),
    "it calls a tool of the suite's own making, which a product does not have",
  ],
]

/**
 * What the suite's output says of a scenario. One whose checks failed passes only where each of them is read here and does not apply:
 * as many as the suite itself counts.
 */
export function judgeOutput(output: string, hasFailed: boolean): Judged {
  const summary = /Passed: [^\n]*/.exec(output)?.[0] ?? ''
  const counted = Number(/(\d+) failed/.exec(summary)?.[1] ?? Number.NaN)
  const failed = [...output.matchAll(/^ {2}- (\S+?): [^\n]*\n {4}Error: ([^\n]*)/gm)].map(
    ([, check = '', why = '']) => ({ check, why }),
  )
  const judged = failed.map((one) => ({ check: one.check, reason: REASONS.find(([isIt]) => isIt(one))?.[1] }))
  const excused = judged.flatMap(({ check, reason }) => (reason === undefined ? [] : [{ check, reason }]))
  const passed = hasFailed ? counted > 0 && excused.length === counted && failed.length === counted : counted === 0
  return { passed, summary, checks_that_do_not_apply: excused }
}
