import { z } from 'zod'
import { money, moneyBody } from '../../api/money.ts'
import { tryFrom } from '../../identity/failures-by-address.ts'
import { KEY_STATES, stateOfKey } from '../../identity/keys-of-account.ts'
import { findTicket, type HeldTicket } from '../../identity/tickets.ts'
import { Fault } from '../../kernel/fault.ts'
import { nanos, ZERO } from '../../kernel/money.ts'
import { Secret } from '../../kernel/secret.ts'
import { leftOf, readBalance, readBudget } from '../../ledger/balance.ts'
import type { AccountParts } from '../parts.ts'
import { type AccountRoute, forAnybody } from '../route.ts'

const ticket = z.strictObject({
  name: z.string(),
  workspace: z.string().meta({ description: 'Whose money it is.' }),
  mode: z.enum(['live', 'test']),
  state: z.enum(KEY_STATES),
  expires_at: z.iso
    .datetime()
    .meta({ description: 'No call begins from then on. Calls that run are ended and charged.' }),
  amount: moneyBody,
  charged: moneyBody,
  held: moneyBody,
  left: moneyBody,
  is_covered: z.boolean().meta({
    description:
      'Whether the workspace has what is left of it now. A ticket takes nothing from the balance, so that calls can be refused before it is used up.',
  }),
  scopes: z.array(z.string()).nullable().meta({ description: 'What it may call; null for everything.' }),
})

export const TICKET_ROUTES: readonly AccountRoute[] = [
  forAnybody({
    operationId: 'read_ticket',
    method: 'POST',
    path: '/ticket',
    tokens: 'both',
    summary: 'What a ticket has left, for whoever holds it',
    description:
      'Nobody has to sign in. It changes nothing, and needs no Idempotency-Key: it is a POST because a secret belongs into no address. A ticket that was ended still says so.',
    tag: 'keys',
    body: z.strictObject({ secret: z.string().min(1).max(200) }),
    answer: { description: 'The ticket.', body: ticket },
    codes: ['rate_limit_exceeded', 'resource_not_found', 'address_not_allowed', 'billing_dependency_timeout'],
    async run(parts, { body, visitor: { address } }) {
      const held = await tryFrom(parts.failures, address, async () => {
        const found = await findTicket(parts.pool, new Secret(body.secret))
        if (found !== undefined) return found
        parts.failures.note(address)
        throw new Fault('resource_not_found', { detail: NO_TICKET })
      })
      const { networks } = held.ticket.terms
      if (networks !== null && !networks.has(address)) throw new Fault('address_not_allowed')
      // One ticket that is looked at by very many takes no more of the connections than one member.
      return { body: await parts.turns.take(held.ticket.id, {}, () => told(parts, held)) }
    },
  }),
]

/** The same for one that never was: who guesses learns nothing. */
const NO_TICKET = 'This is not a ticket, or its link was replaced. Ask whoever gave it to you.'

async function told(
  { pool, time }: AccountParts,
  { ticket: key, workspace }: HeldTicket,
): Promise<z.input<typeof ticket>> {
  const { allowanceId, budget, expiresAt, accountId } = key
  if (allowanceId === null || budget === null || expiresAt === null)
    throw new Error(`ticket ${key.id} has no total or no end`)
  const [state, { free, debt }] = await Promise.all([readBudget(pool, allowanceId), readBalance(pool, accountId)])
  const { amount, spent, held } = state ?? { amount: budget.amount, spent: ZERO, held: ZERO }
  const left = leftOf({ amount, spent })
  return {
    ...{ name: key.name, workspace, mode: key.mode, state: stateOf(key, expiresAt, time.nowMs()) },
    expires_at: expiresAt.toISOString(),
    ...{ amount: money(amount), charged: money(nanos(spent - held)), held: money(held), left: money(left) },
    is_covered: debt === ZERO && free >= left,
    scopes: key.terms.scopes && [...key.terms.scopes],
  }
}

/** A worker revokes it soon after its end, which is nothing that somebody did. */
function stateOf(key: HeldTicket['ticket'], expiresAt: Date, nowMs: number) {
  return key.revokedAt !== null && key.revokedAt >= expiresAt ? ('expired' as const) : stateOfKey(key, nowMs)
}
