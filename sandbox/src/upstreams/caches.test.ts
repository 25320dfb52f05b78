import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { ASK, startTestSandbox } from '../test-sandbox.ts'
import { CACHED_FROM_TOKENS, LIVES_MS, PREFIXES_LIMIT, Prefixes } from './models/prefixes.ts'
import { BYTES_PER_TOKEN } from './models/tokens.ts'

let nowMs = 0
const sandbox = await startTestSandbox({ nowMs: () => nowMs })
after(() => sandbox.stop())

const LIFE_MS = LIVES_MS['5m']
let made = 0
/** A text of so many tokens that nobody has sent before. */
function textOf(tokens: number): string {
  made += 1
  return `${made}.`.padEnd(tokens * BYTES_PER_TOKEN, 'x')
}

type Ask = { readonly text: string; readonly more?: string; readonly credential?: string; readonly ttl?: string }

/** How many tokens of a prompt each vendor read from its cache. */
const VENDORS = {
  async openai({ text, more, credential = 'sandbox-key' }: Ask) {
    const messages = [text, ...(more === undefined ? [] : [more])].map((content) => ({ role: 'user', content }))
    const headers = { authorization: `Bearer ${credential}` }
    const { json } = await sandbox.ask({ ...ASK.openai, headers, body: { ...ASK.openai.body, messages } })
    return json().usage.prompt_tokens_details.cached_tokens
  },
  async responses({ text, more, credential = 'sandbox-key' }: Ask) {
    const input = [text, ...(more === undefined ? [] : [more])].map((content) => ({ role: 'user', content }))
    const headers = { authorization: `Bearer ${credential}` }
    const { json } = await sandbox.ask({ path: '/openai/v1/responses', headers, body: { model: 'm', input } })
    return json().usage.input_tokens_details.cached_tokens
  },
  async anthropic({ text, more, credential = 'sandbox-key', ttl = '5m' }: Ask) {
    const mark = { cache_control: { type: 'ephemeral', ttl } }
    const content = [text, ...(more === undefined ? [] : [more])].map((one) => ({ type: 'text', text: one, ...mark }))
    const headers = { ...ASK.anthropic.headers, 'x-api-key': credential }
    const body = { ...ASK.anthropic.body, messages: [{ role: 'user', content }] }
    return (await sandbox.ask({ ...ASK.anthropic, headers, body })).json().usage.cache_read_input_tokens
  },
  async gemini({ text, more, credential = 'sandbox-key' }: Ask) {
    const parts = [text, ...(more === undefined ? [] : [more])].map((one) => ({ text: one }))
    const headers = { 'x-goog-api-key': credential }
    const { json } = await sandbox.ask({ ...ASK.gemini, headers, body: { contents: [{ role: 'user', parts }] } })
    return json().usageMetadata.cachedContentTokenCount ?? 0
  },
}

describe('the cache of prompts', () => {
  for (const [vendor, cachedOf] of Object.entries(VENDORS)) {
    it(`of ${vendor} has prompts from ${CACHED_FROM_TOKENS} tokens on, for each credential by itself`, async () => {
      const text = textOf(1_280)
      assert.equal(await cachedOf({ text }), 0)
      assert.equal(await cachedOf({ text }), 1_280)
      assert.equal(await cachedOf({ text, more: textOf(300) }), 1_280)
      assert.equal(await cachedOf({ text, credential: 'sandbox-key.b' }), 0)
      assert.equal(await cachedOf({ text, credential: 'sandbox-key.b' }), 1_280)
      const short = textOf(CACHED_FROM_TOKENS - 1)
      assert.equal(await cachedOf({ text: short }), 0)
      assert.equal(await cachedOf({ text: short }), 0)
    })

    it(`of ${vendor} forgets what was not used for five minutes`, async () => {
      const text = textOf(1_280)
      await cachedOf({ text })
      for (let use = 0; use < 3; use += 1) {
        nowMs += LIFE_MS - 1
        assert.equal(await cachedOf({ text, more: textOf(1) }), 1_280)
      }
      nowMs += LIFE_MS
      assert.equal(await cachedOf({ text }), 0)
    })
  }

  it('reads what is cached by itself in steps of 128 tokens', async () => {
    for (const vendor of ['openai', 'gemini'] as const) {
      const text = textOf(1_300)
      await VENDORS[vendor]({ text })
      assert.equal(await VENDORS[vendor]({ text }), 1_280)
    }
  })

  it('keeps for an hour what is marked for an hour, and nothing without a mark', async () => {
    const text = textOf(1_280)
    await VENDORS.anthropic({ text, ttl: '1h' })
    nowMs += LIVES_MS['1h'] - 1
    assert.equal(await VENDORS.anthropic({ text, ttl: '1h' }), 1_280)
    const plain = { ...ASK.anthropic.body, messages: [{ role: 'user', content: textOf(1_280) }] }
    for (let turn = 0; turn < 2; turn += 1) {
      const { usage } = (await sandbox.ask({ ...ASK.anthropic, body: plain })).json()
      assert.deepEqual([usage.cache_read_input_tokens, usage.cache_creation_input_tokens], [0, 0])
    }
  })

  it('keeps a number of prefixes that has a bound, the newest', () => {
    const prefixes = new Prefixes()
    const text = textOf(CACHED_FROM_TOKENS)
    const use = (scope: string) => {
      const segments = [{ text, isImage: false, cachedFor: '5m' as const }]
      return prefixes.use({ scope, segments, isAutomatic: false, nowMs: 0 }).readTokens
    }
    for (let at = 0; at <= PREFIXES_LIMIT; at += 1) use(String(at))
    assert.equal(use(String(PREFIXES_LIMIT)), CACHED_FROM_TOKENS)
    assert.equal(use('0'), 0)
  })
})
