import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { EdgeParts } from '../../server/src/http/edge.ts'
import { withEdge } from './probe-edge.ts'
import { type Conversation, converse, open } from './raw-http.ts'
import { GOOD, HEAD } from './smuggling-cases.ts'

/** Of a connection that was refused. */
const NOTHING = { responses: [] }
const statuses = ({ responses }: Pick<Conversation, 'responses'>) => responses.map(({ status }) => status)

describe('a connection', () => {
  it('ends after so many requests, and says so in the last answer', async () => {
    await withEdge({ limits: { requestsPerConnection: 3 } }, async ({ port, handled }) => {
      for (const pieces of [GOOD.repeat(5), [GOOD, GOOD, GOOD, GOOD]]) {
        handled.length = 0
        const conversation = await converse(port, pieces)
        assert.deepEqual(statuses(conversation), [200, 200, 200])
        assert.deepEqual(
          conversation.responses.map(({ headers }) => headers.get('connection')),
          ['keep-alive', 'keep-alive', 'close'],
        )
        assert.ok(conversation.closed)
        assert.equal(handled.length, 3)
      }
    })
  })

  it('that is the only one allowed carries a single request at a time', async () => {
    await withEdge({ limits: { requestsPerConnection: 1 } }, async ({ port }) => {
      const conversation = await converse(port, GOOD)
      assert.deepEqual(statuses(conversation), [200])
      assert.ok(conversation.closed)
    })
  })

  it('runs one request at a time, however many were sent', async () => {
    await withEdge({}, async ({ port }) => {
      const slow = `GET /apis/v1/probe/slow?ms=100 HTTP/1.1\r\n${HEAD}\r\n`
      const { durationMs, ...conversation } = await converse(port, slow.repeat(3), { quietMs: 150, expected: 3 })
      assert.deepEqual(statuses(conversation), [200, 200, 200])
      assert.ok(durationMs > 300, `three requests of 100 ms took ${durationMs} ms`)
    })
  })

  it('is refused beyond so many of one address, but not of a trusted proxy', async () => {
    const areAccepted = async (accepted: number, parts: Partial<EdgeParts> = {}) => {
      await withEdge({ ...parts, limits: { connectionsPerAddress: 3 } }, async ({ port }) => {
        const sockets = await Promise.all(Array.from({ length: 5 }, () => open(port)))
        const open4 = () => sockets.filter((socket) => !socket.destroyed).length
        await until(() => open4() <= accepted, PATIENCE_MS, `that ${accepted} are open`)
        await sleep(100)
        assert.equal(open4(), accepted)
        // A place becomes free when a connection ends.
        for (const socket of sockets) socket.destroy()
        const isServed = async () => statuses(await converse(port, GOOD).catch(() => NOTHING))[0] === 200
        await until(isServed, PATIENCE_MS, 'a free place')
      })
    }
    await areAccepted(3)
    await areAccepted(5, { trustedProxies: ['127.0.0.0/8'] })
  })

  it('that is silent is closed after a while', async () => {
    await withEdge({ limits: { keepAliveTimeoutMs: 100 } }, async ({ port }) => {
      const { closed, responses } = await converse(port, GOOD, { quietMs: 60_000 })
      assert.ok(closed)
      assert.equal(responses.length, 1)
    })
  })

  it('is cut when the caller leaves its answer unread, but not while we are still at work on it', async () => {
    await withEdge({ limits: { responseStallMs: 300 } }, async ({ port }) => {
      const patient = await converse(port, `GET /apis/v1/probe/slow?ms=1000 HTTP/1.1\r\n${HEAD}\r\n`)
      assert.deepEqual(statuses(patient), [200])

      const socket = await open(port)
      socket.pause()
      socket.write(`GET /apis/v1/probe/big?bytes=50000000 HTTP/1.1\r\n${HEAD}\r\n`)
      await sleep(3_000)
      let received = 0
      socket.on('data', (bytes) => {
        received += bytes.length
      })
      socket.resume()
      await once(socket, 'close')
      assert.ok(received < 50_000_000, `${received} bytes`)
    })
  })

  it('may bring a body that nobody wants, but not for long', async () => {
    // Nothing else would end it in that time.
    await withEdge({ limits: { lingerMs: 200, requestTimeoutMs: 600_000 } }, async ({ port }) => {
      const socket = await open(port)
      socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: edge\r\nContent-Length: 1000000000\r\n\r\n')
      const [answer] = await once(socket, 'data')
      assert.match(String(answer), /^HTTP\/1\.1 401 /)
      const startedMs = performance.now()
      const sending = setInterval(() => socket.write(Buffer.alloc(10_000)), 10)
      // Being cut while sending shows as a reset, which is what this caller deserves.
      await new Promise((resolve) => socket.on('error', () => {}).once('close', resolve))
      clearInterval(sending)
      const tookMs = performance.now() - startedMs
      judge('edge-limits', 'a body that nobody wants, cut after 200 ms', { unit: 'ms', atMost: 2_000 }, [tookMs])
    })
  })
})
