import { hash } from 'node:crypto'
import { isKey } from '../gateway/idempotency.ts'
import type { JsonAsked, JsonReply, JsonRoute } from '../http/json-routes.ts'
import { fromLedger } from '../http/routes/from-ledger.ts'
import { findWrite, fingerprintOf, type Write, type WriteAnswer, writeOnce } from '../identity/account-writes.ts'
import { findPlace, type Place, requireDeed } from '../identity/people/place.ts'
import { Fault } from '../kernel/fault.ts'
import type { Mode } from '../kernel/mode.ts'
import { inTransaction, OpenTransaction, type Transactions } from '../storage/transaction.ts'
import type { Member } from './authenticate.ts'
import type { AccountParts } from './parts.ts'
import { type AccountRoute, type Given, isUpdate, modeIn, type Told } from './route.ts'

/** By which a repetition says that it is one. */
export const REPLAYED = 'Idempotency-Replayed'

/** Makes a route of the framework of a record: who asks, what they may, and that a write is made once. */
export function routeOf(parts: AccountParts, route: AccountRoute): JsonRoute {
  const { method, path } = route
  return {
    method,
    path: path.replaceAll(/\{(\w+)\}/g, ':$1'),
    answer: (asked) => fromLedger(method === 'GET' ? readBy(parts, route, asked) : writeBy(parts, route, asked)),
  }
}

async function readBy(parts: AccountParts, route: AccountRoute, asked: JsonAsked): Promise<JsonReply> {
  const member = route.need === 'nothing' ? null : await parts.authenticate(asked, false)
  return inTurn(parts, route, member, async () => {
    const place = await placeOf(parts.pool, route, asked, member)
    const told = await route.run(parts, givenOf(parts, route, asked, { member, place, on: parts.pool }))
    return replyOf(route, told, told.type === undefined ? etagOf(told.body) : null)
  })
}

function inTurn<T>(
  { turns }: AccountParts,
  { isOutside }: AccountRoute,
  member: Member | null,
  work: () => Promise<T>,
): Promise<T> {
  return member === null ? work() : turns.take(member.personId, { isOutside }, work)
}

async function writeBy(parts: AccountParts, route: AccountRoute, asked: JsonAsked): Promise<JsonReply> {
  if (route.need === 'nothing') {
    const given = givenOf(parts, route, asked, { member: null, place: null, on: parts.pool })
    return replyOf(route, await route.run(parts, given), null)
  }
  const member = await parts.authenticate(asked, true)
  parts.turns.countWrite(member.personId)
  return inTurn(parts, route, member, () =>
    writeOf(parts, route, asked, member).catch(async (refusal: unknown) => {
      const before = isRefused(refusal) ? await madeBefore(parts, route, asked, member) : null
      if (before === null) throw refusal
      return again(before)
    }),
  )
}

const isRefused = (thrown: unknown) =>
  thrown instanceof Fault && (thrown.code === 'resource_not_found' || thrown.code === 'forbidden')

/**
 * A change can take from its maker what it needed: who leaves, or hands the workspace over, may not do it again, and is told what came of it all the same.
 * Not a client: it may have been let into less than the person whose change it was.
 */
async function madeBefore(
  { pool }: AccountParts,
  route: AccountRoute,
  asked: JsonAsked,
  member: Member,
): Promise<WriteAnswer | null> {
  if (member.granted !== null) return null
  try {
    return await findWrite(pool, noteOf(route, asked, member))
  } catch (error) {
    if (error instanceof Fault) return null
    throw error
  }
}

async function writeOf(parts: AccountParts, route: AccountRoute, asked: JsonAsked, member: Member): Promise<JsonReply> {
  const { pool } = parts
  // Asked twice: here, so that nobody who may not learns what else is wrong, and again under the lock.
  const place = await placeOf(pool, route, asked, member)
  const write = noteOf(route, asked, member)
  if (isUpdate(route) && asked.header('if-match') === undefined) throw new Fault('precondition_required')
  if (route.prepare !== undefined || route.isOutside === true) {
    const before = await findWrite(pool, write)
    if (before !== null) return again(before)
    requireOpen(route, place)
    await route.prepare?.(parts, givenOf(parts, route, asked, { member, place, on: pool }))
  }
  // What asks others is done first, and then noted: sent again in between, it finds that it was done.
  const first =
    route.isOutside === true
      ? await route.run(parts, givenOf(parts, route, asked, { member, place, on: pool }))
      : undefined
  return inTransaction(pool, async (query) => {
    const on = new OpenTransaction(query)
    const locked = await placeOf(on, route, asked, member, true)
    const made = await writeOnce(on, { ...write, requestId: asked.id }, async () => {
      // Not before: what was made before the closure is told again.
      requireOpen(route, locked)
      const told = first ?? (await route.run(parts, givenOf(parts, route, asked, { member, place: locked, on })))
      const etag = etagOf(told.body)
      return { status: route.answer.status ?? 200, body: told.kept ?? told.body, etag, told }
    })
    return 'again' in made ? again(made.again) : replyOf(route, made.told, made.etag)
  })
}

