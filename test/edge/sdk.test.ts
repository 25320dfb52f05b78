import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { ApiError, GoogleGenAI } from '@google/genai'
import AnthropicBefore1 from 'anthropic-sdk-0'
import OpenAI from 'openai'
import { FAULTS, Fault, type FaultCode } from '../../server/src/kernel/fault.ts'
import { isId } from '../../server/src/kernel/ids.ts'
import { isFaultCode, KEY, MEMBERS, type Probe, startProbeEdge } from './probe-edge.ts'

const CODES = Object.keys(FAULTS).filter(isFaultCode)
const WITHOUT_RETRIES = { maxRetries: 0 }
let probe: Probe

before(async () => {
  probe = await startProbeEdge()
})
after(() => probe.edge.drain({ idleGraceMs: 0 }))

const textOf = (code: FaultCode) => new Fault(code, { detail: 'Thrown by a probe.' }).message

async function thrownBy(call: () => PromiseLike<unknown>): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return error
  }
  throw new Error('the call did not fail')
}

/** How many requests one call of an SDK makes. */
async function requestsOf(call: () => PromiseLike<unknown>): Promise<number> {
  const already = probe.handled.length
  await thrownBy(call)
  return probe.handled.length - already
}

/** The class that an SDK has for a status; it has a plain one for those that it does not know. */
const CLASSES: Readonly<Record<number, string>> = {
  400: 'BadRequestError',
  401: 'AuthenticationError',
  403: 'PermissionDeniedError',
  404: 'NotFoundError',
  409: 'ConflictError',
  422: 'UnprocessableEntityError',
  429: 'RateLimitError',
}
const MORE_CLASSES: Readonly<Record<number, string>> = {
  ...CLASSES,
  408: 'RequestTimeoutError',
  412: 'PreconditionFailedError',
  413: 'ContentTooLargeError',
  431: 'RequestHeaderFieldsTooLargeError',
  503: 'ServiceUnavailableError',
}
const classFor = (status: number, classes: Readonly<Record<number, string>>) =>
  classes[status] ?? (status >= 500 ? 'InternalServerError' : 'APIError')

const MESSAGES = [{ role: 'user' as const, content: 'hello' }]
const asks = {
  openai: (model: string, options = {}) =>
    new OpenAI({ baseURL: `${probe.url}/v1`, apiKey: KEY, ...options }).chat.completions.create({
      model,
      messages: MESSAGES,
    }),
  'anthropic 1.x': (model: string, options = {}) =>
    new Anthropic({ baseURL: probe.url, apiKey: KEY, ...options }).messages.create({
      model,
      max_tokens: 10,
      messages: MESSAGES,
    }),
  'anthropic 0.x': (model: string, options = {}) =>
    new AnthropicBefore1({ baseURL: probe.url, apiKey: KEY, ...options }).messages.create({
      model,
      max_tokens: 10,
      messages: MESSAGES,
    }),
}

describe('the openai SDK', () => {
  const ask = asks.openai

  for (const code of CODES) {
    it(`reads ${code}: class, text, code, type and request id`, async () => {
      const error = await thrownBy(() => ask(`fault-${code}`, WITHOUT_RETRIES))
      const { status } = FAULTS[code]
      assert.ok(error instanceof OpenAI.APIError, String(error))
      assert.equal(error.constructor.name, classFor(status, CLASSES))
      assert.equal(error.message, `${status} ${textOf(code)}`)
      assert.deepEqual([error.status, error.code, error.param], [status, code, null])
      assert.match(String(error.type), /^[a-z_]+_error$/)
      assert.ok(isId(error.requestID ?? ''))
      assert.deepEqual({ ...Object(error.error), ...MEMBERS }, error.error)
    })
  }

  it('reads a missing route and a wrong key too', async () => {
    const client = new OpenAI({ baseURL: `${probe.url}/v1`, apiKey: KEY, ...WITHOUT_RETRIES })
    const missing = await thrownBy(() => client.embeddings.create({ model: 'a', input: 'b' }))
    assert.ok(missing instanceof OpenAI.NotFoundError && missing.code === 'route_not_found')
    const wrong = await thrownBy(() => ask('a', { ...WITHOUT_RETRIES, apiKey: 'fb_test_wrong' }))
    assert.ok(wrong instanceof OpenAI.AuthenticationError && wrong.code === 'invalid_credential')
  })
})

