import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Fault } from '../../server/src/kernel/fault.ts'
import { createLog } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { callerNamed, probeFamilies, startProbeEdge } from './probe-edge.ts'
import { converse } from './raw-http.ts'

/**
 * Looks like a key of ours, as a caller's credential does, and is kept out wherever it stands. A credential of any other
 * form is known by its header alone: it is kept out of what a failure logs about its own request, as it is, and encoded
 * for a URL or in JSON. Not covered are such a value in another encoding (base64, say), cut in pieces, or in an error that
 * is logged apart from the request: whoever logs there must not have it in hand.
 */
const CANARY = 'fb_live_canary7f3a9c51d2'
const BARE = 'canary7f3a9c51d2'
const OPAQUE = 'opaque-canary7f3a9c51d2/with+more'
const HEAD = `Host: edge\r\nAuthorization: Bearer ${CANARY}\r\n`

const lines: string[] = []
const metrics = createMetrics()
const log = createLog({ level: 'info', write: (line) => lines.push(line), secrets: [] })
let port = 0
let drain: () => Promise<unknown> = async () => {}

before(async () => {
  const failing = {
    name: 'failing',
    prefix: '/failing',
    dialect: 'data' as const,
    register: (scope: Parameters<ReturnType<typeof probeFamilies>[number]['register']>[0]) => {
      scope.all('/error', (request) => {
        throw new Error(`could not use ${request.headers.authorization}`, { cause: new Error(`key ${CANARY}`) })
      })
      scope.all('/fault', ({ headers }) => {
        throw new Fault('upstream_transport', { cause: new Error(`sent ${headers.authorization} upstream`) })
      })
      scope.all('/opaque', ({ headers }) => {
        const key = String(headers['x-api-key'] ?? headers['x-goog-api-key'])
        throw new Error(`could not use ${key}`, { cause: new Error(`GET /?key=${encodeURIComponent(key)}`) })
      })
      scope.all('/string', ({ headers }) => {
        throw headers.authorization
      })
    },
  }
  const identify = () => callerNamed('key')
  const probe = await startProbeEdge({ log, metrics, identify, families: [...probeFamilies(), failing] })
  port = probe.port
  drain = () => probe.edge.drain({ idleGraceMs: 0 })
})
after(() => drain())

const get = (target: string, headers = HEAD) => `GET ${target} HTTP/1.1\r\n${headers}\r\n`
const post = (target: string, body: string, headers = '') =>
  `POST ${target} HTTP/1.1\r\n${HEAD}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`

const WAYS: Readonly<Record<string, string>> = {
  'a header that is taken': get('/apis/v1/probe'),
  'a credential that is refused': get('/apis/v1/probe', `Host: edge\r\nAuthorization: Basic ${CANARY}\r\n`),
  'other carriers': get('/apis/v1/nothing', `Host: edge\r\nx-api-key: ${CANARY}\r\nx-goog-api-key: ${CANARY}\r\n`),
  'the URL of a missing route': get(`/v1/${CANARY}?key=${CANARY}`),
  'the URL of a route': get(`/apis/v1/probe?fault=${CANARY}`),
  'a URL that can not be decoded': get(`/v1/%zz${CANARY}`),
  'a URL that is refused': get(`http://${CANARY}/v1`),
  'a method': `${CANARY.toUpperCase()} / HTTP/1.1\r\n${HEAD}\r\n`,
  'a repeated header': get('/', `${HEAD}Authorization: Bearer ${CANARY}\r\n`),
  'the name of a header': get('/', `${HEAD}${CANARY}: ${CANARY}\r\n${CANARY} : x\r\n`),
  'a header that is too large': get('/', `${HEAD}X: ${CANARY.repeat(1_000)}\r\n`),
  'a host': get('/', `Host: ${CANARY}/x\r\n`),
  'a request id': get('/nothing', `${HEAD}X-Request-ID: ${CANARY}\r\nrequest-id: ${CANARY}\r\n`),
  'what is no HTTP': `${CANARY}\r\n\r\n`,
  'a body that is not JSON': post('/apis/v1/probe/take', `{"key":"${CANARY}"`),
  'a body with a bad name': post('/apis/v1/probe/take', `{"__proto__":"${CANARY}"}`),
  'a body with a name twice': post('/apis/v1/probe/take', `{"${CANARY}":1,"${CANARY}":2}`),
  'a body of another type': post('/apis/v1/probe/take', CANARY).replace('application/json', `text/${CANARY}`),
  'a content encoding': post('/apis/v1/probe/take', '{}', `Content-Encoding: ${CANARY}\r\n`),
  'an expectation': get('/', `${HEAD}Expect: ${CANARY}\r\n`),
  'broken chunks': `POST /apis/v1/probe/take HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n${CANARY}\r\n`,
  'an error that is thrown': get('/failing/error'),
  'the cause of a fault': get('/failing/fault'),
  'a string that is thrown': get('/failing/string'),
  'an opaque key in an error that is thrown': get('/failing/opaque', `Host: edge\r\nx-api-key: ${OPAQUE}\r\n`),
  'an opaque key of the third header': get('/failing/opaque', `Host: edge\r\nx-goog-api-key: ${OPAQUE}\r\n`),
}

describe('a canary secret', () => {
  for (const [way, bytes] of Object.entries(WAYS)) {
    it(`sent by ${way} comes back in no answer and stands in no log line and no metric`, async () => {
      const { responses, rest } = await converse(port, bytes, { quietMs: 100 })
      const answers = JSON.stringify(responses.map(({ headers, body }) => [[...headers], body])) + rest
      const output = `${answers}${lines.join('')}${await metrics.expose()}`.toLowerCase()
      assert.ok(!output.includes(BARE), output.slice(Math.max(0, output.indexOf(BARE) - 200)).slice(0, 400))
    })
  }

  it('was really sent, and what failed was really logged', () => {
    const failures = lines.filter((line) => line.includes('"msg":"request failed"'))
    assert.equal(failures.length, 5)
    assert.match(failures.join(''), /could not use \[redacted\]/)
    assert.match(failures.join(''), /"route":"\/failing\/error"/)
  })
})
