import assert from 'node:assert/strict'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { reversePayment } from '../../server/src/ledger/reverse.ts'
import { newAccount, type Sums, sumsOf } from '../model/account.ts'
import * as credits from '../model/credits.ts'
import { accountOf } from '../model/entries.ts'
import * as oracle from '../model/ledger-model.ts'
import { callOf, makeParty, type Party, postOf, type Session } from './session.ts'
import { ids, type pg } from './world.ts'

/** An account with all that verbs can act on at once: a payment, a dispute of it, a charge, an open call, an expired grant. */
export type Scene = {
  readonly party: Party
  /** As it is when the race begins. */
  readonly model: oracle.Model
  readonly verbs: readonly Verb[]
}

/** A verb under one id: how it is sent to PostgreSQL, what it answers, and what it is in the model. */
export type Verb = {
  readonly name: string
  readonly id: Id
  readonly send: (session: Session) => Promise<unknown>
  readonly apply: (model: oracle.Model) => unknown
}

const NOW_US = 1_700_000_000_000_000n

export async function makeScene(pool: pg.Pool, session: Session): Promise<Scene> {
  const model = oracle.createModel()
  const party = await makeParty(pool, 0n)
  const { accountId, credentialId } = party
  model.accounts.set(accountId, newAccount())
  model.credentials.set(credentialId, { accountId, active: true })
  const [paymentId, grantId, lostId] = [ids.next(), ids.next(), ids.next()]
  await creditAccount(pool, { entryId: paymentId, accountId, kind: 'payment', amount: nanos(100n) })
  await creditAccount(pool, {
    entryId: grantId,
    accountId,
    kind: 'promotion',
    amount: nanos(30n),
    expiresAt: new Date(),
  })
  await reversePayment(pool, { reversalId: lostId, paymentId, kind: 'dispute', most: nanos(10n) })
  credits.credit(model, paymentId, accountId, 100n)
  credits.credit(model, grantId, accountId, 30n, NOW_US - 1n)
  credits.reversePayment(model, lostId, paymentId, 10n, 'dispute')

  const [ended, open] = [callOf(party, { hold: 40n }), callOf(party, { hold: 50n })]
  await session.begin(ended, open)
  await session.end(postOf(ended, 25n))
  for (const call of [ended, open]) oracle.begin(model, call, NOW_US)
  oracle.end(model, postOf(ended, 25n), NOW_US)
  return { party, model, verbs: verbsOf({ accountId, paymentId, lostId, chargeId: ended.id, openId: open.id }) }
}

type Named = Record<'accountId' | 'paymentId' | 'lostId' | 'chargeId' | 'openId', Id>

function verbsOf({ accountId, paymentId, lostId, chargeId, openId }: Named): Verb[] {
  const ending = {
    id: openId,
    accountId,
    amount: nanos(20n),
    forgiven: false,
    usage: { ...NO_USAGE, value: nanos(20n), executed: true },
  }
  return [
    verb('payment', "credit_account($1, $2, 'payment', 40)", [accountId], (model, id) =>
      credits.credit(model, id, accountId, 40n),
    ),
    verb('promotion', "credit_account($1, $2, 'promotion', 15)", [accountId], (model, id) =>
      credits.credit(model, id, accountId, 15n, credits.NEVER_US),
    ),
    verb('refund', 'reverse_payment($1, $2, 70)', [paymentId], (model, id) =>
      credits.reversePayment(model, id, paymentId, 70n, 'payment_reversal'),
    ),
    verb('dispute', "reverse_payment($1, $2, 50, 'dispute')", [paymentId], (model, id) =>
      credits.reversePayment(model, id, paymentId, 50n, 'dispute'),
    ),
    verb('win', 'win_dispute($1, $2)', [lostId], (model, id) => credits.winDispute(model, id, lostId)),
    verb('give back', 'reverse_charge($1, $2, 10)', [chargeId], (model, id) =>
      credits.reverseCharge(model, id, chargeId, 10n),
    ),
    {
      name: 'charge',
      id: openId,
      send: async (session) => (await session.end(ending))[0]?.charged,
      apply: (model) => oracle.end(model, ending, NOW_US).charged,
    },
  ]
}

