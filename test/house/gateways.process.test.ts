import assert from 'node:assert/strict'
import { after, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { startGateways } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS } from '../../harness/until.ts'

const database = await freshDatabase()

/** Nobody listens, or it answers; who is paused does neither until it goes on. */
async function isAlive(url: string): Promise<boolean> {
  const answer = await request(`${url}/livez`, { headersTimeout: PATIENCE_MS }).catch(() => undefined)
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
  assert.deepEqual(await Promise.all([first, second].map(({ url }) => isAlive(url))), [false, false])
  const events: string[] = []
  const asked = isAlive(third.url).then((isSo) => events.push(`answered ${isSo}`))
  await delay(300)
  events.push('resumed')
  third.resume()
  await asked
  assert.deepEqual(events, ['resumed', 'answered true'])
  const again = await second.restart()
  after(() => again.kill())
  assert.ok(await isAlive(again.url))
})
