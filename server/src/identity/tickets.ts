import type pg from 'pg'
import { z } from 'zod'
import type { Budget } from '../budgets/budgets.ts'
import { Fault } from '../kernel/fault.ts'
import type { Secret } from '../kernel/secret.ts'
import { parseCredential } from './key-format.ts'
import { LISTED_SELECT, type ListedKey, listedKey } from './listed-keys.ts'
import { ACCOUNT_READ } from './scopes.ts'

/**
 * A ticket is a key that somebody gives away. Whoever has it spends up to a total, until an end, and is told of nothing else of the account. So it always has both, and
 * never the scope that reads the account.
 */
export function requireTicket({
  budget,
  expiresAt,
  scopes,
}: {
  readonly budget?: Budget | null
  readonly expiresAt?: Date | null
  readonly scopes?: readonly string[] | null
}): void {
  if (budget !== undefined && budget?.period !== 'total')
    throw wrong('budget', 'A ticket has a budget whose period is "total": give its amount.')
  if (expiresAt === null) throw wrong('expires_at', 'A ticket has an end: give a time in the future.')
  if (scopes?.includes(ACCOUNT_READ) === true)
    throw wrong(
      'scopes',
      `A ticket can not have the scope ${ACCOUNT_READ}: its holder sees nothing else of the account.`,
    )
}

function wrong(param: string, detail: string): Fault {
  return new Fault('invalid_request', { detail, members: { param } })
}

export type HeldTicket = {
  readonly ticket: ListedKey
  /** Whose money it is. */
  readonly workspace: string
}

const workspaceRow = z.object({ name: z.string() })

/** That of a secret, also one that has ended; undefined for what is none, and for a secret that was replaced. */
export async function findTicket(pool: pg.Pool, secret: Secret): Promise<HeldTicket | undefined> {
  const parsed = parseCredential(secret)
  if (parsed === undefined) return undefined
  const { rows } = await pool.query(
    `${LISTED_SELECT} where k.id = $1 and k.is_ticket and (k.hash = $2 or k.previous_hash = $2 and k.previous_until > clock_timestamp())`,
    [parsed.id, parsed.hash],
  )
  if (rows[0] === undefined) return undefined
  const ticket = listedKey.parse(rows[0])
  const named = await pool.query('select name from workspaces where id = $1', [ticket.workspaceId])
  return { ticket, workspace: workspaceRow.parse(named.rows[0]).name }
}
