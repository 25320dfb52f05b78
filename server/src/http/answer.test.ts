import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Dialect } from '../catalogue/operation.ts'
import { FAULTS, Fault, type FaultCode } from '../kernel/fault.ts'
import { loadAssets } from '../pages/assets.ts'
import { createFaultPage } from '../pages/fault-page.ts'
import { createPages } from '../pages/page.ts'
import { DIALECTS, renderFault, withPages } from './answer.ts'

const REQUEST_ID = '0190b8b0-0000-7000-8000-000000000000'
const MEMBERS = { needed_usd: '2.000000000', left_usd: null, count: 3 }
const PAGES = createPages({ assets: loadAssets(), siteUrl: 'https://www.example' })
const CODES = Object.keys(FAULTS).filter((code): code is FaultCode => code in FAULTS)

type Words = { readonly openai: string; readonly anthropic: string; readonly gemini: string; readonly data: string }
const words = (openai: string, anthropic: string, gemini: string, data: string): Words => ({
  openai,
  anthropic,
  gemini,
  data,
})
const INVALID = words('invalid_request_error', 'invalid_request_error', 'INVALID_ARGUMENT', 'invalid_request_error')

/** What each protocol calls a failure of this status. */
const WORDS_BY_STATUS: Readonly<Record<number, Words>> = {
  400: INVALID,
  401: words('authentication_error', 'authentication_error', 'UNAUTHENTICATED', 'authentication_error'),
  402: words('billing_error', 'billing_error', 'RESOURCE_EXHAUSTED', 'billing_error'),
  403: words('permission_error', 'permission_error', 'PERMISSION_DENIED', 'permission_error'),
  404: words('invalid_request_error', 'not_found_error', 'NOT_FOUND', 'not_found_error'),
  405: INVALID,
  408: words('timeout_error', 'timeout_error', 'DEADLINE_EXCEEDED', 'timeout_error'),
  409: words('conflict_error', 'conflict_error', 'ABORTED', 'conflict_error'),
  412: INVALID,
  413: INVALID,
  414: INVALID,
  415: INVALID,
  417: INVALID,
  421: INVALID,
  422: INVALID,
  428: INVALID,
  429: words('rate_limit_error', 'rate_limit_error', 'RESOURCE_EXHAUSTED', 'rate_limit_error'),
  431: INVALID,
  500: words('server_error', 'api_error', 'INTERNAL', 'api_error'),
  502: words('server_error', 'api_error', 'UNAVAILABLE', 'api_error'),
  503: words('service_unavailable_error', 'api_error', 'UNAVAILABLE', 'api_error'),
}
const WORDS_BY_CODE: Partial<Record<FaultCode, Words>> = {
  overloaded: words('service_unavailable_error', 'overloaded_error', 'UNAVAILABLE', 'api_error'),
}

/** The whole body that each protocol expects, member by member. */
const EXPECTED: Readonly<Record<Dialect, (fault: Fault, word: string, retryDelay: string | undefined) => unknown>> = {
  openai: ({ code, message }, type) => ({
    error: { message, type, param: null, code, ...MEMBERS },
    request_id: REQUEST_ID,
  }),
  anthropic: ({ code, message }, type) => ({
    type: 'error',
    error: { type, message, code, details: { error_code: code, ...MEMBERS } },
    request_id: REQUEST_ID,
  }),
  gemini: ({ code, message, status: httpStatus }, status, retryDelay) => ({
    error: {
      code: httpStatus,
      message,
      type: (WORDS_BY_CODE[code] ?? WORDS_BY_STATUS[httpStatus])?.data,
      status,
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: code,
          domain: 'gateway',
          metadata: { needed_usd: '2.000000000', left_usd: 'null', count: '3' },
        },
        { '@type': 'type.googleapis.com/google.rpc.RequestInfo', requestId: REQUEST_ID },
        ...(retryDelay === undefined ? [] : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }]),
      ],
    },
    request_id: REQUEST_ID,
  }),
  data: ({ code, message }, type) => ({ error: { code, message, type, ...MEMBERS }, request_id: REQUEST_ID }),
}

