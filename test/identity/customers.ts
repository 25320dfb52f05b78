import assert from 'node:assert/strict'
import type pg from 'pg'
import { createKey, type NewKey } from '../../server/src/identity/keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import type { By } from '../../server/src/storage/audit.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'

export const ids = createIds({ clock: systemClock })
export const ACTOR: By = { actor: 'operator test', origin: {} }

export type Customer = Awaited<ReturnType<typeof makeCustomer>>

/** A workspace with one key and, where it is given, money: paid, or as a promotion, which earns no tier. */
export async function makeCustomer(
  pool: pg.Pool,
  { paid = 0n, promotion = 0n, key = {} }: { paid?: bigint; promotion?: bigint; key?: Partial<NewKey> } = {},
) {
  const workspace = await createWorkspace({ pool, ids }, ACTOR, { name: 'A customer' })
  const { id: workspaceId, liveAccountId: accountId } = workspace
  if (paid > 0n) await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(paid) })
  if (promotion > 0n)
    await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(promotion) })
  const issued = await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'first', ...key })
  return { workspace, workspaceId, accountId, keyId: issued.id, secret: issued.secret.reveal() }
}

export type Told = {
  readonly status: number
  readonly body: Record<string, unknown>
  readonly headers: Headers
  /** The code of the fault, where it is one. */
  readonly code: string | undefined
}

type Asked = { readonly path?: string; readonly address?: string }

let addresses = 0
/** Another one each time: failed authentications count for their address. */
export function anotherAddress(): string {
  addresses += 1
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`
}

/** Asks a probe server for a call, and tells what came of it. */
export async function ask(
  url: string,
  secret: string,
  query: Readonly<Record<string, string | number>> = {},
  { path = '/apis/v1/probe', address = anotherAddress() }: Asked = {},
): Promise<Told> {
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  )
  const response = await fetch(`${url}${path}?${parameters}`, {
    headers: { authorization: `Bearer ${secret}`, 'x-forwarded-for': address },
  })
  const body: unknown = await response.json()
  assert.ok(typeof body === 'object' && body !== null)
  const fault = 'error' in body && typeof body.error === 'object' ? Object(body.error).code : undefined
  return { status: response.status, body: Object(body), headers: response.headers, code: fault }
}

/** The probe server, which believes us from where its callers are. */
export const PROBE_SERVER = {
  changes: 'test/identity/probe-server.ts',
  env: { FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1' },
}

export function setPaid(pool: pg.Pool, accountId: Id, amount: bigint): Promise<boolean> {
  return creditAccount(pool, { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(amount) })
}
