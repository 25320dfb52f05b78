import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import type { UsageQuery } from '../../server/src/ledger/usage-query.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, postOf } from './session.ts'
import { inTail } from './usage-rows.ts'
import { connect, ids } from './world.ts'

/** Reports of one key that is charged thousands of times a second, through the ledger's statements, in batches as a gateway sends them. */
const PROOF = 'busy-key'
const CALLS_A_SECOND = 3_000
const SECONDS = count({ full: 60, reduced: 2 })
/** As many as a gateway puts into a statement. */
const BATCH = 256
const CALLS = BATCH * Math.ceil((CALLS_A_SECOND * SECONDS) / BATCH)
/** As often as the worker does. */
const ADD_UP_EVERY_MS = 500
/** Of calls, which may wait to be added up at the end. */
const TAIL_SECONDS = 5
const DAY = 86_400
/** Judged in proofs only. */
const LIMIT_MS = 300

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const PEOPLE = Array.from({ length: 1_000 }, (_, at) => ({ id: ids.next(), label: `person ${at}` }))

const TEAM = 3

/** Each by itself, so that all combine with all: of so many, one by chance, the same each time. */
function draw(at: number, salt: string, most: number): number {
  return createHash('md5').update(`${salt} ${at}`).digest().readUInt32LE(0) % most
}

/** Calls of many end users, models and runs, so that each has a row of the tail. */
async function chargeAll(party: Party, onCharged: (calls: number, ofTeam: number) => void): Promise<number> {
  const session = await openSession(database.url)
  const startedAtMs = performance.now()
  for (let from = 0; from < CALLS; from += BATCH) {
    let ofTeam = 0
    const calls = Array.from({ length: BATCH }, (_, place) => {
      const at = from + place
      const team = draw(at, 'team', 10)
      const tags = [
        { name: 'run', value: String(draw(at, 'run', 200)) },
        { name: 'team', value: String(team) },
      ]
      const endUser = PEOPLE[draw(at, 'person', PEOPLE.length)] ?? null
      const model = `model ${draw(at, 'model', 20)}`
      if (team === TEAM) ofTeam += 1
      return callOf(party, { hold: 2n, attribution: { model, endUser, tags } })
    })
    const begun = await outcomesOf(session.begin(...calls))
    assert.ok(begun.every((outcome) => outcome === 'begun'))
    await session.end(...calls.map((call) => postOf(call, 1n)))
    onCharged(BATCH, ofTeam)
    const aheadMs = ((from + BATCH) / CALLS_A_SECOND) * 1_000 - (performance.now() - startedAtMs)
    if (aheadMs > 0) await delay(aheadMs)
  }
  const tookMs = performance.now() - startedAtMs
  await session.close()
  return tookMs
}

/** The window that a caller has who asks for the last day, until now. */
function untilNow(scope: Party): UsageQuery {
  const nowSeconds = Math.floor(Date.now() / 1_000)
  return { scope, startSeconds: nowSeconds - DAY, endSeconds: nowSeconds + 1, nowSeconds }
}

const VIEWS = {
  plain: {},
  'by model': { groupBy: 'model' },
  'by end user': { groupBy: 'end_user' },
  'by run and hour': { groupBy: { tag: 'run' }, bucket: 'hour' },
  'by model, of a team': { groupBy: 'model', filter: { tag: { name: 'team', value: String(TEAM) } } },
} as const satisfies Readonly<Record<string, Partial<UsageQuery>>>

describe('a key that is charged all the time', () => {
  it('has in its report every call that was answered before it was asked for, and no other', async () => {
    const party = await makeParty(pool, 10n ** 12n)
    let [answered, answeredOfTeam, isDone, tailMost] = [0, 0, false, 0]
    const charging = chargeAll(party, (calls, ofTeam) => {
      answered += calls
      answeredOfTeam += ofTeam
    }).finally(() => {
      isDone = true
    })
    const adding = (async () => {
      while (!isDone) {
        tailMost = Math.max(tailMost, await inTail(pool))
        await addUpUsage(pool)
        await delay(ADD_UP_EVERY_MS)
      }
    })()
    const took = new Map<string, number[]>(Object.keys(VIEWS).map((name) => [name, []]))
    while (!isDone) {
      for (const [name, view] of Object.entries(VIEWS)) {
        const [known, askedAtMs] = ['filter' in view ? answeredOfTeam : answered, performance.now()]
        const { totals, groups } = await readUsage(pool, { ...untilNow(party), ...view })
        took.get(name)?.push(performance.now() - askedAtMs)
        assert.ok(totals.requests >= BigInt(known), `${totals.requests} of ${known}`)
        assert.ok(totals.requests <= BigInt(CALLS))
        if (groups !== undefined)
          assert.equal(
            groups.reduce((sum, group) => sum + group.totals.charged, 0n),
            totals.requests,
          )
      }
      await delay(200)
    }
    const callsASecond = Math.round((CALLS / (await charging)) * 1_000)
    const tailAtEnd = await inTail(pool)
    await adding
    while ((await inTail(pool)) > 0) await addUpUsage(pool)
    assert.equal((await readUsage(pool, untilNow(party))).totals.requests, BigInt(CALLS))
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'how many calls a second there were', {
      ...{ calls: CALLS, seconds: SECONDS, calls_a_second: callsASecond, reports: [...took.values()].flat().length },
      ...{
        answered_and_not_in_the_report: 0,
        rows_waiting_to_be_added_up_at_most: tailMost,
        and_at_the_end: tailAtEnd,
      },
    })
    if (isFullProof) assert.ok(callsASecond >= 0.98 * CALLS_A_SECOND, `${callsASecond} calls a second`)
    // Whoever adds up keeps up: what waits does not grow with the time that it goes on.
    if (isFullProof) assert.ok(tailAtEnd <= TAIL_SECONDS * CALLS_A_SECOND, `${tailAtEnd} rows wait to be added up`)
    for (const [name, samples] of took)
      judge(PROOF, `a report of a key with 3,000 calls a second, ${name}`, { unit: 'ms', atMost: LIMIT_MS }, samples)
  })
})
