import assert from 'node:assert/strict'
import { it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { Secret } from '../kernel/secret.ts'
import { silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createChangeFeed } from './change-feed.ts'

const { url } = await freshDatabase()

/** How long the feed means to sleep after each of its first reads, where its pauses end at once and reading takes so long. */
async function sleptAfterReads(readMs: number): Promise<readonly number[]> {
  const slept: number[] = []
  let nowMs = 0
  const feed = createChangeFeed({
    url: new Secret(url),
    log: silentLog,
    metrics: createMetrics(),
    answerTimeoutMs: PATIENCE_MS,
    clock: {
      nowMs: () => nowMs,
      monotonicMs: () => nowMs,
      async sleep(durationMs) {
        nowMs += durationMs
        slept.push(durationMs)
      },
    },
  })
  // The first read says so, before it ends.
  const reset = () => {
    nowMs += readMs
  }
  feed.subscribe('anything', { changed: () => {}, reset })
  feed.start()
  await until(() => slept.length >= 2, PATIENCE_MS, 'two pauses')
  await feed.close()
  return slept.slice(0, 2)
}

it('the change log is read every 300 ms, from the beginning of one read to the next', async () => {
  assert.deepEqual(await sleptAfterReads(0), [20, 280])
  assert.deepEqual(await sleptAfterReads(200), [20, 80])
})

it('the change log is read again after 20 ms where a read took longer than that', async () => {
  assert.deepEqual(await sleptAfterReads(300), [20, 20])
})
