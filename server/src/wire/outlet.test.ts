import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fastify from 'fastify'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { Outlet, StreamedAnswer } from '../gateway/relay.ts'
import { sendStreamed } from './outlet.ts'

let answer: StreamedAnswer
const app = fastify()
app.get('/', async (_, reply) => sendStreamed(reply, answer))
const url = await app.listen({ host: '127.0.0.1', port: 0 })
after(() => app.close())

/** From now on, callers get what is written here. */
function answerWith(send: (outlet: Outlet) => void, headers: Readonly<Record<string, string>> = {}): void {
  const sendTo = async (outlet: Outlet) => send(outlet)
  answer = { status: 200, headers: { 'content-type': 'text/event-stream', ...headers }, body: { sendTo } }
}

function ask(version = '1.1'): Socket {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET / HTTP/${version}\r\nhost: x\r\n\r\n`)
  return socket
}

const pieceOf = (length: number) => Buffer.alloc(length, length % 251)
const NOBODY_LISTENS = { onRoom: () => {}, onLeft: () => {} }

describe('a stream to a caller', () => {
  it('comes as it was written, whatever the lengths of its pieces', async () => {
    const lengths = [1, 9, 10, 15, 16, 17, 255, 256, 257, 0, 4_094, 4_095, 4_096, 4_097, 70_000]
    answerWith((outlet) => {
      for (const length of lengths) outlet.write(pieceOf(length))
      outlet.end(pieceOf(3))
    })
    const expected = Buffer.concat([...lengths, 3].map(pieceOf))
    for (let time = 0; time < 3; time += 1) {
      const response = await fetch(url)
      assert.deepEqual(Buffer.from(await response.arrayBuffer()), expected)
    }
  })

  it('begins with its headers before there is a piece', async () => {
    answerWith(() => {})
    const socket = ask()
    const [head] = await once(socket, 'data')
    assert.match(String(head), /^HTTP\/1\.1 200 OK\r\n(.+\r\n)*transfer-encoding: chunked\r\n(.+\r\n)*\r\n$/)
    socket.destroy()
  })

  it('has no chunks for who speaks HTTP/1.0, and ends with the connection', async () => {
    answerWith((outlet) => {
      outlet.write(Buffer.from('one '))
      outlet.end(Buffer.from('two'))
    })
    const said = await text(ask('1.0'))
    assert.match(said, /\r\n\r\none two$/)
    assert.doesNotMatch(said, /transfer-encoding/i)
  })

  it('leaves the connection to the next request', async () => {
    answerWith((outlet) => {
      outlet.write(Buffer.from('piece'))
      outlet.end(Buffer.alloc(0))
    })
    const socket = ask()
    let said = ''
    socket.on('data', (bytes) => {
      said += bytes
    })
    for (let answers = 1; answers <= 15; answers += 1) {
      await until(
        () => said.split('5\r\npiece\r\n0\r\n\r\n').length === answers + 1,
        PATIENCE_MS,
        'the answer is whole',
      )
      if (answers < 15) socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
    }
    socket.destroy()
  })

  it('waits for who reads slowly, and goes on', async () => {
    let written = 0
    let rooms = 0
    answerWith((outlet) => {
      const fill = () => {
        while (written < 30_000_000) {
          written += 4_000
          if (!outlet.write(pieceOf(4_000))) return
        }
        outlet.end(Buffer.alloc(0))
      }
      const onRoom = () => {
        rooms += 1
        fill()
      }
      outlet.listen({ ...NOBODY_LISTENS, onRoom })
      fill()
    })
    const response = await fetch(url)
    await delay(200)
    assert.ok(written < 30_000_000, 'somebody has to read first')
    assert.equal((await response.arrayBuffer()).byteLength, written)
    assert.ok(rooms > 0)
  })

  it('is told once that the caller has left, and then goes nowhere', async () => {
    let left = 0
    let outlet: Outlet | undefined
    answerWith((given) => {
      outlet = given
      outlet.write(Buffer.from('piece'))
      const onLeft = () => {
        left += 1
      }
      outlet.listen({ ...NOBODY_LISTENS, onLeft })
    })
    const socket = ask()
    await once(socket, 'data')
    assert.equal(outlet?.hasLeft(), false)
    socket.resetAndDestroy()
    await until(() => left === 1, PATIENCE_MS, 'the caller is missed')
    assert.equal(outlet?.hasLeft(), true)
    assert.equal(outlet.write(Buffer.from('more')), true)
    outlet.breakOff(Buffer.from('more'))
    outlet.end(Buffer.from('more'))
    await delay(20)
    assert.equal(left, 1)
  })

  it('that is broken off has its last words, and no end', async () => {
    answerWith((outlet) => {
      outlet.write(pieceOf(1_000_000))
      outlet.breakOff(Buffer.from('last words'))
    })
    const said = await text(ask())
    assert.ok(said.endsWith('\r\na\r\nlast words\r\n'))
    await assert.rejects(fetch(url).then((response) => response.text()))
  })

  it('that is broken off without a word has no end either', async () => {
    answerWith((outlet) => {
      outlet.write(Buffer.from('piece'))
      outlet.breakOff(Buffer.alloc(0))
    })
    assert.ok((await text(ask())).endsWith('5\r\npiece\r\n'))
  })

  it('goes to nobody where its headers can not be written, and the caller is told so', async () => {
    let left = 0
    answerWith(
      (outlet) => {
        const onLeft = () => {
          left += 1
        }
        outlet.listen({ ...NOBODY_LISTENS, onLeft })
      },
      { 'content-language': 'line\nfeed' },
    )
    const response = await fetch(url)
    assert.deepEqual([response.status, left], [500, 1])
  })
})
