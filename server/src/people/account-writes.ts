import { hash } from 'node:crypto'
import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { type OpenTransaction, queryOn, type Transactions } from '../storage/transaction.ts'

/**
 * Writes of members by the account API, by the idempotency key of the request: each is made once, however often and to however many
 * processes it is sent. A write that was refused leaves nothing, and is judged anew.
 */

/** For how long a repetition gets the first answer. */
export const WRITES_KEPT_HOURS = 24

export type Write = {
  readonly personId: Id
  readonly key: string
  readonly fingerprint: Buffer
}

export type WriteAnswer = {
  readonly status: number
  /** Without any secret. */
  readonly body: unknown
  readonly etag: string | null
}

/** What a request asks for. What it was when it was sent first is compared by this. */
export function fingerprintOf({ method, path, mode, query, body }: Request): Buffer {
  const asked = Object.keys(query).length === 0 ? [] : [query]
  return hash('sha256', JSON.stringify([method, path, mode, body ?? null, ...asked]), 'buffer')
}

type Request = {
  readonly method: string
  /** Without its query. */
  readonly path: string
  /** Whose money it is about. */
  readonly mode: Mode
  /** What the query says besides. */
  readonly query: Readonly<Record<string, unknown>>
  readonly body: unknown
}

const written = z.object({
  fingerprint: z.instanceof(Buffer),
  requestId: z.string(),
  status: z.int().nullable(),
  answer: z.json(),
  etag: z.string().nullable(),
})

const KEPT = `written_at > clock_timestamp() - interval '${WRITES_KEPT_HOURS} hours'`

/** The answer of a write that was made before; null where there is none. Refuses a key that was used for something else. */
export async function findWrite(on: Transactions, write: Write): Promise<WriteAnswer | null> {
  const { rows } = await queryOn(on)(
    `select fingerprint, request_id as "requestId", status, answer, etag from account_writes
     where person_id = $1 and key = $2 and ${KEPT}`,
    [write.personId, write.key],
  )
  const found = written.optional().parse(rows[0])
  if (found === undefined) return null
  if (!found.fingerprint.equals(write.fingerprint))
    throw new Fault('idempotency_mismatch', { members: { first_request_id: found.requestId } })
  return { status: found.status ?? 200, body: found.answer, etag: found.etag }
}

/**
 * Makes a write once, in an open transaction: whoever comes with the same key at the same time waits for it to end, and then gets its
 * answer.
 */
export async function writeOnce<Answer extends WriteAnswer>(
  on: OpenTransaction,
  { personId, key, fingerprint, requestId }: Write & { readonly requestId: Id },
  work: () => Promise<Answer>,
): Promise<Answer | { readonly again: WriteAnswer }> {
  const { query } = on
  await query(`delete from account_writes where person_id = $1 and key = $2 and not ${KEPT}`, [personId, key])
  const { rowCount } = await query(
    'insert into account_writes (person_id, key, fingerprint, request_id) values ($1, $2, $3, $4) on conflict do nothing',
    [personId, key, fingerprint, requestId],
  )
  if (rowCount === 0) {
    const again = await findWrite(on, { personId, key, fingerprint })
    if (again === null) throw new Error('a write that was there a moment ago is not there')
    return { again }
  }
  const answer = await work()
  await query('update account_writes set status = $3, answer = $4, etag = $5 where person_id = $1 and key = $2', [
    ...[personId, key, answer.status, JSON.stringify(answer.body ?? null), answer.etag],
  ])
  return answer
}
