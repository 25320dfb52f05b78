import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { createCalls } from '../../server/src/calls/calls.ts'
import type { Query } from '../../server/src/calls/query.ts'
import type { Family } from '../../server/src/http/families.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { createShedding } from '../../server/src/wire/shedding.ts'
import { startChildEdge } from './child-edge.ts'
import { KEY, withEdge } from './probe-edge.ts'
import { converse } from './raw-http.ts'
import { GOOD, HEAD } from './smuggling-cases.ts'

const ORIGIN = 'https://app.example'

function post(path: string, body: string, headers = ''): string {
  return `POST ${path} HTTP/1.1\r\n${HEAD}content-type: application/json\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`
}

describe('a request that is shed', () => {
  it('is told so in its dialect, with a time to wait, before anybody asks who sent it', async () => {
    await withEdge({ mustShed: () => true }, async ({ url, handled, lines }) => {
      const told = async (path: string) => {
        const response = await fetch(url + path, { method: 'POST', body: '{}', headers: { authorization: 'Bearer ?' } })
        assert.equal(response.status, 503)
        assert.equal(response.headers.get('retry-after'), '1')
        assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
        return JSON.stringify(await response.json())
      }
      assert.match(await told('/v1/chat/completions'), /"type":"service_unavailable_error".*"code":"overloaded"/)
      assert.match(await told('/v1/messages'), /"type":"overloaded_error"/)
      assert.match(await told('/v1beta/models/x:generateContent'), /"status":"UNAVAILABLE"/)
      assert.match(await told('/apis/v1/probe'), /overloaded/)
      assert.deepEqual(handled, [])
      assert.deepEqual(lines, [], 'and no line is written for it')
    })
  })

  it('is counted, and nothing of it stays open', async () => {
    const metrics = createMetrics()
    await withEdge({ mustShed: () => true, metrics }, async ({ url }) => {
      for (let sent = 0; sent < 3; sent += 1) await fetch(`${url}/v1/models`)
    })
    const text = await metrics.expose()
    assert.match(text, /^farebox_faults_total\{code="overloaded"\} 3$/m)
    assert.match(text, /^farebox_http_requests_total\{family="chat",method="GET",status="503"\} 3$/m)
    assert.match(text, /^farebox_http_requests_open 0$/m)
  })

  it('leaves its connection as it was: the next request on it is answered', async () => {
    let asked = 0
    const mustShed = () => {
      asked += 1
      return asked <= 3
    }
    await withEdge({ mustShed, limits: { lingerMs: 10_000 } }, async ({ port, handled }) => {
      const body = JSON.stringify({ model: 'x', padding: 'p'.repeat(200_000) })
      const pieces = [GOOD + GOOD, post('/v1/chat/completions', body), post('/v1/chat/completions', '{}'), GOOD]
      const { responses, closed } = await converse(port, pieces, { gapMs: 200, quietMs: 500, expected: 5 })
      assert.deepEqual(
        responses.map(({ status }) => status),
        [503, 503, 503, 200, 200],
      )
      assert.deepEqual(new Set(responses.map(({ headers }) => headers.get('connection'))), new Set(['keep-alive']))
      assert.equal(closed, false)
      assert.equal(handled.length, 2)
    })
  })

  it('is told at once where its body is long, or waits to be asked for; what does not come then ends the connection', async () => {
    await withEdge({ mustShed: () => true, limits: { lingerMs: 100 } }, async ({ port }) => {
      const long = JSON.stringify({ padding: 'p'.repeat(100_000) })
      const expecting = post('/v1/chat/completions', '{}', 'expect: 100-continue\r\n').slice(0, -2)
      for (const [text, connection] of [
        [expecting, 'close'],
        [post('/v1/chat/completions', long).slice(0, -1), 'keep-alive'],
      ] as const) {
        const { responses, closed } = await converse(port, text, { quietMs: 30_000 })
        assert.deepEqual(
          responses.map(({ status, headers }) => [status, headers.get('connection')]),
          [[503, connection]],
        )
        assert.equal(closed, true)
      }
    })
  })

  it('is refused for what is wrong with it instead, where that shows in time', async () => {
    const limits = { headersTimeoutMs: 300, requestTimeoutMs: 300 }
    await withEdge({ mustShed: () => true, limits }, async ({ port }) => {
      const told = async (text: string | string[]) => {
        const { responses, closed } = await converse(port, text, { gapMs: 1_500, quietMs: 30_000 })
        assert.equal(closed, true)
        return responses.map(({ status }) => status)
      }
      assert.deepEqual(await told(`GET /v1/models HTTP/1.1\r\n${HEAD}host: other\r\n\r\n`), [400])
      const late = post('/v1/chat/completions', '{}')
      assert.deepEqual(await told([late.slice(0, -1), late.slice(-1)]), [408])
      const chunked = `POST /v1/chat/completions HTTP/1.1\r\n${HEAD}transfer-encoding: chunked\r\n\r\n`
      const [first] = await told(`${chunked}zz\r\n`)
      assert.equal(first, 503)
      assert.equal((await converse(port, GOOD)).responses[0]?.status, 503, 'and the process lives')
    })
  })

  it('can be read by the page of a browser that sent it, and its preflight is answered', async () => {
    await withEdge({ mustShed: () => true, corsOrigins: [ORIGIN] }, async ({ url }) => {
      const headers = { origin: ORIGIN }
      const preflight = { ...headers, 'access-control-request-method': 'POST' }
      const asked = await fetch(`${url}/v1/models`, { method: 'OPTIONS', headers: preflight })
      assert.equal(asked.status, 204)
      const refused = await fetch(`${url}/v1/models`, { headers })
      assert.equal(refused.status, 503)
      assert.equal(refused.headers.get('access-control-allow-origin'), ORIGIN)
    })
  })

  it('is never one that asks whether the process lives or is ready', async () => {
    await withEdge({ mustShed: () => true }, async ({ url }) => {
      for (const path of ['/livez', '/readyz']) assert.equal((await fetch(url + path)).status, 200)
    })
  })
})

