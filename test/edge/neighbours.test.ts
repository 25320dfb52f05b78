import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callerNamed, KEY, withEdge } from './probe-edge.ts'

const KNOWN = { authorization: `Bearer ${KEY}` }
const APP = 'https://app.example'

describe('a page of another origin', () => {
  const preflight = (url: string, origin: string) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type,x-stainless-os',
      },
    })

  it('gets nothing by default', async () => {
    await withEdge({}, async ({ url }) => {
      const response = await preflight(url, APP)
      assert.equal(response.status, 401)
      for (const [name] of response.headers) assert.ok(!name.startsWith('access-control'))
    })
  })

  it('is let in when it is listed, without a credential for its preflight and never with cookies', async () => {
    await withEdge({ corsOrigins: [APP], exposedHeaders: ['X-Farebox-Cost'] }, async ({ url, handled }) => {
      const asked = await preflight(url, APP)
      assert.equal(asked.status, 204)
      assert.equal(asked.headers.get('access-control-allow-origin'), APP)
      assert.match(asked.headers.get('access-control-allow-methods') ?? '', /POST/)
      assert.equal(asked.headers.get('access-control-allow-headers'), 'authorization, content-type,x-stainless-os')
      assert.equal(asked.headers.get('access-control-allow-credentials'), null)
      assert.equal(asked.headers.get('vary'), 'Origin')
      assert.deepEqual(handled, [])

      // A refusal must be readable too.
      for (const headers of [KNOWN, {}]) {
        const response = await fetch(`${url}/v1/models`, { headers: { origin: APP, ...headers } })
        assert.equal(response.headers.get('access-control-allow-origin'), APP)
        const exposed = response.headers.get('access-control-expose-headers') ?? ''
        for (const name of ['X-Request-ID', 'Retry-After', 'X-RateLimit-Remaining-Tokens', 'X-Farebox-Cost']) {
          assert.ok(exposed.includes(name), name)
        }
      }
    })
  })

  it('is not let in when another one is listed', async () => {
    await withEdge({ corsOrigins: [APP] }, async ({ url }) => {
      for (const origin of ['https://evil.example', `${APP}.evil`, 'null', APP.toUpperCase()]) {
        const response = await preflight(url, origin)
        assert.equal(response.status, 401)
        assert.equal(response.headers.get('access-control-allow-origin'), null)
      }
    })
  })

  it('is let in from everywhere when that is asked for', async () => {
    await withEdge({ corsOrigins: ['*'] }, async ({ url }) => {
      assert.equal((await preflight(url, 'https://any.example')).headers.get('access-control-allow-origin'), '*')
    })
  })

  it('needs a credential for an OPTIONS that is no preflight', async () => {
    await withEdge({ corsOrigins: [APP] }, async ({ url }) => {
      assert.equal((await fetch(`${url}/v1/models`, { method: 'OPTIONS', headers: { origin: APP } })).status, 401)
    })
  })
})

describe("the caller's address", () => {
  const addressAt = async (url: string) => {
    const headers = {
      ...KNOWN,
      'x-forwarded-for': '6.6.6.6, 203.0.113.7',
      forwarded: 'for=6.6.6.6',
      'x-real-ip': '6.6.6.6',
    }
    return Object(await (await fetch(`${url}/apis/v1/probe/caller`, { headers })).json()).address
  }

  it('is never taken from a header that just anybody sends', async () => {
    await withEdge({}, async ({ url }) => assert.equal(await addressAt(url), '127.0.0.1'))
    await withEdge({ trustedProxies: ['10.0.0.0/8'] }, async ({ url }) =>
      assert.equal(await addressAt(url), '127.0.0.1'),
    )
  })

  it('is what a trusted proxy saw', async () => {
    await withEdge({ trustedProxies: ['127.0.0.0/8'] }, async ({ url }) =>
      assert.equal(await addressAt(url), '203.0.113.7'),
    )
  })

  it('reaches whoever identifies the caller', async () => {
    const seen: string[] = []
    const identify = (_credential: unknown, address: string) => {
      seen.push(address)
      return callerNamed('b')
    }
    await withEdge({ trustedProxies: ['127.0.0.1'], identify }, async ({ url }) => {
      await addressAt(url)
      assert.deepEqual(seen, ['203.0.113.7'])
    })
  })
})
