import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { JournalEntry } from '../../../sandbox/src/journal.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { ask, codeOf, makeCustomer, startInstallation } from '../installation.ts'
import {
  ALL_PROTOCOLS,
  type Charge,
  chargeOf,
  chargesOf,
  hear,
  leaveOnce,
  limited,
  question,
  settled,
  streamed,
} from '../models/streams.ts'
import { wire } from '../wire.ts'
import { billedNanos } from './bills.ts'
import { bindData, OUTPUT_CAP, saveVendor, VENDORS } from './vendors.ts'

/** Each way in which callers once got more than they paid for, tried at a vendor that would give it. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
for (const vendor of VENDORS) await saveVendor(installation, vendor)
/** By then every process has heard of a change. */
const CHANGE_KNOWN_MS = 1_500
const MONEY = 1_000_000_000_000n
const { secret, accountId } = await makeCustomer(pool, { money: MONEY })

const isRefused = async (path: string, body: unknown, expected: RegExp, headers: Record<string, string> = {}) => {
  const before = (await sandbox.journal()).length
  const told = await ask(url, secret, path, { ...(body !== undefined && { body }), headers })
  assert.equal(told.status, 400, told.text)
  assert.match(told.text, expected)
  assert.equal((await sandbox.journal()).length, before, 'nobody is asked')
}

/** A call as its vendor bills it, beside what was held and charged for it. */
async function billOf(id: string): Promise<{ charge: Charge; entry: JournalEntry; bill: bigint }> {
  const entries = async () => (await sandbox.journal()).filter(({ request_id, bill }) => request_id === id && bill)
  await until(
    async () => (await entries()).every(({ outcome }) => outcome !== 'open'),
    PATIENCE_MS,
    'the vendor is done',
  )
  const [entry, ...others] = await entries()
  assert.ok(entry !== undefined && others.length === 0)
  return { charge: await chargeOf(pool, id), entry, bill: billedNanos(entry) }
}

describe('an output limit by a name that the vendor ignores', () => {
  const LONG = 'sandbox:output-tokens=2900'
  for (const [vendor, name] of [
    ['ignores-max-tokens', 'max_tokens'],
    ['ignores-max-completion-tokens', 'max_completion_tokens'],
  ] as const)
    for (const [form, asks] of [
      ['streamed', streamed],
      ['whole', question],
    ] as const)
      it(`buys no more than the limit where the route says which one it heeds: ${name}, ${form}`, async () => {
        for (const [limits, most] of [
          [{ [name]: 100 }, 100],
          [{}, OUTPUT_CAP],
          [{ max_tokens: 20, max_completion_tokens: 50 }, 50],
        ] as const) {
          const { id } = await hear(url, secret, asks('openai', `${vendor}/chat`, LONG, limits))
          const { charge, entry, bill } = await billOf(id)
          assert.equal(entry.bill?.output, most)
          assert.ok(bill <= charge.held && charge.amount === bill, `${bill} of ${charge.held}`)
        }
      })
})

describe('a name below the top level in another case', () => {
  const tool = { type: 'function', Type: 'web_search', function: { name: 'f' } }
  const VIDEO = '/apis/v1/services/aigc/video-generation/video-synthesis'

  it('is refused before a vendor that folds case can take it: Type of a tool, TTL of a cache, Duration of a video', async () => {
    const chat = question('openai', 'folds-case/chat').body
    await isRefused('/v1/chat/completions', { ...chat, tools: [tool] }, /tools\[0\]\.Type/)
    const system = [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '5m', TTL: '1h' } }]
    await isRefused('/v1/messages', { ...chat, max_tokens: 9, system }, /system\[0\]\.cache_control\.TTL/)
    const video = { model: 'folds-case/video', input: { prompt: 'a fox' } }
    const parameters = { duration: 1, Duration: 15 }
    await isRefused(VIDEO, { ...video, parameters }, /parameters\.Duration/, { 'x-farebox-async': 'enable' })
  })
})

describe('a member of no protocol', () => {
  const EXTRAS = {
    ...{ provider: {}, preset: 'p', extra_body: { max_tokens: 9_000 }, api_base: 'http://a', num_retries: 9 },
    ...{ n_predict: 3_900, max_output_tokens: 3_900, thinking_budget: 3_900, min_tokens: 3_900 },
  }
  for (const vendor of ['knows-extras', 'knows-extras-passed'])
    for (const protocol of ALL_PROTOCOLS)
      it(`is refused by name before a vendor that knows it can act on it: ${protocol} of ${vendor}`, async () => {
        for (const [name, value] of Object.entries(EXTRAS)) {
          // There it is the protocol's own limit.
          if (Object.hasOwn(limited(protocol, 20), name)) continue
          const { path, body } = question(protocol, `${vendor}/chat`, '', limited(protocol, 20))
          await isRefused(path, { ...body, [name]: value }, new RegExp(`${name}\\\\?" is not`))
        }
      })

  it('is refused in the headers for betas too', async () => {
    const { path, body } = question('openai', 'honest/chat')
    await isRefused(path, body, /openai-beta/, { 'openai-beta': 'fast=v1' })
  })
})