const ids = createIds({ clock: systemClock })

function admission(): Call {
  const [id, accountId, credentialId] = [ids.next(), ids.next(), ids.next()]
  return { id, accountId, credentialId, operation: 'rerank', hold: null, tokens: 0, windows: [], claims: [] }
}

const BATCH_MS = 50
const BATCH = 4
const CALLERS = 300
const REFUSED_LEAST = 80
const PROOF = 'edge-shedding'

type SlowPostgres = { readonly url: string; readonly holdUntil: (released: Promise<void>) => void }

/** An edge whose one route begins a call at a PostgreSQL of so many calls a second, or of none while it is held. */
async function withSlowCalls(use: (postgres: SlowPostgres) => Promise<void>): Promise<void> {
  const row = ['begun', 0n, null, null, null, null, null, null, null, null, null, '2026-01-01']
  let held = Promise.resolve()
  const holdUntil = (released: Promise<void>) => {
    held = released
  }
  const query: Query = async () => {
    await sleep(BATCH_MS)
    await held
    return Array.from({ length: BATCH }, () => row)
  }
  const calls = createCalls({ query, ownerId: ids.next(), clock: systemClock, log: silentLog, batchLimit: BATCH })
  const mustShed = createShedding({ clock: systemClock, log: silentLog, waitMs: calls.waitMs })
  const family: Family = {
    name: 'calls',
    prefix: '/v1',
    dialect: 'openai',
    register(scope) {
      scope.post('/call', async () => ({ outcome: (await calls.begin(admission())).outcome }))
    },
  }
  await withEdge({ families: [family], mustShed }, ({ url }) => use({ url, holdUntil }))
}

describe('a gateway that is asked for more than PostgreSQL can do', () => {
  it('refuses who would wait for long before anybody is answered, and takes everybody when that is over', async () => {
    await withSlowCalls(async ({ url, holdUntil }) => {
      const told = { taken: 0, refused: 0 }
      const send = async () => {
        const startedMs = performance.now()
        const headers = { authorization: `Bearer ${KEY}` }
        const response = await fetch(`${url}/v1/call`, { method: 'POST', headers })
        await response.arrayBuffer()
        told[response.status === 503 ? 'refused' : 'taken'] += 1
        return { status: response.status, tookMs: performance.now() - startedMs }
      }
      // So that its pace is known, as it is where calls come all the time.
      await Promise.all(Array.from({ length: 3 * BATCH }, send))
      const answered = told.taken
      const released = Promise.withResolvers<void>()
      holdUntil(released.promise)
      const sent = Array.from({ length: CALLERS }, send)
      await until(() => told.refused >= REFUSED_LEAST, PATIENCE_MS, 'refusals')
      assert.equal(told.taken, answered, 'nobody had to be answered before')
      released.resolve()
      const all = await Promise.all(sent)
      const taken = all.filter(({ status }) => status === 200)
      const refused = all.filter(({ status }) => status === 503)
      assert.equal(taken.length + refused.length, CALLERS)
      assert.ok(taken.length > 0, 'and some wait')
      await until(async () => (await send()).status === 200, PATIENCE_MS, 'room for one')
      const timesOf = (some: typeof all) => some.map(({ tookMs }) => tookMs)
      const slowestMs = Math.max(...timesOf(taken))
      judge(PROOF, 'calls taken in an overload', { unit: 'ms', atMost: 3_000 }, timesOf(taken))
      judge(PROOF, 'refusals in an overload', { unit: 'ms', atMost: slowestMs }, timesOf(refused))
    })
  })
})

it('connections that come while a process can accept none wait in the system, and are answered afterwards', async () => {
  const { port, child } = await startChildEdge()
  child.pause()
  // A gateway takes so many connections from one address.
  const sockets = Array.from({ length: 1_000 }, (_, at) =>
    connect({ host: '127.0.0.1', port, localAddress: `127.0.1.${1 + (at % 4)}` }),
  )
  try {
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    child.resume()
    const answers = sockets.map((socket) => once(socket.setEncoding('latin1'), 'data'))
    for (const socket of sockets) socket.write(GOOD)
    for (const [answer] of await Promise.all(answers)) assert.match(String(answer), /^HTTP\/1\.1 200 /)
  } finally {
    for (const socket of sockets) socket.destroy()
    child.resume()
    await child.stop()
  }
})
