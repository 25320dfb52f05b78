import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createConnection, createServer, type Socket } from 'node:net'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { createTcpProxy, type Place, type TcpProxy } from './tcp-proxy.ts'
import { PATIENCE_MS, until as untilWithin } from './until.ts'

const MOMENT_MS = 50

const until = (isSo: () => boolean) => untilWithin(isSo, PATIENCE_MS, String(isSo))

describe('a TCP proxy between a program and its server', () => {
  let proxy: TcpProxy
  const received: { socket: Socket; text: string; ended: boolean; failed: boolean }[] = []
  const clients: Socket[] = []
  const server = createServer((socket) => {
    const side = { socket, text: '', ended: false, failed: false }
    received.push(side)
    socket.on('data', (chunk) => {
      side.text += chunk
    })
    socket.on('end', () => {
      side.ended = true
    })
    socket.on('error', () => {
      side.failed = true
    })
  })

  before(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  after(() => server.close())
  beforeEach(async () => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port was given')
    proxy = await createTcpProxy({ target: { port: address.port }, protocol: 'postgres' })
  })
  afterEach(async () => {
    await proxy.close()
    for (const socket of [...clients.splice(0), ...received.splice(0).map((side) => side.socket)]) socket.destroy()
  })

  async function connect() {
    const socket = createConnection(proxy.port, '127.0.0.1')
    clients.push(socket)
    const side = { socket, text: '', ended: false, failed: '' }
    socket.on('data', (chunk) => {
      side.text += chunk
    })
    socket.on('end', () => {
      side.ended = true
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      side.failed = error.code ?? error.message
    })
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => {})
    return side
  }

  /** A message of a client is a length and a body at first, and has a type before them afterwards. */
  const hello = (body: string) => `\0\0\0${String.fromCharCode(4 + body.length)}${body}`
  const message = (type: string, body: string) => `${type}${hello(body)}`

  it('passes everything in both directions, and the end', async () => {
    const client = await connect()
    client.socket.write(hello('hello'))
    await until(() => received[0]?.text === hello('hello'))
    received[0]?.socket.end(message('R', 'welcome'))
    await until(() => client.text === message('R', 'welcome') && client.ended)
  })

  it('puts itself into an address and leaves the rest of it', () => {
    const through = proxy.url('postgres://farebox:secret@localhost:5432/money?sslmode=disable')
    assert.equal(through, `postgres://farebox:secret@127.0.0.1:${proxy.port}/money?sslmode=disable`)
  })

  const FIRST = hello('first')
  const SECOND = message('Q', 'second')
  const places: readonly (readonly [string, Place, string])[] = [
    ['before the first byte', { afterBytes: 0 }, ''],
    ['after three bytes', { afterBytes: 3 }, FIRST.slice(0, 3)],
    ['before the first message', { afterMessages: 0 }, ''],
    ['in the header of the first message', { afterMessages: 0, part: 'header' }, FIRST.slice(0, 1)],
    ['after the first message', { afterMessages: 1 }, FIRST],
    ['in the middle of the second message', { afterMessages: 1, part: 'half' }, FIRST + SECOND.slice(0, 5)],
    ['before the last byte of the second', { afterMessages: 1, part: 'allButOne' }, FIRST + SECOND.slice(0, -1)],
    ['after the second message', { afterMessages: 2 }, FIRST + SECOND],
  ]
  for (const [where, at, passed] of places) {
    for (const chunks of [[FIRST + SECOND], [FIRST, SECOND], [...(FIRST + SECOND)]]) {
      it(`resets both sides ${where}, of ${chunks.length} chunks, and lets pass what came before`, async () => {
        const armed = proxy.arm({ direction: 'toServer', at, effect: 'reset' })
        const client = await connect()
        client.socket.setNoDelay(true)
        for (const chunk of chunks) {
          client.socket.write(chunk)
          if (chunks.length > 1) await delay(1)
        }
        await armed.fired
        await until(() => client.failed !== '' && received[0]?.failed === true)
        assert.match(client.failed, /ECONNRESET|EPIPE/)
        assert.equal(received[0]?.text, passed)
      })
    }
  }

  it('counts from where a connection is when it is armed, interrupts once, and says which', async () => {
    const client = await connect()
    client.socket.write(FIRST)
    await until(() => received[0]?.text === FIRST)
    const armed = proxy.arm({ direction: 'toServer', at: { afterMessages: 1 }, effect: 'reset' })
    client.socket.write(SECOND)
    assert.equal((await armed.fired).number, 0)
    await until(() => received[0]?.text === FIRST + SECOND)
    const other = await connect()
    other.socket.write(FIRST + SECOND)
    await until(() => received[1]?.text === FIRST + SECOND)
  })

  it('ends both sides in the middle of an answer', async () => {
    const client = await connect()
    client.socket.write(FIRST)
    await until(() => received[0]?.text === FIRST)
    proxy.arm({ direction: 'toClient', at: { afterBytes: 4 }, effect: 'end' })
    received[0]?.socket.write(message('R', 'welcome'))
    await until(() => client.ended && received[0]?.ended === true)
    assert.deepEqual([client.text, client.failed], [message('R', 'welcome').slice(0, 4), ''])
  })

  it('holds everything back while it stalls, and passes it on later, even for a client that has gone', async () => {
    const [staying, going] = [await connect(), await connect()]
    await until(() => received.length === 2)
    proxy.stall()
    staying.socket.write(FIRST)
    going.socket.write(hello('gone'))
    await delay(MOMENT_MS)
    going.socket.resetAndDestroy()
    await delay(MOMENT_MS)
    assert.deepEqual(received.map(({ text }) => text).join(), ',')
    assert.equal(proxy.connections().length, 2)
    proxy.resume()
    await until(() => received[0]?.text === FIRST && received[1]?.text === hello('gone') && received[1].ended)
    assert.equal(received[0]?.ended, false)
  })

  it('stalls one connection at a place and leaves the others alone', async () => {
    const armed = proxy.arm({ direction: 'toServer', at: { afterMessages: 1 }, effect: 'stall' })
    const [one, other] = [await connect(), await connect()]
    one.socket.write(FIRST + SECOND)
    const connection = await armed.fired
    other.socket.write(FIRST + SECOND)
    await until(() => received.some(({ text }) => text === FIRST + SECOND))
    await delay(MOMENT_MS)
    assert.ok(received.some(({ text }) => text === FIRST))
    connection.resume()
    await until(() => received.every(({ text }) => text === FIRST + SECOND))
  })

  it('refuses new connections and keeps open ones', async () => {
    const before = await connect()
    before.socket.write(FIRST)
    await until(() => received[0]?.text === FIRST)
    proxy.refuse()
    const refused = await connect()
    await until(() => refused.failed === 'ECONNRESET')
    before.socket.write(SECOND)
    await until(() => received[0]?.text === FIRST + SECOND)
    proxy.accept()
    const later = await connect()
    later.socket.write(FIRST)
    await until(() => received.at(-1)?.text === FIRST)
  })

  it('delays every chunk and keeps the order', async () => {
    proxy.delay(MOMENT_MS)
    const client = await connect()
    const startedAtMs = performance.now()
    client.socket.write(FIRST)
    await delay(MOMENT_MS / 5)
    client.socket.write(SECOND)
    await until(() => received[0]?.text === FIRST + SECOND)
    assert.ok(performance.now() - startedAtMs >= MOMENT_MS)
  })

  it('lets so many bytes a second pass, and all of them at once when it is healed', async () => {
    const client = await connect()
    proxy.throttle(20)
    client.socket.write(FIRST)
    await until(() => proxy.heldBytes() > 0)
    assert.ok((received[0]?.text.length ?? 0) < FIRST.length)
    await until(() => received[0]?.text === FIRST)
    proxy.throttle(1)
    client.socket.write(SECOND)
    await delay(MOMENT_MS)
    assert.equal(received[0]?.text, FIRST)
    proxy.heal()
    await until(() => received[0]?.text === FIRST + SECOND)
    assert.equal(proxy.heldBytes(), 0)
  })

  it('slices what passes and keeps the order', async () => {
    proxy.slice(3, 5)
    const client = await connect()
    const startedAtMs = performance.now()
    client.socket.write(FIRST + SECOND)
    await until(() => received[0]?.text === FIRST + SECOND)
    assert.ok(performance.now() - startedAtMs >= (5 * (FIRST + SECOND).length) / 3 - 5)
  })

  it('ends one direction of a connection and leaves the other open', async () => {
    const client = await connect()
    client.socket.write(FIRST)
    await until(() => received[0]?.text === FIRST)
    for (const connection of proxy.connections()) connection.halfClose('toServer')
    await until(() => received[0]?.ended === true)
    client.socket.write(SECOND)
    await delay(MOMENT_MS)
    assert.equal(received[0]?.text, FIRST)
    assert.equal(client.failed, '')
  })

  it('resets a client whose server can not be reached', async () => {
    await proxy.close()
    proxy = await createTcpProxy({ target: { port: 1 } })
    const client = await connect()
    await until(() => client.failed === 'ECONNRESET')
  })
})
