import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { measure } from '../../harness/figures.ts'
import { startGateway } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()
const BUILT = [
  'server/dist/main.js',
  'server/dist/migrations',
  'client/dist/index.d.ts',
  'server/dist/assets/islands.js',
]
const PACKAGE = /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//
const isBuilt = (file: string) => existsSync(path.join(ROOT, file))

describe('npm run build', () => {
  it('gives a server that starts, the client with its types, and the script of the console', async () => {
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

  it('gives a server that brings its packages with it, with the license of each, and what was compiled of it', () => {
    const dist = path.join(ROOT, 'server/dist')
    const sources = readdirSync(dist).flatMap((file) => {
      return file.endsWith('.map') ? JSON.parse(readFileSync(path.join(dist, file), 'utf8')).sources : []
    })
    const packages = new Set(sources.flatMap((file: string) => PACKAGE.exec(file)?.[1] ?? []))
    assert.ok(packages.size > 50, `${packages.size} packages`)
    const notices = readFileSync(path.join(dist, 'third-party-notices.txt'), 'utf8')
    const named = new Set([...notices.matchAll(/^(\S+) \d+\.\d+\.\d+\S*$/gm)].map(([, name]) => name))
    assert.deepEqual(
      [...packages].filter((name) => !named.has(name as string)),
      [],
    )
    assert.ok(readdirSync(path.join(dist, 'compile-cache')).length > 0)
  })

  it('serves the same contract, guides, drawings and proofs as the sources, and says which proofs are stale', async () => {
    assert.ok(BUILT.every(isBuilt))
    const env = { FAREBOX_ROLES: 'site', FAREBOX_LOG_LEVEL: 'silent' }
    const [built, sources] = await Promise.all(
      [true, false].map((isBuiltOne) => startGateway({ databaseUrl: database.url, built: isBuiltOne, env })),
    )
    assert.ok(built && sources)
    const read = async (at: string) => (await fetch(at)).text()
    const drawn = ['/docs', '/docs/pricing', '/docs/errors.md', '/docs/performance/overhead.svg', '/llms.txt']
    for (const at of ['/api/contracts/version', '/account/v1/openapi.json', ...drawn])
      assert.equal(await read(built.siteUrl + at), await read(sources.siteUrl + at), at)
    const proofs = await read(`${built.siteUrl}/proof`)
    assert.match(proofs, /were recorded before the last change of what they exercise/)
    assert.doesNotMatch(await read(`${sources.siteUrl}/proof`), /were recorded before the last change/)
    await Promise.all([built.stop(), sources.stop()])
  })
})
