import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import { request } from 'undici'
import { startGateways } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()

async function isAlive(url: string): Promise<boolean> {
  const answer = await request(`${url}/livez`, { headersTimeout: 500 }).catch(() => undefined)
  await answer?.body.dump()
  return answer?.statusCode === 200
}

it('several gateways run beside each other, and each can be stopped, killed, paused and started again', async () => {
  const [first, second, third] = await startGateways(3, { databaseUrl: database.url })
  assert.ok(first && second && third)
  after(() => Promise.all([first, second, third].map((gateway) => gateway.kill())))
  assert.deepEqual(await Promise.all([first, second, third].map(({ url }) => isAlive(url))), [true, true, true])

  assert.deepEqual(await first.stop(), { code: 0, signal: null })
  assert.equal((await second.kill()).signal, 'SIGKILL')
  third.pause()
  assert.deepEqual(await Promise.all([first, second, third].map(({ url }) => isAlive(url))), [false, false, false])

  third.resume()
  assert.ok(await isAlive(third.url))
  const again = await second.restart()
  after(() => again.kill())
  assert.ok(await isAlive(again.url))
})
