import type { Id, Ids } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { Secret } from '../kernel/secret.ts'
import type { Sealed } from './reseal.ts'
import type { Query } from './transaction.ts'

/** A sort of message. Whoever writes some exports it; `outbox/` delivers it with the deliverer of its name. */
export type OutboxKind = {
  /** Lower-case letters, digits, `_`, `-` and `.`. */
  readonly name: string
  /** Whether payloads hold a secret, such as a link that signs somebody in: then they are kept under the master key. */
  readonly isSealed: boolean
}

export type Message = {
  readonly kind: OutboxKind
  /** Who receives it: deliveries to one destination at once are bounded. In the clear, so never a secret. */
  readonly destination: string
  /** Who of the destination receives it, as a hash: each has its turn. */
  readonly receiver?: Buffer
  /** Whether somebody waits for it, as for a link: it comes before what others are told. */
  readonly isAwaited?: boolean
  /** Where one of this name still waits for the same receiver, this one takes its place. */
  readonly notice?: string
  /** What must be told once only: the same kind and key again write nothing while the first is kept. */
  readonly key?: string
  /** As JSON. */
  readonly payload: unknown
}

type Parts = { readonly ids: Ids; readonly seal: Seal | null }

const PAYLOAD_BYTES = 65_536
/** What is told to one receiver comes so far apart where several wait. */
const TURN_SECONDS = 1
const TURNS_MOST = 3_600
const sealedFor = (id: Id) => `outbox ${id}`

/**
 * Writes a message in the transaction of the change that it tells of: it is delivered where that commits, and only then. Its id, by
 * which receivers know a repetition; null where its key was written before.
 */
export async function enqueue(query: Query, { ids, seal }: Parts, message: Message): Promise<Id | null> {
  const { kind, destination, key = null, payload, receiver = null, isAwaited = false, notice = null } = message
  const id = ids.next()
  const text = JSON.stringify(payload)
  if (text === undefined || Buffer.byteLength(text) > PAYLOAD_BYTES)
    throw new RangeError(`a message of the outbox is JSON of at most ${PAYLOAD_BYTES} bytes`)
  if (kind.isSealed && seal === null)
    throw new Error(`${kind.name} holds a secret: set secrets.master_key (FAREBOX_SECRETS_MASTER_KEY)`)
  const sealed = kind.isSealed ? (seal?.seal(new Secret(text), sealedFor(id)) ?? null) : null
  if (receiver !== null && notice !== null)
    await query(
      `delete from outbox where id in (
         select id from outbox where receiver = $1 and kind = $2 and notice = $3 and due_at is not null and attempts = 0 for update skip locked)`,
      [receiver, kind.name, notice],
    )
  const { rowCount } = await query(
    `insert into outbox (id, kind, destination, key, payload, sealed, receiver, notice, due_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, case when $9 then clock_timestamp() - interval '30 days' else clock_timestamp() + waiting.turns * make_interval(secs => $10) end
     from (select count(*) as turns from (select from outbox where receiver = $7 and due_at is not null limit $11) own) waiting
     on conflict (kind, key) where key is not null do nothing`,
    [
      ...[id, kind.name, destination, key, sealed === null ? text : null, sealed],
      ...[receiver, notice, isAwaited, TURN_SECONDS, TURNS_MOST],
    ],
  )
  return rowCount === 1 ? id : null
}

type StoredPayload = { readonly id: Id; readonly payload: string | null; readonly sealed: Buffer | null }

/** What was to be told, as it was given. */
export function readPayload({ id, payload, sealed }: StoredPayload, seal: Seal | null): unknown {
  if (sealed === null) return JSON.parse(payload ?? 'null')
  if (seal === null) throw new Error('it is sealed, and there is no master key')
  return JSON.parse(seal.open(sealed, sealedFor(id)).reveal())
}

/** Where those are that hold a secret. */
export const SEALED_MESSAGES: Sealed = {
  what: 'messages of the outbox',
  table: 'outbox',
  key: 'id',
  column: 'sealed',
  boundTo: sealedFor,
}
