import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, it } from 'node:test'
import { failsWith, get, MIB, piecesOf, startTransport } from '../../../test/upstreams/asking.ts'

/** In a process of its own, so that only what the transport takes is counted here. */
const FLOOD = `
  const piece = Buffer.alloc(1 << 20, 'x')
  const tiny = Buffer.from('1\\r\\nx\\r\\n'.repeat(170_000))
  require('node:net').createServer((socket) => {
    socket.on('error', () => {}).once('data', (request) => {
      const kind = /^GET \\/(\\w+)/.exec(request)[1]
      socket.write('HTTP/1.1 200 OK\\r\\n' + (kind === 'length' ? 'content-length: ' + 2 ** 30 : 'transfer-encoding: chunked') + '\\r\\n\\r\\n')
      let left = 1024
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

const GIB = 1_024 * MIB

describe('an answer of a gibibyte', () => {
  let flood: ChildProcess
  let url = ''
  before(async () => {
    flood = spawn(process.execPath, ['-e', FLOOD], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [port] = flood.stdout === null ? [] : await once(flood.stdout, 'data')
    url = `http://127.0.0.1:${String(port).trim()}`
    // What a running process has taken anyway: compiled code, and heap that grew with its first garbage.
    await failsWith(drain(64 * MIB), 'too_large', 'unknown')
  })
  after(() => flood.kill())

  /** The most that the process grew by while it worked. */
  async function growthOf(work: () => Promise<unknown>): Promise<number> {
    const startBytes = process.memoryUsage.rss()
    let mostBytes = startBytes
    const timer = setInterval(() => (mostBytes = Math.max(mostBytes, process.memoryUsage.rss())), 5)
    await work()
    clearInterval(timer)
    return Math.max(mostBytes, process.memoryUsage.rss()) - startBytes
  }

  const transport = startTransport()
  const deadlines = { totalMs: 100_000 }
  const ask = (kind: string, maxBodyBytes: number) => get(url, { target: `/${kind}`, maxBodyBytes, deadlines })
  /** Reads it in pieces; says how many bytes there were. */
  async function drain(maxBodyBytes: number): Promise<number> {
    let bytes = 0
    const { body } = await transport.open(ask('chunks', maxBodyBytes))
    for await (const piece of piecesOf(body)) bytes += piece.length
    return bytes
  }

  const report = (growth: number) => `grew by ${(growth / MIB).toFixed(0)} MiB`

  it('is refused at once where its length is declared', async () => {
    await failsWith(transport.send(ask('length', MIB)), 'too_large', 'unknown')
    const growth = await growthOf(() => failsWith(transport.send(ask('length', 16 * MIB)), 'too_large', 'unknown'))
    assert.ok(growth < 16 * MIB, report(growth))
  })

  it('costs no more than what may be kept of it, and a little, where it comes in chunks', async (test) => {
    const growth = await growthOf(() => failsWith(transport.send(ask('chunks', 16 * MIB)), 'too_large', 'unknown'))
    test.diagnostic(report(growth))
    assert.ok(growth < 64 * MIB, report(growth))
  })

  it('costs no more where it comes in chunks of one byte', async (test) => {
    const growth = await growthOf(() => failsWith(transport.send(ask('tiny', 8 * MIB)), 'too_large', 'unknown'))
    test.diagnostic(report(growth))
    assert.ok(growth < 64 * MIB, report(growth))
  })

  it('passes through in pieces', async (test) => {
    let bytes = 0
    const growth = await growthOf(async () => {
      bytes = await drain(GIB)
    })
    test.diagnostic(report(growth))
    assert.equal(bytes, GIB)
    assert.ok(growth < 64 * MIB, report(growth))
  })
})
