import { scriptArguments } from '../harness/script-arguments.ts'
import { isKind } from '../test/faults/plan.ts'
import { runFaults } from '../test/faults/run.ts'

/**
 * `npm run faults -- --seed N --seconds S [--json]`: the whole cluster under load while processes are killed, paused and
 * restarted, ways are cut, stalled and slowed, clocks moved and the disk filled; then what must hold is judged.
 * `--only 'kill gateway'` plans only such faults, over and over; `--only none` plans none. `--keep` keeps the history under .farebox/faults/ even where all went well.
 */
const { values } = scriptArguments(
  "Usage: npm run faults -- --seed N --seconds S [--only 'kill gateway'] [--keep] [--json]: faults on real processes, judged by promises.",
  {
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    seconds: { type: 'string', default: '60' },
    only: { type: 'string', multiple: true },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
)
const [seed, seconds] = [Number(values.seed), Number(values.seconds)]
if (!Number.isSafeInteger(seed) || !(seconds > 0))
  throw new Error('--seed takes a whole number, --seconds a positive one')

process.stderr.write(`seed ${seed}\n`)
const result = await runFaults({
  seed,
  seconds,
  keep: values.keep,
  ...(values.only !== undefined && { kinds: values.only.filter(isKind) }),
  log: (line) => process.stderr.write(`${line}\n`),
})
const { ok, faults, invariants, figures, history } = result
if (values.json) {
  process.stderr.write(`${JSON.stringify(figures)}\n`)
  console.log(JSON.stringify({ ok, seed, seconds, faults, invariants }))
} else {
  for (const [kind, hits] of Object.entries(faults))
    console.log(`${hits > 0 ? ' ' : '✗'} ${kind.padEnd(22)} hit ${hits}`)
  for (const [name, verdict] of Object.entries(invariants))
    console.log(`${verdict === 'ok' ? ' ' : '✗'} ${name}: ${verdict}`)
  console.log(JSON.stringify(figures))
  console.log(ok ? `seed ${seed}: ok` : `seed ${seed}: broken; the history is in ${history}`)
}
process.exit(ok ? 0 : 1)
