import assert from 'node:assert/strict'
import type { Call } from '../../server/src/calls/call.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount, expirePromotions } from '../../server/src/ledger/credit.ts'
import { reversePayment, winDispute } from '../../server/src/ledger/reverse.ts'
import { newAccount } from '../model/account.ts'
import * as credits from '../model/credits.ts'
import * as oracle from '../model/ledger-model.ts'
import { microseconds } from './instants.ts'
import { callOf, makeParty, type Party, postOf, type Session } from './session.ts'
import { ids, type pg } from './world.ts'

/** What can happen to one payment, one call and one grant of promotional credit, each under an id of its own. */
export const STEPS = ['top-up', 'hold', 'charge', 'refund', 'dispute', 'win', 'expiry'] as const
export type Step = (typeof STEPS)[number] | 'grant'

export type Stage = {
  readonly pool: pg.Pool
  readonly session: Session
  readonly model: oracle.Model
  readonly party: Party
  readonly call: Call
  readonly paymentId: Id
  readonly refundId: Id
  readonly disputeId: Id
  readonly winId: Id
  readonly grantId: Id
}

const TOP_UP = nanos(100n)
const GRANT = nanos(30n)
const CHARGE = nanos(45n)
const REFUND = nanos(70n)
const EXPIRES_IN_MS = 3_600_000

export async function makeStage(pool: pg.Pool, session: Session, holdAmount: bigint): Promise<Stage> {
  const model = oracle.createModel()
  const party = await makeParty(pool, 0n)
  model.accounts.set(party.accountId, newAccount())
  model.credentials.set(party.credentialId, { accountId: party.accountId, active: true })
  return {
    pool,
    session,
    model,
    party,
    call: callOf(party, { hold: holdAmount }),
    paymentId: ids.next(),
    refundId: ids.next(),
    disputeId: ids.next(),
    winId: ids.next(),
    grantId: ids.next(),
  }
}

/** The answer to a step, or the message of the error where there was nothing to act on. */
export type Answer = { readonly did: bigint | boolean | number | string; readonly error?: string }

/** Sends a step to PostgreSQL and to the model, which must answer the same. */
export async function play(stage: Stage, step: Step): Promise<Answer> {
  const [there, here] = await PLAYS[step](stage)
  const answer = await answerOf(there)
  assert.deepEqual(answer, await answerOf(here(answer)), step)
  return answer
}

/** Whether the step changed something, so that it must never do so again. */
export function isDone({ did, error }: Answer): boolean {
  return error === undefined && did !== 0n && did !== false && did !== 0 && did !== 'money_spent' && did !== 'ended'
}

type Play = (stage: Stage) => Promise<[there: Promise<Told>, here: (told: Answer) => Promise<Told>]>
type Told = Answer['did']

const PLAYS: Readonly<Record<Step, Play>> = {
  'top-up': async ({ pool, model, party: { accountId }, paymentId }) => [
    creditAccount(pool, { entryId: paymentId, accountId, kind: 'payment', amount: TOP_UP }),
    async () => credits.credit(model, paymentId, accountId, TOP_UP),
  ],
  grant: async ({ pool, model, party: { accountId }, grantId }) => {
    const expiresAt = new Date(Date.now() + EXPIRES_IN_MS)
    return [
      creditAccount(pool, { entryId: grantId, accountId, kind: 'promotion', amount: GRANT, expiresAt }),
      async () => credits.credit(model, grantId, accountId, GRANT, BigInt(expiresAt.getTime()) * 1000n),
    ]
  },
  hold: async ({ session, model, call }) => {
    const [judgement] = await session.begin(call)
    return [
      Promise.resolve(judgement?.outcome ?? ''),
      async () => oracle.begin(model, call, microseconds(judgement?.judgedAt ?? '')).outcome,
    ]
  },
  charge: async ({ session, model, call }) => {
    const ending = postOf(call, CHARGE)
    const [settlement] = await session.end(ending)
    const told = (one: Omit<oracle.ModelSettlement, 'outcome' | 'left'> & { outcome: string }) =>
      `${one.outcome} ${one.charged} ${one.overrun} ${one.free}`
    return [
      Promise.resolve(settlement === undefined ? '' : told(settlement)),
      async () => told(oracle.end(model, ending, microseconds(settlement?.settledAt ?? ''))),
    ]
  },
  refund: async ({ pool, model, paymentId, refundId }) => [
    reversePayment(pool, { reversalId: refundId, paymentId, kind: 'payment_reversal', most: REFUND }),
    async () => credits.reversePayment(model, refundId, paymentId, REFUND, 'payment_reversal'),
  ],
  dispute: async ({ pool, model, paymentId, disputeId }) => [
    reversePayment(pool, { reversalId: disputeId, paymentId, kind: 'dispute', most: TOP_UP }),
    async () => credits.reversePayment(model, disputeId, paymentId, TOP_UP, 'dispute'),
  ],
  win: async ({ pool, model, winId, disputeId }) => [
    winDispute(pool, winId, disputeId),
    async () => credits.winDispute(model, winId, disputeId),
  ],
  expiry: async ({ pool, model, party }) => {
    await pool.query('update promotions set expires_at = least(expires_at, clock_timestamp()) where account_id = $1', [
      party.accountId,
    ])
    for (const { grants } of model.accounts.values()) for (const grant of grants) grant.expiresAtUs = 0n
    return [expirePromotions(pool), async () => credits.expire(model, 0n)]
  },
}

async function answerOf(told: Promise<Told>): Promise<Answer> {
  try {
    return { did: await told }
  } catch (error) {
    if (!(error instanceof Error) || !/^there is no (payment|dispute) /.test(error.message)) throw error
    return { did: 'nothing', error: error.message }
  }
}

/** Every order of some things. */
export function* ordersOf<T>(things: readonly T[]): Generator<readonly T[]> {
  if (things.length === 0) yield []
  for (const [place, first] of things.entries())
    for (const rest of ordersOf(things.toSpliced(place, 1))) yield [first, ...rest]
}