function verb(name: string, call: string, of: readonly Id[], apply: (model: oracle.Model, id: Id) => unknown): Verb {
  const id = ids.next()
  return {
    name,
    id,
    send: async (session) => (await session.query(`select ${call} as answer`, [id, ...of]))[0]?.answer,
    apply: (model) => apply(model, id),
  }
}

async function expire(session: Session): Promise<unknown> {
  return (await session.query('select expire_promotions(1000) as answer'))[0]?.answer
}

/** Sends every verb, and the expiry of grants, over every connection at once, each in its own order. */
export async function race(sessions: readonly Session[], orders: readonly (readonly (Verb | null)[])[]) {
  const answers = new Map<string, unknown[]>()
  const sendAll = async (session: Session, order: readonly (Verb | null)[]) => {
    for (const one of order) {
      const name = one?.name ?? 'expiry'
      const answer = await (one?.send(session) ?? expire(session))
      answers.set(name, [...(answers.get(name) ?? []), answer])
    }
  }
  await Promise.all(sessions.map((session, at) => sendAll(session, orders[at] ?? [])))
  return answers
}

/**
 * Replays the verbs in the model in the order in which PostgreSQL wrote them. An expiry that takes nothing at once writes
 * nothing, so where expiries took place is not known: there must be places for them with which all comes out the same.
 */
export async function replay(
  pool: pg.Pool,
  { party, model, verbs }: Scene,
  expiries: number,
  answers: Map<string, unknown[]>,
): Promise<string> {
  const { rows: written } = await pool.query<{ id: Id }>(
    `select id from (
      select id, entered_at as at from entries where id = any ($1) union all select id, ended_at from charges where id = any ($1)
    ) row order by at`,
    [verbs.map(({ id }) => id)],
  )
  assert.equal(written.length, verbs.length, 'every verb was done, and was done once')
  const order = written.map(({ id }) => verbs.find((one) => one.id === id))
  const { rows } = await pool.query<Sums>(
    'select credited, debt, charged, held, promo, lapsed from accounts where id = $1',
    [party.accountId],
  )
  const expired = placesFor(expiries, order.length).map((places) => ({ places, copy: structuredClone(model) }))
  const found = expired.some(({ places, copy }) => {
    const isTold = replayWith(copy, order, places, answers)
    return isTold && textOf(sumsOf(accountOf(copy, party.accountId))) === textOf(rows[0])
  })
  const names = order.map((one) => one?.name).join(', ')
  assert.ok(found, `no place of the expiries explains what PostgreSQL did: ${names}; ${textOf(rows[0])}`)
  return names
}

/** Whether the model answers as PostgreSQL did, with expiries at these places of the order. */
function replayWith(
  model: oracle.Model,
  order: readonly (Verb | undefined)[],
  places: readonly number[],
  answers: ReadonlyMap<string, readonly unknown[]>,
): boolean {
  const expired: unknown[] = []
  const isSame = [...order, undefined].map((one, at) => {
    for (const place of places) if (place === at) expired.push(credits.expire(model, NOW_US))
    const answer = one?.apply(model)
    const told = answers.get(one?.name ?? '') ?? []
    // A credit says only once that it was added.
    return answer === true ? told.filter(Boolean).length === 1 : told.every((each) => each === answer)
  })
  return isSame.every(Boolean) && expired.toSorted().join() === (answers.get('expiry') ?? []).toSorted().join()
}

function placesFor(expiries: number, length: number): number[][] {
  if (expiries === 0) return [[]]
  return placesFor(expiries - 1, length).flatMap((places) =>
    Array.from({ length: length + 1 - (places.at(-1) ?? 0) }, (_, at) => [...places, (places.at(-1) ?? 0) + at]),
  )
}

function textOf(sums: Sums | undefined): string {
  return Object.entries(sums ?? {})
    .map(([column, amount]) => `${column} ${amount}`)
    .join(', ')
}
