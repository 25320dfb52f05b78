import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { FAULTS } from '../../server/src/kernel/fault.ts'
import { isId } from '../../server/src/kernel/ids.ts'
import { isFaultCode, KEY, type Probe, startProbeEdge } from './probe-edge.ts'
import { converse } from './raw-http.ts'
import { HEAD } from './smuggling-cases.ts'

const ORIGIN = 'https://app.example'
const LIMITS = { lingerMs: 100, requestsPerConnection: 3 }
let probe: Probe
/** For what is to be too late: on a busy machine, anything else might be, too. */
let hasty: Probe
before(async () => {
  probe = await startProbeEdge({ corsOrigins: [ORIGIN], limits: LIMITS })
  hasty = await startProbeEdge({ limits: { ...LIMITS, headersTimeoutMs: 500, requestTimeoutMs: 500 } })
})
after(() => Promise.all([probe, hasty].map(({ edge }) => edge.drain({ idleGraceMs: 0 }))))

const get = (target: string, headers = '') => `GET ${target} HTTP/1.1\r\n${HEAD}${headers}\r\n`
const post = (headers: string, body: string) =>
  `POST /apis/v1/probe/echo HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\n${headers}\r\n${body}`
const preflight = `OPTIONS /v1/models HTTP/1.1\r\nHost: edge\r\nOrigin: ${ORIGIN}\r\nAccess-Control-Request-Method: GET\r\n\r\n`

/** Every way in which a response can come about, and its status. */
const PATHS: Readonly<Record<string, readonly [bytes: string, statuses: readonly number[]]>> = {
  'an answer of a route': [get('/apis/v1/probe'), [200]],
  'a stream that a route writes itself': [get('/apis/v1/probe/stream'), [200]],
  'a large answer': [get('/apis/v1/probe/big?bytes=300000'), [200]],
  'the pulse': [get('/livez'), [200]],
  'the pulse by HEAD': [get('/livez').replace('GET', 'HEAD'), [200]],
  readiness: [get('/readyz'), [200]],
  'a preflight': [preflight, [204]],
  'a request to continue': [post('Expect: 100-continue\r\nContent-Length: 2\r\n', '{}'), [100, 200]],
  'no credential': ['GET /v1/models HTTP/1.1\r\nHost: edge\r\n\r\n', [401]],
  'no such route': [get('/nothing'), [404]],
  'a wrong method': [get('/v1/chat/completions'), [405]],
  'a target that can not be decoded': [get('/%zz'), [400]],
  'a repeated header': [get('/livez', 'Host: other\r\n'), [400]],
  'no host': ['GET /livez HTTP/1.1\r\n\r\n', [400]],
  'a body that is not JSON': [post('Content-Length: 1\r\n', '{'), [400]],
  'a body that is too large': [post('Content-Length: 9000000\r\n', ''), [413]],
  'chunks that are too large': [post('Transfer-Encoding: chunked\r\n', `200000\r\n${'a'.repeat(0x200000)}\r\n`), [413]],
  'an encoded body': [post('Content-Encoding: gzip\r\nContent-Length: 2\r\n', '{}'), [415]],
  'a body of another type': [post('Content-Length: 1\r\n', 'a').replace('application/json', 'text/plain'), [415]],
  'a long target': [get(`/${'a'.repeat(9_000)}`), [414]],
  'an expectation': [get('/livez', 'Expect: x\r\n'), [417]],
  'many headers': [get('/livez', 'a: b\r\n'.repeat(120)), [431]],
  'large headers': [get('/livez', `a: ${'b'.repeat(20_000)}\r\n`), [431]],
  'what is no HTTP': ['rubbish\r\n\r\n', [400]],
  'broken chunks': [post('Transfer-Encoding: chunked\r\n', 'x\r\n'), [400]],
  CONNECT: [`CONNECT other:443 HTTP/1.1\r\n${HEAD}\r\n`, [400]],
  'headers that never end': [`GET /livez HTTP/1.1\r\n${HEAD}`, [408]],
  'a body that never ends': [post('Content-Length: 9\r\n', '{'), [408]],
  'an error of ours': [get('/apis/v1/probe/throw'), [500]],
  'the last request of a connection': [get('/livez').repeat(4), [200, 200, 200]],
  ...Object.fromEntries(
    Object.keys(FAULTS)
      .filter(isFaultCode)
      .map((code) => [`a fault ${code}`, [get(`/apis/v1/probe?fault=fault-${code}`), [FAULTS[code].status]]] as const),
  ),
}

describe('ERR-5 X-Request-ID is on every response', () => {
  const seen = new Set<string>()

  for (const [what, [bytes, expected]] of Object.entries(PATHS)) {
    it(`${what} (${expected.join(', ')})`, async () => {
      const isLate = expected[0] === 408
      const { port } = isLate ? hasty : probe
      const { responses } = await converse(port, bytes, { quietMs: isLate ? 1_500 : 120, expected: expected.length })
      assert.deepEqual(
        responses.map(({ status }) => status),
        expected,
      )
      for (const { status, headers, body } of responses) {
        if (status === 100) continue
        const id = headers.get('x-request-id') ?? ''
        assert.ok(isId(id), `no id on ${status}`)
        assert.equal(headers.get('request-id'), id)
        assert.ok(!seen.has(id), 'an id is never given twice')
        seen.add(id)
        if (status >= 400) assert.equal(JSON.parse(body).request_id ?? id, id)
      }
    })
  }

  it('when the process is unready, or stops', async () => {
    const missing: string[] = ['database']
    const stopping = await startProbeEdge({ readiness: () => missing })
    const unready = await fetch(`${stopping.url}/readyz`)
    assert.equal(unready.status, 503)
    assert.deepEqual(await unready.json(), { status: 'unready', missing })
    missing.pop()
    assert.equal((await fetch(`${stopping.url}/readyz`)).status, 200)
    const drained = stopping.edge.drain({ pauseMs: 300, idleGraceMs: 0 })
    const draining = await fetch(`${stopping.url}/readyz`)
    assert.equal(draining.status, 503)
    assert.deepEqual(await draining.json(), { status: 'unready', missing: ['draining'] })
    for (const { headers } of [unready, draining]) assert.ok(isId(headers.get('x-request-id') ?? ''))
    await drained
  })

  it('and it is ours, whatever the caller sends', async () => {
    const headers = { 'x-request-id': 'theirs', 'request-id': 'theirs', authorization: `Bearer ${KEY}` }
    const response = await fetch(`${probe.url}/apis/v1/probe`, { headers })
    assert.ok(isId(response.headers.get('x-request-id') ?? ''))
  })
})

describe('a route whose 400 is a plain text', () => {
  const ask = async (wish: string) =>
    (await fetch(`${probe.url}/v1/usage?fault=${wish}`, { headers: { authorization: `Bearer ${KEY}` } })).json()

  it('answers exactly { error: text } with 400', async () => {
    assert.deepEqual(await ask('fault-invalid_request'), {
      error: 'Thrown by a probe.',
    })
  })

  it('answers every other failure in the shape of its family', async () => {
    const { error } = Object(await ask('fault-rate_limit_exceeded'))
    assert.deepEqual([error.type, error.code, error.param], ['rate_limit_error', 'rate_limit_exceeded', null])
    assert.equal(
      Object((await (await fetch(`${probe.url}/v1/usage`)).json()) as object).error.code,
      'missing_credential',
    )
  })
})
