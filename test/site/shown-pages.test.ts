import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const database = await freshDatabase()
const started: Gateway[] = []
after(() => Promise.all(started.map((one) => one.stop())))

async function siteThatShows(show?: string): Promise<(at: string) => Promise<{ status: number; text: string }>> {
  const gateway = await startGateway({
    databaseUrl: database.url,
    env: { FAREBOX_LOG_LEVEL: 'error', ...(show !== undefined && { FAREBOX_SITE_SHOW: show }) },
  })
  started.push(gateway)
  return async (at) => {
    const response = await fetch(gateway.siteUrl + at)
    return { status: response.status, text: await response.text() }
  }
}

type Read = Awaited<ReturnType<typeof siteThatShows>>

const CALLERS = '/docs/quick-start'
const OPERATORS = ['/docs/operating', '/docs/cli', '/docs/configuration.md', '/docs/dependencies'] as const
const statusesOf = (read: Read, paths: readonly string[]) =>
  Promise.all(paths.map(async (at) => (await read(at)).status))

/** No page of these leads to what is not there. */
async function assertNoLinkTo(read: Read, target: RegExp): Promise<void> {
  for (const at of [
    '/',
    '/catalogue',
    '/catalogue/rerank',
    '/docs',
    '/docs/pricing',
    '/docs/errors',
    '/llms.txt',
    '/nowhere',
  ])
    assert.doesNotMatch((await read(at)).text, target, at)
}

describe('what customers see on the website (site.show)', () => {
  it('is by default what callers need: no guide of operators is a page, in a list, in llms.txt or in search', async () => {
    const read = await siteThatShows()
    assert.deepEqual(await statusesOf(read, [CALLERS, '/proof', '/reference']), [200, 200, 200])
    assert.deepEqual(await statusesOf(read, OPERATORS), [404, 404, 404, 404])
    await assertNoLinkTo(read, /docs\/(operating|cli|configuration|dependencies|metrics)\b/)
    assert.doesNotMatch((await read('/search?q=price+lists')).text, /href="\/docs\/price-lists/)
    assert.doesNotMatch((await read('/docs')).text, /You run it/)
  })

  it('is what the operator names', async () => {
    const read = await siteThatShows('operator_guides')
    assert.deepEqual(await statusesOf(read, [CALLERS, ...OPERATORS]), [200, 200, 200, 200, 200])
    assert.deepEqual(await statusesOf(read, ['/proof', '/reference', '/reference/rerank']), [404, 404, 404])
    await assertNoLinkTo(read, /href="\/(proof|reference)/)
    assert.match((await read('/docs')).text, /You run it/)
  })

  it('can be nothing but what is sold and the guides for callers', async () => {
    const read = await siteThatShows('none')
    assert.deepEqual(await statusesOf(read, [CALLERS, '/catalogue', '/models', '/docs']), [200, 200, 200, 200])
    assert.deepEqual(await statusesOf(read, ['/proof', '/reference', ...OPERATORS]), [404, 404, 404, 404, 404, 404])
    await assertNoLinkTo(read, /href="\/(proof|reference)/)
  })
})