for (const [name, Sdk, ask, classes] of [
  ['the @anthropic-ai/sdk 1.x', Anthropic, asks['anthropic 1.x'], MORE_CLASSES],
  ['the @anthropic-ai/sdk 0.x', AnthropicBefore1, asks['anthropic 0.x'], CLASSES],
] as const) {
  describe(name, () => {
    for (const code of CODES) {
      it(`reads ${code}: class, text, code, type and request id`, async () => {
        const error = await thrownBy(() => ask(`fault-${code}`, WITHOUT_RETRIES))
        const { status } = FAULTS[code]
        assert.ok(error instanceof Sdk.APIError, String(error))
        assert.equal(error.status, status)
        assert.equal(error.constructor.name, classFor(status, classes))
        const body = Object(error.error)
        assert.equal(body.type, 'error')
        assert.equal(body.error.message, textOf(code))
        assert.equal(body.error.code, code)
        assert.deepEqual(body.error.details, { ...MEMBERS, error_code: code })
        assert.match(String(error.type), /^[a-z_]+_error$/)
        assert.ok(isId(error.requestID ?? ''))
        assert.equal(body.request_id, error.requestID)
        if (error instanceof Anthropic.APIError) {
          assert.equal(error.errorCode, code)
          assert.equal(error.apiMessage, textOf(code))
        }
      })
    }

    it('reads a missing route in its own shape, wherever it is', async () => {
      const client = new Sdk({ baseURL: probe.url, apiKey: KEY, ...WITHOUT_RETRIES })
      const error = await thrownBy(() => client.models.retrieve('a'))
      assert.ok(error instanceof Sdk.NotFoundError, String(error))
      assert.equal(error.type, 'not_found_error')
    })
  })
}

describe('the @google/genai SDK', () => {
  const ask = (model: string, apiKey = KEY) =>
    new GoogleGenAI({ apiKey, httpOptions: { baseUrl: probe.url } }).models.generateContent({
      model,
      contents: 'hello',
    })

  for (const code of CODES) {
    it(`reads ${code}: class, text, status, code and request id`, async () => {
      const error = await thrownBy(() => ask(`fault-${code}`))
      assert.ok(error instanceof ApiError, String(error))
      assert.equal(error.status, FAULTS[code].status)
      // This SDK's text is the whole body.
      const body = JSON.parse(error.message).error
      assert.equal(body.message, textOf(code))
      assert.equal(body.code, FAULTS[code].status)
      assert.match(body.status, /^[A-Z_]+$/)
      const [info, request, retry] = body.details
      assert.equal(info.reason, code)
      assert.deepEqual(info.metadata, MEMBERS)
      assert.ok(isId(request.requestId))
      if (FAULTS[code].status === 429) assert.match(retry.retryDelay, /^\d+s$/)
    })
  }

  it('is known by the key in its own header, and by a bearer token before that', async () => {
    assert.ok(await ask('fine'))
    const error = await thrownBy(() => ask('fine', 'fb_test_wrong'))
    assert.equal(JSON.parse(String(error instanceof ApiError && error.message)).error.status, 'UNAUTHENTICATED')
    const headers = { Authorization: `Bearer ${KEY}` }
    const both = new GoogleGenAI({ apiKey: 'fb_test_wrong', httpOptions: { baseUrl: probe.url, headers } })
    assert.ok(await both.models.generateContent({ model: 'fine', contents: 'hello' }))
  })

  it('makes one request, whatever the answer', async () => {
    assert.equal(await requestsOf(() => ask('fault-rate_limit_exceeded-1')), 1)
  })
})

/**
 * Refused before any upstream is asked, so they are not told never to repeat them, and nothing can be billed. The standard of fetch has the first
 * sent once more, over another connection; the second is sent again in vain.
 */
const REPEATED_FREELY: readonly FaultCode[] = ['misdirected_request', 'not_configured']

describe('SDKs that retry by themselves', () => {
  for (const [name, ask] of Object.entries(asks)) {
    for (const code of CODES.filter((one) => !FAULTS[one].retryable && !REPEATED_FREELY.includes(one))) {
      it(`trap: ${name} does not repeat ${code}, which could be billed or bring nothing`, async () => {
        assert.equal(await requestsOf(() => ask(`fault-${code}`)), 1)
      })
    }

    it(`trap: ${name} does not come back within a second when it should wait for more than 60`, async () => {
      assert.equal(await requestsOf(() => ask('fault-rate_limit_exceeded-120')), 1)
      assert.equal(await requestsOf(() => ask('fault-overloaded-61')), 1)
    })

    it(`${name} repeats what may succeed, after the time that it was told`, async () => {
      const startedMs = performance.now()
      assert.equal(await requestsOf(() => ask('fault-rate_limit_exceeded-1')), 3)
      assert.ok(performance.now() - startedMs >= 2_000)
    })
  }
})
