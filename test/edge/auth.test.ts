import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { KEY, type Probe, SLOWLY_KNOWN_KEY, startProbeEdge } from './probe-edge.ts'

let probe: Probe
before(async () => {
  probe = await startProbeEdge()
})
after(() => probe.edge.drain({ idleGraceMs: 0 }))

const KNOWN = { authorization: `Bearer ${KEY}` }
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY', 'SEARCH']
const VERSION = { 'anthropic-version': '2026-10-21' }

type Shape = 'openai' | 'anthropic' | 'gemini' | 'data'
const PLACES: readonly (readonly [url: string, headers: Record<string, string>, shape: Shape])[] = [
  ['/v1/nothing', {}, 'openai'],
  ['/v1', {}, 'openai'],
  ['/v1/models/of/nobody', VERSION, 'anthropic'],
  ['/v1/nothing', VERSION, 'openai'],
  ['/v1/messages/nothing', {}, 'anthropic'],
  ['/v1beta/nothing', {}, 'gemini'],
  ['/v1beta/models:nothing', {}, 'gemini'],
  ['/apis/v1/nothing', {}, 'data'],
  ['/apis/v1/probe/slow/', {}, 'data'],
  ['/nothing', {}, 'data'],
  ['/', {}, 'data'],
  ['/livez/nothing', {}, 'data'],
  ['/v1/nothing?key=fb_test_probe&page=1', {}, 'openai'],
]

/** What the code of a refusal is, after checking that the body has the shape of its protocol and no other. */
function codeIn(shape: Shape, body: Record<string, unknown>): unknown {
  const error = Object(body.error)
  if (shape === 'gemini') {
    assert.equal(typeof error.code, 'number')
    assert.match(error.status, /^[A-Z_]+$/)
    return error.details[0].reason
  }
  assert.equal(body.type, shape === 'anthropic' ? 'error' : undefined)
  assert.equal('param' in error, shape === 'openai')
  assert.equal('details' in error, shape === 'anthropic')
  return error.code
}

async function refusal(url: string, init: RequestInit, shape: Shape) {
  const response = await fetch(probe.url + url, init)
  const { status, headers } = response
  const text = await response.text()
  return { status, headers, code: init.method === 'HEAD' ? undefined : codeIn(shape, JSON.parse(text)) }
}

describe('AUTH-3 authentication runs before route lookup', () => {
  for (const [url, headers, shape] of PLACES) {
    for (const method of METHODS) {
      it(`${method} ${url} without a credential is 401 in the shape of ${shape}, with one it is 404`, async () => {
        const body = ['POST', 'PUT', 'PATCH'].includes(method) ? { body: '{"broken":' } : {}
        const unknown = await refusal(url, { method, headers, ...body }, shape)
        assert.equal(unknown.status, 401)
        assert.equal(unknown.headers.get('www-authenticate'), 'Bearer')
        if (unknown.code !== undefined) assert.equal(unknown.code, 'missing_credential')

        const wrong = await refusal(url, { method, headers: { ...headers, authorization: 'Bearer x' } }, shape)
        assert.equal(wrong.status, 401)
        if (wrong.code !== undefined) assert.equal(wrong.code, 'invalid_credential')

        const known = await refusal(url, { method, headers: { ...headers, ...KNOWN }, ...body }, shape)
        assert.equal(known.status, 404)
        if (known.code !== undefined) assert.equal(known.code, 'route_not_found')
      })
    }
  }

  it('an existing route answers the same to a stranger as one that does not exist', async () => {
    for (const method of METHODS) {
      const [exists, missing] = await Promise.all(
        ['/v1/chat/completions', '/v1/chat/nothing'].map((url) => fetch(probe.url + url, { method })),
      )
      assert.equal(exists?.status, 401)
      assert.deepEqual(withoutIds(await exists?.text()), withoutIds(await missing?.text()))
    }
  })

  it('a target that can not be decoded, or a very long parameter, tells a stranger nothing either', async () => {
    for (const url of ['/v1beta/%zz', `/v1beta/models/${'a'.repeat(4_000)}`]) {
      assert.equal((await refusal(url, { method: 'POST' }, 'gemini')).status, 401)
    }
    assert.equal((await refusal('/v1beta/%zz', { headers: KNOWN }, 'gemini')).status, 400)
  })

  it('a wrong method is 405 and says which are right, but only to a caller who is known', async () => {
    const stranger = await refusal('/v1/chat/completions', {}, 'openai')
    assert.deepEqual([stranger.status, stranger.headers.get('allow')], [401, null])
    const known = await refusal('/v1/chat/completions', { headers: KNOWN }, 'openai')
    assert.deepEqual([known.status, known.code, known.headers.get('allow')], [405, 'method_not_allowed', 'POST'])
    // A HEAD would run, and bill, the call that the GET is.
    assert.equal((await fetch(`${probe.url}/apis/v1/probe`, { method: 'HEAD', headers: KNOWN })).status, 405)
  })
})

