import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { grantTier } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, askAnybody, costOf, ids } from '../../acceptance/installation.ts'
import { type Attack, newcomer, newKey, type World } from './world.ts'

const properties = Object.fromEntries(
  Array.from({ length: 300 }, (_, n) => [
    `member_${n}`,
    { type: 'string', description: `the member number ${n}`, enum: ['a', 'b', 'c'] },
  ]),
)
const SCHEMA = {
  name: 'large',
  strict: true,
  schema: { type: 'object', properties, required: Object.keys(properties), additionalProperties: false },
}

type Request = { readonly path: string; readonly body: object }

const text = (content: string) => ({ model: 'sandbox/text', stream: true, messages: [{ role: 'user', content }] })

/** Conversations whose input is more than their text, in each protocol. */
const REQUESTS: Readonly<Record<string, Request>> = {
  'a large schema': {
    path: '/v1/chat/completions',
    body: {
      ...text('fill it in sandbox:delta-ms=4'),
      max_tokens: 300,
      response_format: { type: 'json_schema', json_schema: SCHEMA },
    },
  },
  'a large schema of a response': {
    path: '/v1/responses',
    body: {
      model: 'sandbox/text',
      stream: true,
      input: 'fill it in sandbox:delta-ms=4',
      max_output_tokens: 300,
      text: { format: { type: 'json_schema', ...SCHEMA } },
    },
  },
  'a large tool': {
    path: '/v1/messages',
    body: {
      ...text('use it sandbox:delta-ms=4'),
      max_tokens: 300,
      tools: [{ name: 'large', description: 'a large tool', input_schema: SCHEMA.schema }],
    },
  },
  'a large tool of another protocol': {
    path: '/v1beta/models/sandbox/text:streamGenerateContent?alt=sse',
    body: {
      contents: [{ role: 'user', parts: [{ text: 'use it sandbox:delta-ms=4' }] }],
      generationConfig: { maxOutputTokens: 300 },
      tools: [
        {
          functionDeclarations: [
            { name: 'large', description: 'a large tool', parameters: { type: 'object', properties } },
          ],
        },
      ],
    },
  },
}

/** What a stream costs whose caller leaves after so many pieces; all of it where that is undefined. */
async function costLeft(world: World, secret: string, { path, body }: Request, pieces?: number): Promise<number> {
  const leaving = new AbortController()
  const answer = await request(world.callsUrl + path, {
    method: 'POST',
    signal: leaving.signal,
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  assert.equal(answer.statusCode, 200)
  const id = String(answer.headers['x-request-id'])
  let read = 0
  try {
    for await (const _ of answer.body) {
      read += 1
      if (pieces !== undefined && read >= pieces) break
    }
  } catch {}
  leaving.abort()
  const told = { id, costUsd: null, status: 200, headers: new Headers(), text: '', json: {} }
  return Number(await costOf(world.callsUrl, secret, told))
}

export const CALL_ATTACKS: readonly Attack[] = [
  [
    'whoever leaves a stream pays no more than whoever stays, whatever its input has that is no text',
    async (world) => {
      const person = await newcomer(world)
      const { secret } = await newKey(person, 'test')
      // Costs are looked up more often than Free may.
      const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 }
      await grantTier({ pool: world.pool, ids }, ACTOR, person.workspaceId, { tier: 'enterprise', limits })
      for (const [what, one] of Object.entries(REQUESTS)) {
        const whole = await costLeft(world, secret, one)
        for (const pieces of [1, 3, 10]) {
          const left = await costLeft(world, secret, one, pieces)
          assert.ok(left <= whole, `${what}: ${left} after ${pieces} pieces, ${whole} for all`)
        }
      }
    },
  ],
  [
    'a vendor that answers a stream in one piece gives no more than was held for it',
    async (world) => {
      const person = await newcomer(world)
      const { secret } = await newKey(person, 'test', { holding: 'growing' })
      const ask = (headers: Readonly<Record<string, string>> = {}) =>
        askAnybody(world.callsUrl, secret, '/v1/chat/completions', {
          body: { ...text('a story sandbox:output-tokens=60000 sandbox:delta-bytes=400000'), max_tokens: 60_000 },
          headers,
        })
      const before = Number(Object((await askAnybody(world.callsUrl, secret, '/v1/balance')).json.balance).usd)
      const told = await ask({ 'x-max-cost-usd': '0.001' })
      const after = Number(Object((await askAnybody(world.callsUrl, secret, '/v1/balance')).json.balance).usd)
      assert.ok(told.status >= 400 || before - after <= 0.001 + 1e-9, `${told.status} ${before - after}`)
    },
  ],
  [
    'a caller who hangs up before a word has come keeps no place and no hold',
    async (world) => {
      const person = await newcomer(world)
      const { secret } = await newKey(person, 'test', { rates: { concurrency: 1 } })
      const leaving = new AbortController()
      const hung = request(`${world.callsUrl}/v1/chat/completions`, {
        method: 'POST',
        signal: leaving.signal,
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...text('hello sandbox:slow-first-byte=60000'), max_tokens: 10 }),
      }).catch(() => null)
      await delay(150)
      leaving.abort()
      await hung
      let status = 0
      for (let n = 0; n < 100 && status !== 200; n += 1) {
        ;({ status } = await askAnybody(world.callsUrl, secret, '/v1/chat/completions', {
          body: { model: 'sandbox/text', max_tokens: 5, messages: [{ role: 'user', content: 'hello' }] },
        }))
        await delay(100)
      }
      assert.equal(status, 200)
    },
  ],
]
