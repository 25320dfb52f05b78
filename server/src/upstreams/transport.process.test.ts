import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { failsWith, get, MIB, piecesOf, post, startTransport } from '../../../test/upstreams/asking.ts'
import { okay, startUpstream } from '../../../test/upstreams/raw-upstream.ts'

describe('asking an upstream', () => {
  it('sends what it is given below the base URL, and gives back status, headers and body as they came', async () => {
    const upstream = await startUpstream(({ socket }) =>
      socket.write(
        'HTTP/1.1 418 Whatever\r\nX-Name: caf\xe9\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x00\x01',
        'latin1',
      ),
    )
    const reply = await startTransport().send(
      post(`${upstream.url}/base/`, {
        target: '/v1/a%20b?q=1&r=http://x/../y',
        headers: { 'X-Key': 'secret', 'accept-encoding': 'gzip' },
      }),
    )
    assert.equal(reply.status, 418)
    assert.deepEqual({ ...reply.headers }, { 'x-name': 'café', 'content-encoding': 'gzip', 'content-length': '4' })
    assert.deepEqual(reply.body, Buffer.from([0x1f, 0x8b, 0, 1]))
    const [{ head, body } = { head: '', body: null }] = upstream.received
    assert.deepEqual(head.split('\r\n'), [
      'POST /base/v1/a%20b?q=1&r=http://x/../y HTTP/1.1',
      `host: 127.0.0.1:${upstream.port}`,
      'connection: keep-alive',
      'accept-encoding: identity',
      'x-key: secret',
      'content-length: 7',
    ])
    assert.equal(String(body), '{"a":1}')
  })

  it('measures when it was sent, answered and over', async () => {
    const upstream = await startUpstream(async ({ socket }) => {
      await delay(60)
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na')
      await delay(300)
      socket.write('b')
    })
    const { timing } = await startTransport().send(get(upstream.url))
    assert.ok(timing.firstByteAtMs - timing.sentAtMs > 40)
    assert.ok(timing.endedAtMs - timing.firstByteAtMs > 40)
  })

  it('follows no redirect', async () => {
    const elsewhere = await startUpstream(({ socket }) => socket.write(okay()))
    for (const status of [301, 302, 303, 307, 308]) {
      const upstream = await startUpstream(({ socket }) =>
        socket.write(`HTTP/1.1 ${status} Go\r\nlocation: ${elsewhere.url}/x\r\ncontent-length: 0\r\n\r\n`),
      )
      const reply = await startTransport().send(post(upstream.url))
      assert.deepEqual([reply.status, reply.headers.location], [status, `${elsewhere.url}/x`])
      assert.equal(upstream.received.length, 1)
    }
    assert.equal(elsewhere.connections(), 0)
  })

  it('keeps what belongs to the connection to itself, and joins what came more than once', async () => {
    const upstream = await startUpstream(({ socket }) =>
      socket.write(
        okay(
          '',
          'Connection: keep-alive, X-Hop',
          'x-hop: 1',
          'Keep-Alive: timeout=9',
          'Upgrade: h2',
          'a: 1',
          'A: 2',
          'a: 3',
        ),
      ),
    )
    const { headers } = await startTransport().send(get(upstream.url))
    assert.deepEqual({ ...headers }, { a: '1, 2, 3', 'content-length': '0' })
  })

  it('takes headers that are called like parts of an object for headers', async () => {
    const upstream = await startUpstream(({ socket }) =>
      socket.write(okay('', '__proto__: x', '__proto__: y', 'constructor: a', 'toString: b', 'hasownproperty: c')),
    )
    const { headers } = await startTransport().send(get(upstream.url))
    assert.equal(Object.getPrototypeOf(headers), null)
    assert.deepEqual(Object.entries(headers).slice(1), [
      ['__proto__', 'x, y'],
      ['constructor', 'a'],
      ['tostring', 'b'],
      ['hasownproperty', 'c'],
    ])
    assert.equal(Object.prototype.toString.call({}), '[object Object]')
  })

  it('collects a body in whatever pieces it comes', async () => {
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => at % 251))
    const upstream = await startUpstream(async ({ socket, place }) => {
      const isChunked = place % 2 === 0
      socket.write(
        `HTTP/1.1 200 OK\r\n${isChunked ? 'transfer-encoding: chunked' : `content-length: ${bytes.length}`}\r\n\r\n`,
      )
      for (let at = 0, size = 1; at < bytes.length; at += size, size = (size * 7) % 9_001 || 1) {
        const piece = bytes.subarray(at, at + size)
        socket.write(
          isChunked
            ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
            : piece,
        )
        if (size % 5 === 0) await delay(1)
      }
      if (isChunked) socket.write('0\r\n\r\n')
    })
    const transport = startTransport()
    for (let time = 0; time < 4; time += 1) assert.ok((await transport.send(get(upstream.url))).body.equals(bytes))
    assert.ok(upstream.connections() <= 2)
  })

  it('accepts interim answers, and waits for the one that counts', async () => {
    const upstream = await startUpstream(({ socket }) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${okay('last')}`),
    )
    const reply = await startTransport().send(get(upstream.url))
    assert.deepEqual([reply.status, String(reply.body), reply.headers.link], [200, 'last', undefined])
  })

  it('uses a connection again', async () => {
    const upstream = await startUpstream(({ socket }) => socket.write(okay()))
    const transport = startTransport()
    for (let call = 0; call < 20; call += 1) await transport.send(post(upstream.url))
    assert.equal(upstream.received.length, 20)
    // A connection is free again a turn of the loop after its answer, so that one more is made for whoever asks at once.
    assert.ok(upstream.connections() <= 2)
  })

  it('keeps connections to no more origins than it may, and lets running calls finish all the same', async () => {
    const upstreams = await Promise.all(
      Array.from({ length: 4 }, () => startUpstream(({ socket }) => void delay(100).then(() => socket.write(okay())))),
    )
    const transport = startTransport({ limits: { origins: 2 } })
    const replies = await Promise.all(upstreams.map(({ url }) => transport.send(post(url))))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    const open = () => upstreams.map(({ open }) => open.size)
    await until(() => String(open()) === '0,0,1,1', PATIENCE_MS, 'the end of the first two connections')
  })
})

const untouched = await startUpstream(({ socket }) => socket.write(okay()))

describe('a base URL that is none', () => {
  it('is a failure like any other', async () => {
    for (const url of ['nonsense', 'ftp://a', 'https://a?b', 'https://u:p@a'])
      await failsWith(startTransport().send(get(url)), 'protocol', 'not_sent')
  })
})

describe('a target', () => {
  const upstream = untouched

  for (const target of [
    '',
    'thing',
    '//evil.example/x',
    'http://evil.example/',
    '/\\evil.example',
    '/a\r\nhost: evil',
    '/a\nb',
    '/a b',
    '/a\tb',
    '/a#b',
    '/a\0',
    '/é',
    '/../admin',
    '/a/../../b',
    '/a/..',
    '/./a',
    '/%2e%2E/a',
    '/a/.%2e?b',
    '@evil.example',
    ':80/',
    '?a=/b',
    `/${'a'.repeat(8_192)}`,
  ])
    it(`is refused, and nothing sent, where it is ${JSON.stringify(target.slice(0, 30))}`, async () => {
      await failsWith(startTransport().send(get(`${upstream.url}/base`, { target })), 'protocol', 'not_sent')
      await failsWith(startTransport().open(get(upstream.url, { target })), 'protocol', 'not_sent')
      assert.equal(upstream.connections(), 0)
    })

  for (const [name, value] of [
    ['Host', 'evil.example'],
    ['content-length', '3'],
    ['Transfer-Encoding', 'chunked'],
    ['connection', 'close'],
    ['expect', '100-continue'],
    ['upgrade', 'h2c'],
    ['x', 'a\r\nhost: evil.example'],
    ['x: y\r\nz', 'a'],
    ['x', 'ก'],
    ['', 'x'],
  ] as const)
    it(`is not asked for with the header ${JSON.stringify(name)}: ${JSON.stringify(value)}`, async () => {
      await failsWith(startTransport().send(post(upstream.url, { headers: { [name]: value } })), 'protocol', 'not_sent')
      assert.equal(upstream.received.length, 0)
    })
})

describe('the body of an open answer', () => {
  it('comes in pieces as they arrive, after the headers', async () => {
    let write: (text: string) => void = () => {}
    const upstream = await startUpstream(({ socket }) => {
      write = (text) => socket.write(`${text.length.toString(16)}\r\n${text}\r\n`)
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    })
    const { status, body, timing } = await startTransport().open(post(upstream.url))
    const reader = piecesOf(body)
    assert.equal(status, 200)
    write('one')
    assert.equal(String((await reader.next()).value), 'one')
    write('two')
    assert.equal(String((await reader.next()).value), 'two')
    assert.equal(timing.endedAtMs, 0)
    write('')
    assert.deepEqual(await reader.next(), { value: undefined, done: true })
    assert.deepEqual(await reader.next(), { value: undefined, done: true })
    assert.ok(timing.endedAtMs >= timing.firstByteAtMs)
  })

  it('is not read faster than it is taken, and nobody is late meanwhile', async () => {
    let written = 0
    const upstream = await startUpstream(({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${64 * MIB}\r\n\r\n`)
      const piece = Buffer.alloc(65_536, 'x')
      const more = () => {
        while (written < 64 * MIB) {
          written += piece.length
          if (!socket.write(piece)) return void socket.once('drain', more)
        }
      }
      more()
    })
    const { body } = await startTransport().open(
      get(upstream.url, { maxBodyBytes: 64 * MIB, deadlines: { idleMs: 4_000 } }),
    )
    let stalledAt = -1
    while (written !== stalledAt) {
      stalledAt = written
      await delay(4_500)
    }
    assert.ok(stalledAt < 16 * MIB, `only what fits into the buffers of two sockets was sent, not ${stalledAt}`)
    let bytes = 0
    for await (const piece of piecesOf(body)) bytes += piece.length
    assert.equal(bytes, 64 * MIB)
  })

  it('is given up when nobody reads on, which closes the connection', async () => {
    const upstream = await startUpstream(({ socket }) =>
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n'),
    )
    const { body } = await startTransport().open(get(upstream.url))
    for await (const piece of piecesOf(body)) {
      assert.equal(String(piece), 'a')
      break
    }
    await until(() => upstream.open.size === 0, PATIENCE_MS, 'the end of the connection')
  })

  it('ends with what was received, then with the failure, never as if it were complete', async () => {
    let reset = () => {}
    const upstream = await startUpstream(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n')
      reset = () => socket.resetAndDestroy()
    })
    const counted: unknown[] = []
    const transport = startTransport({ metrics: { upstreamFailures: { inc: (labels) => counted.push(labels) } } })
    const { body } = await transport.open(get(upstream.url))
    const reader = piecesOf(body)
    assert.equal(String((await reader.next()).value), 'abc')
    reset()
    const failure = await failsWith(reader.next(), 'reset', 'unknown')
    assert.equal(failure.bytesReceived, 3)
    assert.deepEqual(counted, [{ upstream: 'one', reason: 'reset', certainty: 'unknown' }])
  })
})

