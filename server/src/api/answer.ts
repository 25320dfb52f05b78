import { hash } from 'node:crypto'
import type pg from 'pg'
import { isKey } from '../gateway/idempotency.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { findWrite, fingerprintOf, type Write, type WriteAnswer, writeOnce } from '../people/account-writes.ts'
import { inTransaction, OpenTransaction, type Transactions } from '../storage/transaction.ts'
import { fromLedger } from './from-ledger.ts'
import type { ApiRequest, ApiResponse } from './request.ts'
import type { Input, Reply, RequestHead, RouteDescription } from './route.ts'
import type { Turns } from './turns.ts'

/**
 * How an API of people answers: whoever asks waits for their turn, and a change is made once. Who asks and what they may, the API finds out:
 * members of workspaces in account/guard.ts.
 */

/** By which a repetition says that it is one. */
export const REPLAYED = 'Idempotency-Replayed'

/** A request to a route, and what it takes to answer it. */
export type Call = {
  readonly route: RouteDescription & PeopleAccess
  readonly request: ApiRequest
  readonly pool: pg.Pool
  readonly turns: Turns
  readonly identify: (isWrite: boolean) => Promise<Asker>
}

/** What a record says of the changes that people make by it. */
export type PeopleAccess = {
  /** An update that is no PATCH: it takes the ETag of what was read, too. */
  readonly takesMatch?: true
  /** It asks others than PostgreSQL, and can be no part of a transaction. */
  readonly isOutside?: true
}

/** The person who asks, or their client. */
export type Asker = {
  /** Null where the route asks for no credential. */
  readonly personId: Id | null
  /** Whether they are told what came of a change when they made it, once they may no longer make it. */
  readonly isToldAgain: boolean
  /** Whose money the request is about: refuses a mode that they may not name. */
  readonly modeOf: () => Mode
  /** Finds out whether they may use the route. Asked again under the lock of a change. */
  readonly admit: (on: Transactions, isLocked?: boolean) => Promise<Permit>
}

/** What they may do now: the handlers of the route, with who they are. */
export type Permit = {
  /** Refuses a change where nothing can be changed now. */
  readonly requireOpen: () => void
  readonly run: (asked: PersonRequest) => Promise<Reply>
  readonly prepare: ((asked: PersonRequest) => Promise<void>) | undefined
}

/** What every handler of people's routes is given. */
export type PersonRequest = RequestHead &
  Input & {
    /** The transaction of a change; for reading where nothing is written. */
    readonly on: Transactions
    /** Throws once whoever asked may no longer: for what goes on after the answer has begun. */
    readonly stillMay: () => Promise<void>
    /** Refuses a change of what is not as whoever asks has read it. */
    readonly requireMatch: (body: unknown) => void
  }

/** Whether it changes what was read before, as it was read. */
export function isUpdate({ method, takesMatch }: Pick<Call['route'], 'method' | 'takesMatch'>): boolean {
  return method === 'PATCH' || takesMatch === true
}

export function answerTo(call: Call): Promise<ApiResponse> {
  return fromLedger(call.route.method === 'GET' ? readBy(call) : writeBy(call))
}

async function readBy(call: Call): Promise<ApiResponse> {
  const asker = await call.identify(false)
  return inTurn(call, asker, async () => {
    const { run } = await asker.admit(call.pool)
    const reply = await run(requestOf(call, call.pool))
    return responseOf(call, reply, reply.type === undefined ? etagOf(reply.body) : null)
  })
}

function inTurn<T>({ turns, route: { isOutside } }: Call, { personId }: Asker, work: () => Promise<T>): Promise<T> {
  return personId === null ? work() : turns.take(personId, { isOutside }, work)
}

async function writeBy(call: Call): Promise<ApiResponse> {
  const asker = await call.identify(true)
  const { personId } = asker
  if (personId === null) {
    const { run } = await asker.admit(call.pool)
    return responseOf(call, await run(requestOf(call, call.pool)), null)
  }
  call.turns.countWrite(personId)
  return inTurn(call, asker, () =>
    writeOf(call, asker, personId).catch(async (refusal: unknown) => {
      const before = isRefused(refusal) ? await madeBefore(call, asker, personId) : null
      if (before === null) throw refusal
      return again(before)
    }),
  )
}

