import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { measure } from '../../harness/figures.ts'
import { startGateway } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()
const BUILT = ['server/dist/main.js', 'server/dist/migrations', 'client/dist/index.d.ts', 'console/dist/index.html']
const isBuilt = (file: string) => existsSync(path.join(ROOT, file))

describe('npm run build', () => {
  it('gives a server that starts, the client with its types, and the console', async () => {
    // Where it was built already, other tests use it at this moment.
    if (!BUILT.every(isBuilt)) execFileSync(process.execPath, ['scripts/build.ts'], { cwd: ROOT, stdio: 'pipe' })
    for (const file of BUILT) assert.ok(isBuilt(file), file)
    await measure('build', 'start of the built server', { unit: 'ms', atMost: 1_000 }, async () => {
      const startedMs = performance.now()
      const gateway = await startGateway({ databaseUrl: database.url, built: true })
      const tookMs = performance.now() - startedMs
      assert.equal((await gateway.stop()).code, 0)
      return tookMs
    })
  })
})
