import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, isFullProof, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { sumsOf } from '../model/account.ts'
import { accountOf } from '../model/entries.ts'
import { brokenPromises } from '../model/promises.ts'
import { compareAccounts, compareRows } from '../model/rows.ts'
import { makeScene, race, replay } from './reversals-race.ts'
import { type Answer, isDone, makeStage, ordersOf, play, STEPS, type Step } from './reversals-steps.ts'
import { watch } from './reversals-watcher.ts'
import { openSession } from './session.ts'
import { connect, emptyTables } from './world.ts'

/**
 * A payment that is refunded, disputed and won back, and a call and promotional credit that it meets, in every order: a
 * step that has nothing to act on changes nothing, and each is done once however often it is sent.
 */
const database = await freshDatabase()
const { pools } = connect(database.url)
const { pools: watching } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close(), watching.close()]))

/** Less than the grant, less than the payment, more than either. */
const HOLDS = [20n, 60n, 110n]
const FROM_THE_START = count({ full: 5_040, reduced: 60 })
const IN_THE_ORDER = count({ full: 1_500, reduced: 30 })

const RACES = count({ full: 500, reduced: 15 })
const VERIFIED_AT_ONCE = 30

type Figures = { answers: Record<string, number>; sent: number }

describe('payment, call, refund, dispute, won dispute and expiry', () => {
  for (const [title, steps, orders] of [
    ['keep every promise in every order, with promotional credit from the start', STEPS, FROM_THE_START],
    ['keep every promise with promotional credit granted anywhere in the order', [...STEPS, 'grant'], IN_THE_ORDER],
  ] as const) {
    it(title, async () => {
      const watcher = watch(watching.rest)
      const figures: Figures = { answers: {}, sent: 0 }
      const accounts: Id[] = []
      let played = 0
      for (const order of chosen(steps, orders)) {
        const holdAmount = HOLDS[played % HOLDS.length] ?? 0n
        accounts.push(await playOrder(order, holdAmount, steps === STEPS, figures, watcher.look))
        played += 1
        if (accounts.length === VERIFIED_AT_ONCE) await watcher.aside(() => verifyAndForget(accounts.splice(0)))
      }
      await watcher.aside(() => verifyAndForget(accounts))
      const { broken, ...watched } = await watcher.stop()
      assert.deepEqual(broken, [])
      assert.equal(played, orders)
      assert.ok(watched.looks > 0)
      sometimes(watched.looks > orders && watched.differentSums > 1, 'looks from between the steps')
      for (const [what, times] of Object.entries(watched)) sometimes(times > 0, `a look that finds ${what}`)
      for (const one of MUST_BE_ANSWERED)
        assert.ok(figures.answers[one], `never answered: ${one} of ${JSON.stringify(figures.answers)}`)
      recordProof('ledger-reversals', title, { orders: played, ...figures, watched })
    })
  }
})

describe('verbs that are sent at once', () => {
  it('are each done once, whichever of three connections comes first', async () => {
    const sessions = await Promise.all([1, 2, 3].map(() => openSession(database.url)))
    const firsts = new Set<string>()
    try {
      for (let at = 0; at < RACES; at += 1) {
        const scene = await makeScene(pool, session)
        const shuffles = fc.shuffledSubarray([...scene.verbs, null], { minLength: scene.verbs.length + 1 })
        const orders = fc.sample(shuffles, { seed: seed + at, numRuns: sessions.length })
        const answers = await race(sessions, orders)
        firsts.add(await replay(pool, scene, sessions.length, answers))
        assert.deepEqual(await verifyLedger(pool, [scene.party.accountId]), [])
        await emptyTables(
          pool,
          'accounts',
          'credentials',
          'holds',
          'charges',
          'claims',
          'usage_totals',
          'usage_sums',
          'usage_tail',
        )
      }
    } finally {
      await Promise.all(sessions.map((one) => one.close()))
    }
    sometimes(firsts.size > RACES / 4, 'races were won in many different orders')
    const figures = { races: RACES, connections: sessions.length, differentOrders: firsts.size }
    recordProof('ledger-reversals', 'are each done once, whichever of three connections comes first', figures)
  })
})

