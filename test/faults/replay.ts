import type { Call } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { microseconds } from '../ledger/instants.ts'
import { freeOf, newAccount } from '../model/account.ts'
import { credit, forgiveCharge, reverseCharge, reversePayment } from '../model/credits.ts'
import { accountOf } from '../model/entries.ts'
import { extend } from '../model/extend.ts'
import { begin, createModel, type Model, settle } from '../model/ledger-model.ts'
import { brokenPromises } from '../model/promises.ts'
import { compareAccounts } from '../model/rows.ts'
import { FIRST_SLICE, GROWING_MODEL } from './deviants.ts'
import type { ChargeRow, EntryRow, Evidence } from './evidence.ts'

/**
 * The ledger's own rows, in the order in which PostgreSQL judged them, replayed against the pure model: it must admit every
 * hold, come to the same amounts, and break no promise on the way.
 */
export async function replayProblems(evidence: Evidence): Promise<string[]> {
  const problems: string[] = []
  for (const accountId of new Set(evidence.entries.map(({ account_id }) => account_id))) {
    const model = await modelOf(evidence, accountId)
    for (const step of stepsOf(evidence, accountId)) problems.push(...takeStep(model, accountId, step))
    problems.push(...brokenPromises(model))
    await compareAccounts(evidence.cluster.pool, model).catch((error: unknown) =>
      problems.push(`account ${accountId}: ${error instanceof Error ? error.message.replace(/\s+/g, ' ') : ''}`),
    )
  }
  return problems
}

type Step = { readonly atUs: bigint; readonly order: number; readonly run: (model: Model) => string | undefined }

/** Of what happened in one microsecond, and so in one statement, ends come before what follows from them, and begins last. */
const ORDER = { end: 0, entry: 1, begin: 2 }
/** Entries that an ending makes by itself, in the model as in PostgreSQL. */
const DERIVED = new Set(['debt_payment', 'expiry', 'late_settlement'])

function stepsOf({ charges, entries, questions }: Evidence, accountId: Id): readonly Step[] {
  const hasGrown = ({ id }: ChargeRow) => questions.get(id)?.model === GROWING_MODEL
  const ended = [...charges.values()].filter((row) => row.account_id === accountId && row.credential_id !== null)
  const own = entries.filter((row) => row.account_id === accountId && !DERIVED.has(row.kind))
  return [
    ...ended.map((row) => ({
      atUs: timeOf(row.begun_at),
      order: ORDER.begin,
      run: (model: Model) => beginOf(model, row, hasGrown(row) ? firstHoldOf(row) : row.held),
    })),
    ...ended.map((row) => ({
      atUs: timeOf(row.ended_at),
      order: ORDER.end,
      run: (model: Model) => (hasGrown(row) ? growthOf(model, row) : undefined) ?? endOf(model, row),
    })),
    ...own.map((row) => ({
      atUs: timeOf(row.entered_at),
      order: ORDER.entry,
      run: (model: Model) => entryOf(model, row),
    })),
  ].sort((a, b) => (a.atUs === b.atUs ? a.order - b.order : a.atUs < b.atUs ? -1 : 1))
}

function takeStep(model: Model, accountId: Id, { run }: Step): string[] {
  const problem = run(model)
  const account = accountOf(model, accountId)
  const sums = [account.credited, account.debt, account.charged, account.held]
  return [
    ...(problem === undefined ? [] : [problem]),
    ...(freeOf(account) < 0n || sums.some((sum) => sum < 0n) ? [`account ${accountId} has overspent`] : []),
  ]
}

/** What a stream that grows has held at which time is written down nowhere: as if it had asked for the rest at its end. */
function firstHoldOf({ held }: ChargeRow): bigint {
  return held < FIRST_SLICE ? held : FIRST_SLICE
}

function growthOf(model: Model, { id, account_id, held, ended_at }: ChargeRow): string | undefined {
  const extension = { id, accountId: account_id, amount: nanos(held), tokens: 0, windows: [] }
  const { outcome } = extend(model, extension, timeOf(ended_at))
  return outcome === 'extended' ? undefined : `call ${id} had grown to ${held}, and the model says ${outcome}`
}

function beginOf(model: Model, row: ChargeRow, held: bigint): string | undefined {
  const { outcome } = begin(model, callOf({ ...row, held }), timeOf(row.begun_at))
  return outcome === 'begun' ? undefined : `call ${row.id} was begun, and the model says ${outcome}`
}

function endOf(model: Model, { id, account_id, outcome, amount, overrun, ended_at }: ChargeRow): string | undefined {
  const asked = amount + overrun
  const ending = {
    id,
    accountId: account_id,
    // A void of what may have been asked has its bound as overrun.
    amount: outcome === 'voided' && asked === 0n ? null : asked,
    forgiven: outcome === 'voided' && asked > 0n,
    tokensUsed: 0,
  }
  const said = settle(model, ending, timeOf(ended_at))
  return said.outcome === outcome && said.amount === amount && said.overrun === overrun
    ? undefined
    : `call ${id} was ${outcome} with ${amount}, and the model says ${said.outcome} with ${said.amount}`
}

function entryOf(model: Model, row: EntryRow): string | undefined {
  const { id, account_id, kind, credited, charged, corrects } = row
  const said = () => {
    if (kind === 'payment') return credit(model, id, account_id, credited) ? credited : 0n
    if (kind === 'payment_reversal') return -reversePayment(model, id, corrects ?? '', -credited, kind)
    if (kind === 'charge_reversal') return -reverseCharge(model, id, corrects ?? '', -charged)
    if (kind === 'forgiveness') return -forgiveCharge(model, corrects ?? '', -charged)
    throw new Error(`nobody makes entries of kind ${kind} here`)
  }
  const [model_, ledger] = [said(), credited + charged]
  return model_ === ledger ? undefined : `entry ${id} (${kind}) is ${ledger}, and the model says ${model_}`
}

function callOf({ id, account_id, credential_id, operation, held, allowances }: ChargeRow): Call {
  return {
    id,
    accountId: account_id,
    credentialId: credential_id ?? '',
    operation: operation ?? '',
    hold: { amount: nanos(held), terms: '', allowances },
    tokens: 0,
    windows: [],
    claims: [],
  }
}

async function modelOf({ charges, cluster }: Evidence, accountId: Id): Promise<Model> {
  const model = createModel()
  model.accounts.set(accountId, newAccount())
  for (const { account_id, credential_id } of charges.values())
    if (account_id === accountId && credential_id !== null)
      model.credentials.set(credential_id, { accountId, active: true })
  const { rows } = await cluster.pool.query<{ id: Id; period: 'day' | 'month' | 'total'; amount: bigint }>(
    'select id, period, amount from allowances where account_id = $1',
    [accountId],
  )
  for (const { id, period, amount } of rows) model.allowances.set(id, { accountId, period, amount })
  return model
}

function timeOf(text: string | null): bigint {
  return text === null ? 0n : microseconds(text)
}