describe('a parameter in a spelling that loose servers take', () => {
  const TRAFFIC = '/apis/v1/traffic_analytics/website/traffic-engagement?domain=a.example'
  const COMMENTS = '/apis/v1/social_b/post/comments?url=https://a.example/p/1'
  for (const target of [
    `${TRAFFIC}&metrics=visits&metrics[]=page_views,bounce_rate`,
    `${TRAFFIC}&metrics=visits&metrics%5B0%5D=page_views`,
    `${COMMENTS}&a=1;include_replies=true`,
    `${COMMENTS}&include.replies=true`,
    `${COMMENTS}&Include_Replies=true`,
  ])
    it(`is refused before a vendor that merges them is asked: ${target.slice(target.indexOf('&'))}`, async () => {
      await bindData(installation, ['folds-case', 'loose-queries'])
      await delay(CHANGE_KNOWN_MS)
      const before = (await sandbox.journal()).length
      assert.equal((await wire(url, secret, target)).status, 400)
      assert.equal((await sandbox.journal()).length, before)
    })
})

describe('reranking', () => {
  const REQUEST = { query: 'a fox', documents: Array.from({ length: 20 }, (_, n) => `document ${n}`) }
  const rerank = (more: object) => ask(url, secret, '/v1/rerank', { body: { ...REQUEST, ...more } })

  it('holds an instruction with each document, and charges it also where the vendor does not say what it used', async () => {
    await bindData(installation, ['folds-case'])
    await delay(CHANGE_KNOWN_MS)
    const instruction = 'prefer what is quick and brown '.repeat(20)
    for (const query of ['a fox', 'a fox sandbox:no-usage']) {
      const { charge, bill } = await billOf((await rerank({ query, instruction })).id)
      assert.ok(bill <= charge.held && charge.amount > bill / 2n, `${bill} ${charge.amount} of ${charge.held}`)
    }
  })

  it('takes no dearer model at its one price', async () => {
    await isRefused('/v1/rerank', { ...REQUEST, model: 'rerank-large' }, /model/)
  })

  it('records all of the loss where the vendor claims more than a hundred times the bound', async () => {
    const { id } = await rerank({ query: 'a fox sandbox:tokens=10000000' })
    const { amount, held, overrun } = await chargeOf(pool, id)
    assert.deepEqual([amount, amount + overrun], [held, 500_000_000n])
  })
})

describe('reasoning that is in the total alone', () => {
  for (const vendor of ['reasoning-apart', 'reasoning-apart-unknown'])
    for (const [form, asks] of [
      ['streamed', streamed],
      ['whole', question],
    ] as const)
      it(`is charged as the vendor bills it: ${vendor}, ${form}`, async () => {
        for (const protocol of ['openai', 'openai_responses'] as const) {
          const { id } = await hear(url, secret, asks(protocol, `${vendor}/chat`, '', limited(protocol, 200)))
          const { charge, entry, bill } = await billOf(id)
          const { completion_tokens, output_tokens } = Object(entry.usage)
          assert.ok(Number(entry.bill?.output) > Number(completion_tokens ?? output_tokens))
          assert.equal(charge.amount, bill)
        }
      })
})

describe('a caller who leaves before the first word', () => {
  for (const protocol of ALL_PROTOCOLS)
    it(`pays the input also where the stream is cut beyond its limit afterwards: ${protocol}`, async () => {
      const customer = await makeCustomer(pool, { money: MONEY })
      const words = `${'word '.repeat(30)} sandbox:slow-first-byte=500 sandbox:output-tokens=100000 sandbox:delta-ms=1 sandbox:delta-bytes=400`
      const asked = streamed(protocol, 'ignores-limits/chat', words, limited(protocol, 10))
      const isAsked = async () => (await sandbox.journal()).some(({ request_id }) => holds.has(request_id ?? ''))
      const holds = new Set<string>()
      await leaveOnce(url, customer.secret, asked, async () => {
        const { rows } = await pool.query('select id from holds where account_id = $1', [customer.accountId])
        for (const { id } of rows) holds.add(id)
        return rows.length > 0 && (await isAsked())
      })
      await settled(pool, customer.accountId)
      const [charge] = (await chargesOf(pool, { accountId: customer.accountId })).values()
      assert.ok(charge !== undefined && charge.outcome === 'posted')
      assert.ok(charge.tokens.input > 40, `${charge.tokens.input}`)
      assert.ok(charge.amount > 0n && charge.amount <= charge.held)
    })
})

describe('an answer that a parameter makes unreadable', () => {
  it('is withheld and costs nothing where it is data, and is never asked of a model', async () => {
    await bindData(installation, ['unreadable'])
    await delay(CHANGE_KNOWN_MS)
    const told = await ask(url, secret, '/apis/v1/social_b/post/comments?url=https://a.example/p/1&format=xml')
    assert.deepEqual([told.status, codeOf(told), told.costUsd], [502, 'upstream_unreadable', '0.000000000'])
    assert.doesNotMatch(told.text, /<answer>/)
    await isRefused('/apis/v1/traffic_analytics/website/traffic-engagement?domain=a&format=xml', undefined, /format/)
    for (const protocol of ALL_PROTOCOLS) {
      const { path, body } = question(protocol, 'unreadable/chat', '', limited(protocol, 20))
      await isRefused(path, { ...body, format: 'xml' }, /format/)
    }
  })
})

describe('sound, which has no price', () => {
  it('is refused in each protocol that has it', async () => {
    const sound = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
    const messages = [{ role: 'user', content: [sound] }]
    await isRefused('/v1/chat/completions', { model: 'honest/chat', messages }, /audio/)
    await isRefused('/v1/responses', { model: 'honest/chat', input: messages }, /audio/)
    const contents = [{ role: 'user', parts: [{ inlineData: { mimeType: 'audio/wav', data: 'AAAA' } }] }]
    await isRefused('/v1beta/models/honest/chat:generateContent', { contents }, /audio/)
  })
})

it('leaves a ledger that adds up', async () => {
  await settled(pool, accountId)
  assert.deepEqual(await verifyLedger(pool), [])
})
