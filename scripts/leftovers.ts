import { readdirSync, readFileSync } from 'node:fs'

/** Fails when a process of this run (they all inherit HARNESS_RUN) is still there, other than those that wait for us. */
const mark = `HARNESS_RUN=${process.env.HARNESS_RUN}`

function read(pid: number | string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

function ancestors(pid: number): number[] {
  const parent = Number(/^PPid:\s+(\d+)$/m.exec(read(pid, 'status'))?.[1] ?? 0)
  return parent === 0 ? [pid] : [pid, ...ancestors(parent)]
}

const ours = new Set(ancestors(process.pid).map(String))
const left = readdirSync('/proc')
  .filter((name) => /^\d+$/.test(name) && !ours.has(name))
  .filter((pid) => read(pid, 'environ').split('\0').includes(mark) && !/^State:\s+Z/m.test(read(pid, 'status')))
  .map((pid) => `${pid} ${read(pid, 'cmdline').replaceAll('\0', ' ').trim()}`)

console.log(left.length === 0 ? 'no process was left behind' : `left behind:\n${left.join('\n')}`)
process.exitCode = left.length === 0 ? 0 : 1
