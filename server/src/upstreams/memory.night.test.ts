import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { judge } from '../../../harness/figures.ts'
import { count } from '../../../harness/proof.ts'
import { failsWith, get, MIB, piecesOf, startTransport } from '../../../test/upstreams/asking.ts'

/** In a process of its own, so that only what the transport takes is counted here. */
const FLOOD = `
  const piece = Buffer.alloc(1 << 20, 'x')
  const tiny = Buffer.from('1\\r\\nx\\r\\n'.repeat(170_000))
  require('node:net').createServer((socket) => {
    socket.on('error', () => {}).once('data', (request) => {
      const kind = /^GET \\/(\\w+)/.exec(request)[1]
      socket.write('HTTP/1.1 200 OK\\r\\n' + (kind === 'length' ? 'content-length: ' + 2 ** 30 : 'transfer-encoding: chunked') + '\\r\\n\\r\\n')
      let left = Number(/pieces=(\\d+)/.exec(request)[1])
      const more = () => {
        while (left-- > 0) {
          if (kind === 'chunks') socket.write('100000\\r\\n')
          const isRoom = socket.write(kind === 'tiny' ? tiny : piece)
          if (kind === 'chunks') socket.write('\\r\\n')
          if (!isRoom) return void socket.once('drain', more)
        }
        if (kind !== 'length') socket.write('0\\r\\n\\r\\n')
      }
      more()
    })
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`

/** A gibibyte of them at full counts. */
const PIECES = count({ full: 1_024, reduced: 64 })
const TINY_MIB = count({ full: 8, reduced: 1 })
const PROOF = 'upstream-memory'
/** What may be received beyond what may be kept: a reading of a socket. */
const PIECE_BYTES = 65_536

describe('an answer of a gibibyte', () => {
  let flood: ChildProcess
  let url = ''
  before(async () => {
    flood = spawn(process.execPath, ['-e', FLOOD], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = flood.stdout === null ? [] : await once(flood.stdout, 'data')
    url = `http://127.0.0.1:${String(port).trim()}`
    // What a running process has taken anyway: compiled code, and heap that grew with its first garbage.
    await failsWith(drain(32 * MIB), 'too_large', 'unknown')
  })
  after(() => flood.kill())

  /** The most that the process grew by while it worked. */
  async function growthOf<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly growthMib: number }> {
    const startBytes = process.memoryUsage.rss()
    let mostBytes = startBytes
    const timer = setInterval(() => (mostBytes = Math.max(mostBytes, process.memoryUsage.rss())), 5)
    const result = await work()
    clearInterval(timer)
    return { result, growthMib: (Math.max(mostBytes, process.memoryUsage.rss()) - startBytes) / MIB }
  }

  const transport = startTransport()
  const deadlines = { totalMs: 100_000 }
  const ask = (kind: string, maxBodyBytes: number) =>
    get(url, { target: `/${kind}?pieces=${PIECES}`, maxBodyBytes, deadlines })
  /** Reads it in pieces; says how many bytes there were. */
  async function drain(maxBodyBytes: number): Promise<number> {
    let bytes = 0
    const { body } = await transport.open(ask('chunks', maxBodyBytes))
    for await (const piece of piecesOf(body)) bytes += piece.length
    return bytes
  }

  async function refuse(kind: string, maxBodyBytes: number) {
    return growthOf(() => failsWith(transport.send(ask(kind, maxBodyBytes)), 'too_large', 'unknown'))
  }

  it('is refused at once where its length is declared', async () => {
    await failsWith(transport.send(ask('length', MIB)), 'too_large', 'unknown')
    const { result, growthMib } = await refuse('length', 16 * MIB)
    assert.ok(result.bytesReceived <= PIECE_BYTES)
    judge(PROOF, 'the growth by one whose length is declared', { unit: 'MiB', atMost: 16 }, [growthMib])
  })

  it('costs no more than what may be kept of it, and a little, where it comes in chunks', async () => {
    const { result, growthMib } = await refuse('chunks', 16 * MIB)
    assert.ok(result.bytesReceived <= 16 * MIB + PIECE_BYTES)
    judge(PROOF, 'the growth by one in chunks, of which 16 MiB may be kept', { unit: 'MiB', atMost: 64 }, [growthMib])
  })

  it('costs no more where it comes in chunks of one byte', async () => {
    const { result, growthMib } = await refuse('tiny', TINY_MIB * MIB)
    assert.ok(result.bytesReceived <= TINY_MIB * MIB + PIECE_BYTES)
    const title = 'the growth by one in chunks of one byte, of which 8 MiB may be kept'
    judge(PROOF, title, { unit: 'MiB', atMost: 64 }, [growthMib])
  })

  it('passes through in pieces', async () => {
    const { result, growthMib } = await growthOf(() => drain(PIECES * MIB))
    assert.equal(result, PIECES * MIB)
    judge(PROOF, 'the growth by one that passes through', { unit: 'MiB', atMost: 64 }, [growthMib])
  })
})