const isRefused = (thrown: unknown) =>
  thrown instanceof Fault && (thrown.code === 'resource_not_found' || thrown.code === 'forbidden')

/** A change can take from its maker what it needed: who leaves, or hands the workspace over, may not do it again, and is told what came of it all the same. */
async function madeBefore(call: Call, asker: Asker, personId: Id): Promise<WriteAnswer | null> {
  if (!asker.isToldAgain) return null
  try {
    return await findWrite(call.pool, noteOf(call, asker, personId))
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

async function writeOf(call: Call, asker: Asker, personId: Id): Promise<ApiResponse> {
  const { pool, route, request } = call
  // Asked twice: here, so that nobody who may not learns what else is wrong, and again under the lock.
  const permit = await asker.admit(pool)
  const write = noteOf(call, asker, personId)
  if (isUpdate(route) && request.header('if-match') === undefined) throw new Fault('precondition_required')
  if (permit.prepare !== undefined || route.isOutside === true) {
    const before = await findWrite(pool, write)
    if (before !== null) return again(before)
    permit.requireOpen()
    await permit.prepare?.(requestOf(call, pool))
  }
  // What asks others is done first, and then noted: sent again in between, it finds that it was done.
  const first = route.isOutside === true ? await permit.run(requestOf(call, pool)) : undefined
  return inTransaction(pool, async (query) => {
    const on = new OpenTransaction(query)
    const locked = await asker.admit(on, true)
    const made = await writeOnce(on, { ...write, requestId: request.id }, async () => {
      // Not before: what was made before the closure is told again.
      locked.requireOpen()
      const reply = first ?? (await locked.run(requestOf(call, on)))
      const etag = etagOf(reply.body)
      return { status: route.answer.status ?? 200, body: reply.kept ?? reply.body, etag, reply }
    })
    return 'again' in made ? again(made.again) : responseOf(call, made.reply, made.etag)
  })
}

function requestOf({ request, pool, identify }: Call, on: Transactions): PersonRequest {
  const { id, params, query, visitor } = request
  return {
    ...{ id, params, query, body: request.readBody(), visitor, on },
    async stillMay() {
      await (await identify(false)).admit(pool)
    },
    requireMatch(there) {
      const current = etagOf(there)
      const sent = request.header('if-match')?.split(',') ?? []
      if (!sent.some((one) => one.trim() === '*' || one.trim() === current)) throw new Fault('precondition_failed')
    },
  }
}

function noteOf({ request }: Call, { modeOf }: Asker, personId: Id): Write {
  const key = request.header('idempotency-key')
  if (key === undefined || !isKey(key))
    throw invalidRequest(
      'Send the header Idempotency-Key with 1 to 255 visible ASCII characters, a new one for each change, and the same one when you send it again.',
      'Idempotency-Key',
    )
  const { method, path, query } = request
  const { mode: _, ...rest } = Object(query)
  const fingerprint = fingerprintOf({ method, path, mode: modeOf(), query: rest, body: request.readBody() })
  return { personId, key, fingerprint }
}

/** Strong: two answers have the same one if and only if they say the same of what is there. A secret, or a link with one, is told once and is no part of that. */
export function etagOf(body: unknown): string {
  const { secret: _, link: __, ...lasting } = Object(body)
  return `"${hash('sha256', JSON.stringify(lasting), 'base64url').slice(0, 22)}"`
}

function responseOf({ route: { answer } }: Call, { body, type }: Reply, etag: string | null): ApiResponse {
  return {
    status: answer.status ?? 200,
    body,
    ...(type !== undefined && { type }),
    ...(answer.hasEtag === true && etag !== null && { headers: { etag } }),
  }
}

function again({ status, body, etag }: WriteAnswer): ApiResponse {
  return { status, body, headers: { [REPLAYED]: 'true', ...(etag !== null && { etag }) } }
}
