import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { DEADLINES, failureOf, get, startOutbound } from '../../../test/outbound/asking.ts'
import { startCanary } from '../../../test/outbound/canary.ts'
import { okay, type Received, startUpstream } from '../../../test/upstreams/raw-upstream.ts'
import { createLog } from '../telemetry/log.ts'

describe('an origin that the operator lists', () => {
  it('is asked without a check of where it leads: plain http, any port, an address of this machine', async () => {
    const upstream = await startUpstream(({ socket }) => void socket.write(okay('inside', 'x-a: b')))
    const outbound = startOutbound({ allowedOrigins: [upstream.url] })
    const { status, headers, body } = await outbound.send({
      ...{ url: `${upstream.url}/a/b?c=d`, method: 'POST', headers: { 'content-type': 'text/plain' } },
      body: Buffer.from('hello'),
    })
    assert.deepEqual([status, headers['x-a'], String(body)], [200, 'b', 'inside'])
    const [received] = upstream.received
    assert.match(received?.head ?? '', /^POST \/a\/b\?c=d HTTP\/1\.1\r\n/)
    assert.match(received?.head ?? '', new RegExp(`^host: 127\\.0\\.0\\.1:${upstream.port}$`, 'im'))
    assert.match(received?.head ?? '', /^accept-encoding: identity$/im)
    assert.equal(String(received?.body), 'hello')
  })

  it('is meant exactly: another port, scheme, name or spelling of it is a stranger', async () => {
    const canary = await startCanary()
    const { port } = canary
    const listed = ['https://127.0.0.1', `http://localhost:${port}`, `http://127.0.0.2:${port}`, 'http://127.0.0.1']
    const outbound = startOutbound({ allowedOrigins: listed })
    for (const url of [
      ...[
        `http://127.0.0.1:${port}/`,
        `https://127.0.0.1:${port}/`,
        `http://localhost.:${port}/`,
        `http://[::1]:${port}/`,
      ],
      ...[`http://localhost:${port}@127.0.0.1:${port}/`, `http://a.localhost:${port}/`, `http://127.0.0.2:${port}0/`],
    ])
      assert.equal((await failureOf(outbound.send(get(url)), url)).reason, 'url')
    assert.equal(canary.connects(), 0)
    assert.equal((await outbound.send(get(`http://localhost:${port}/`))).status, 200)
  })
})

describe('egress', () => {
  it('can be closed to all, and to all but what is listed', async () => {
    const upstream = await startUpstream(({ socket }) => void socket.write(okay()))
    const allowedOrigins = [upstream.url]
    const none = startOutbound({ access: 'none', allowedOrigins })
    const listed = startOutbound({ access: 'listed', allowedOrigins })
    assert.equal((await failureOf(none.send(get(upstream.url)))).reason, 'closed')
    assert.equal((await failureOf(none.send(get('https://public.example/')))).reason, 'closed')
    assert.equal(upstream.received.length, 0)
    // Nothing is resolved either, or the test would fail.
    assert.equal((await failureOf(listed.send(get('https://public.example/')))).reason, 'closed')
    assert.equal((await failureOf(listed.send(get('https://8.8.8.8/')))).reason, 'closed')
    assert.equal((await listed.send(get(upstream.url))).status, 200)
  })
})

type Answer = (request: Received) => void

const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** Writes the same again and again, as fast as it is taken or every so often, until the connection is closed. */
function endless(socket: Received['socket'], text: string, everyMs = 0): void {
  const write = () => {
    if (socket.destroyed) return
    const goesOn = socket.write(text, 'latin1')
    if (everyMs > 0) setTimeout(write, everyMs).unref()
    else if (goesOn) setImmediate(write)
    else socket.once('drain', write)
  }
  write()
}

const bomb = gzipSync(Buffer.alloc(50_000_000))

