import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import {
  BudgetError,
  CompletedError,
  CredentialError,
  Farebox,
  InvalidRequestError,
  type Progress,
  sumUsd,
} from '../../client/src/index.ts'
import { startGateway } from '../../harness/gateways.ts'
import { createTcpProxy } from '../../harness/tcp-proxy.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { ask, chargesOf, makeCustomer, makeKey, startInstallation } from '../acceptance/installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)
const customer = await makeCustomer(pool)
const farebox = new Farebox({ apiKey: customer.secret, baseUrl: url })
const RERANK = { query: 'a quick animal', documents: ['a snail', 'a fox'] }

describe('a call by the client', () => {
  it('gives the answer with what it cost, what is left and its request id', async () => {
    const result = await farebox.call('rerank', RERANK)
    assert.deepEqual(result.data.results.map(({ document }) => document.text).toSorted(), ['a fox', 'a snail'])
    const charges = await chargesOf(pool, customer.accountId)
    assert.equal(result.cost?.nanos, charges.get(result.requestId))
    const { data } = await farebox.balance()
    assert.equal(result.balanceLeft?.usd, data.available?.usd)
    assert.ok(result.limits.requests !== null && result.limits.requests.remaining > 0)
  })

  it("tells what is left of the key's budget, where it has one", async () => {
    const key = await makeKey(pool, customer.workspaceId, { budget: { amount: nanos(5_000_000n), period: 'month' } })
    const own = new Farebox({ apiKey: key.secret, baseUrl: url })
    const first = await own.call('tag_detail', { tag_name: 'cats' })
    const second = await own.call('tag_detail', { tag_name: 'dogs' })
    assert.deepEqual([first.budgetLeft?.usd, second.budgetLeft?.usd], ['0.003550000', '0.002100000'])
    assert.equal((await own.balance()).data.budget?.left.usd, '0.002100000')
    assert.equal((await farebox.call('tag_detail', { tag_name: 'cats' })).budgetLeft, null)
    const plain = await ask(url, key.secret, '/apis/v1/reseller/social_c/web/fetch_tag_detail?tag_name=cats')
    assert.equal(plain.headers.get('x-farebox-budget-usd'), null, 'who does not ask does not wait for it')
  })

  it('can be quoted before, and is then charged by the quote, once', async () => {
    const { data: quote } = await farebox.quote('rerank', RERANK)
    assert.ok(Number(quote.expected.usd) > 0 && Number(quote.max.usd) >= Number(quote.expected.usd))
    const { cost } = await farebox.call('rerank', RERANK, { quote })
    assert.ok(Number(cost?.usd) <= Number(quote.max.usd))
    await assert.rejects(farebox.call('rerank', RERANK, { quote }), { code: 'quote_used', name: 'ConflictError' })
  })

  it('is refused before any spend where it could cost more than its cap, and says what to do', async () => {
    const error = await farebox.call('rerank', RERANK, { maxCostUsd: '0.000000001' }).catch((one: unknown) => one)
    assert.ok(error instanceof BudgetError)
    assert.deepEqual([error.code, error.cap?.usd, error.status], ['cost_cap_exceeded', '0.000000001', 402])
    assert.ok((error.needed?.nanos ?? 0n) > 1n)
    assert.match(error.fix, /maxCostUsd/)
    const capped = new Farebox({ apiKey: customer.secret, baseUrl: url, maxCostUsd: '0.000000001' })
    await assert.rejects(capped.call('tag_detail', { tag_name: 'cats' }), { code: 'cost_cap_exceeded' })
    assert.equal((await capped.call('tag_detail', { tag_name: 'cats' }, { maxCostUsd: '1' })).cost?.usd, '0.001450000')
  })

  it('is made once with a key of your own', async () => {
    const first = await farebox.call('tag_detail', { tag_name: 'cats' }, { idempotencyKey: 'order-7' })
    const again = await farebox
      .call('tag_detail', { tag_name: 'cats' }, { idempotencyKey: 'order-7' })
      .catch((one: unknown) => one)
    assert.ok(again instanceof CompletedError)
    assert.deepEqual([again.requestId, again.cost?.usd], [first.requestId, '0.001450000'])
    await assert.rejects(farebox.call('tag_detail', { tag_name: 'dogs' }, { idempotencyKey: 'order-7' }), {
      code: 'idempotency_mismatch',
    })
    const found = await farebox.requests.find('order-7', 'tag_detail')
    assert.deepEqual([found?.id, found?.outcome, found?.cost?.usd], [first.requestId, 'posted', '0.001450000'])
    assert.equal(await farebox.requests.find('order-8', 'tag_detail'), undefined)
  })

  it('says what is wrong, in a class of its own', async () => {
    const stranger = new Farebox({ apiKey: 'fb_test_nobody', baseUrl: url })
    await assert.rejects(stranger.balance(), CredentialError)
    await assert.rejects(farebox.call('rerank', { query: '', documents: ['x'] }), InvalidRequestError)
    const poor = await makeCustomer(pool, { money: 1_000n })
    const error = await new Farebox({ apiKey: poor.secret, baseUrl: url })
      .call('tag_detail', { tag_name: 'cats' })
      .catch((one: unknown) => one)
    assert.ok(error instanceof BudgetError && error.code === 'insufficient_balance')
    assert.deepEqual([error.needed?.usd, error.left?.usd], ['0.001450000', '0.000001000'])
  })

  it('stops at once when its signal says so', async () => {
    const leaver = new AbortController()
    const reason = new Error('enough')
    setTimeout(() => leaver.abort(reason), 200)
    const slow = farebox.call('tag_detail', { tag_name: 'sandbox:delay=20000' }, { signal: leaver.signal })
    await assert.rejects(slow, reason)
  })
})