/** Each is played with every hold: all is spent before it expires; nothing is there yet; credit lapses; the end comes first. */
const TELLING = [
  ['top-up', 'hold', 'charge', 'expiry', 'dispute', 'refund', 'win'],
  ['refund', 'dispute', 'win', 'hold', 'charge', 'expiry', 'top-up'],
  ['top-up', 'hold', 'expiry', 'dispute', 'charge', 'win', 'refund'],
  ['charge', 'hold', 'top-up', 'refund', 'dispute', 'win', 'expiry'],
] as const

const MUST_BE_ANSWERED = [
  ...['hold begun', 'hold money_spent', 'hold ended', 'charge posted', 'charge voided', 'win done'],
  ...['refund done', 'refund 0', 'refund there is no payment', 'dispute done', 'dispute there is no payment'],
  ...['win there is no dispute', 'expiry done', 'expiry 0', 'top-up done', 'in debt', 'lapsed'],
]

/** All orders where there are to be as many; else those that show what is seldom, and a sample by the seed. */
function chosen(steps: readonly Step[], orders: number): Iterable<readonly Step[]> {
  if (isFullProof && steps === STEPS) return ordersOf(steps)
  const told = TELLING.flatMap((order) => HOLDS.map(() => (steps === STEPS ? order : (['grant', ...order] as const))))
  const numRuns = orders - told.length
  return [...told, ...fc.sample(fc.shuffledSubarray([...steps], { minLength: steps.length }), { seed, numRuns })]
}

/** What breaks a promise is looked for in whole tables: rows of orders that are done would slow it down. */
async function verifyAndForget(accounts: readonly Id[]): Promise<void> {
  assert.deepEqual(await verifyLedger(pool, accounts), [])
  await emptyTables(
    pool,
    'accounts',
    'credentials',
    'holds',
    'charges',
    'claims',
    'usage_totals',
    'usage_sums',
    'usage_tail',
  )
}

async function playOrder(
  order: readonly Step[],
  holdAmount: bigint,
  isGranted: boolean,
  figures: Figures,
  look: (accountId: Id) => void,
): Promise<Id> {
  const stage = await makeStage(pool, session, holdAmount)
  const { model, party } = stage
  const sums = () => sumsOf(accountOf(model, party.accountId))
  look(party.accountId)
  if (isGranted) await play(stage, 'grant')
  const done: Step[] = []
  for (const step of order) {
    const first = await play(stage, step)
    const onceDone = sums()
    const again = await play(stage, step)
    await compareAccounts(pool, model)
    assert.deepEqual(sums(), onceDone, `${step} is done once`)
    // A credit answers whether it was added, and an expiry how many grants there were: a second one has none.
    if (typeof first.did === 'boolean' || typeof first.did === 'number') assert.equal(isDone(again), false)
    else assert.deepEqual(again, first)
    assert.deepEqual(brokenPromises(model), [])
    if (isDone(first)) done.push(step)
    note(figures, wordOf(step, first))
    if (onceDone.debt > 0n) note(figures, 'in debt')
    if (onceDone.lapsed > 0n) note(figures, 'lapsed')
  }
  const before = sums()
  for (const step of done) await play(stage, step)
  assert.deepEqual(sums(), before, 'what was done is not done again, however late it is sent')
  await compareRows(pool, model)
  figures.sent += order.length * 2 + done.length
  return party.accountId
}

function wordOf(step: Step, answer: Answer): string {
  const word = String(answer.error ?? answer.did).replace(/ (\d|[0-9a-f]{8}-).*$/, '')
  return `${step} ${/^[a-z]/.test(word) && word !== 'true' ? word : isDone(answer) ? 'done' : '0'}`
}

function note({ answers }: Figures, word: string): void {
  answers[word] = (answers[word] ?? 0) + 1
}
