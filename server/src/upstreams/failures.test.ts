import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer as createSecureServer, getCACertificates, setDefaultCACertificates } from 'node:tls'
import { Counter, Registry } from '@prometheus-io/client'
import { judge } from '../../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { failsWith, get, MIB, post, startTransport } from '../../../test/upstreams/asking.ts'
import { okay, type Received, startUpstream } from '../../../test/upstreams/raw-upstream.ts'
import type { Certainty, FailureReason } from './transport.ts'

const PROOF = 'upstream-failures'

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  after(() => server.close())
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listen(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

describe('what certainly never reached the upstream', () => {
  it('is a connection that was refused', async () => {
    const transport = startTransport()
    const url = `http://127.0.0.1:${await freePort()}`
    await failsWith(transport.send(post(url)), 'connect', 'not_sent')
    await failsWith(transport.open(post(url)), 'connect', 'not_sent')
  })

  it('is a name that does not resolve', async () => {
    await failsWith(startTransport().send(post('https://nowhere.invalid')), 'dns', 'not_sent')
  })

  it('is a connection that did not come about in time, by the deadline of the call or of the attempt', async () => {
    // It accepts, and never says a word of the handshake.
    const secure = await startUpstream(() => {})
    const url = `https://127.0.0.1:${secure.port}`
    await failsWith(startTransport().send(post(url, { deadlines: { connectMs: 100 } })), 'connect', 'not_sent')
    await failsWith(startTransport({ limits: { connectMs: 100 } }).send(post(url)), 'tls', 'not_sent')
    await failsWith(startTransport().send(post(url, { deadlines: { totalMs: 100 } })), 'total_timeout', 'not_sent')
    await delay(100)
    assert.equal(secure.received.length, 0)
  })

  it('is a call that was given up before it had a connection', async () => {
    const upstream = await startUpstream(() => {})
    const transport = startTransport({ limits: { connectionsPerOrigin: 1 } })
    await failsWith(transport.send(post(upstream.url, { signal: AbortSignal.abort() })), 'aborted', 'not_sent')
    const first = transport.send(post(upstream.url, { deadlines: { headersMs: 300 } }))
    const giveUp = new AbortController()
    const second = transport.send(post(upstream.url, { signal: giveUp.signal }))
    const third = transport.send(post(upstream.url, { deadlines: { connectMs: 100 } }))
    const ends = [
      failsWith(first, 'headers_timeout', 'unknown'),
      failsWith(second, 'aborted', 'not_sent'),
      failsWith(third, 'connect', 'not_sent'),
    ]
    await delay(50)
    giveUp.abort()
    await Promise.all(ends)
    // The connection is free now: what waited for it and was given up must not go out all the same.
    await delay(200)
    assert.equal(upstream.received.length, 1)
  })

  it('is a call for which there is no room to wait', async () => {
    const upstream = await startUpstream(() => {})
    const transport = startTransport({ limits: { connectionsPerOrigin: 1, waitingPerOrigin: 2 } })
    const first = failsWith(
      transport.send(post(upstream.url, { deadlines: { totalMs: 3_000 } })),
      'total_timeout',
      'unknown',
    )
    while (upstream.received.length < 1) await delay(5)
    const waiting = [1, 2].map(() =>
      failsWith(transport.send(post(upstream.url, { deadlines: { connectMs: 100 } })), 'connect', 'not_sent'),
    )
    const failure = await failsWith(transport.send(post(upstream.url)), 'breaker', 'not_sent')
    assert.equal(failure.retryAfterSeconds, 1)
    await Promise.all([first, ...waiting])
    // There is room again as soon as the connection has gone.
    const asked = upstream.received.length
    const isAsked = async () => {
      await transport.send(post(upstream.url, { deadlines: { totalMs: 1_000 } })).catch(() => {})
      return upstream.received.length > asked
    }
    await until(isAsked, PATIENCE_MS, 'room for another call')
  })
})

describe('a secure upstream', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'farebox-tls-'))
  after(() => rmSync(folder, { recursive: true }))
  const [key, cert] = ['key.pem', 'cert.pem'].map((name) => path.join(folder, name)) as [string, string]
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'],
      ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert],
    ],
    { stdio: 'ignore' },
  )
  const pem = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  const names: (string | false | null)[] = []
  const start = async () =>
    listen(
      createSecureServer({ ...pem, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
        names.push(socket.servername, socket.alpnProtocol)
        socket.on('error', () => {}).on('data', () => socket.write(okay('secure')))
      }),
    )

  it('is not asked while its certificate is not trusted', async () => {
    await failsWith(startTransport().send(post(`https://localhost:${await start()}`)), 'tls', 'not_sent')
  })

  it('is asked by HTTP/1.1 when its certificate is for its name, and not when it is for another', async () => {
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, pem.cert])
    try {
      const port = await start()
      const transport = startTransport()
      for (let call = 0; call < 2; call += 1)
        assert.equal(String((await transport.send(post(`https://localhost:${port}`))).body), 'secure')
      assert.deepEqual(names.slice(0, 2), ['localhost', 'http/1.1'])
      await failsWith(transport.send(post(`https://127.0.0.1:${port}`)), 'tls', 'not_sent')
    } finally {
      setDefaultCACertificates(before)
    }
  })

  it('is looked for where a look-up of our own says, once, and its certificate is for the name all the same', async () => {
    const before = getCACertificates('default')
    setDefaultCACertificates([...before, pem.cert])
    try {
      const port = await start()
      const asked: string[] = []
      const transport = startTransport({
        lookup: (name, { all }, callback) => {
          asked.push(name)
          if (all) callback(null, [{ address: '127.0.0.1', family: 4 }])
          else callback(null, '127.0.0.1', 4)
        },
      })
      assert.equal(String((await transport.send(post(`https://localhost:${port}`))).body), 'secure')
      await failsWith(transport.send(post(`https://elsewhere.example:${port}`)), 'tls', 'not_sent')
      assert.deepEqual(asked, ['localhost', 'elsewhere.example'])
    } finally {
      setDefaultCACertificates(before)
    }
  })

  it('is not asked when it speaks something else', async () => {
    const plain = await startUpstream(
      () => {},
      (socket) => socket.write('220 mail.example\r\n'),
    )
    await failsWith(startTransport().send(post(`https://127.0.0.1:${plain.port}`)), 'tls', 'not_sent')
  })
})

