import { readdirSync, readFileSync } from 'node:fs'

/** Looks at the kernel's own table of processes; empty where there is none, as on macOS. */
export function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // It has ended, or is not ours to look into.
    return ''
  }
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)$/m.exec(read(pid, 'status'))?.[1] ?? 0)
}

/** A process whose parent has yet to collect its exit code still has a number, but holds nothing any more. */
export function isAlive(pid: number): boolean {
  const status = read(pid, 'status')
  return status !== '' && !/^State:\s+[ZX]/m.test(status)
}

/** Everything that a process started, and what that started. */
export function descendants(pid: number): number[] {
  const children = new Map<number, number[]>()
  for (const one of processIds()) {
    const parent = parentOf(one)
    children.set(parent, [...(children.get(parent) ?? []), one])
  }
  const below = (parent: number): number[] => (children.get(parent) ?? []).flatMap((child) => [child, ...below(child)])
  return below(pid)
}

/** The process itself and those that it came from. */
export function ancestors(pid: number): number[] {
  return pid === 0 ? [] : [pid, ...ancestors(parentOf(pid))]
}

/** The living processes that have `NAME=value` in their environment, whoever is their parent now. */
export function processesWith(variable: string): { readonly pid: number; readonly command: string }[] {
  return processIds()
    .filter((pid) => isAlive(pid) && read(pid, 'environ').split('\0').includes(variable))
    .map((pid) => ({ pid, command: read(pid, 'cmdline').replaceAll('\0', ' ').trim() }))
}