/** What a stranger may answer with, and how that ends. */
const MISCHIEF: Readonly<Record<string, readonly [answer: Answer, reason: string]>> = {
  'never begins': [() => {}, 'timeout'],
  'drips its headers': [
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\na: ')
      endless(socket, 'b', 50)
    },
    'timeout',
  ],
  'begins and never goes on': [({ socket }) => void socket.write(`${CHUNKED}1\r\na\r\n`), 'timeout'],
  'drips its body for ever': [
    ({ socket }) => {
      socket.write(CHUNKED)
      endless(socket, '1\r\na\r\n', 50)
    },
    'timeout',
  ],
  'never ends': [
    ({ socket }) => {
      socket.write(CHUNKED)
      endless(socket, `400\r\n${'a'.repeat(1_024)}\r\n`)
    },
    'too_large',
  ],
  'says that it is large': [
    ({ socket }) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n'),
    'too_large',
  ],
  'has endless headers': [
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      endless(socket, `a: ${'b'.repeat(1_000)}\r\n`)
    },
    'too_large',
  ],
  'has endless informational answers': [
    ({ socket }) => endless(socket, 'HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n', 1),
    'unreadable',
  ],
  'is a bomb': [
    ({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`)
      socket.write(bomb)
    },
    'unreadable',
  ],
  'is a bomb within its connection': [
    ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n')
      endless(socket, `400\r\n${'\x1f'.repeat(1_024)}\r\n`)
    },
    'too_large',
  ],
  'breaks off': [({ socket }) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'), 'unreadable'],
  'is no HTTP': [({ socket }) => void socket.write('220 mail.example ESMTP\r\n'), 'unreadable'],
  'changes the protocol': [
    ({ socket }) => void socket.write('HTTP/1.1 101 Switching\r\nupgrade: other\r\nconnection: upgrade\r\n\r\n'),
    'unreadable',
  ],
}

const SHORT = { headersMs: 300, idleMs: 300, totalMs: 1_000 }
const PATIENT = { headersMs: PATIENCE_MS, idleMs: PATIENCE_MS, totalMs: PATIENCE_MS }

describe('an answer of a stranger', () => {
  assert.ok(bomb.length < 65_536, 'the bomb is small enough to be read before it is opened')

  for (const [title, [answer, reason]] of Object.entries(MISCHIEF)) {
    it(`that ${title} ends as ${reason}, and its connection with it`, async () => {
      const upstream = await startUpstream(answer)
      const outbound = startOutbound({
        allowedOrigins: [upstream.url],
        limits: { deadlines: { ...DEADLINES, ...(reason === 'timeout' ? SHORT : PATIENT) } },
      })
      assert.equal((await failureOf(outbound.send(get(upstream.url)))).reason, reason)
      assert.equal(upstream.connections(), 1, 'nothing is sent again')
      if (reason !== 'unreadable' || title !== 'is a bomb')
        await until(() => upstream.open.size === 0, PATIENCE_MS, 'the end of the connection')
    })
  }

  it('may be as large as is asked for, never larger than the limit of all', async () => {
    const upstream = await startUpstream(({ socket }) => void socket.write(okay('a'.repeat(1_000))))
    const outbound = startOutbound({ allowedOrigins: [upstream.url], limits: { bodyBytes: 999 } })
    const ask = (maxBodyBytes: number) => outbound.send({ ...get(upstream.url), maxBodyBytes })
    assert.equal((await failureOf(ask(1_000_000))).reason, 'too_large')
    const wider = startOutbound({ allowedOrigins: [upstream.url], limits: { bodyBytes: 1_000 } })
    assert.equal((await wider.send(get(upstream.url))).body.length, 1_000)
    assert.equal((await failureOf(wider.send({ ...get(upstream.url), maxBodyBytes: 999 }))).reason, 'too_large')
  })
})

describe('requests at once', () => {
  it('are bounded, to one origin and to all; the next is refused and the one after an end is not', async () => {
    const waiting: Received[] = []
    const one = await startUpstream((request) => void waiting.push(request))
    const other = await startUpstream((request) => void waiting.push(request))
    const outbound = startOutbound({
      allowedOrigins: [one.url, other.url],
      limits: { atOnce: 3, atOncePerOrigin: 2, deadlines: { ...DEADLINES, totalMs: 60_000, headersMs: 60_000 } },
    })
    const first = [outbound.send(get(one.url)), outbound.send(get(one.url))]
    assert.equal((await failureOf(outbound.send(get(one.url)))).reason, 'busy')
    first.push(outbound.send(get(other.url)))
    assert.equal((await failureOf(outbound.send(get(other.url)))).reason, 'busy')
    await until(() => waiting.length === 3, PATIENCE_MS, 'three requests')
    for (const { socket } of waiting.splice(0)) socket.write(okay())
    await Promise.all(first)
    const next = outbound.send(get(other.url))
    await until(() => waiting.length === 1, PATIENCE_MS, 'one more')
    waiting[0]?.socket.write(okay())
    assert.equal((await next).status, 200)
  })

  it('are given up by their signal, and when the client closes', async () => {
    const upstream = await startUpstream(() => {})
    const outbound = startOutbound({ allowedOrigins: [upstream.url] })
    const told = new AbortController()
    const given = failureOf(outbound.send({ ...get(upstream.url), signal: told.signal }))
    await until(() => upstream.received.length === 1, PATIENCE_MS, 'a request')
    told.abort()
    assert.equal((await given).reason, 'aborted')
    const closed = failureOf(outbound.send(get(upstream.url)))
    await until(() => upstream.received.length === 2, PATIENCE_MS, 'another')
    await outbound.close()
    assert.equal((await closed).reason, 'aborted')
  })
})

describe('what is said of a failure', () => {
  it('tells a stranger nothing of our network, and the log everything', async () => {
    const lines: string[] = []
    const log = createLog({ level: 'info', secrets: [], write: (line) => lines.push(line) })
    const outbound = startOutbound({ log, resolve: async () => ['10.1.2.3'] })
    const failure = await failureOf(outbound.send(get('https://inside.example/')))
    assert.equal(failure.message, 'The address could not be reached over the public internet.')
    const [line = ''] = lines
    assert.equal(lines.length, 1)
    assert.match(line, /inside\.example leads to 10\.1\.2\.3: private use/)
    assert.match(line, /"level":"warn"/)
  })

  it('is counted by outcome', async () => {
    const upstream = await startUpstream(({ socket }) => void socket.write(okay()))
    const outcomes: string[] = []
    const metrics = { outboundRequests: { inc: ({ outcome }: { outcome: string }) => void outcomes.push(outcome) } }
    const outbound = startOutbound({ allowedOrigins: [upstream.url], metrics, resolve: async () => ['10.1.2.3'] })
    await outbound.send(get(upstream.url))
    await failureOf(outbound.send(get('http://a.example/')))
    await failureOf(outbound.send(get('https://a.example/')))
    assert.deepEqual(outcomes, ['answered', 'url', 'unreachable'])
  })
})
