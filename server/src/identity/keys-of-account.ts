import type pg from 'pg'
import { z } from 'zod'
import { Fault } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import { queryOn, type Transactions } from '../storage/transaction.ts'
import { LISTED_SELECT, type ListedKey, listedKey } from './listed-keys.ts'

/** Keys as members of their workspace find them: page by page, and only their own. */

export const KEY_STATES = ['active', 'expired', 'revoked'] as const
export type KeyState = (typeof KEY_STATES)[number]

export type KeyPage = {
  readonly workspaceId: Id
  /** Of the mode that is asked for. */
  readonly accountId: Id
  readonly state?: KeyState | undefined
  readonly memberId?: Id | undefined
  /** Only what was given away, or only what was not. */
  readonly isTicket?: boolean | undefined
  /** Continues behind this one. */
  readonly after?: Id | undefined
  readonly most: number
}

const IS_IN: Readonly<Record<KeyState, string>> = {
  active: 'c.active and k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())',
  expired: 'k.revoked_at is null and k.expires_at <= clock_timestamp()',
  revoked: 'not c.active and k.revoked_at is not null',
}

/** The newest first. */
export function keyPageStatement({ workspaceId, accountId, state, memberId, isTicket, after, most }: KeyPage) {
  const values: unknown[] = [accountId, most]
  const parameter = (value: unknown) => `$${values.push(value)}`
  const conditions = [
    'c.account_id = $1',
    ...(after === undefined ? [] : [`c.id < ${parameter(after)}`]),
    // Those of a state have indexes of their own, by the account and by the workspace: few may be behind very many others.
    ...(state === undefined ? [] : [`k.workspace_id = ${parameter(workspaceId)}`, IS_IN[state]]),
    ...(isTicket === undefined
      ? []
      : isTicket
        ? [`k.workspace_id = ${parameter(workspaceId)}`, 'k.is_ticket']
        : ['not k.is_ticket']),
    ...(memberId === undefined ? [] : [`k.member_id = ${parameter(memberId)}`]),
  ]
  return { text: `${LISTED_SELECT} where ${conditions.join(' and ')} order by c.id desc limit $2`, values }
}

export async function listKeyPage(pool: pg.Pool, page: KeyPage): Promise<readonly ListedKey[]> {
  const { rows } = await pool.query(keyPageStatement(page))
  return z.array(listedKey).parse(rows)
}

/** Those of some ids that there are in one mode of a workspace. */
export async function listKeysIn(
  pool: pg.Pool,
  { workspaceId, accountId, ids }: { readonly workspaceId: Id; readonly accountId: Id; readonly ids: readonly Id[] },
): Promise<readonly ListedKey[]> {
  const { rows } = await pool.query(
    `${LISTED_SELECT} where k.workspace_id = $1 and c.account_id = $2 and k.id = any ($3)`,
    [workspaceId, accountId, ids],
  )
  return z.array(listedKey).parse(rows)
}

type Sought = { readonly workspaceId: Id; readonly id: string; readonly isLocked?: boolean }

/** One of a workspace. That of another is as absent as one that never was: one statement finds out, whichever of the two it is. */
export async function findKeyIn(on: Transactions, { workspaceId, id, isLocked = false }: Sought): Promise<ListedKey> {
  if (!isId(id)) throw new Fault('resource_not_found')
  const query = queryOn(on)
  if (isLocked)
    await query(
      `select from accounts where id = (select c.account_id from api_keys k join credentials c on c.id = k.id
         where k.id = $1 and k.workspace_id = $2) for no key update`,
      [id, workspaceId],
    )
  const { rows } = await query(`${LISTED_SELECT} where k.id = $1 and k.workspace_id = $2`, [id, workspaceId])
  if (rows[0] === undefined) throw new Fault('resource_not_found')
  return listedKey.parse(rows[0])
}

export function stateOfKey(
  { revokedAt, expiresAt }: Pick<ListedKey, 'revokedAt' | 'expiresAt'>,
  nowMs: number,
): KeyState {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? 'expired' : 'active'
}
