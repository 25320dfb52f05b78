import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startPostgres } from '../../harness/postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { amountsIn, textOf } from './page-text.ts'
import { startShownSite } from './shown-site.ts'

const postgres = await startPostgres()
after(() => postgres.remove())
await migrate({ url: new Secret(postgres.url()), log: silentLog })
const site = await startShownSite(postgres.url())
after(site.stop)

const PATHS = [
  '/',
  '/catalogue',
  '/catalogue/rerank',
  '/models',
  '/models/sandbox/text',
  '/reference',
  '/reference/rerank',
]
const get = (path: string) => fetch(site.siteUrl + path)

describe('while PostgreSQL is stopped', () => {
  it('pages go on from memory, say since when, and are right again once it is back', async () => {
    const before = await (await get('/models')).text()
    assert.doesNotMatch(before, /Prices as of/)
    await postgres.stop()
    await until(async () => (await (await get('/models')).text()).includes('Prices as of'), PATIENCE_MS, 'the note')
    for (const path of PATHS) assert.equal((await get(path)).status, 200, path)
    const during = await (await get('/models')).text()
    assert.match(textOf(during), /Prices as of \d+ \w+ 20\d\d, \d\d:\d\d UTC\./)
    assert.deepEqual(amountsIn(during), amountsIn(before))
    const calculated = await (await get('/models/sandbox/text?text=Hello&most=10')).text()
    assert.match(textOf(calculated), /What a quote would say/)
    await postgres.start()
    await until(
      async () => {
        try {
          await setModelPrice({ pool: site.pool }, { model: 'sandbox/text', input: '0.5', output: '2.25' })
          return true
        } catch {
          return false
        }
      },
      PATIENCE_MS,
      'the new price',
    )
    await until(
      async () => {
        const page = await (await get('/models/sandbox/text')).text()
        return amountsIn(page).includes('2.25') && !page.includes('Prices as of')
      },
      PATIENCE_MS,
      'the page with the new price',
    )
  })
})