describe('a credential', () => {
  const statusWith = async (headers: Record<string, string>, url = '/apis/v1/probe') =>
    (await fetch(probe.url + url, { headers })).status

  it('is taken from any of its three headers, on every path', async () => {
    for (const url of ['/apis/v1/probe', '/v1/models']) {
      for (const headers of [KNOWN, { 'x-api-key': KEY }, { 'x-goog-api-key': KEY }]) {
        assert.equal(await statusWith(headers, url), 200)
      }
    }
  })

  it('in Authorization wins over the others, right or wrong', async () => {
    assert.equal(await statusWith({ ...KNOWN, 'x-api-key': 'x', 'x-goog-api-key': 'y' }), 200)
    assert.equal(await statusWith({ authorization: 'Bearer x', 'x-api-key': KEY }), 401)
  })

  it('is never taken from the URL or a cookie', async () => {
    assert.equal(await statusWith({ cookie: `key=${KEY}` }, `/apis/v1/probe?key=${KEY}&access_token=${KEY}`), 401)
  })

  it('may take time to be looked up', async () => {
    assert.equal(await statusWith({ authorization: `Bearer ${SLOWLY_KNOWN_KEY}` }), 200)
  })

  it('is not asked for on a public route, and only looked at on an optional one', async () => {
    const caller = async (headers: Record<string, string>) =>
      (await fetch(`${probe.url}/apis/v1/probe/optional`, { headers })).json()
    assert.equal(await statusWith({}, '/apis/v1/probe/public'), 200)
    assert.equal(await statusWith({ authorization: 'Bearer wrong' }, '/apis/v1/probe/public'), 200)
    assert.deepEqual(await caller({}), { caller: null })
    assert.deepEqual(await caller(KNOWN), { caller: KEY })
    assert.equal(await statusWith({ authorization: 'Bearer wrong' }, '/apis/v1/probe/optional'), 401)
  })

  it('that is missing or wrong reads no body', async () => {
    const handled = probe.handled.length
    const body = 'x'.repeat(5_000_000)
    const { status } = await fetch(`${probe.url}/v1/chat/completions`, { method: 'POST', body })
    assert.equal(status, 401)
    assert.equal(probe.handled.length, handled)
  })

  it('whose look-up fails is our failure, not the caller’s', async () => {
    const broken = await startProbeEdge({ identify: () => Promise.reject(new Error('no database')) })
    const response = await fetch(`${broken.url}/v1/models`, { headers: KNOWN })
    assert.equal(response.status, 500)
    assert.ok(!(await response.text()).includes('database'))
    assert.equal(broken.lines.filter((line) => line.includes('no database')).length, 1)
    await broken.edge.drain({ idleGraceMs: 0 })
  })
})

function withoutIds(text: string | undefined): string | undefined {
  return text?.replace(/[0-9a-f-]{36}/g, 'id')
}
