import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { PASSWORD, signUp } from '../people/visitor.ts'
import { createOauthClient, registered } from './client.ts'

/** What people meet who let a device in, or whose client is refused, in a browser that runs no scripts. Clients of apps: test/mandates. */
const PHONE = { width: 360, height: 740 }
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const email = await signUp(site)
const browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible, looked } = createPageChecks(browser)

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({
    ...{ javaScriptEnabled: false, baseURL: site.url, extraHTTPHeaders: { 'x-forwarded-for': freshAddress() } },
    ...options,
  })
  context.setDefaultTimeout(60_000)
  return context.newPage()
}

async function see(page: Page, title: string | RegExp, name: string): Promise<void> {
  await page.getByRole('heading', { level: 1, name: title }).waitFor()
  await picture(page, name)
  await fits(page)
  await isAccessible(page)
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

async function allow(page: Page): Promise<void> {
  await page.getByRole('button', { name: /^Allow/ }).click()
}

describe('pages for whoever lets a client in', () => {
  it('are accessible and fit, on a screen, on a phone and in the dark', async () => {
    const client = createOauthClient(site)
    for (const [kind, options] of [
      ['desktop', {}],
      ['phone', { viewport: PHONE, isMobile: true }],
      ['dark', { colorScheme: 'dark' }],
    ] as const) {
      const page = await open(options)
      const clientId = await registered(client, {
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
        ...{ redirect_uris: [], client_name: 'Command line' },
      })
      const { json } = await client.post('/oauth/device', { client_id: clientId })
      await page.goto('/device')
      await signIn(page)
      await see(page, 'Connect a device', `device-${kind}`)
      await page.getByLabel('Code').fill('BBBB-BBBB')
      await page.getByRole('button', { name: 'Continue' }).click()
      await see(page, 'Connect a device', `device-wrong-${kind}`)
      await page.goto(String(json.verification_uri))
      await page.getByLabel('Code').fill(String(json.user_code))
      await page.getByRole('button', { name: 'Continue' }).click()
      await see(page, / asks for a budget$/, `device-consent-${kind}`)
      const [form, ticket] = await Promise.all(
        ['.grant__form', '.grant .fb-ticket'].map((part) => page.locator(part).boundingBox()),
      )
      if (kind !== 'phone') assert.ok((form?.x ?? 0) < (ticket?.x ?? 0), 'the ticket stands beside the form')
      await allow(page)
      await see(page, 'Your device is connected', `device-done-${kind}`)
      await page.goto('/oauth/authorize?client_id=nobody')
      await see(page, 'This app can’t be connected', `refused-${kind}`)
      await page.goto('/consent/nothing-that-is-waiting-here')
      await see(page, 'There is nothing to decide', `over-${kind}`)
      await page.context().close()
    }
    recordProof('oauth-pages', 'pages looked at by axe', { pages: looked(), violations: 0 })
  })
})
