import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { nanos, usd } from '../../../server/src/kernel/money.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { ask, codeOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { ALL_PROTOCOLS, chargeOf, limited, type Protocol, question, settled, streamed } from './streams.ts'

/** Calls that ask for more output than there is money or tokens for, and want what there is. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const ASKED = 4_000
const SHRINK = { 'x-farebox-fit': 'shrink' }
const QUOTE = { 'x-farebox-cost-mode': 'quote' }
/** An answer that goes on until its limit. */
const LONG = 'sandbox:output-tokens=5000'

type More = {
  readonly members?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly isStream?: boolean
}

function chat(secret: string, protocol: Protocol, limit: number | undefined, more: More = {}): Promise<Told> {
  const { members = {}, headers = {}, isStream = false } = more
  const given = limit === undefined ? {} : limited(protocol, limit)
  const { path, body } = (isStream ? streamed : question)(protocol, 'sandbox/text', LONG, { ...given, ...members })
  return ask(url, secret, path, { body, headers })
}

async function heldBy(protocol: Protocol, limit: number, members = {}): Promise<bigint> {
  const { secret } = await makeCustomer(pool)
  const { json } = await chat(secret, protocol, limit, { members, headers: QUOTE })
  return usd(Object(json.max).usd)
}

const fittedIn = ({ headers }: Told) => Number(headers.get('x-farebox-fitted-limit'))

/** It was made within what it says, to which the upstream kept. */
async function assertFitted(told: Told, most: number): Promise<void> {
  assert.equal(told.status, 200, told.text)
  const fitted = fittedIn(told)
  assert.ok(fitted >= most - 64 && fitted <= most, `${fitted} of ${most}`)
  const { outcome, overrun, tokens } = await chargeOf(pool, told.id)
  assert.deepEqual([outcome, overrun, tokens.output], ['posted', 0n, fitted])
}