describe('closing', () => {
  it('gives up what is under way, tells which of it was sent, and leaves no socket', async () => {
    const upstream = await startUpstream(({ socket, head }) => {
      if (head.includes('/stream')) socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n')
      else if (head.includes('/idle')) socket.write(okay())
    })
    const hanging = await startUpstream(() => {})
    const transport = startTransport({ limits: { connectionsPerOrigin: 3, origins: 1 } })
    // This one is still connecting, and its origin has lost its place to the other by then.
    const connecting = failsWith(transport.send(post(`https://127.0.0.1:${hanging.port}`)), 'aborted', 'not_sent')
    await transport.send(get(upstream.url, { target: '/idle' }))
    const { body } = await transport.open(get(upstream.url, { target: '/stream' }))
    const sent = [transport.send(post(upstream.url)), transport.send(post(upstream.url))]
    while (upstream.received.length < 4) await delay(5)
    const waiting = transport.send(post(upstream.url))
    const ends = [
      failsWith(
        (async () => {
          for await (const _ of piecesOf(body));
        })(),
        'aborted',
        'unknown',
      ),
      ...sent.map((one) => failsWith(one, 'aborted', 'unknown')),
      failsWith(waiting, 'aborted', 'not_sent'),
      connecting,
    ]
    await delay(20)
    await transport.close()
    await Promise.all(ends)
    for (const { url } of [upstream, untouched]) await failsWith(transport.send(get(url)), 'aborted', 'not_sent')
    await until(() => upstream.open.size + hanging.open.size === 0, PATIENCE_MS, 'the end of all connections')
    assert.deepEqual([upstream.received.length, untouched.connections()], [4, 0])
    const sockets = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap')
    await until(() => sockets().length === 0, PATIENCE_MS, 'the end of all sockets')
  })
})
