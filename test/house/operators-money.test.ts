import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { formatUsd, nanos, ZERO } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import type { Action, OperatorParts } from '../../server/src/operate/action.ts'
import { credit } from '../../server/src/operate/credit.ts'
import { refund } from '../../server/src/operate/refund-charge.ts'
import { createSendMail } from '../../server/src/storage/mail.ts'
import { ACTOR, ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { callOf, openSession, postOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { assertAgreed, assertCallsAgreed, digestOf } from './operators-money.ts'

/**
 * Calls, and what operators do about money by command, in any order: after each step account, statement, usage and every call's own record agree to the
 * nano; and each command, sent again at once and again at the end, changes nothing.
 */
const SEQUENCES = count({ full: 600, reduced: 20 })
const STEPS_MAX = 24

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(() => Promise.all([session.close(), pools.close()]))

const seal = createSeal({ current: makeMasterKey() })
const letters = { sendMail: createSendMail({ ids, seal }), siteUrl: 'https://site.example' }
const parts: OperatorParts = {
  ...{ pool, ids, clock: systemClock, by: ACTOR },
  settings: {
    testCredit: ZERO,
    lossCeilings: Object(null),
    rerankModels: [],
    siteUrl: letters.siteUrl,
    quoteKeys: [],
  },
  seal: async () => seal,
  letters: async () => letters,
  say: () => {},
}

/** As it is written on the command line. */
type Line = { readonly action: Action; readonly given: Readonly<Record<string, string | boolean>> }

type Step =
  | { readonly do: 'call'; readonly hold: number; readonly amount: number | null }
  | { readonly do: 'credit'; readonly kind: 'payment' | 'promotion'; readonly amount: number; readonly named: boolean }
  | { readonly do: 'reverse'; readonly which: number }
  | {
      readonly do: 'refund'
      readonly which: number
      readonly amount: number | null
      readonly goodwill: boolean
      readonly reason: number
    }
  | { readonly do: 'add up' }

const which = fc.nat(1_000)
const some = fc.integer({ min: 1, max: 90 })
const perhaps = (amount: fc.Arbitrary<number>, freq: number) => fc.option(amount, { freq })
const WEIGHTED: readonly (readonly [number, fc.Arbitrary<Step>])[] = [
  [8, fc.record({ do: fc.constant('call' as const), hold: some, amount: perhaps(fc.nat(90), 6) })],
  [
    4,
    fc.record({
      do: fc.constant('credit' as const),
      kind: fc.constantFrom('payment' as const, 'promotion' as const),
      amount: some,
      named: fc.boolean(),
    }),
  ],
  [2, fc.record({ do: fc.constant('reverse' as const), which })],
  [
    7,
    fc.record({
      ...{ do: fc.constant('refund' as const), which, goodwill: fc.boolean(), reason: fc.nat(1) },
      amount: perhaps(fc.integer({ min: 1, max: 60 }), 2),
    }),
  ],
  [2, fc.constant({ do: 'add up' as const })],
]
const step = fc.oneof(...WEIGHTED.map(([weight, arbitrary]) => ({ weight, arbitrary })))

/** Every "always" has a "sometimes". */
const MUST_HAPPEN = [
  ...[
    'call posted',
    'call voided',
    'call refused',
    'payment',
    'promotion',
    'reverse payment',
    'reverse promotion',
    'reverse before',
  ],
  ...[
    'refund whole',
    'refund part',
    'refund of goodwill',
    'refund refused',
    'refund before',
    'a refund pays debt',
    'promotional credit comes back',
  ],
]

type World = Awaited<ReturnType<typeof makeWorld>>

async function makeWorld() {
  const { workspaceId, accountId, keyId } = await makeCustomer(pool)
  await makeMember(pool, workspaceId)
  const [calls, charged, credits, lines]: [Id[], Id[], Id[], Line[]] = [[], [], [], []]
  return { workspaceId, accountId, party: { accountId, credentialId: keyId }, calls, charged, credits, lines }
}

const inUsd = (amount: number) => formatUsd(nanos(BigInt(amount)))
const creditAction = credit[0] ?? assert.fail()

async function runLine({ action, given }: Line): Promise<object> {
  return action.run(parts, action.input.parse(given))
}

/** What came of a line in a word; a refusal leaves nothing. */
async function answerTo(line: Line): Promise<Record<string, unknown> | Error> {
  return runLine(line).then(
    (result) => ({ ...result }),
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  )
}

async function makeCall({ party, calls, charged }: World, { hold, amount }: Extract<Step, { do: 'call' }>) {
  const call = callOf(party, { hold: BigInt(hold), operation: hold % 2 === 0 ? 'probe' : 'rerank' })
  const [judgement] = await session.begin(call)
  if (judgement?.outcome !== 'begun') return 'call refused'
  const ending = amount === null ? { ...postOf(call, 0n), amount: null } : postOf(call, BigInt(amount))
  const [settlement] = await session.end(ending)
  calls.push(call.id)
  if (settlement !== undefined && settlement.charged > ZERO) charged.push(call.id)
  return `call ${settlement?.outcome}`
}

function lineOf(world: World, command: Exclude<Step, { do: 'call' | 'add up' }>): Line | undefined {
  const { workspaceId, charged, credits } = world
  if (command.do === 'credit') {
    const id = ids.next()
    credits.push(id)
    const reference = command.named ? { reference: `transfer ${id}`, note: 'By hand.' } : {}
    const given = { account: workspaceId, amount: inUsd(command.amount), kind: command.kind, id, ...reference }
    return { action: creditAction, given }
  }
  const of = command.do === 'reverse' ? credits : charged
  const id = of[command.which % Math.max(1, of.length)]
  if (id === undefined) return undefined
  if (command.do === 'reverse') return { action: creditAction, given: { reverse: id } }
  const amount = command.amount === null ? {} : { amount: inUsd(command.amount) }
  const reason = `Reason ${command.reason}.`
  return { action: refund, given: { call: id, reason, goodwill: command.goodwill, ...amount } }
}

function wordOf(command: Step, answer: Record<string, unknown> | Error): string {
  if (answer instanceof Error) return `${command.do} refused`
  if (answer.isNew !== true) return `${command.do} before`
  if (command.do === 'credit') return command.kind
  if (command.do === 'reverse') return `reverse ${answer.kind}`
  if (command.do === 'refund' && command.goodwill) return 'refund of goodwill'
  return `refund ${command.do === 'refund' && command.amount === null ? 'whole' : 'part'}`
}

const moneyOf = async ({ accountId }: World) =>
  (await pool.query<Record<'debt' | 'promo', bigint>>('select debt, promo from accounts where id = $1', [accountId]))
    .rows[0] ?? assert.fail()

describe('calls, and what operators do about money by command', () => {
  it('agree to the nano in account, statement, usage and records, and a command that is repeated changes nothing', async () => {
    const happened: Record<string, number> = {}
    const note = (word: string) => {
      happened[word] = (happened[word] ?? 0) + 1
    }
    let replays = 0

    async function replay(world: World, line: Line): Promise<void> {
      const before = await digestOf(pool, world)
      const answer = await answerTo(line)
      assert.ok(answer instanceof Error || answer.isNew === false, JSON.stringify(line.given))
      assert.equal(await digestOf(pool, world), before, JSON.stringify(line.given))
      replays += 1
    }

    async function take(world: World, one: Step): Promise<void> {
      if (one.do === 'add up') return void (await addUpUsage(pool))
      if (one.do === 'call') return note(await makeCall(world, one))
      const line = lineOf(world, one)
      if (line === undefined) return
      const before = await moneyOf(world)
      const answer = await answerTo(line)
      note(wordOf(one, answer))
      const now = await moneyOf(world)
      if (one.do === 'refund' && now.debt < before.debt) note('a refund pays debt')
      if (one.do === 'refund' && now.promo > before.promo) note('promotional credit comes back')
      world.lines.push(line)
      await replay(world, line)
    }

    const sequence = fc.noBias(fc.array(step, { minLength: 8, maxLength: STEPS_MAX, size: 'max' }))
    await fc.assert(
      fc.asyncProperty(sequence, async (steps) => {
        const world = await makeWorld()
        await take(world, { do: 'credit', kind: 'payment', amount: 80, named: true })
        for (const one of steps) {
          await take(world, one)
          await assertAgreed(pool, world)
        }
        // However late, and in another order.
        for (const line of world.lines.toReversed()) await replay(world, line)
        await assertAgreed(pool, world)
        await assertCallsAgreed(pool, world)
      }),
      { numRuns: SEQUENCES, seed, endOnFailure: true, examples: TELLING.map((steps) => [[...steps]]) },
    )
    assert.deepEqual(
      MUST_HAPPEN.filter((one) => happened[one] === undefined),
      [],
      JSON.stringify(happened),
    )
    recordProof('operators-money', 'agree to the nano, and what is repeated changes nothing', {
      ...{ sequences: SEQUENCES, replays, happened },
    })
  })
})

/** What is seldom: a payment that is reversed after it was spent, so that a refund pays debt; and a promotion that comes back. */
const TELLING: readonly (readonly Step[])[] = [
  [
    { do: 'call', hold: 80, amount: 70 },
    { do: 'reverse', which: 0 },
    { do: 'refund', which: 0, amount: 20, goodwill: false, reason: 0 },
    { do: 'refund', which: 0, amount: 20, goodwill: false, reason: 0 },
    { do: 'refund', which: 0, amount: null, goodwill: true, reason: 1 },
    { do: 'refund', which: 0, amount: 5, goodwill: true, reason: 1 },
    { do: 'call', hold: 80, amount: 1 },
  ],
  [
    { do: 'credit', kind: 'promotion', amount: 30, named: true },
    { do: 'call', hold: 40, amount: 35 },
    { do: 'call', hold: 20, amount: null },
    { do: 'add up' },
    { do: 'refund', which: 0, amount: null, goodwill: false, reason: 0 },
    { do: 'reverse', which: 1 },
    { do: 'reverse', which: 1 },
    { do: 'add up' },
  ],
]
