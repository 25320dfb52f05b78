import { timingSafeEqual } from 'node:crypto'
import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { type Cache, createCache } from '../storage/cache.ts'
import {
  CREDENTIAL_JOINS,
  CREDENTIAL_ROW,
  CREDENTIAL_SELECT,
  credentialIn,
  type Source,
  type SourceParts,
} from './credential.ts'
import type { Parsed } from './key-format.ts'

/** Keys, by their ids. */
export function createKeySource({ pool, time, maxEntries, ...shared }: SourceParts): Source {
  const keys: Cache<KeyRecord> = createCache({
    ...shared,
    name: 'keys',
    topic: 'key',
    load: (id) => loadKey(pool, id),
    maxEntries,
  })
  return {
    peek(given) {
      const key = keys.peek(given.id)
      return key !== undefined && matches(given, key, time.nowMs()) ? key : undefined
    },
    async lookUp(given) {
      const key = await keys.reload(given.id)
      const nowMs = time.nowMs()
      const isRight = matches(given, key ?? NOBODY, nowMs)
      const isExpired = matches(given, { ...beforeItsEnd(key ?? NOBODY), expiresAtMs: null }, nowMs)
      if (isRight) return key
      return isExpired ? 'expired' : undefined
    },
  }
}

type Lock = Pick<
  KeyRecord,
  | 'mode'
  | 'hash'
  | 'previousHash'
  | 'previousUntilMs'
  | 'olderHash'
  | 'olderUntilMs'
  | 'expiresAtMs'
  | 'isRevoked'
  | 'isOver'
>

/** A ticket that was revoked when its time was over has expired, as its holder is told. Of another key that is revoked nothing is told. */
function beforeItsEnd(key: Lock): Lock {
  return key.isOver ? { ...key, isRevoked: false } : key
}

/** What a secret is compared with where there is none to compare with, so that the same work is done. */
const NOBODY: Lock = {
  mode: 'live',
  hash: Buffer.alloc(32),
  previousHash: null,
  previousUntilMs: null,
  olderHash: null,
  olderUntilMs: null,
  expiresAtMs: null,
  isRevoked: true,
  isOver: false,
}

function matches(given: Parsed, key: Lock, nowMs: number): boolean {
  const isCurrent = timingSafeEqual(given.hash, key.hash)
  const isPrevious = timingSafeEqual(given.hash, key.previousHash ?? NOBODY.hash)
  const isInOverlap = nowMs < (key.previousUntilMs ?? 0)
  const isOlder = timingSafeEqual(given.hash, key.olderHash ?? NOBODY.hash)
  const isInOlderOverlap = nowMs < (key.olderUntilMs ?? 0)
  const isAlive = !key.isRevoked && nowMs < (key.expiresAtMs ?? Number.POSITIVE_INFINITY)
  const isOne = isCurrent || (isPrevious && isInOverlap) || (isOlder && isInOlderOverlap)
  return key.mode === given.kind && isOne && isAlive
}

const keyRow = z
  .object({
    ...CREDENTIAL_ROW,
    is_ticket: z.boolean(),
    is_over: z.boolean(),
    hash: z.instanceof(Buffer),
    previous_hash: z.instanceof(Buffer).nullable(),
    previous_until: z.date().nullable(),
    older_hash: z.instanceof(Buffer).nullable(),
    older_until: z.date().nullable(),
  })
  .transform((row) => ({
    ...credentialIn(row),
    isTicket: row.is_ticket,
    isOver: row.is_over,
    hash: row.hash,
    previousHash: row.previous_hash,
    previousUntilMs: row.previous_until?.getTime() ?? null,
    olderHash: row.older_hash,
    olderUntilMs: row.older_until?.getTime() ?? null,
    token: null,
  }))

type KeyRecord = z.output<typeof keyRow>

/**
 * Asks for the last key up to this id, which is the one of this id where there is one. A row less to find, to send and to
 * parse would take less time, and tell that the id is unknown.
 */
async function loadKey(pool: pg.Pool, id: Id): Promise<KeyRecord | undefined> {
  const { rows } = await pool.query({
    name: 'load_key',
    text: `select ${CREDENTIAL_SELECT}, k.member_person, k.member_email, k.is_ticket, coalesce(k.is_ticket and k.revoked_at >= k.expires_at, false) as is_over, k.hash, k.previous_hash, k.previous_until, k.older_hash, k.older_until
      from (select * from api_keys where id <= $1 order by id desc limit 1) k
      ${CREDENTIAL_JOINS}`,
    values: [id],
  })
  const key = rows[0] && keyRow.parse(rows[0])
  return key?.id === id ? key : undefined
}
