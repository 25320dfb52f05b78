import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { recordProof } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()

describe('npm run build', () => {
  it('gives a server that starts in under one second, the client with its types, and the console', async () => {
    execFileSync(process.execPath, ['scripts/build.ts'], { cwd: ROOT, stdio: 'pipe' })
    for (const file of [
      'server/dist/main.js',
      'server/dist/migrations',
      'client/dist/index.d.ts',
      'console/dist/index.html',
    ]) {
      assert.ok(existsSync(path.join(ROOT, file)), file)
    }
    const times: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const startedMs = performance.now()
      const gateway = await startGateway({ databaseUrl: database.url, built: true })
      times.push(performance.now() - startedMs)
      assert.equal((await gateway.stop()).code, 0)
    }
    const median = times.sort((a, b) => a - b)[2] ?? Number.NaN
    assert.ok(median < 1_000, `${median} ms`)
    recordProof('build', 'start of the built server', { median_ms: Math.round(median), rounds: times.map(Math.round) })
  })
})