type Misbehaviour = readonly [answer: (request: Received) => void, reason: FailureReason, bytesReceived: number]

const HEAD = 'HTTP/1.1 200 OK\r\n'
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`
const says =
  (text: string) =>
  ({ socket }: Received) =>
    void socket.write(text, 'latin1')
const saysAndEnds =
  (text: string) =>
  ({ socket }: Received) =>
    void socket.end(text, 'latin1')

async function drip({ socket }: Received, text: string, everyMs: number): Promise<void> {
  while (!socket.destroyed) {
    socket.write(text)
    await delay(everyMs)
  }
}

describe('what may have reached the upstream', () => {
  const cases: Readonly<Record<string, Misbehaviour>> = {
    'closes the connection without an answer': [({ socket }) => socket.end(), 'reset', 0],
    'resets the connection without an answer': [({ socket }) => socket.resetAndDestroy(), 'reset', 0],
    'closes in the middle of the headers': [saysAndEnds(`${HEAD}a: b\r\n`), 'reset', 0],
    'says nothing at all': [() => {}, 'headers_timeout', 0],
    'drips its headers': [
      (request) => {
        request.socket.write(`${HEAD}a: `)
        void drip(request, 'b', 20)
      },
      'headers_timeout',
      0,
    ],
    'drips interim answers': [(request) => void drip(request, 'HTTP/1.1 103 Hints\r\n\r\n', 40), 'headers_timeout', 0],
    'storms with interim answers': [says('HTTP/1.1 103 Hints\r\nlink: </a>\r\n\r\n'.repeat(100_000)), 'protocol', 0],
    'asks to continue what is complete': [says(`HTTP/1.1 100 Continue\r\n\r\n${okay()}`), 'protocol', 0],
    'switches protocols': [
      says('HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n'),
      'protocol',
      0,
    ],
    'switches protocols without saying to what': [says(`HTTP/1.1 101 Switching\r\n\r\n${okay()}`), 'protocol', 0],
    'answers with garbage': [says('SSH-2.0-OpenSSH_9.2\r\n'), 'protocol', 0],
    'answers with a garbled status': [says('HTTP/1.1 2x0 OK\r\n\r\n'), 'protocol', 0],
    'answers with another version': [says('HTTP/3.7 200 OK\r\n\r\n'), 'protocol', 0],
    'gives two lengths': [says(`${HEAD}content-length: 1\r\ncontent-length: 2\r\n\r\nab`), 'protocol', 0],
    'gives a length and chunks': [
      says(`${HEAD}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`),
      'protocol',
      0,
    ],
    'gives a negative length': [says(`${HEAD}content-length: -1\r\n\r\n`), 'protocol', 0],
    'gives a length beyond every number': [
      says(`${HEAD}content-length: 99999999999999999999999\r\n\r\n`),
      'protocol',
      0,
    ],
    'breaks a header with a bare return': [says(`${HEAD}a: b\rc: d\r\ncontent-length: 0\r\n\r\n`), 'protocol', 0],
    'sends a chunk without a size': [says(`${CHUNKED}3\r\nabc\r\nxyz\r\n`), 'protocol', 3],
    'ends before the declared end': [saysAndEnds(`${HEAD}content-length: 10\r\n\r\nabc`), 'protocol', 3],
    'ends before the declared end and says that it will close': [
      saysAndEnds(`${HEAD}connection: close\r\ncontent-length: 10\r\n\r\nabc`),
      'protocol',
      3,
    ],
    'ends before the last chunk': [saysAndEnds(`${CHUNKED}3\r\nabc\r\n`), 'protocol', 3],
    'stops in the middle of the body': [says(`${HEAD}content-length: 10\r\n\r\nabc`), 'idle_timeout', 3],
    'drips an endless extension of a chunk': [
      (request) => {
        request.socket.write(`${CHUNKED}3\r\nabc\r\n5;a=`)
        void drip(request, 'x', 20)
      },
      'idle_timeout',
      3,
    ],
    'sends too many headers': [says(`${HEAD}${'a: b\r\n'.repeat(201)}content-length: 0\r\n\r\n`), 'too_large', 0],
    'sends too large a header': [says(`${HEAD}a: ${'b'.repeat(40_000)}\r\ncontent-length: 0\r\n\r\n`), 'too_large', 0],
    'sends headers without end': [
      (request) => {
        request.socket.write(HEAD)
        void drip(request, `a: ${'b'.repeat(8_000)}\r\n`, 1)
      },
      'too_large',
      0,
    ],
    'declares a body that is too large': [says(`${HEAD}content-length: ${MIB + 1}\r\n\r\n`), 'too_large', 0],
    'sends a body that is too large': [
      says(`${CHUNKED}${(MIB + 1).toString(16)}\r\n${'x'.repeat(MIB + 1)}\r\n0\r\n\r\n`),
      'too_large',
      MIB + 1,
    ],
  }
  for (const [what, [answer, reason, bytesReceived]] of Object.entries(cases))
    it(`is a call to one that ${what}: ${reason}`, async () => {
      const upstream = await startUpstream(answer)
      const registry = new Registry()
      const upstreamFailures = new Counter({
        name: 'failures',
        help: '-',
        labelNames: ['upstream', 'reason', 'certainty'] as const,
        registers: [registry],
      })
      const transport = startTransport({ metrics: { upstreamFailures } })
      const deadlines = {
        headersMs: reason === 'headers_timeout' ? 400 : PATIENCE_MS,
        idleMs: reason === 'idle_timeout' ? 400 : PATIENCE_MS,
      }
      const request = post(upstream.url, { deadlines })
      const failure = await failsWith(transport.send(request), reason, 'unknown')
      if (reason === 'too_large') assert.ok(failure.bytesReceived <= MIB + 65_536)
      else assert.equal(failure.bytesReceived, bytesReceived)
      assert.equal(upstream.received.length, 1)
      assert.match(
        await registry.metrics(),
        new RegExp(`failures\\{upstream="[^"]+",reason="${reason}",certainty="unknown"\\} 1`),
      )
      await until(() => upstream.open.size === 0, PATIENCE_MS, 'the end of the connection')
    })

  it('is a call to one that drips its body for longer than it may take in all', async () => {
    const upstream = await startUpstream((request) => {
      request.socket.write(CHUNKED)
      void drip(request, '1\r\na\r\n', 40)
    })
    const startedAtMs = performance.now()
    const request = post(upstream.url, { deadlines: { idleMs: 800, totalMs: 900 } })
    const failure = await failsWith(startTransport().send(request), 'total_timeout', 'unknown')
    const tookMs = performance.now() - startedAtMs
    assert.ok(tookMs > 880, `took ${tookMs} ms`)
    assert.ok(failure.bytesReceived > 0)
    judge(PROOF, 'a total deadline of 900 ms', { unit: 'ms', atMost: 1_300 }, [tookMs])
  })

  it('is a call that was given up after it went out', async () => {
    const upstream = await startUpstream(() => {})
    const giveUp = new AbortController()
    const call = failsWith(startTransport().send(post(upstream.url, { signal: giveUp.signal })), 'aborted', 'unknown')
    while (upstream.received.length < 1) await delay(5)
    giveUp.abort(new Error('the caller is gone'))
    assert.match(String((await call).cause), /the caller is gone/)
  })

  it('says nothing of the request or the answer in its text', async () => {
    const upstream = await startUpstream(saysAndEnds('canary-answer'))
    const request = get(upstream.url, { target: '/canary-target', headers: { 'x-key': 'canary-key' } })
    const failure = await failsWith(startTransport().send(request), 'protocol', 'unknown')
    assert.ok(!`${failure.message} ${failure.stack} ${(failure.cause as Error).message}`.includes('canary'))
  })
})