describe('a call whose answer is lost', () => {
  it('CLIENT-2 is looked up by its key, and told as completed with what it cost', async () => {
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const cut = new Farebox({ apiKey: customer.secret, baseUrl: proxy.url(url) })
    const armed = proxy.arm({ direction: 'toClient', at: { afterBytes: 5 }, effect: 'reset' })
    const error = await cut
      .call('tag_detail', { tag_name: 'lost' }, { idempotencyKey: 'lost-1' })
      .catch((one: unknown) => one)
    assert.ok(armed.hasFired())
    assert.ok(error instanceof CompletedError, String(error))
    assert.equal(error.cost?.usd, '0.001450000')
    const charges = await chargesOf(pool, customer.accountId)
    assert.equal(charges.get(error.requestId ?? ''), 1_450_000n)
    await proxy.close()
  })

  it('CLIENT-2 is waited for while it runs, and made again where it never came', async () => {
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const cut = new Farebox({ apiKey: customer.secret, baseUrl: proxy.url(url) })
    const running = cut.call('tag_detail', { tag_name: 'sandbox:delay=3000 cut' }).catch((one: unknown) => one)
    const came = async () => (await sandbox.journal()).some(({ query }) => query.includes('delay'))
    await until(came, PATIENCE_MS, 'that the call runs')
    proxy.cut('reset')
    const known = await running
    assert.ok(known instanceof CompletedError && known.cost?.usd === '0.001450000', String(known))

    proxy.arm({ direction: 'toServer', at: { afterBytes: 0 }, effect: 'reset' })
    const { cost } = await cut.call('tag_detail', { tag_name: 'never came' })
    assert.equal(cost?.usd, '0.001450000')
    await proxy.close()
  })

  it('CLIENT-2 is a task all the same where it created one', async () => {
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const cut = new Farebox({ apiKey: customer.secret, baseUrl: proxy.url(url) })
    proxy.arm({ direction: 'toClient', at: { afterBytes: 5 }, effect: 'reset' })
    const input = { model: 'sandbox/video', input: { prompt: 'a fox sandbox:running-ms=1000' } }
    const { data, held } = await cut.call('video_synthesis', input)
    assert.ok((held?.nanos ?? 0n) > 0n)
    const { data: task } = await farebox.tasks.get(data.output.task_id)
    assert.notEqual(task.output.task_status, 'UNKNOWN')
    const made = (await sandbox.journal()).filter(({ path }) => path.endsWith('/video-synthesis'))
    assert.equal(made.length, 1)
    await proxy.close()
  })

  it('CLIENT-2 is not taken for the task of another input, which has the same key', async () => {
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const cut = new Farebox({ apiKey: customer.secret, baseUrl: proxy.url(url) })
    const create = (client: Farebox, prompt: string) =>
      client.call('video_synthesis', { model: 'sandbox/video', input: { prompt } }, { idempotencyKey: 'video-1' })
    await create(farebox, 'a fox sandbox:running-ms=1000')
    const armed = proxy.arm({ direction: 'toClient', at: { afterBytes: 5 }, effect: 'reset' })
    await assert.rejects(create(cut, 'a cat'), { code: 'idempotency_mismatch' })
    assert.ok(armed.hasFired())
    await proxy.close()
  })
})

describe('a gateway with another word in the names of its headers', () => {
  it('QUOTE-1 refuses caps and quotes of a client that does not know it, and nothing is executed', async () => {
    const env = {
      FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      FAREBOX_NAMES_PROVIDER: 'Acme',
      FAREBOX_LOG_LEVEL: 'error',
    }
    const acme = await startGateway({ databaseUrl: database.url, env })
    const someone = await makeCustomer(pool)
    const unknowing = new Farebox({ apiKey: someone.secret, baseUrl: acme.url })
    const refusal = { name: 'InvalidRequestError', message: /This gateway uses x-acme-max-cost-usd/ }
    await assert.rejects(unknowing.quote('rerank', RERANK), refusal)
    await assert.rejects(unknowing.call('rerank', RERANK, { maxCostUsd: '1' }), refusal)
    assert.equal((await chargesOf(pool, someone.accountId)).size, 0)
    const knowing = new Farebox({ apiKey: someone.secret, baseUrl: acme.url, names: { provider: 'Acme' } })
    const { data: quote } = await knowing.quote('rerank', RERANK)
    const { cost } = await knowing.call('rerank', RERANK, { quote, maxCostUsd: '1' })
    assert.ok((cost?.nanos ?? 0n) > 0n)
    await acme.stop()
  })
})

