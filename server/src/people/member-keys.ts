import { z } from 'zod'
import { assignKey } from '../identity/key-changes.ts'
import { revokeWithin } from '../identity/keys.ts'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import { may, type Role } from '../kernel/role.ts'
import { OpenTransaction, type Query, queryOn, type Transactions } from '../storage/transaction.ts'
import type { Locked } from './workspace-lock.ts'

/** What becomes of the keys of somebody who goes: they would go on spending, and nobody would look after them. */
export type KeysDecision = 'revoke' | 'keep' | { readonly to: Id }

/** As it is written in a request and in a command: revoke, keep, or to:<member>. */
export const KEYS_DECISION = /^(revoke|keep|to:[0-9a-f-]{36})$/

export function keysDecisionIn(text: string): KeysDecision | null {
  if (text === 'revoke' || text === 'keep') return text
  const to = text.startsWith('to:') ? text.slice('to:'.length) : ''
  return isId(to) ? { to } : null
}

const keyRow = z.object({ id: z.string(), name: z.string(), mode: z.enum(['live', 'test']) })
export type MemberKey = Readonly<z.output<typeof keyRow>>

/** More than a tier allows. */
const KEYS_MOST = 10_000

/** Those that work, or will when the workspace is open again. */
export async function keysOfMember(on: Transactions, workspaceId: Id, memberId: Id): Promise<readonly MemberKey[]> {
  const { rows } = await queryOn(on)(
    `select k.id, k.name, a.mode from api_keys k join credentials c on c.id = k.id join accounts a on a.id = c.account_id
     where k.workspace_id = $1 and k.member_id = $2 and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())
     order by k.id limit $3`,
    [workspaceId, memberId, KEYS_MOST],
  )
  return z.array(keyRow).parse(rows)
}

/** Told by name: what they are, and what is known of their use. */
export function undecidedKeys(keys: readonly (MemberKey & { readonly charged_last_week_usd?: string })[]): Fault {
  return new Fault('member_has_keys', { members: { keys: keys.slice(0, KEYS_TOLD), key_count: keys.length } })
}

const KEYS_TOLD = 100

type Going = { readonly memberId: Id; readonly role: Role; readonly isOwn: boolean }

/** Decides on the keys of somebody who goes, and says what became of them. */
export async function decideKeys(
  { query, by, workspaceId }: Locked,
  { memberId, role, isOwn }: Going,
  decision: KeysDecision | null,
): Promise<DecidedKeys> {
  const on = new OpenTransaction(query)
  const working = await keysOfMember(on, workspaceId, memberId)
  const keys = working.map(({ id }) => id)
  if (keys.length === 0) return { became: null, keys }
  if (decision === null) throw undecidedKeys(working)
  // Their secrets are known to who goes, so that nobody who is bound by a budget keeps what works.
  if (isOwn && decision !== 'revoke' && !may(role, 'workspace.manage'))
    throw new Fault('forbidden', {
      detail: `Your role is ${role}: when you leave, your keys can only be revoked. Ask an owner or admin to remove you if they are to stay.`,
    })
  if (decision === 'keep') return { became: 'kept', keys }
  await lockAccountsOf(query, keys)
  if (decision === 'revoke') {
    for (const id of keys) await revokeWithin(query, by, id)
    return { became: 'revoked', keys }
  }
  if (decision.to === memberId) throw invalidRequest('The keys can not go to the member who goes. Name another one.')
  for (const id of keys) await assignKey({ pool: on }, by, id, decision.to)
  return { became: 'assigned', keys, to: decision.to }
}

export type DecidedKeys = {
  readonly became: 'revoked' | 'kept' | 'assigned' | null
  readonly keys: readonly Id[]
  readonly to?: Id
}

/** In the order in which calls lock them. */
async function lockAccountsOf(query: Query, keys: readonly Id[]): Promise<void> {
  await query(
    `select from accounts where id in (select account_id from credentials where id = any ($1::uuid[])) order by id for no key update`,
    [keys],
  )
}
