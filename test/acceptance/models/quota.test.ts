import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { ask, errorOf, ids, makeCustomer, startInstallation, type Told } from '../installation.ts'
import {
  chargesOf,
  evidenceOf,
  leftOver,
  PROTOCOLS,
  type Protocol,
  question,
  settled,
  streamed,
  upstreamOf,
} from './streams.ts'

const QUOTA = 20

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { pool, sandbox, masterKey, gateways, url } = installation
after(installation.stop)
const seal = createSeal({ current: masterKey })

/** An upstream that our account there may ask so often a minute. */
async function makeSlot(protocol: Protocol, requestsPerMinute: number | null): Promise<string> {
  const slot = `slot-${ids.next()}`
  const credential = new Secret('sandbox-key')
  await saveUpstream(
    { pool, ids, seal },
    {
      slot,
      mode: 'test',
      baseUrl: `${sandbox.url}/${upstreamOf(protocol)}`,
      kind: 'native',
      credential,
      requestsPerMinute,
    },
  )
  return slot
}

/** A model at upstreams with these quotas, the first of which is asked first; what it is called there says which it was. */
async function makeModel(protocol: Protocol, quotas: readonly (number | null)[]): Promise<string> {
  const model = `maker/${ids.next()}`
  await saveModel({ pool }, { id: model, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model, ...SANDBOX_PRICE })
  for (const [priority, quota] of quotas.entries())
    await saveRoute(
      { pool, ids },
      { model, slot: await makeSlot(protocol, quota), protocol, upstreamModel: `${model}-${priority}`, priority },
    )
  return model
}

/** Twice as many as the quota, at once, at all processes, streamed and not. */
function askTwiceAsOften(secret: string, protocol: Protocol, model: string): Promise<Told[]> {
  return Promise.all(
    Array.from({ length: 2 * QUOTA }, (_, number) => {
      const { path, body } = (number % 2 === 0 ? question : streamed)(protocol, model)
      return ask(gateways[number % gateways.length]?.url ?? '', secret, path, { body })
    }),
  )
}

async function timesAsked(upstreamModel: string): Promise<number> {
  return (await sandbox.journal()).filter(({ model }) => model === upstreamModel).length
}

/** What processes have taken ahead and did not need is lost to the others: less than a tenth, says the documentation. */
const LEAST = QUOTA - QUOTA / 10

// Two at a time: all at once, 400 callers wait for one busy machine, and the ledger's deadline answers instead of the quota.
describe('LIMIT-3 chat and messages are capped at the quota of the upstream', { concurrency: 2 }, () => {
  for (const protocol of PROTOCOLS) {
    it(`LIMIT-3 three processes never send more together; the rest is 429, holds nothing and costs nothing: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const model = await makeModel(protocol, [QUOTA])
      const told = await askTwiceAsOften(customer.secret, protocol, model)
      // All that has to be so within a window of a minute must be so after it was used up as well.
      told.push(...(await askTwiceAsOften(customer.secret, protocol, model)))
      const refused = told.filter(({ status }) => status !== 200)
      const asked = await timesAsked(`${model}-0`)
      assert.ok(asked <= QUOTA && asked >= LEAST, `${asked} of ${QUOTA}`)
      assert.equal(told.length - refused.length, asked)

      await settled(pool, customer.accountId)
      const charges = await chargesOf(pool, { accountId: customer.accountId })
      for (const one of refused) {
        const wait = Number(one.headers.get('retry-after'))
        assert.deepEqual([one.status, errorOf(one).code], [429, 'upstream_rate_limit'], one.text)
        assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 60, String(wait))
        const charge = charges.get(one.id)
        assert.deepEqual(
          [charge?.outcome, charge?.amount, charge?.overrun, charge?.executed],
          ['voided', 0n, 0n, false],
        )
      }
    })

    it(`LIMIT-3 what is beyond it goes to the next upstream: ${protocol}`, async () => {
      const customer = await makeCustomer(pool)
      const model = await makeModel(protocol, [QUOTA, null])
      const told = await askTwiceAsOften(customer.secret, protocol, model)
      assert.ok(told.every(({ status }) => status === 200))
      const asked = await timesAsked(`${model}-0`)
      assert.ok(asked <= QUOTA && asked >= LEAST, `${asked} of ${QUOTA}`)
      assert.equal(await timesAsked(`${model}-1`), told.length - asked)

      const details = await Promise.all(told.map(({ id }) => evidenceOf(url, customer.secret, id)))
      const attempts = details.map(({ upstream }) => (Array.isArray(upstream) ? upstream : []))
      assert.ok(attempts.every((all) => all.at(-1).outcome === 'answered'))
      const second = attempts.filter(({ length }) => length === 2)
      assert.equal(second.length, told.length - asked)
      for (const [first] of second)
        assert.deepEqual([first.outcome, first.status, first.reason], ['not_sent', null, 'quota'])
      const charges = await chargesOf(pool, { accountId: customer.accountId })
      assert.ok(told.every(({ id }) => (charges.get(id)?.amount ?? 0n) > 0n))
    })
  }
})

describe('LIMIT-3 what was refused for the quota of an upstream', () => {
  it('LIMIT-3 leaves no hold and no place taken', async () => {
    assert.deepEqual(await leftOver(pool), { holds: 0, claims: 0 })
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
