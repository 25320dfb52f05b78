import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { type Config, loadConfig } from '../config.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import type { By } from '../storage/audit.ts'
import { requireMigrated } from '../storage/migrate.ts'
import { createPools, type Pools } from '../storage/pools.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { explain } from './explain.ts'
import { secretsIn } from './secrets.ts'
import { endOnUncaught } from './uncaught.ts'

/** What all commands share: the configuration, the database, and how they say what went wrong. */

export async function running(
  work: (config: Config) => Promise<void>,
  overrides: Readonly<Record<string, string>> = {},
): Promise<void> {
  let config: Config | undefined
  try {
    config = loadConfig(undefined, overrides)
    await work(config)
  } catch (error) {
    for (const line of explain(error, config?.database.url)) process.stderr.write(`farebox: ${line}\n`)
    process.exitCode = 1
  }
}

/** For commands that need neither a configuration nor a database. */
export async function runningAlone(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    for (const line of explain(error, undefined)) process.stderr.write(`farebox: ${line}\n`)
    process.exitCode = 1
  }
}

/** On a database of this program's version: on another one a command would read or write what it does not know. */
export function withPools(config: Config, work: (pools: Pools) => Promise<void>): Promise<void> {
  return withAnyPools(config, async (pools) => {
    await requireMigrated(pools.rest)
    await work(pools)
  })
}

/** On whatever database there is. */
export async function withAnyPools(config: Config, work: (pools: Pools) => Promise<void>): Promise<void> {
  const pools = createPools({ url: config.database.url, log: quietLog(config), restStatementTimeoutMs: 10 * 60_000 })
  try {
    await work(pools)
  } finally {
    await pools.close()
  }
}

export const ids = createIds({ clock: systemClock })

/** Who is at the keyboard, for the audit log. */
export function operator(askName: () => string = () => userInfo().username): By {
  return { actor: `operator ${nameOrNumber(askName)}`, origin: { via: 'command line', host: hostname() } }
}

/** A container may run us under a number that its system has no name for, and nobody there may be kept from working for that. */
function nameOrNumber(askName: () => string): string {
  try {
    return askName()
  } catch {
    return `uid ${process.getuid?.()}`
  }
}

/** Each run of a command that writes leaves one row in the audit log where it changes something; `apart` leaves a record of its own. */
export type Effect = 'reads' | 'writes' | 'apart'

const effects = new WeakMap<Command, Effect>()

/** A command that changes nothing. */
export function reading(parent: Command, nameAndArguments: string): Command {
  return declared(parent, nameAndArguments, 'reads')
}

/** A command that changes something, and says in the audit log who did it, in the transaction of the change. */
export function writing(parent: Command, nameAndArguments: string): Command {
  return declared(parent, nameAndArguments, 'writes')
}

export function declared(parent: Command, nameAndArguments: string, effect: Effect): Command {
  const command = parent.command(nameAndArguments)
  effects.set(command, effect)
  return command
}

/** Undefined for a command that says nothing of what it does: then it may do nothing, and have others below it. */
export function effectOf(command: Command): Effect | undefined {
  return effects.get(command)
}

/** For commands whose result is what they print. */
export function quietLog(config: Config): Log {
  const log = createLog({ level: 'error', secrets: secretsIn(config), write: (line) => process.stderr.write(line) })
  endOnUncaught(log)
  return log
}

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** People choose names, and a terminal obeys what it is shown. */
export function plain(line: string): string {
  return line.replaceAll(/\p{Cc}/gu, '?')
}

/** What comes by standard input, where it is within so many bytes. */
export async function readInput(most: number): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of process.stdin) {
    pieces.push(Buffer.from(piece))
    bytes += piece.length
    if (bytes > most) throw new Error(`standard input has more than ${most} bytes`)
  }
  return Buffer.concat(pieces).toString('utf8')
}
