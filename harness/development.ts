import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import type pg from 'pg'
import { z } from 'zod'
import { hashOf, makeKey } from '../server/src/identity/key-format.ts'
import { createKey } from '../server/src/identity/keys.ts'
import { systemClock } from '../server/src/kernel/clock.ts'
import { createIds } from '../server/src/kernel/ids.ts'
import { usd } from '../server/src/kernel/money.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import type { By } from '../server/src/storage/audit.ts'
import { freePort } from './free-port.ts'
import { ROOT } from './root.ts'
import { makeMasterKey } from './seed.ts'

/** What `npm run dev` keeps from one run to the next, so that what somebody has pasted somewhere goes on working. */
export type Kept = {
  readonly masterKey: Secret
  readonly databasePassword: Secret
  readonly key: KeptKey
  /** With what an agent needs to spend: a budget, scopes and a rate. */
  readonly agentKey: KeptKey
}

type KeptKey = { readonly id: string; readonly secret: Secret }

const FILE = path.join(ROOT, '.farebox/development.json')
const FORM = z.object({
  master_key: z.string(),
  database_password: z.string(),
  key_id: z.string(),
  api_key: z.string(),
  agent_key_id: z.string(),
  agent_key: z.string(),
})

/** As it was, or made and kept where it is missing. It opens nothing but a database that is gone with its run. */
export function keptForDevelopment(file = FILE): Kept {
  const kept = read(file) ?? write(file)
  return {
    masterKey: new Secret(kept.master_key),
    databasePassword: new Secret(kept.database_password),
    key: { id: kept.key_id, secret: new Secret(kept.api_key) },
    agentKey: { id: kept.agent_key_id, secret: new Secret(kept.agent_key) },
  }
}

function read(file: string): z.output<typeof FORM> | undefined {
  try {
    return FORM.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data
  } catch {
    return undefined
  }
}

function write(file: string): z.output<typeof FORM> {
  const ids = createIds({ clock: systemClock })
  const [keyId, agentKeyId] = [ids.next(), ids.next()]
  const kept = {
    master_key: makeMasterKey().reveal(),
    database_password: crypto.randomUUID(),
    key_id: keyId,
    api_key: makeKey(keyId, 'test', 0).reveal(),
    agent_key_id: agentKeyId,
    agent_key: makeKey(agentKeyId, 'test', 0).reveal(),
  }
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify(kept), { mode: 0o600 })
  return kept
}

const ACTOR: By = { actor: 'operator development', origin: {} }
/** With what a key needs to pay through the tools: scopes and a rate beside its budget. */
const TERMS = {
  scopes: ['models', 'video', 'social', 'finance', 'traffic'],
  rates: { requestsPerMinute: 600 },
} as const
const KEY_TERMS = { name: 'development', budget: { amount: usd('100'), period: 'total' }, ...TERMS } as const
const AGENT_TERMS = { name: 'agent', budget: { amount: usd('5'), period: 'month' }, ...TERMS } as const

/** Gives a workspace the keys of the runs before. */
export async function restoreKeys(pool: pg.Pool, workspaceId: string, { key, agentKey }: Kept): Promise<void> {
  await restore(pool, workspaceId, key, KEY_TERMS)
  await restore(pool, workspaceId, agentKey, AGENT_TERMS)
}

type Terms = Omit<Parameters<typeof createKey>[2], 'workspaceId' | 'mode'>

async function restore(pool: pg.Pool, workspaceId: string, { id, secret }: KeptKey, terms: Terms): Promise<void> {
  const ids = createIds({ clock: systemClock })
  // The first id that is asked for is the key's own.
  const given = [id]
  const parts = { pool, ids: { next: () => given.pop() ?? ids.next() } }
  await createKey(parts, ACTOR, { workspaceId, mode: 'test', ...terms })
  await pool.query('update api_keys set hash = $2 where id = $1', [id, hashOf(secret)])
}

/** The port that people remember, or any other where somebody has it, of which they are told. */
export async function portNear(port: number, what: string, say: (line: string) => void): Promise<number> {
  const probe = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  await new Promise((resolve) => probe.close(resolve))
  if (isFree) return port
  const other = await freePort()
  say(`Port ${port} is taken by another program, so ${what} listens on ${other} this time.`)
  return other
}
