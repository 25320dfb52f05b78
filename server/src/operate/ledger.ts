import { z } from 'zod'
import { accountOfCall, type Resolution, resolveWithin } from '../calls/orphans.ts'
import { holdsKey } from '../identity/key-format.ts'
import { findKey } from '../identity/listed-keys.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, type Nanos, usd, ZERO } from '../kernel/money.ts'
import { callOfQuote, explainId, listUnsettled } from '../ledger/explain.ts'
import { verifyLedger } from '../ledger/verify.ts'
import { readQuote } from '../pricing/quotes.ts'
import { record } from '../storage/audit.ts'
import { inTransaction } from '../storage/transaction.ts'
import { accountLines, readAccount } from './account-view.ts'
import { action, field, flag, type OperatorParts } from './action.ts'
import { callLines, readCall } from './call-view.ts'
import { idField, idOf, NO_INPUT } from './fields.ts'
import { keyLines, readKeys } from './key-view.ts'

const verify = action({
  name: 'ledger verify',
  summary: 'check every invariant of the ledger over all accounts, in one snapshot',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const violations = await verifyLedger(pool)
    if (violations.length === 0) return { isConsistent: true }
    throw new Error(violations.map(({ promise, rows }) => `Broken: ${promise} (${rows.join(', ')})`).join('\n'))
  },
  lines: () => ['The ledger is consistent: every invariant holds.'],
})

const QUOTE = /^[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{43}$/

const explain = action({
  name: 'ledger explain',
  summary: 'explain an id: an account, a key, a call, a task, an entry or a quote',
  effect: 'reads',
  positional: ['id'],
  input: z.object({ id: field('id', 'id of what is to be explained', explainable) }),
  async run(parts, { id }) {
    const lines = QUOTE.test(id) ? await quoteLines(parts, id) : await linesOfId(parts.pool, idOf(id))
    if (lines.length === 0) throw new Error(`there is no account, key, call, task, entry or quote ${id.slice(0, 60)}`)
    return { id, lines }
  },
  lines: ({ lines }) => lines,
})

/** Whoever has a secret at hand has its key's id too, and must not leave the secret in a list of processes. */
function explainable(text: string): string {
  if (!holdsKey(text)) return QUOTE.test(text) ? text : idOf(text)
  throw new Error(
    'this is the secret of a key, and other users of the machine can read arguments: give the id of the key, see farebox keys list',
  )
}

/** By whatever name somebody has it. */
async function linesOfId(pool: OperatorParts['pool'], id: Id): Promise<readonly string[]> {
  const call = await readCall(pool, id)
  if (call !== undefined) return callLines(call)
  const known = await explainId(pool, id)
  if (known.length > 0) return known
  const key = await findKey(pool, id).catch(orNothing)
  const views = key === undefined ? [] : await readKeys(pool, [key])
  if (key !== undefined) return [...views.flatMap(keyLines), ...(await explainId(pool, key.accountId))]
  const account = await readAccount(pool, id).catch(orNothing)
  return account === undefined ? [] : accountLines(account)
}

function orNothing(error: unknown): undefined {
  if (error instanceof Fault && error.code === 'resource_not_found') return undefined
  throw error
}

async function quoteLines({ pool, settings }: OperatorParts, text: string): Promise<readonly string[]> {
  if (settings.quoteKeys.length === 0)
    throw new Error('secrets.master_key (FAREBOX_SECRETS_MASTER_KEY) is missing: it is needed to read a quote')
  const quote = readQuote(text, settings.quoteKeys)
  if (quote === undefined) return []
  const { operation, accountId, credentialId, most, expiresAt, nonce } = quote
  const callId = await callOfQuote(pool, credentialId, nonce)
  return [
    `Quote for ${operation} of account ${accountId}, by key ${credentialId}: at most ${formatUsd(most)} USD, valid until ${expiresAt.toISOString()}.`,
    ...(callId === undefined
      ? ['No call has used it.']
      : [`Call ${callId} has used it:`, ...(await linesOfId(pool, callId))]),
  ]
}

const unsettled = action({
  name: 'ledger unsettled',
  summary: 'list unsettled calls: their process died, and their usage is unknown',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  run: async ({ pool }) => ({ lines: await listUnsettled(pool) }),
  lines: ({ lines }) => (lines.length === 0 ? ['There are no unsettled calls.'] : lines),
})

const resolve = action({
  name: 'ledger resolve',
  summary: 'settle an unsettled call by what the provider reports',
  effect: 'writes',
  positional: ['id'],
  input: z.object({
    id: idField('id', 'id of the call'),
    charge: field(
      'usd',
      'the call was executed: charge this amount, at most its hold (required without --void)',
      chargeOf,
    ).optional(),
    void: flag('the call was never executed: charge nothing'),
  }),
  async run(parts, { id, charge, void: isVoid }) {
    if ((charge !== undefined) === isVoid)
      throw new Error('give either --charge <usd>, as the provider reports it, or --void')
    const resolution = await resolveRecorded(parts, id, charge ?? null)
    if (resolution === undefined)
      throw new Error(`call ${id} is not unsettled, so there is nothing to resolve: see farebox ledger explain ${id}`)
    return { id, ...resolution }
  },
  lines: ({ id, outcome, charged, overrun }) => {
    const beyond = overrun === ZERO ? '' : ` ${formatUsd(overrun)} USD exceeded the hold and are our loss.`
    return [`Call ${id} is ${outcome}: ${formatUsd(charged)} USD charged.${beyond}`]
  },
})

/** The end of the call and the record of who ended it are written together, or neither is. */
function resolveRecorded({ pool, by }: OperatorParts, id: Id, amount: Nanos | null): Promise<Resolution | undefined> {
  return inTransaction(pool, async (query) => {
    const of = await accountOfCall(query, id)
    const resolution = await resolveWithin(query, id, amount)
    if (of === undefined || resolution === undefined) return undefined
    const { outcome, charged, overrun } = resolution
    await record(query, by, {
      action: 'call.resolved',
      of,
      subject: id,
      before: { state: 'unsettled' },
      after: { state: outcome, usd: formatUsd(charged), overrun: formatUsd(overrun) },
    })
    return resolution
  })
}

function chargeOf(text: string): Nanos {
  const amount = usd(text)
  if (amount < ZERO) throw new Error('must be 0 or more')
  return amount
}

export const ledger = [verify, explain, unsettled, resolve]
