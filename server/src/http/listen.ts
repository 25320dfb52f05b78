import type { Log } from '../telemetry/log.ts'
import type { Edge } from './edge.ts'

export type Address = { readonly host: string; readonly port: number }

/** An edge, the role whose it is, and where it is to listen. */
export type Listener<Role extends string> = {
  readonly role: Role
  readonly edge: Edge
  readonly at: Address
}

/** Listens on all of them. Where that is; who can't is told by which setting. */
export async function listen<Role extends string>(
  listeners: readonly Listener<Role>[],
  log: Pick<Log, 'info'>,
): Promise<Partial<Record<Role, string>>> {
  const addresses: Partial<Record<Role, string>> = {}
  for (const { role, edge, at } of listeners) {
    const { port } = await edge.listen(at).catch((error: unknown) => {
      throw new Error(listenProblem(role, at, error), { cause: error })
    })
    log.info('listening', { role, host: at.host, port })
    addresses[role] = `http://${hostAndPort({ host: at.host, port })}`
  }
  return addresses
}

const REMEDIES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is taken (EADDRINUSE): stop what listens there, or choose another port',
  EACCES: 'is not for this user (EACCES): choose a port from 1024 up',
  EADDRNOTAVAIL: 'is no address of this machine (EADDRNOTAVAIL): choose one that is',
  ENOTFOUND: 'is not known by that name (ENOTFOUND): correct the name',
}

function listenProblem(role: string, at: Address, error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
  const what = REMEDIES[code] ?? `can't be listened on (${code}): choose another address`
  return `listen.${role} (FAREBOX_LISTEN_${role.toUpperCase()}): ${hostAndPort(at)} ${what}`
}

function hostAndPort({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
