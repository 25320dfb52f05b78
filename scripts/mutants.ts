import { spawnSync } from 'node:child_process'
import { type Accepted, readAccepted, type Target, tryMutants } from '../harness/mutants.ts'
import { writeProof } from '../harness/proof-file.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { bugsOfMoneyFiles } from '../test/planted/bugs-of-money-files.ts'
import type { Catcher, PlantedBug } from '../test/planted/planted-bug.ts'
import { makeCopy } from '../test/planted/planted-copy.ts'

/**
 * `npm run mutants [-- <file>…]`: changes the files that decide about money in every small way, one change at a time, and sees
 * whether their unit tests notice. Without a file it tries them all and writes docs/proof/mutants.json.
 */
const { positionals } = scriptArguments(
  'Usage: npm run mutants [-- <file>…]: mutation testing of the files that decide about money, by their unit tests alone.',
  {},
  { allowPositionals: true },
)

const chosen: readonly string[] = positionals

const TARGETS: readonly Target[] = [
  { source: 'server/src/gateway/begin.ts', tests: ['server/src/gateway/begin.test.ts'] },
  { source: 'server/src/gateway/idempotency.ts', tests: ['server/src/gateway/idempotency.test.ts'] },
  { source: 'server/src/gateway/judge.ts', tests: ['server/src/gateway/judge.test.ts'] },
  { source: 'server/src/pricing/operation-terms.ts', tests: ['server/src/pricing/operation-terms.test.ts'] },
  { source: 'server/src/pricing/quotes.ts', tests: ['server/src/pricing/quotes.test.ts'] },
  { source: 'server/src/pricing/terms.ts', tests: ['server/src/pricing/terms.test.ts'] },
]
const ACCEPTED = 'test/mutants/accepted.json'
const GOAL_PERCENT = 90

const unknown = chosen.filter((file) => !TARGETS.some(({ source }) => source === file))
if (unknown.length > 0) {
  console.error(
    `${unknown.join(', ')} is none of the files that are tried: ${TARGETS.map((one) => one.source).join(', ')}`,
  )
  process.exit(1)
}

const percent = (killed: number, mutants: number) => Math.floor((1_000 * killed) / Math.max(1, mutants)) / 10
const accepted = readAccepted(ACCEPTED)
const used = new Set<Accepted>()

async function tryFile({ source, tests }: Target) {
  const { survivors, ...numbers } = await tryMutants({ source, tests })
  const explained = survivors.map((survivor) => {
    const why = accepted.find(
      (one) => one.source === source && one.line === survivor.line && one.becomes === survivor.becomes,
    )
    if (why !== undefined) used.add(why)
    return { ...survivor, reason: why?.reason ?? null }
  })
  const { mutants, killed } = numbers
  console.log(`${source}: ${killed} of ${mutants} killed (${percent(killed, mutants)} %)`)
  for (const { place, was, becomes, reason } of explained)
    console.log(`  ${place}\n    ${was} → ${becomes}\n    ${reason ?? 'NOBODY HAS SAID WHY IT SURVIVES'}`)
  return {
    source,
    tests,
    ...numbers,
    survived: explained.length,
    percent: percent(killed, mutants),
    survivors: explained,
  }
}

/** Changes that are larger than one of Stryker's, and have cost money once: each of the tests named has to fail, and passes without it. */
function tryPlanted({ id, title, edits, caughtBy }: PlantedBug) {
  const failing = (planted: PlantedBug['edits']) => {
    const { folder, remove } = makeCopy({ edits: planted })
    try {
      return caughtBy.filter((one) => !passes(folder, one))
    } finally {
      remove()
    }
  }
  const killed = failing(edits).length === caughtBy.length && failing([]).length === 0
  console.log(`${id}: ${killed ? 'killed' : 'SURVIVES'}`)
  return { id, title, files: edits.map(({ file }) => file), tests: caughtBy, killed }
}

function passes(folder: string, { file, title = '' }: Catcher): boolean {
  const pattern = title.replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')
  return spawnSync(process.execPath, ['--test', '--test-name-pattern', pattern, file], { cwd: folder }).status === 0
}

const targets = TARGETS.filter(({ source }) => chosen.length === 0 || chosen.includes(source))
const files: Awaited<ReturnType<typeof tryFile>>[] = []
for (const target of targets) files.push(await tryFile(target))
const planted = chosen.length === 0 ? bugsOfMoneyFiles.map(tryPlanted) : []

const stale = accepted.filter((one) => targets.some(({ source }) => source === one.source) && !used.has(one))
for (const { source, line, becomes } of stale)
  console.log(`${ACCEPTED} accepts what does not survive: ${source}: ${line} → ${becomes}`)

const total = (of: 'mutants' | 'killed' | 'survived') => files.reduce((sum, file) => sum + file[of], 0)
const [mutants, killed] = [total('mutants'), total('killed')]
console.log(`${killed} of ${mutants} killed (${percent(killed, mutants)} %)`)
if (chosen.length === 0)
  writeProof('mutants', {
    program: 'scripts/mutants.ts',
    mutants,
    killed,
    survived: total('survived'),
    percent: percent(killed, mutants),
    files,
    planted,
  })
const isUnexplained = files.some(({ survivors }) => survivors.some(({ reason }) => reason === null))
const isBelow = files.some((file) => file.percent < GOAL_PERCENT)
const isMissed = planted.some((one) => !one.killed)
process.exitCode = isUnexplained || isBelow || isMissed || stale.length > 0 ? 1 : 0
