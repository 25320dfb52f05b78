import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { startShownSite, startSiteOf } from './shown-site.ts'

const PROOF = 'site-browser'
const { url: databaseUrl } = await freshDatabase()
const site = await startShownSite(databaseUrl)
after(site.stop)
const browser = await startChromium()
after(() => browser.close())
const checks = createPageChecks(browser)

const PAGES = {
  home: '/',
  catalogue: '/catalogue',
  operation: '/catalogue/rerank',
  'operation-model': '/catalogue/chat_completions?model=sandbox/text',
  models: '/models',
  model: '/models/sandbox/text?text=Name+the+tram+stops+between+the+harbour+and+the+market.&most=200',
  'model-refused': '/models/sandbox/text?text=Hello&most=100000000',
  picture: '/models/sandbox/image?text=a+fox&size=1024x1024/high&count=2',
  reference: '/reference',
  'reference-rerank': '/reference/rerank',
  'reference-messages': '/reference/messages',
}
const VIEWS = [1440, 390].flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
)
/** In how many views each page is looked at; reduced, one page after the other takes the next view. */
const VIEWS_EACH = count({ full: VIEWS.length, reduced: 1 })

/** What is wrong with pages, each in so many views. */
async function problemsOf(
  url: string,
  pages: Readonly<Record<string, string>>,
  prefix = '',
): Promise<readonly string[]> {
  const problems: string[] = []
  for (const [at, { width, colorScheme }] of VIEWS.entries()) {
    const context = await browser.newContext({ colorScheme, viewport: { width, height: 900 } })
    const page = await context.newPage()
    for (const [place, [name, address]] of Object.entries(pages).entries()) {
      if ((at + VIEWS.length - (place % VIEWS.length)) % VIEWS.length >= VIEWS_EACH) continue
      await page.goto(url + address)
      await checks.picture(page, `${prefix}${name}-${width}-${colorScheme}`)
      for (const check of [checks.fits, checks.isAccessible])
        await check(page).catch((error: unknown) => problems.push(`${name} ${width} ${colorScheme}: ${error}`))
    }
    await context.close()
  }
  return problems
}

/** A wide drawing that is no mark of ours. */
const LOGO = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 120 32"><rect width="32" height="32" rx="16" fill="#0b6b53"/><path d="M40 8h70v6H40zM40 18h50v6H40z" fill="#7a8b86"/></svg>`

describe('the website in a browser', () => {
  it('has no fault that axe knows of, and fits, on every page, wide and narrow, light and dark', async () => {
    assert.deepEqual(await problemsOf(site.siteUrl, PAGES), [])
    recordProof(PROOF, 'pages without violations', { pages: checks.looked(), violations: 0 })
  })

  it('looks right under another name, with another logo and other colours', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'farebox-label-'))
    after(() => rmSync(folder, { recursive: true }))
    writeFileSync(path.join(folder, 'logo.svg'), LOGO)
    const labelled = await startSiteOf(databaseUrl, site, {
      FAREBOX_SITE_NAME: 'Harbour Gateway',
      FAREBOX_SITE_LOGO: path.join(folder, 'logo.svg'),
      FAREBOX_SITE_ACCENT_LIGHT: '#0b6b53',
      FAREBOX_SITE_ACCENT_DARK: '#5fd3b0',
      FAREBOX_SITE_TERMS_URL: 'https://harbour.example/terms',
      FAREBOX_SITE_PRIVACY_URL: 'https://harbour.example/privacy',
      FAREBOX_SITE_SUPPORT: 'help@harbour.example',
    })
    after(() => labelled.stop())
    const pages = { home: '/', catalogue: '/catalogue', model: PAGES.model, 'sign-in': '/sign-in' }
    assert.deepEqual(await problemsOf(labelled.siteUrl, pages, 'labelled-'), [])
    const page = await browser.newPage({ colorScheme: 'light' })
    await page.goto(`${labelled.siteUrl}/`)
    assert.match(await page.title(), / · Harbour Gateway$/)
    const [button, brand, text] = await page.evaluate<[string, string, string]>(
      `[getComputedStyle(document.querySelector('.fb-actions .fb-button')).backgroundColor, document.querySelector('.fb-brand img').alt, document.body.innerText]`,
    )
    assert.deepEqual([button, brand], ['rgb(11, 107, 83)', 'Harbour Gateway'])
    assert.doesNotMatch(text.replace(/X-Farebox|x-farebox/g, ''), /farebox/i)
    assert.match(text, /Terms\s+Privacy\s+Support/)
    await page.close()
  })
})
