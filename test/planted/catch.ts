import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { startChild } from '../../harness/child.ts'
import { isFullProof, seed } from '../../harness/proof.ts'
import type { Catcher, Planted, PlantedBug } from './planted-bug.ts'
import { makeCopy } from './planted-copy.ts'
import type { Reported } from './report.ts'

const PROGRAM = 'test/planted/run-catchers.ts'
const RUN_TIMEOUT_MS = 240_000
/** In a copy without a bug many run one after the other. */
const CATCHER_TIMEOUT_MS = 10_000

export type Catch = { readonly test: string; readonly assertion: string }

/** What came of a planted bug. A copy that does not work at all proves nothing about the tests: that is no catch. */
export type Verdict =
  | { readonly verdict: 'caught'; readonly by: readonly Catch[] }
  | { readonly verdict: 'missed'; readonly by: Catcher }
  | { readonly verdict: 'broken'; readonly because: string }

/** Plants a bug into a copy and runs there what is to catch it. Each of the catchers has to. */
export async function tryToCatch(bug: Planted & Pick<PlantedBug, 'caughtBy'>): Promise<Verdict> {
  const { caughtBy } = bug
  const { reported, output } = await runInCopy(bug, caughtBy)
  const by: Catch[] = []
  let missed: Verdict | undefined
  for (const [place, catcher] of caughtBy.entries()) {
    const verdict = judge(
      catcher,
      reported.filter((one) => one.place === place),
      output,
    )
    if (verdict.verdict === 'broken') return verdict
    if (verdict.verdict === 'missed') missed ??= verdict
    else by.push(...verdict.by)
  }
  // A catcher that searches by chance may need more cases than a change is given: there one of several has to catch it, and all at full counts.
  return missed !== undefined && (isFullProof || by.length === 0) ? missed : { verdict: 'caught', by }
}

export type Unfit = { readonly catcher: Catcher; readonly because: string }

/** The catchers that do not pass, or have no test, in a copy into which nothing was planted: they can catch nothing. */
export async function unfitCatchers(catchers: readonly Catcher[]): Promise<Unfit[]> {
  const { reported, output } = await runInCopy({ edits: [] }, catchers)
  return catchers.flatMap((catcher, place) => {
    const own = reported.filter((one) => one.place === place)
    if (own.length === 0) return [{ catcher, because: `no test ran: ${output}` }]
    return own
      .filter(({ passed }) => !passed)
      .map(({ title, errors }) => ({ catcher, because: `${title}: ${errors[0]?.message ?? output}` }))
  })
}

type Run = {
  readonly reported: readonly (Reported & { readonly place: number })[]
  readonly output: string
}

/** Runs tests in a copy, with reduced counts. `place` says for which of the catchers a test was run. */
async function runInCopy(planted: Planted, catchers: readonly Catcher[]): Promise<Run> {
  const { folder, remove } = makeCopy(planted)
  try {
    const report = path.join(folder, 'report.jsonl')
    const { NODE_TEST_CONTEXT, HARNESS_PROOF, ...env } = process.env
    const child = startChild(
      process.execPath,
      [path.join(folder, PROGRAM), report, ...catchers.map((catcher) => JSON.stringify(catcher))],
      { cwd: folder, env: { ...env, HARNESS_SEED: String(seed) } },
    )
    const late = setTimeout(() => void child.kill(), RUN_TIMEOUT_MS + catchers.length * CATCHER_TIMEOUT_MS)
    await child.exited
    clearTimeout(late)
    const lines = existsSync(report) ? readFileSync(report, 'utf8').trim().split('\n') : []
    return { reported: lines.map((line) => JSON.parse(line)), output: child.output() }
  } finally {
    remove()
  }
}

const SHOWN_CHARACTERS = 200

function inShort(message: string): string {
  return message.replace(/\s+/g, ' ').slice(0, SHOWN_CHARACTERS)
}

/** Errors of a program that does not work, in JavaScript's words or by PostgreSQL's class: syntax, or a name it lacks. */
const MALFUNCTION = /^(SyntaxError|TypeError|ReferenceError|42...)$/

function judge(catcher: Catcher, reported: readonly Reported[], output: string): Verdict {
  const failed = reported.filter(({ passed }) => !passed)
  if (reported.length === 0) return { verdict: 'broken', because: `no test of ${catcher.file} ran: ${output}` }
  if (failed.length === 0) return { verdict: 'missed', by: catcher }
  for (const { title, errors } of failed) {
    const malfunction = errors.find(({ name, code }) => MALFUNCTION.test(name) || MALFUNCTION.test(code))
    if (malfunction !== undefined) return { verdict: 'broken', because: `${title}: ${malfunction.message}` }
  }
  const by = failed.flatMap(({ title, failure, errors }) => {
    const assertion = errors.find(({ code }) => code === 'ERR_ASSERTION')
    if (failure !== 'testCodeFailure' || assertion === undefined) return []
    return [{ test: `${catcher.file}: ${title}`, assertion: inShort(assertion.message) }]
  })
  if (by.length > 0) return { verdict: 'caught', by }
  const because = failed.map(({ title, failure, errors }) => `${title}: ${errors[0]?.message ?? failure}`)
  return { verdict: 'broken', because: because.join('\n') }
}