describe('a connection that the upstream closes while it is idle', () => {
  type Way = (socket: Received['socket']) => void
  const ways: Readonly<Record<string, Way>> = {
    end: (socket) => socket.end(),
    reset: (socket) => socket.resetAndDestroy(),
  }
  for (const [name, closeIt] of Object.entries(ways))
    it(`never makes a call go out twice (${name})`, async () => {
      const seen = new Map<string, number>()
      const upstream = await startUpstream(({ socket, body, place }) => {
        const id = String(body)
        seen.set(id, (seen.get(id) ?? 0) + 1)
        // The second request of each connection is read and dropped, the first answered and the connection closed at
        // some moment around that at which the next one comes.
        if (place > 0) return closeIt(socket)
        socket.write(okay(id))
        const turns = Number(id) % 4
        if (turns === 0) setImmediate(closeIt, socket)
        else if (turns < 3) setTimeout(closeIt, turns, socket)
      })
      const transport = startTransport({ limits: { connectionsPerOrigin: 4 } })
      const outcomes: Record<Certainty | 'answered', number> = { answered: 0, not_sent: 0, unknown: 0 }
      let next = 0
      async function work(): Promise<void> {
        while (next < 600) {
          const id = String(next++)
          const outcome = await transport.send(post(upstream.url, { body: Buffer.from(id) })).then(
            ({ body }) => {
              assert.equal(String(body), id)
              return 'answered' as const
            },
            (error: { certainty: Certainty }) => error.certainty,
          )
          outcomes[outcome] += 1
          if (outcome === 'not_sent') assert.equal(seen.has(id), false, 'what was not sent was not seen')
          if (next % 3 === 0) await delay(next % 5)
        }
      }
      await Promise.all(Array.from({ length: 6 }, work))
      assert.deepEqual(
        [...seen].filter(([, times]) => times > 1),
        [],
      )
      assert.ok(outcomes.answered > 100 && outcomes.unknown > 20, JSON.stringify(outcomes))
    })
})
