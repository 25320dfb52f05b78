import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Addresses } from './app-here.ts'
import { loadChanges } from './changes.ts'
import { type Child, startAnnounced } from './child.ts'
import { isShared, needsProcess } from './lane.ts'
import { ROOT } from './root.ts'

/** A gateway, with where it listens: in a process of its own, or in this one where many test files share it. */
export type Gateway = Child & {
  readonly url: string
  readonly adminUrl: string
  readonly siteUrl: string
  readonly agentUrl: string
  /** Starts the same again, on new ports, after it was stopped or killed. */
  readonly restart: () => Promise<Gateway>
}

type Options = {
  readonly databaseUrl: string
  /** Beside what every gateway of a test has; undefined takes one of those away. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** The built program, or the sources. Left out, it is the built one where whoever runs the tests has just built it. */
  readonly built?: boolean
  /** A module that exports what it changes of the server as `changes`, by its path from the root. */
  readonly changes?: string
  /** Another program that says in the same way when it is ready, by its path from the root. */
  readonly program?: string
  readonly onLine?: (line: string) => void
}

const BUILT = 'server/dist/main.js'
/** It starts in a fraction of the time. A copy of the project, made to plant something in, has only sources. */
const isBuilt = process.env.HARNESS_BUILT === 'true' && existsSync(path.join(ROOT, BUILT))
const SOURCE = 'server/src/main.ts'
const CHANGED = path.join(import.meta.dirname, 'serve-changed.ts')
/** What `farebox` runs, for tests that run a line of it in a process of its own. */
export const FAREBOX = path.join(ROOT, isBuilt ? BUILT : SOURCE)
/** That only a hang meets. */
export const COMMAND_DEADLINE_MS = 300_000

/** Upstreams of tests lose far more than an operator bears, on purpose. Who tests the ceilings says which. */
const NO_LOSS_CEILINGS = {
  FAREBOX_LOSS_ACCOUNT_HOUR_USD: 'none',
  FAREBOX_LOSS_ACCOUNT_DAY_USD: 'none',
  FAREBOX_LOSS_ROUTE_HOUR_USD: 'none',
  FAREBOX_LOSS_ROUTE_DAY_USD: 'none',
}

/** What a gateway of a test is told by its environment: any free ports, and no ceilings. */
export function gatewayEnvironment(databaseUrl: string): Readonly<Record<string, string>> {
  return {
    FAREBOX_DATABASE_URL: databaseUrl,
    FAREBOX_LISTEN_GATEWAY: '127.0.0.1:0',
    FAREBOX_LISTEN_SITE: '127.0.0.1:0',
    FAREBOX_LISTEN_AGENT: '127.0.0.1:0',
    FAREBOX_LISTEN_ADMIN: '127.0.0.1:0',
    // Its https addresses are names alone: nothing stands in front of it.
    FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
    // An account has what its test gives it.
    FAREBOX_PEOPLE_TEST_CREDIT: '0',
    ...NO_LOSS_CEILINGS,
  }
}

export function startGateways(count: number, options: Options): Promise<Gateway[]> {
  return Promise.all(Array.from({ length: count }, () => startGateway(options)))
}

export async function startGateway(options: Options): Promise<Gateway> {
  const { child, addresses } = await (isShared ? startHere(options) : startProcess(options))
  const { gateway: url, admin: adminUrl, site: siteUrl, agent: agentUrl } = addresses
  return { ...child, url, adminUrl, siteUrl, agentUrl, restart: () => startGateway(options) }
}

type Started = { readonly child: Child; readonly addresses: Addresses }

/** Loaded here alone: whoever starts processes need not load the server. */
async function startHere({ databaseUrl, env = {}, built, changes, program, onLine }: Options): Promise<Started> {
  if (program !== undefined || built !== undefined) needsProcess('a program other than the server')
  const { startAppHere } = await import('./app-here.ts')
  const environment = { ...process.env, ...gatewayEnvironment(databaseUrl), ...env }
  return startAppHere(environment, onLine, await loadChanges(changes))
}

async function startProcess({ databaseUrl, env = {}, built = isBuilt, onLine, ...other }: Options): Promise<Started> {
  const { changes, program = built ? BUILT : SOURCE } = other
  const words = changes === undefined ? [path.join(ROOT, program), 'serve'] : [CHANGED, changes]
  const { child, announcement } = await startAnnounced<Addresses>('gateway', words, {
    env: { ...process.env, ...gatewayEnvironment(databaseUrl), ...env },
    announced: (line) => (line.startsWith('{"ready":true') ? JSON.parse(line) : undefined),
    ...(onLine && { onLine }),
  })
  return { child, addresses: announcement }
}
