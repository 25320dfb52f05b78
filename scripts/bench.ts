import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Benchmark, Metric, Options } from '../bench/bench.ts'
import { chartOf } from '../bench/draw/charts.ts'
import { commitNamed } from '../harness/commit.ts'
import { writeProof } from '../harness/proof-file.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `npm run bench -- <name> [--json] [--record] [--reduced] [--rounds <count>]`: a benchmark beside its baseline. Fails when a
 * goal is missed. A recorded run is kept under docs/proof/; a reduced one takes seconds and only shows that it works.
 * `compare` and `starts` take the release, tag or commit that this version is compared with.
 */
const { values: flags, positionals } = scriptArguments(
  'Usage: npm run bench -- <name> [--json] [--record] [--reduced] [--rounds <count>]: a benchmark beside its baseline; or compare or starts [<release, tag or commit>].',
  {
    json: { type: 'boolean', default: false },
    record: { type: 'boolean', default: false },
    reduced: { type: 'boolean', default: false },
    rounds: { type: 'string' },
  },
  { allowPositionals: true },
)
const [name = '', other, ...more] = positionals
/** Those that measure two versions. */
const COMPARING: ReadonlySet<string> = new Set(['compare', 'starts'])
const file = path.join(ROOT, 'bench', name, 'index.ts')
if (name === '' || !existsSync(file)) {
  const known = readdirSync(path.join(ROOT, 'bench')).filter((one) =>
    existsSync(path.join(ROOT, 'bench', one, 'index.ts')),
  )
  console.error(`Which benchmark? npm run bench -- ${known.join(' | ')}`)
  process.exit(1)
}

if (more.length > 0 || (other !== undefined && !COMPARING.has(name))) {
  console.error(
    `${name} takes no ${more[0] ?? other}: only ${[...COMPARING].join(' and ')} take a name, of one version.`,
  )
  process.exit(1)
}
const against = other === undefined ? undefined : versionNamed(other)

const { run } = (await import(file)) as { run: Benchmark }
const metrics = await run((line) => console.error(line), {
  reduced: flags.reduced,
  ...(flags.rounds !== undefined && { rounds: Number(flags.rounds) }),
  ...(against !== undefined && { against }),
})
for (const line of table(metrics)) console.log(line)
const ok = metrics.every((metric) => metric.ok)
if (flags.record) {
  const versions = against && { versions: { against: `${against.name} (${against.commit})` } }
  writeProof(`bench-${name}`, { program: `bench/${name}/index.ts`, ...versions, metrics })
  const chart = chartOf(name, metrics)
  if (chart !== undefined) writeFileSync(path.join(ROOT, `docs/performance/${name}.svg`), chart)
}
if (flags.json) console.log(JSON.stringify({ name, ok, metrics }))
process.exit(ok ? 0 : 1)

function versionNamed(version: string): NonNullable<Options['against']> {
  const commit = commitNamed(version)
  if (commit !== undefined) return { name: version, commit }
  console.error(`There is no release, tag or commit ${version} here. A shallow clone has few: git fetch --unshallow`)
  process.exit(1)
}

function table(all: readonly Metric[]): string[] {
  return all.map(({ name: what, value, unit, baseline, goal, ok: met }) => {
    const beside = baseline === null ? '' : `beside ${baseline}`
    return `${met ? ' ' : '✗'} ${what.padEnd(34)} ${String(value).padStart(10)} ${unit.padEnd(9)} ${beside.padEnd(18)} ${goal ?? ''}`
  })
}
