import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../../harness/gateways.ts'
import { count, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { CONVERSATION_SLOTS, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { Random } from '../../../sandbox/src/random.ts'
import { resolveCall } from '../../../server/src/calls/orphans.ts'
import { nanos, usd } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { ids, makeCustomer, makeKey, startInstallation } from '../installation.ts'
import { chargesOf, costOf, hear, limited, PROTOCOLS, streamed } from './streams.ts'

/**
 * Streams that grow, on a balance and on budgets of keys that can't carry them all, through three processes of which one after the other is
 * killed, by callers of whom some leave. Whoever looks sees every promise kept; nobody gets what is not held for; and nothing stays held.
 */
const STREAMS = count({ full: 200, reduced: 40 })
const ROUNDS = count({ full: 10, reduced: 2 })
const MODEL = 'grow/killed'
/** Enough for about a third of what is asked for, though each needs far less than it asks for. */
const MONEY = usd('0.002') * BigInt(STREAMS)
const BUDGET = MONEY / 3n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3, env: { FAREBOX_LOG_LEVEL: 'error' } })
const { pool } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})
await saveModel({ pool }, { id: MODEL, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: MODEL, ...SANDBOX_PRICE })
for (const protocol of PROTOCOLS)
  await saveRoute(
    { pool, ids },
    {
      model: MODEL,
      slot: CONVERSATION_SLOTS[protocol],
      protocol,
      upstreamModel: 'sandbox/text',
      profile: { abort: 'stops', output: 'seen', tokenBytes: 3 },
    },
  )

const random = new Random(seed)

/** One stream after its whole life, or what could be heard of it. */
async function sendOne(secret: string): Promise<string> {
  const protocol = random.pick(PROTOCOLS)
  const answer = random.between(100, 6_000)
  const words = `sandbox:output-tokens=${answer} sandbox:delta-bytes=90 sandbox:delta-ms=${random.between(1, 8)}`
  const question = streamed(protocol, MODEL, words, limited(protocol, 32_000))
  const leaving = random.chance(0.2) ? { atByte: random.between(1, 20_000) } : {}
  const { url } = team[random.between(0, team.length - 1)] ?? { url: '' }
  const { status, events, end } = await hear(url, secret, question, leaving)
  if (status !== 200) return status === 0 ? 'unheard' : String(status)
  if (end !== 'clean') return end
  return JSON.stringify(events).includes('"ended_by"') ? 'at the ceiling' : 'whole'
}

async function killOne(): Promise<boolean> {
  const victim = team[random.between(0, team.length - 1)]
  if (victim === undefined || victim.hasExited()) return false
  await victim.kill()
  team[team.indexOf(victim)] = await victim.restart()
  return true
}

describe('streams that grow, through processes that are killed', () => {
  it(`(${ROUNDS} × ${STREAMS}, seed ${seed}) never use what is not held, lose nothing and leak nothing`, async () => {
    const outcomes: Record<string, number> = {}
    let [instants, kills, grown, orphans] = [0, 0, 0, 0]
    for (let round = 0; round < ROUNDS; round += 1) {
      const customer = await makeCustomer(pool, { money: MONEY })
      const { accountId, workspaceId } = customer
      const budget = { period: 'total', amount: nanos(BUDGET) } as const
      const limited_ = await makeKey(pool, workspaceId, { budget })
      let isOver = false
      const watching = watch()
      const running = Promise.all(
        Array.from({ length: STREAMS }, async (_, at) => {
          await delay(random.between(0, 1_500))
          const how = await sendOne(at % 2 === 0 ? customer.secret : limited_.secret)
          outcomes[how] = (outcomes[how] ?? 0) + 1
        }),
      )
      for (let kill = 0; kill < 2; kill += 1) {
        await delay(600)
        if (await killOne()) kills += 1
      }
      await running
      const left = await untilSettled(accountId)
      isOver = true
      await watching
      orphans += left.length
      for (const { id, amount } of left) await resolveCall(pool, id, nanos(amount))
      const charges = [...(await chargesOf(pool, { accountId })).values()]
      for (const { amount, held, overrun, outcome, tokens, id } of charges) {
        assert.ok(amount <= held, id)
        assert.equal(overrun, 0n, id)
        if (outcome === 'posted' && !left.some((one) => one.id === id)) assert.equal(amount, costOf(tokens), id)
      }
      grown += charges.filter(({ held }) => held > 2n * 1_024n * 2_000n).length
      assert.deepEqual(await verifyLedger(pool, [accountId]), [])
      const { rows } = await pool.query<{ held: bigint }>('select held from accounts where id = $1', [accountId])
      assert.equal(rows[0]?.held, 0n)

      async function watch(): Promise<void> {
        while (!isOver) {
          assert.deepEqual(await verifyLedger(pool, [accountId]), [])
          instants += 1
          await delay(50)
        }
      }
    }
    const figures = { streams: ROUNDS * STREAMS, kills, instants, outcomes, grown, orphans }
    console.log(JSON.stringify(figures))
    assert.ok(kills > 0)
    for (const how of ['whole', 'at the ceiling', 'cut', '402'])
      sometimes((outcomes[how] ?? 0) > 0, `a stream that ends ${how}`)
    sometimes(grown > 0, 'holds that grew')
    sometimes(orphans > 0, 'orphans')
    recordProof('growing', 'streams through processes that are killed', figures)
  })
})

/** What those left behind that died: held until somebody says what it came to. */
async function untilSettled(accountId: string): Promise<readonly { readonly id: string; readonly amount: bigint }[]> {
  const openHolds = async () => {
    const { rows } = await pool.query<{ id: string; amount: bigint; unsettled: boolean }>(
      'select id, amount, unsettled_at is not null as unsettled from holds where account_id = $1',
      [accountId],
    )
    return rows
  }
  await until(async () => (await openHolds()).every(({ unsettled }) => unsettled), 2 * PATIENCE_MS, 'the orphans')
  return openHolds()
}
