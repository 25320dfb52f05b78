import { createPublicKey, generateKeyPair, type JsonWebKey } from 'node:crypto'
import { promisify } from 'node:util'
import type pg from 'pg'
import { z } from 'zod'
import type { Ids } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { Sealed } from '../storage/reseal.ts'
import { inTransaction, type Query } from '../storage/transaction.ts'

/**
 * Keys that sign what we say of people. Tokens are not signed, so a key that goes logs nobody out. A new key is published for a while
 * before it signs, and the one before it for a while after, so that whoever has cached our keys always knows the right one.
 */
export type SigningKey = { readonly kid: string; readonly jwk: JsonWebKey; readonly createdAt: Date }

type Parts = { readonly pool: pg.Pool; readonly seal: Seal; readonly ids: Ids }

export const SIGNING_ALGORITHM = 'ES256'
const ROTATED_EVERY_DAYS = 30
const PUBLISHED_FIRST_MINUTES = 60
const KEPT_AFTER_DAYS = 2
const KEYS_LIMIT = 10

const sealedFor = (id: string) => `signing key ${id}`

/** The one that signs first, then the others that are published. Where there is none yet, one is made. */
export async function readSigningKeys(parts: Parts): Promise<readonly SigningKey[]> {
  const found = await keysIn(parts)
  if (found.length > 0) return inOrder(found, await timeOf(parts.pool))
  await rotateSigningKeys(parts)
  return keysIn(parts)
}

/** Makes the next key where it is time, and forgets those that sign no more. Any number of processes may. */
export async function rotateSigningKeys({ pool, seal, ids }: Parts): Promise<void> {
  const [{ isDue }] = dueRows.parse((await pool.query(IS_DUE)).rows)
  if (isDue) {
    const id = ids.next()
    const jwk = await makeKey()
    await inTransaction(pool, async (query) => {
      // One process at a time looks again and makes it.
      await query("select pg_advisory_xact_lock(hashtextextended('signing keys', 0))")
      const [again] = dueRows.parse((await query(IS_DUE)).rows)
      if (again.isDue) await insert(query, id, seal.seal(new Secret(JSON.stringify(jwk)), sealedFor(id)))
    })
  }
  await pool.query(
    `delete from signing_keys old where exists (select from signing_keys newer where newer.created_at > old.created_at
       and newer.created_at < clock_timestamp() - interval '${KEPT_AFTER_DAYS} days')`,
  )
}

const IS_DUE = `select coalesce(max(created_at) < clock_timestamp() - interval '${ROTATED_EVERY_DAYS} days', true) as "isDue"
  from signing_keys`
const dueRows = z.tuple([z.object({ isDue: z.boolean() })])

async function insert(query: Query, id: string, sealed: Buffer): Promise<void> {
  await query('insert into signing_keys (id, sealed) values ($1, $2)', [id, sealed])
}

async function makeKey(): Promise<JsonWebKey> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' })
  return privateKey.export({ format: 'jwk' })
}

const keyRows = z.array(z.object({ id: z.string(), sealed: z.instanceof(Buffer), created_at: z.date() }))

async function keysIn({ pool, seal }: Pick<Parts, 'pool' | 'seal'>): Promise<readonly SigningKey[]> {
  const { rows } = await pool.query(
    'select id, sealed, created_at from signing_keys order by created_at desc limit $1',
    [KEYS_LIMIT],
  )
  return keyRows.parse(rows).map(({ id, sealed, created_at: createdAt }) => {
    const jwk = privateKey.parse(JSON.parse(seal.open(sealed, sealedFor(id)).reveal()))
    return { kid: id, jwk, createdAt }
  })
}

const privateKey = z.looseObject({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string(),
  y: z.string(),
  d: z.string(),
})

/** The newest that has been published for long enough; where none has, the oldest. */
function inOrder(keys: readonly SigningKey[], now: Date): readonly SigningKey[] {
  const publishedBy = now.getTime() - PUBLISHED_FIRST_MINUTES * 60_000
  const signing = keys.find(({ createdAt }) => createdAt.getTime() <= publishedBy) ?? keys.at(-1)
  return signing === undefined ? [] : [signing, ...keys.filter((key) => key !== signing)]
}

async function timeOf(pool: pg.Pool): Promise<Date> {
  const { rows } = await pool.query('select clock_timestamp() as now')
  return z.object({ now: z.date() }).parse(rows[0]).now
}

/** As whoever checks a signature gets it. */
export function publicPart({ jwk }: SigningKey): JsonWebKey {
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'jwk' })
}

/** Where those are that are sealed under the master key. */
export const SEALED_SIGNING_KEYS: Sealed = {
  what: 'signing keys',
  table: 'signing_keys',
  key: 'id',
  column: 'sealed',
  boundTo: sealedFor,
}