describe('what the client looks at', () => {
  it('lists calls page by page, and adds up to what the ledger has', async () => {
    const someone = await makeCustomer(pool)
    const own = new Farebox({ apiKey: someone.secret, baseUrl: url })
    const costs = await Promise.all(
      Array.from({ length: 7 }, async () => (await own.call('tag_detail', { tag_name: 'cats' })).cost),
    )
    const listed: string[] = []
    for await (const { id } of own.requests.list({ limit: 3 })) listed.push(id)
    assert.equal(new Set(listed).size, 7)
    let pages = 0
    for await (const { data } of own.requests.list({ limit: 3 }).pages()) {
      pages += 1
      assert.ok(data.data.length <= 3)
    }
    assert.equal(pages, 3)
    assert.equal(sumUsd(costs).usd, '0.010150000')
    const { data: report } = await own.usage({ start: new Date(Date.now() - 86_400_000) })
    assert.deepEqual([report.totals.charged_micros_usd, report.totals.requests], [10_150, 7])
    const one = await own.requests.get(listed[0] ?? '')
    assert.equal('cost' in one.data && one.data.cost.usd, '0.001450000')
    assert.ok((await own.models()).data.data.length > 0)
  })

  it('walks through pages that are paid for, each once', async () => {
    const someone = await makeCustomer(pool)
    const own = new Farebox({ apiKey: someone.secret, baseUrl: url })
    const costs = []
    let tweets = 0
    for await (const page of own.quotesOf('123').pages()) {
      costs.push(page.cost)
      tweets += page.data.tweets.length
    }
    assert.ok(costs.length > 1 && tweets > 0)
    const charges = await chargesOf(pool, someone.accountId)
    assert.equal(
      sumUsd(costs).nanos,
      [...charges.values()].reduce((sum, one) => sum + one, 0n),
    )
  })

  it('CLIENT-3 creates a video, tells how it goes, and gives it with what it cost', async () => {
    const told: Progress[] = []
    const { data, cost } = await farebox.tasks.run(
      { model: 'sandbox/video', input: { prompt: 'a fox sandbox:running-ms=500' } },
      { onProgress: (one) => told.push(one), maxCostUsd: '5' },
    )
    assert.equal(data.output.task_status, 'SUCCEEDED')
    assert.ok(data.output.video_url?.startsWith('http'))
    assert.ok((cost?.nanos ?? 0n) > 0n)
    assert.equal(told.at(-1)?.status, 'SUCCEEDED')
    const listed: string[] = []
    for await (const { output } of farebox.tasks.list()) listed.push(output.task_id)
    assert.ok(listed.includes(data.output.task_id))
  })
})

describe('the official SDKs', () => {
  const messages = [{ role: 'user' as const, content: 'a short story' }]

  it('stream by the base URL and the key that the client hands over, with an idempotency key', async () => {
    const openai = new OpenAI(farebox.sdk.openai())
    let text = ''
    for await (const chunk of await openai.chat.completions.create({ model: 'sandbox/text', messages, stream: true }))
      text += chunk.choices[0]?.delta.content ?? ''
    assert.ok(text.length > 0)

    const anthropic = new Anthropic(farebox.sdk.anthropic())
    const spoken = await anthropic.messages.stream({ model: 'sandbox/text', max_tokens: 50, messages }).finalText()
    assert.ok(spoken.length > 0)

    const google = new GoogleGenAI(farebox.sdk.google())
    const parts = await google.models.generateContentStream({ model: 'sandbox/text', contents: 'a short story' })
    let written = ''
    for await (const part of parts) written += part.text ?? ''
    assert.ok(written.length > 0)
  })

  it('are told refusals as the gateway said them, and cost at most what the client was told', async () => {
    const capped = new Farebox({ apiKey: customer.secret, baseUrl: url, maxCostUsd: '0.000000001' })
    const openai = new OpenAI(capped.sdk.openai())
    await assert.rejects(openai.chat.completions.create({ model: 'sandbox/text', messages }), {
      status: 402,
      code: 'cost_cap_exceeded',
    })
  })

  it('trap: an SDK repeats a cut call without a key: by the fetch of the client it is looked up instead', async () => {
    const someone = await makeCustomer(pool)
    const proxy = await createTcpProxy({ target: { port: Number(new URL(url).port) } })
    const cut = new Farebox({ apiKey: someone.secret, baseUrl: proxy.url(url) })
    const openai = new OpenAI(cut.sdk.openai())
    proxy.arm({ direction: 'toClient', at: { afterBytes: 5 }, effect: 'reset' })
    await assert.rejects(openai.chat.completions.create({ model: 'sandbox/text', messages }), (error) => {
      assert.ok(error instanceof OpenAI.APIConnectionError && error.cause instanceof CompletedError, String(error))
      return true
    })
    assert.equal((await chargesOf(pool, someone.accountId)).size, 1)
    await proxy.close()
  })
})