function requireOpen({ whileClosing }: AccountRoute, place: Place | null): void {
  if (place !== null && place.closesAt !== null && whileClosing !== true) throw new Fault('workspace_closing')
}

async function placeOf(
  on: Transactions,
  route: AccountRoute,
  asked: JsonAsked,
  member: Member | null,
  isLocked = false,
): Promise<Place | null> {
  const { need } = route
  if (member === null || need === 'nothing') return null
  if (need === 'sign_in') {
    requireToken(route, member)
    return null
  }
  const { personId, granted } = member
  const workspaceId = asked.params.workspace_id ?? ''
  // Another workspace than the one that a client was let into is not there for it, and as long looked for.
  const sought = granted === null || granted.workspaceId === workspaceId ? workspaceId : NOBODYS
  const place = await findPlace(on, { personId, workspaceId: sought, isLocked })
  requireDeed(place, need)
  requireToken(route, member)
  return place
}

/** A client makes nothing that outlives its grant but keys, and with test money changes and sees nothing that is about live money. */
function requireToken({ tokens, mode }: AccountRoute, { granted }: Member): void {
  if (granted === null || tokens === 'both') return
  if (tokens === 'never')
    throw new Fault('forbidden', { detail: 'An access token can not do this. Sign in with a browser to do it.' })
  if (mode === undefined && granted.mode !== 'live')
    throw new Fault('forbidden', {
      detail:
        'The access token is for test money, and this is about live money too. Use a token for live money, or sign in.',
    })
}

/** An id that nothing has. */
const NOBODYS = '00000000-0000-7000-8000-000000000000'

type Found = Pick<Given, 'member' | 'place' | 'on'>

function givenOf(parts: AccountParts, route: AccountRoute, asked: JsonAsked, found: Found): Given {
  const { id, params, query, visitor } = asked
  const ifMatch = asked.header('if-match')
  return {
    ...{ id, params, query, body: asked.body, visitor, ...found },
    mode: modeOf(route, query, found.member),
    async stillMay() {
      if (route.need !== 'nothing') await placeOf(parts.pool, route, asked, await parts.authenticate(asked, false))
    },
    requireMatch(body) {
      const current = etagOf(body)
      const isMatch = ifMatch?.split(',').some((one) => one.trim() === '*' || one.trim() === current)
      if (isMatch !== true) throw new Fault('precondition_failed')
    },
  }
}

function modeOf(route: AccountRoute, query: unknown, member: Member | null): Mode {
  const own = member?.granted?.mode
  const asked = route.mode === 'named' ? modeIn(query) : undefined
  if (asked !== undefined && own !== undefined && asked !== own)
    throw new Fault('forbidden', { detail: `The access token is for ${own} mode. Use one for ${asked} mode.` })
  return asked ?? own ?? 'live'
}

function noteOf(route: AccountRoute, asked: JsonAsked, member: Member): Write {
  const key = asked.header('idempotency-key')
  if (key === undefined || !isKey(key))
    throw new Fault('invalid_request', {
      detail:
        'Send the header Idempotency-Key with 1 to 255 visible ASCII characters, a new one for each change, and the same one when you send it again.',
      members: { param: 'Idempotency-Key' },
    })
  const { method, path, query, body } = asked
  const mode = modeOf(route, query, member)
  const { mode: _, ...rest } = Object(query)
  return { personId: member.personId, key, fingerprint: fingerprintOf({ method, path, mode, query: rest, body }) }
}

/** Strong: two answers have the same one if and only if they say the same of what is there. A secret, which is told once, is no part of that. */
export function etagOf(body: unknown): string {
  const { secret: _, ...lasting } = Object(body)
  return `"${hash('sha256', JSON.stringify(lasting), 'base64url').slice(0, 22)}"`
}

function replyOf({ answer }: AccountRoute, { body, type }: Told, etag: string | null): JsonReply {
  return {
    status: answer.status ?? 200,
    body,
    ...(type !== undefined && { type }),
    ...(answer.hasEtag === true && etag !== null && { headers: { etag } }),
  }
}

function again({ status, body, etag }: WriteAnswer): JsonReply {
  return { status, body, headers: { [REPLAYED]: 'true', ...(etag !== null && { etag }) } }
}
