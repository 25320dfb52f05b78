import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { request } from 'undici'
import { createSandbox } from './sandbox.ts'

it('keeps a journal of what it was asked, health checks apart', async () => {
  const { server, journal } = createSandbox()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const at = (path: string) => request(`http://127.0.0.1:${address.port}${path}`)
  try {
    assert.equal((await at('/livez')).statusCode, 200)
    assert.equal((await at('/v1/rerank')).statusCode, 404)
    assert.deepEqual(journal(), [{ method: 'GET', path: '/v1/rerank' }])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
