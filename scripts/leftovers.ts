import { ancestors, processesWith } from '../harness/processes.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/** Fails when a process of this run (they all inherit HARNESS_RUN) is still there, other than those that wait for us. */
scriptArguments('Usage: node scripts/leftovers.ts: says whether a process of this run is still there.', {})
const waiting = new Set(ancestors(process.pid))
const left = processesWith(`HARNESS_RUN=${process.env.HARNESS_RUN}`).filter(({ pid }) => !waiting.has(pid))

console.log(left.length === 0 ? 'no process was left behind' : 'left behind:')
for (const { pid, command } of left) console.log(`${pid} ${command}`)
process.exitCode = left.length === 0 ? 0 : 1
