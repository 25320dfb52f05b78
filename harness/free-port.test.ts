import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, it } from 'node:test'
import { freePort } from './free-port.ts'

describe('a free port', () => {
  it('is none that a system gives by itself, and no other one asked for it', async () => {
    const ports = await Promise.all(Array.from({ length: 50 }, freePort))
    assert.equal(new Set(ports).size, 50)
    assert.ok(ports.every((port) => port < 32_768))
  })

  it('can be listened on', async () => {
    const server = createServer().listen(await freePort(), '127.0.0.1')
    await once(server, 'listening')
    server.close()
  })
})
