import type pg from 'pg'
import { createKey } from '../../server/src/identity/keys.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { ACTOR, type Customer, ids, makeCustomer } from '../acceptance/installation.ts'

/** Everything that an agent's key may use. */
export const ALL_SCOPES = ['models', 'video', 'social', 'finance', 'traffic']

/** What a person has approved of an agent: a budget, scopes and a rate. */
export const APPROVED = {
  budget: { amount: usd('5'), period: 'month' },
  scopes: ALL_SCOPES,
  rates: { requestsPerMinute: 100_000 },
} as const

/** Somebody with test money, and with a key that an agent may spend by. */
export function makeAgent(pool: pg.Pool, key: object = {}): Promise<Customer> {
  return makeCustomer(pool, { key: { ...APPROVED, ...key } })
}

/** One more key of somebody, that an agent may spend by. */
export async function makeAgentKey(pool: pg.Pool, workspaceId: string, key: object = {}) {
  const { id, secret } = await createKey({ pool, ids }, ACTOR, {
    workspaceId,
    mode: 'test',
    name: 'agent',
    ...APPROVED,
    ...key,
  })
  return { keyId: id, secret: secret.reveal() }
}

/** Our member of `_meta`. */
export function callMeta({ meta }: { readonly meta: Record<string, unknown> }): Record<string, unknown> {
  return Object(meta['farebox/call'])
}