describe('a call that is to fit', () => {
  for (const protocol of ALL_PROTOCOLS) {
    for (const isStream of [false, true])
      it(`${protocol}${isStream ? ', streamed' : ''} gets what the balance allows, and is told`, async () => {
        const money = await heldBy(protocol, 777)
        const { secret, accountId } = await makeCustomer(pool, { money })
        assert.equal((await chat(secret, protocol, ASKED, { isStream })).status, 402)
        const told = await chat(secret, protocol, ASKED, { headers: SHRINK, isStream })
        await assertFitted(told, 777)
        await settled(pool, accountId)
        assert.deepEqual(await verifyLedger(pool, [accountId]), [])
      })

    it(`is as it was asked for where it fits: ${protocol}`, async () => {
      const { secret } = await makeCustomer(pool)
      const told = await chat(secret, protocol, 300, { headers: SHRINK })
      assert.deepEqual([told.status, told.headers.get('x-farebox-fitted-limit')], [200, null])
      assert.equal((await chargeOf(pool, told.id)).tokens.output, 300)
    })
  }

  it('gets what is left of a budget, without a limit of its own and for every choice', async () => {
    const members = { n: 2 }
    const amount = nanos(await heldBy('openai', 400, members))
    const { secret } = await makeCustomer(pool, { key: { budget: { period: 'total', amount } } })
    const told = await chat(secret, 'openai', undefined, { members, headers: SHRINK })
    assert.equal(told.status, 200, told.text)
    const fitted = fittedIn(told)
    assert.ok(fitted > 300 && fitted <= 400, String(fitted))
    assert.equal(told.headers.get('x-farebox-output-cap'), String(fitted))
    const { tokens, held } = await chargeOf(pool, told.id)
    assert.equal(tokens.output, 2 * fitted)
    assert.ok(held <= amount)
  })

  it('trap: without an output limit the whole rest of the budget is reserved, so the second call is refused', async () => {
    const rich = await makeCustomer(pool)
    const unlimited = await chat(rich.secret, 'openai', undefined, { headers: QUOTE })
    const one = usd(Object(unlimited.json.max).usd)
    const { secret } = await makeCustomer(pool, { money: 2n * one })
    const both = await Promise.all([chat(secret, 'openai', undefined), chat(secret, 'openai', undefined)])
    assert.deepEqual(
      both.map(({ status }) => status),
      [200, 200],
    )
  })

  it('gets what its own cap allows', async () => {
    const cap = await heldBy('anthropic', 321)
    const { secret } = await makeCustomer(pool)
    const headers = { ...SHRINK, 'x-farebox-max-cost-usd': `0.${String(cap).padStart(9, '0')}` }
    await assertFitted(await chat(secret, 'anthropic', ASKED, { headers }), 321)
  })

  it('gets what its tokens a minute allow: of a limit that it alone exceeds, and of what is left of one', async () => {
    const { secret } = await makeCustomer(pool, { key: { rates: { tokensPerMinute: 1_000 } } })
    const refused = await chat(secret, 'openai', ASKED)
    assert.deepEqual([refused.status, codeOf(refused)], [429, 'quota_exceeded'])
    const first = await chat(secret, 'openai', 600)
    assert.equal(first.status, 200)
    const left = Number(first.headers.get('x-ratelimit-remaining-tokens'))
    const told = await chat(secret, 'openai', ASKED, { headers: SHRINK })
    await assertFitted(told, left)
    assert.ok((await chargeOf(pool, told.id)).tokens.output > 100)
  })

  it('is refused as ever where nothing fits, where a quote has fixed it, and where it may think more than there is', async () => {
    const poor = await makeCustomer(pool, { money: 1n })
    const before = (await sandbox.journal()).length
    const told = await chat(poor.secret, 'openai', ASKED, { headers: SHRINK })
    assert.deepEqual([told.status, codeOf(told)], [402, 'insufficient_balance'])
    const money = await heldBy('anthropic', 777)
    const { secret } = await makeCustomer(pool, { money })
    const quote = await chat(secret, 'anthropic', ASKED, { headers: QUOTE })
    const quoted = { ...SHRINK, 'x-farebox-quote-id': String(quote.json.quote_id) }
    assert.equal((await chat(secret, 'anthropic', ASKED, { headers: quoted })).status, 402)
    const members = { thinking: { type: 'enabled', budget_tokens: 2_000 } }
    const thinking = await chat(secret, 'anthropic', ASKED, { headers: SHRINK, members })
    assert.deepEqual([thinking.status, codeOf(thinking)], [402, 'insufficient_balance'], thinking.text)
    assert.equal((await sandbox.journal()).length, before)
  })

  it('gets what the last of all limits in its way allows: tokens, budget and balance, one after the other', async () => {
    const [budget, money] = [await heldBy('openai', 400), await heldBy('openai', 200)]
    const key = { rates: { tokensPerMinute: 2_000 }, budget: { period: 'day', amount: nanos(budget) } } as const
    const { secret } = await makeCustomer(pool, { money, key })
    const headers = { ...SHRINK, 'x-farebox-max-cost-usd': `0.${String(await heldBy('openai', 800)).padStart(9, '0')}` }
    await assertFitted(await chat(secret, 'openai', ASKED, { headers }), 200)
  })

  it('is no answer of fewer tokens than 16: it is refused, and told what would fit', async () => {
    const { secret } = await makeCustomer(pool, { money: await heldBy('openai', 15) })
    const told = await chat(secret, 'openai', ASKED, { headers: SHRINK })
    assert.deepEqual([told.status, codeOf(told)], [402, 'insufficient_balance'], told.text)
    const enough = await makeCustomer(pool, { money: await heldBy('openai', 80) })
    await assertFitted(await chat(enough.secret, 'openai', ASKED, { headers: SHRINK }), 80)
  })

  it('is the same call by its idempotency key, however much of it fits', async () => {
    const money = await heldBy('openai', 500)
    const { secret } = await makeCustomer(pool, { money })
    const headers = { ...SHRINK, 'idempotency-key': 'once' }
    const first = await chat(secret, 'openai', ASKED, { headers })
    await assertFitted(first, 500)
    const again = await chat(secret, 'openai', ASKED, { headers })
    assert.deepEqual([again.status, codeOf(again)], [409, 'idempotency_completed'], again.text)
  })

  it('says shrink, and nothing else', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await chat(secret, 'openai', 10, { headers: { 'x-farebox-fit': 'grow' } })
    assert.deepEqual([told.status, told.text.includes('must be shrink')], [400, true], told.text)
  })
})
