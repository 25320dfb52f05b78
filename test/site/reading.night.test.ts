import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { count } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startShownSite } from './shown-site.ts'

const { url: databaseUrl } = await freshDatabase()
const site = await startShownSite(databaseUrl)
after(site.stop)
const browser = await startChromium()
after(() => browser.close())
const checks = createPageChecks(browser)

const PAGES = {
  guides: '/docs',
  'guide-quick-start': '/docs/quick-start',
  'guide-pricing': '/docs/pricing',
  'guide-errors': '/docs/errors',
  'guide-performance': '/docs/performance',
  search: '/search?q=hold',
  'search-nothing': '/search?q=zzzzz',
  proof: '/proof',
  status: '/status',
  'not-found': '/catalogue/re-rank',
}
/** Each width and each scheme, in as many runs as there is time for: the pages differ by style alone. */
const RUNS = [
  { width: 1440, colorScheme: 'light' },
  { width: 390, colorScheme: 'dark' },
  { width: 1440, colorScheme: 'dark' },
  { width: 390, colorScheme: 'light' },
] as const

describe('guides, search, proof and status in a browser', () => {
  it('have no fault that axe knows of, and fit, wide and narrow, light and dark', async () => {
    const problems: string[] = []
    for (const { width, colorScheme } of RUNS.slice(0, count({ full: RUNS.length, reduced: 2 }))) {
      const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
      const page = await context.newPage()
      for (const [name, path] of Object.entries(PAGES)) {
        await page.goto(site.siteUrl + path)
        await checks.picture(page, `${name}-${width}-${colorScheme}`)
        for (const check of [checks.fits, checks.isAccessible])
          await check(page).catch((error: unknown) => problems.push(`${name} ${width} ${colorScheme}: ${error}`))
      }
      await context.close()
    }
    assert.deepEqual(problems, [])
  })
})
