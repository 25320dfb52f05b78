import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { Gateway } from '../../../harness/gateways.ts'
import { count, isFullProof, recordProof, seed, sometimes } from '../../../harness/proof.ts'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { hashOf, Random } from '../../../sandbox/src/random.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ask, type Customer, errorOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import {
  type Charge,
  chargesOf,
  costOf,
  leftOver,
  PROTOCOLS,
  type Protocol,
  question,
  settled,
  streamed,
  tokensIn,
  upstreamOf,
} from './streams.ts'

const QUOTA = count({ full: 1_000, reduced: 200 })
const WINDOW_MS = 60_000
/** Twice the quota is offered: through a whole window and into the next one, or all at the beginning of a window. */
const OFFERED_WITHIN_MS = count({ full: WINDOW_MS, reduced: 5_000 })
const INTO_THE_NEXT_MS = count({ full: 6_000, reduced: 0 })
const EVERY_MS = OFFERED_WITHIN_MS / (2 * QUOTA)
const USED_LEAST = 0.9
/** The journal's clock is not PostgreSQL's. */
const CLOCKS_MS = 20
/** A window begins before the first call of it arrives. */
const BEFORE_THE_FIRST_MS = 10_000
const MONEY = 1_000_000_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { pool, sandbox, masterKey, gateways } = installation
after(installation.stop)
const seal = createSeal({ current: masterKey })

/** A model at one upstream with the quota; it has the same name there. */
async function makeModel(protocol: Protocol): Promise<{ readonly model: string; readonly upstreamId: Id }> {
  const model = `maker/${ids.next()}`
  const slot = `slot-${ids.next()}`
  const credential = new Secret('sandbox-key')
  const upstream = {
    slot,
    mode: 'test',
    baseUrl: `${sandbox.url}/${upstreamOf(protocol)}`,
    kind: 'native',
    credential,
  } as const
  const upstreamId = await saveUpstream({ pool, ids, seal }, { ...upstream, requestsPerMinute: QUOTA })
  await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
  await saveRoute({ pool, ids }, { model, slot, protocol, upstreamModel: model })
  return { model, upstreamId }
}

/** Asks at a steady pace whatever becomes of it, at any of the processes, streamed and not. */
async function offer({ secret }: Customer, protocol: Protocol, model: string): Promise<Told[]> {
  const random = new Random(hashOf(seed, `quota ${protocol}`))
  const startedMs = performance.now()
  const asked: Promise<Told>[] = []
  for (let dueMs = 0; dueMs < OFFERED_WITHIN_MS + INTO_THE_NEXT_MS; dueMs += EVERY_MS) {
    await delay(Math.max(0, startedMs + dueMs - performance.now()))
    const { path, body } = random.chance(0.5) ? streamed(protocol, model) : question(protocol, model)
    const { url } = random.pick(gateways as [Gateway, ...Gateway[]])
    asked.push(ask(url, secret, path, { body }))
  }
  return Promise.all(asked)
}

/** What was asked before the window that is there now, and in it. The quota of the first was used up long before its end. */
async function windowsOf(journal: readonly JournalEntry[], upstreamId: Id): Promise<{ first: number; second: number }> {
  const { rows } = await pool.query(
    'select extract(epoch from started_at) * 1000 as at_ms from upstream_quotas where upstream_id = $1',
    [upstreamId],
  )
  const [startedMs, firstMs] = [Number(rows[0].at_ms), Math.min(...journal.map(({ at_ms }) => at_ms))]
  const before = journal.filter(({ at_ms }) => at_ms < startedMs - CLOCKS_MS).length
  if (before === 0) return { first: journal.length, second: 0 }
  assert.ok(startedMs - firstMs > WINDOW_MS - BEFORE_THE_FIRST_MS, 'a window is a minute')
  return { first: before, second: journal.length - before }
}

/** Who was refused is told when to come again, and pays nothing. */
function isRefused(told: Told, charge: Charge | undefined): void {
  const wait = Number(told.headers.get('retry-after'))
  assert.deepEqual([told.status, errorOf(told).code], [429, 'upstream_rate_limit'], told.text)
  assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 60, String(wait))
  assert.deepEqual(
    [charge?.outcome, charge?.amount, charge?.overrun, charge?.executed],
    ['voided', 0n, 0n, false],
    told.id,
  )
}

describe('LIMIT-3 the quota of an upstream under twice as many calls', { concurrency: true }, () => {
  for (const protocol of PROTOCOLS)
    it(`LIMIT-3 is never exceeded by three processes together, and used but for a tenth: ${protocol}`, async () => {
      const customer = await makeCustomer(pool, { money: MONEY })
      const { model, upstreamId } = await makeModel(protocol)
      const told = await offer(customer, protocol, model)
      await settled(pool, customer.accountId)

      const journal = (await sandbox.journal()).filter((entry) => entry.model === model)
      const { first, second } = await windowsOf(journal, upstreamId)
      assert.ok(first > 0 && first <= QUOTA && second <= QUOTA, `${first} and ${second} of ${QUOTA}`)
      sometimes(first >= USED_LEAST * QUOTA, `nine tenths of a window are used (${first} of ${QUOTA})`)
      if (isFullProof) assert.ok(second > 0)

      const charges = await chargesOf(pool, { accountId: customer.accountId })
      const entries = new Map(journal.map((entry) => [entry.request_id ?? '', entry]))
      assert.equal(entries.size, journal.length)
      const served = told.filter(({ id }) => entries.has(id))
      assert.equal(served.length, journal.length)
      for (const { id, status } of served)
        assert.deepEqual([status, charges.get(id)?.amount], [200, costOf(tokensIn(entries.get(id)?.usage))], id)
      const refused = told.filter(({ id }) => !entries.has(id))
      for (const one of refused) isRefused(one, charges.get(one.id))
      recordProof('quota', `under twice as many calls, ${protocol}`, {
        processes: gateways.length,
        quota: QUOTA,
        offered: told.length,
        over_seconds: (OFFERED_WITHIN_MS + INTO_THE_NEXT_MS) / 1_000,
        asked_in_the_window: first,
        asked_at_the_beginning_of_the_next: second,
        refused: refused.length,
        windows_in_which_the_quota_was_exceeded: 0,
        seed,
      })
    })
})

describe('LIMIT-3 calls beyond the quota of an upstream', () => {
  it('LIMIT-3 leave no hold, no place taken, and a ledger that adds up', async () => {
    const left = await leftOver(pool)
    assert.deepEqual(left, { holds: 0, claims: 0 })
    const violations = await verifyLedger(pool)
    assert.deepEqual(violations, [])
    recordProof('quota', 'what is left afterwards', { ...left, violations_of_the_ledger: violations.length })
  })
})
