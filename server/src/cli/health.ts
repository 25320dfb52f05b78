import type { Command } from 'commander'
import type { Config } from '../config.ts'
import { print, reading, running } from './command.ts'

/** Container engines ask every few seconds, and give up on a program that does not answer. */
const DEADLINE_MS = 2_000

export function addHealthCommand(program: Command): void {
  reading(program, 'health')
    .description('check that the process on this machine is ready: exits with 1 if one of its listeners is not')
    .action(() => running(checkHealth))
}

async function checkHealth({ roles, listen }: Config): Promise<void> {
  const listeners = Object.entries(listen).filter(([role]) => roles.some((one) => one === role))
  if (listeners.length === 0)
    throw new Error(
      `no listener to ask: the roles are ${roles.join(', ')}. Add the role admin to check the health of a worker`,
    )
  const states = await Promise.all(listeners.map(async ([role, address]) => ({ role, state: await stateOf(address) })))
  for (const { role, state } of states) print(`${role}: ${state}`)
  if (states.some(({ state }) => state !== 'ready')) process.exitCode = 1
}

type Address = { readonly host: string; readonly port: number }

async function stateOf({ host, port }: Address): Promise<string> {
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const { status } = await fetch(`http://${reachable(host)}:${port}/readyz`, { signal })
    return status === 200 ? 'ready' : `not ready (${status})`
  } catch {
    return `does not answer at ${host}:${port}`
  }
}

/** A listener on every address of the machine is asked at its own. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}
