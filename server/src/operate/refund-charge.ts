import { z } from 'zod'
import { derivedId } from '../kernel/derived-id.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, NANOS_LIMIT, nanos, ZERO } from '../kernel/money.ts'
import { refundCharge } from '../ledger/refund.ts'
import { tellOwners } from '../people/owner-notices.ts'
import { record } from '../storage/audit.ts'
import { inTransaction, OpenTransaction } from '../storage/transaction.ts'
import { workspacesOfAccounts } from '../workspaces/account-owners.ts'
import { action, field, flag, type OperatorParts } from './action.ts'
import { amountOf, idOf, reasonOf } from './fields.ts'

const input = z.object({
  call: field('call', 'id of the call', (text) => idOf(text, ' of a call: the caller has it as request_id')),
  amount: field('usd', 'USD to give back (default: all that is left of the charge)', amountOf).optional(),
  reason: field('text', 'why: the owners are told, and the audit log has it', reasonOf),
  goodwill: flag('a gift: the charge was right, and this is a loss of yours (default: the charge was wrong)'),
  id: field(
    'uuid',
    'idempotency id: the refund is made once per id (default: one of call, amount and reason)',
    (text) => idOf(text),
  ).optional(),
})

export const refund = action({
  name: 'charges refund',
  summary: 'give back what a call was charged, or a part of it; never more than that, and the owners are told',
  effect: 'writes',
  positional: ['call'],
  input,
  // The same command again is the same refund.
  run: async (parts, { id, ...wanted }) => {
    const { call, amount = 'all', reason, goodwill } = wanted
    return refundOnce(parts, {
      refundId: id ?? derivedId('refund', call, `${amount} ${goodwill} ${reason}`),
      ...wanted,
    })
  },
  lines: ({ refundId, callId, accountId, amount, left, isNew, told }) => [
    isNew
      ? `Refunded ${formatUsd(amount)} USD of call ${callId} to account ${accountId}, as entry ${refundId}.`
      : `Refund ${refundId} was already made: ${formatUsd(amount)} USD. Nothing was changed.`,
    `${formatUsd(left)} USD of the charge are left.`,
    ...(isNew && told === 0 ? ['Nobody was told: there is no owner, or letters are not set up.'] : []),
  ],
})

type Wanted = Omit<z.output<typeof input>, 'id' | 'call'> & { readonly call: Id; readonly refundId: Id }

async function refundOnce({ pool, by, letters: lettersOf }: OperatorParts, wanted: Wanted) {
  const { call, refundId, amount, reason, goodwill } = wanted
  const letters = await lettersOf()
  return inTransaction(pool, async (query) => {
    const kind = goodwill ? ('forgiveness' as const) : ('charge_reversal' as const)
    const refunded = await refundCharge(query, { refundId, chargeId: call, most: amount ?? nanos(NANOS_LIMIT), kind })
    if (refunded === undefined)
      throw new Error(`nothing was charged for a call ${call}: see farebox ledger explain ${call}`)
    const { accountId, isNew, left } = refunded
    if (refunded.amount === ZERO) throw new Error(`all that call ${call} was charged has been given back already`)
    const made = { refundId, callId: call, accountId, kind, amount: refunded.amount, left, isNew, told: 0 }
    if (!isNew) return made
    const usd = formatUsd(refunded.amount)
    const after = { usd, corrects: call, reason, kind }
    await record(query, by, { action: 'charge.refunded', of: accountId, subject: refundId, before: null, after })
    const workspace = (await workspacesOfAccounts(new OpenTransaction(query), [accountId])).get(accountId)
    if (letters === null || workspace === undefined) return made
    const letter = { what: 'charge_refunded', workspace: workspace.name, callId: call, amount: usd, reason } as const
    return { ...made, told: await tellOwners(query, letters, { workspaceId: workspace.id, letter }) }
  })
}