describe('every fault in every dialect', () => {
  for (const code of CODES) {
    for (const dialect of ['openai', 'anthropic', 'gemini', 'data'] as const) {
      it(`${code} is told in the shape of ${dialect}`, () => {
        const fault = new Fault(code, { detail: 'In particular.', members: MEMBERS, cause: new Error('hunter2') })
        const { status, headers, body } = renderFault(dialect, fault, REQUEST_ID)
        const known = WORDS_BY_CODE[code] ?? WORDS_BY_STATUS[status]
        assert.ok(known, `no word for ${status}`)
        const retryAfter = headers['retry-after']
        const retryDelay = retryAfter === undefined ? undefined : `${retryAfter}s`
        assert.deepEqual(JSON.parse(body), EXPECTED[dialect](fault, known[dialect], retryDelay))
        assert.equal(status, FAULTS[code].status)
        assert.equal(headers['content-type'], 'application/json; charset=utf-8')
        assert.equal(headers['cache-control'], 'no-store')
        assert.ok([`${FAULTS[code].text} In particular.`, 'In particular.'].includes(fault.message))
        assert.ok(!body.includes('hunter2'))
      })
    }

    it(`${code} is a bare text where a route asks for that`, () => {
      const fault = new Fault(code, { members: MEMBERS })
      assert.deepEqual(JSON.parse(renderFault('plain', fault, REQUEST_ID).body), { error: fault.message })
    })
  }

  for (const code of CODES) {
    it(`${code} is a problem to programs of accounts and operators`, () => {
      const fault = new Fault(code, { members: MEMBERS, cause: new Error('hunter2') })
      const { status, headers, body } = renderFault('problem', fault, REQUEST_ID)
      const { title, ...rest } = JSON.parse(body)
      const told = { type: 'about:blank', status, detail: fault.message, code, request_id: REQUEST_ID }
      assert.deepEqual(rest, { ...MEMBERS, ...told })
      assert.notEqual(title, '')
      assert.equal(headers['content-type'], 'application/problem+json; charset=utf-8')
    })

    it(`${code} is one of the words that clients of OAuth know`, () => {
      const { error, error_description, request_id, ...more } = JSON.parse(
        renderFault('oauth', new Fault(code), REQUEST_ID).body,
      )
      const words = ['invalid_request', 'invalid_client', 'access_denied', 'temporarily_unavailable', 'server_error']
      assert.ok(words.includes(error), error)
      assert.match(error_description, /^[ !#-[\]-~]+$/)
      assert.deepEqual([request_id, more], [REQUEST_ID, {}])
    })

    it(`${code} is a page to people, with what happened and by what name to ask about it`, () => {
      const fault = new Fault(code, { detail: 'Not <this>.', cause: new Error('hunter2') })
      const { status, headers, body } = withPages(createFaultPage(PAGES))('html', fault, REQUEST_ID)
      assert.equal(status, fault.status)
      assert.equal(headers['content-type'], 'text/html; charset=utf-8')
      assert.equal(headers['cache-control'], 'no-store')
      for (const part of [String(status), code, REQUEST_ID]) assert.ok(body.includes(part), part)
      assert.ok(!body.includes('<this>') && !body.includes('hunter2'))
    })
  }

  it('knows seven dialects, and pages', () => {
    assert.deepEqual(Object.keys(DIALECTS).sort(), [
      ...['anthropic', 'data', 'gemini', 'oauth', 'openai', 'plain', 'problem'],
    ])
  })

  it('never lets a member take the place of the code, the text or the type', () => {
    const members = { code: 'x', message: 'x', type: 'x', error_code: 'x' }
    const fault = new Fault('forbidden', { members })
    const bodyIn = (dialect: Dialect) => JSON.parse(renderFault(dialect, fault, REQUEST_ID).body)
    for (const { error } of [bodyIn('openai'), bodyIn('data'), bodyIn('anthropic')]) {
      assert.deepEqual([error.code, error.message, error.type], ['forbidden', fault.message, 'permission_error'])
    }
    assert.equal(bodyIn('anthropic').error.details.error_code, 'forbidden')
  })

  it('lets a fault name the parameter that is wrong, where the protocol has a place for it', () => {
    const fault = new Fault('invalid_request', { members: { param: 'top_n' } })
    assert.equal(JSON.parse(renderFault('openai', fault, REQUEST_ID).body).error.param, 'top_n')
  })
})

describe('the headers of a refusal', () => {
  const headersOf = (code: FaultCode, retryAfterSeconds?: number) =>
    renderFault('data', new Fault(code, retryAfterSeconds === undefined ? {} : { retryAfterSeconds }), REQUEST_ID)
      .headers

  for (const code of CODES) {
    const { status, retryable } = FAULTS[code]
    it(`${code}: Retry-After, x-should-retry and WWW-Authenticate are as its row says`, () => {
      const headers = headersOf(code)
      const repeatedBySdks = [408, 409, 429].includes(status) || status >= 500
      // What never reached anybody may be repeated, though it does not help.
      const isForbidden = repeatedBySdks && !retryable && code !== 'not_configured'
      assert.equal(headers['x-should-retry'], isForbidden ? 'false' : undefined)
      // What did not arrive in time is sent again at once.
      assert.equal('retry-after' in headers, status === 429 || (retryable && code !== 'request_timeout'))
      assert.equal(headers['www-authenticate'], status === 401 ? 'Bearer' : undefined)
    })
  }

  it('give whole seconds, rounded up, and never zero', () => {
    assert.equal(headersOf('rate_limit_exceeded', 12.1)['retry-after'], '13')
    assert.equal(headersOf('rate_limit_exceeded', 0)['retry-after'], '1')
  })

  it('forbid a retry when the wait is longer than SDKs honour, and only then', () => {
    assert.equal(headersOf('rate_limit_exceeded', 60)['x-should-retry'], undefined)
    assert.equal(headersOf('rate_limit_exceeded', 61)['x-should-retry'], 'false')
    assert.equal(headersOf('overloaded', 120)['x-should-retry'], 'false')
  })

  it('tell to wait an hour for a quota that a minute does not restore', () => {
    assert.equal(headersOf('quota_exceeded')['retry-after'], '3600')
    assert.equal(headersOf('quota_exceeded')['x-should-retry'], 'false')
  })
})
