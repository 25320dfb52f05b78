import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import type pg from 'pg'
import { hashOf, makeKey } from '../server/src/identity/key-format.ts'
import { createKey } from '../server/src/identity/keys.ts'
import { systemClock } from '../server/src/kernel/clock.ts'
import { createIds } from '../server/src/kernel/ids.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import type { By } from '../server/src/storage/audit.ts'
import { freePort } from './free-port.ts'
import { ROOT } from './root.ts'
import { makeMasterKey } from './seed.ts'

/** What `npm run dev` keeps from one run to the next, so that what somebody has pasted somewhere goes on working. */
export type Kept = {
  readonly masterKey: Secret
  readonly databasePassword: Secret
  readonly keyId: string
  readonly apiKey: Secret
}

const FILE = path.join(ROOT, '.farebox/development.json')
const NAMES = ['master_key', 'database_password', 'key_id', 'api_key'] as const

/** As it was, or made and kept where it is missing. It opens nothing but a database that is gone with its run. */
export function keptForDevelopment(file = FILE): Kept {
  const [master_key, database_password, key_id, api_key] = read(file) ?? write(file)
  return {
    masterKey: new Secret(master_key),
    databasePassword: new Secret(database_password),
    keyId: key_id,
    apiKey: new Secret(api_key),
  }
}

type Values = readonly [masterKey: string, databasePassword: string, keyId: string, apiKey: string]

function read(file: string): Values | undefined {
  try {
    const kept: unknown = JSON.parse(readFileSync(file, 'utf8'))
    const [first, second, third, fourth] = NAMES.map((name) => Reflect.get(Object(kept), name))
    const values = [first, second, third, fourth] as const
    return values.every((value) => typeof value === 'string') ? values : undefined
  } catch {
    return undefined
  }
}

function write(file: string): Values {
  const keyId = createIds({ clock: systemClock }).next()
  const values = [makeMasterKey().reveal(), crypto.randomUUID(), keyId, makeKey(keyId, 'test', 0).reveal()] as const
  mkdirSync(path.dirname(file), { recursive: true })
  const kept = Object.fromEntries(NAMES.map((name, at) => [name, values[at]]))
  writeFileSync(file, JSON.stringify(kept), { mode: 0o600 })
  return values
}

const ACTOR: By = { actor: 'operator development', origin: {} }

/** Gives a workspace the key of the runs before. */
export async function restoreKey(pool: pg.Pool, workspaceId: string, { keyId, apiKey }: Kept): Promise<void> {
  const parts = { pool, ids: { next: () => keyId } }
  await createKey(parts, ACTOR, { workspaceId, mode: 'test', name: 'development' })
  await pool.query('update api_keys set hash = $2 where id = $1', [keyId, hashOf(apiKey)])
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
