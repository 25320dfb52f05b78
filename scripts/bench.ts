import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import type { Benchmark, Metric } from '../bench/bench.ts'
import { ROOT } from '../harness/root.ts'

/**
 * `npm run bench -- <name> [--json] [--record]`: a benchmark beside its baseline. Fails when a goal is missed. A recorded
 * run is kept under docs/proof/.
 */
const { values: flags, positionals } = parseArgs({
  options: { json: { type: 'boolean', default: false }, record: { type: 'boolean', default: false } },
  allowPositionals: true,
})
const [name = ''] = positionals
const file = path.join(ROOT, 'bench', name, 'index.ts')
if (name === '' || !existsSync(file)) {
  const known = readdirSync(path.join(ROOT, 'bench'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  console.error(`Which benchmark? npm run bench -- ${known.map((entry) => entry.name).join(' | ')}`)
  process.exit(1)
}

const { run } = (await import(file)) as { run: Benchmark }
const metrics = await run((line) => console.error(line))
for (const line of table(metrics)) console.log(line)
const ok = metrics.every((metric) => metric.ok)
if (flags.record) {
  const content = {
    proof: `bench-${name}`,
    recorded_at: new Date().toISOString(),
    versions: { node: process.version },
    metrics,
  }
  writeFileSync(path.join(ROOT, `docs/proof/bench-${name}.json`), `${JSON.stringify(content, undefined, 2)}\n`)
}
if (flags.json) console.log(JSON.stringify({ name, ok, metrics }))
process.exit(ok ? 0 : 1)

function table(all: readonly Metric[]): string[] {
  return all.map(({ name: what, value, unit, baseline, goal, ok: met }) => {
    const beside = baseline === null ? '' : `beside ${baseline}`
    return `${met ? ' ' : '✗'} ${what.padEnd(26)} ${String(value).padStart(10)} ${unit.padEnd(9)} ${beside.padEnd(18)} ${goal ?? ''}`
  })
}
