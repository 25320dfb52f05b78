import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { PASSWORD, signUp } from '../people/visitor.ts'
import { createOauthClient, OPERATOR_SECRET, registered } from './client.ts'
import { createKeeper, SDKS, startCallback } from './stock-clients.ts'
import { startToolsServer } from './tools-server.ts'

/** Stock clients, from nothing but a URL, and a person who lets them in with a browser that runs no scripts. */
const PHONE = { width: 360, height: 740 }
const tools = await startToolsServer()
const database = await freshDatabase()
const site = await startSite(database.url, {
  ...{ FAREBOX_HTTP_MCP_URL: tools.url, FAREBOX_OAUTH_INTROSPECTION_SECRET: OPERATOR_SECRET },
})
after(site.stop)
tools.trust(site.url)
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

describe('a stock client that knows a URL alone', () => {
  for (const sdk of SDKS)
    it(`at a server of tools of the test's own: finds, registers, is let in, refreshes and is revoked, SDK ${sdk.name}`, async () => {
      const callback = await startCallback()
      const keeper = createKeeper(callback.url)
      await assert.rejects(sdk.tools(tools.url, keeper), sdk.isRefusal)
      const { asked } = keeper.kept
      assert.ok(asked !== undefined)
      assert.equal(asked.searchParams.get('code_challenge_method'), 'S256')
      assert.equal(asked.searchParams.get('resource'), tools.url)
      const page = await open()
      await page.goto(asked.href)
      await signIn(page)
      await see(page, / asks for a budget$/, `consent-${sdk.name}`)
      await page.getByLabel('In total, at most').fill('3.00')
      await allow(page)
      await page.getByText('Read the sentence again').waitFor()
      await allow(page)
      await page.getByRole('heading', { name: 'Back in the program' }).waitFor()
      const back = await callback.called
      assert.equal(back.searchParams.get('iss'), site.url)
      await sdk.finish(tools.url, keeper, back)
      assert.deepEqual(await sdk.tools(tools.url, keeper), ['list_categories'])

      const first = keeper.kept.tokens
      assert.match(String(first?.access_token), /^fb_at_/)
      // One that is refused is renewed without anybody being asked.
      keeper.kept.tokens = { ...first, access_token: 'fb_at_gone', token_type: 'Bearer' }
      keeper.kept.asked = undefined
      assert.deepEqual(await sdk.tools(tools.url, keeper), ['list_categories'])
      assert.equal(keeper.kept.asked, undefined)
      const second = keeper.kept.tokens
      assert.notEqual(second?.refresh_token, first?.refresh_token)

      await page.goto('/grants')
      await see(page, 'What you allow', `grants-${sdk.name}`)
      assert.match((await page.textContent('main')) ?? '', /\$0\.00 of \$3\.00; \$3\.00 left/)
      await page.getByRole('button', { name: 'Revoke access of Stock client' }).click()
      await page.getByRole('status').waitFor()
      await assert.rejects(sdk.tools(tools.url, keeper), sdk.isRefusal)
      assert.ok(keeper.kept.asked !== undefined, 'it has to ask again')
      await page.context().close()
    })
})

describe('pages for whoever lets a client in', () => {
  it('are accessible and fit, on a screen, on a phone and in the dark', async () => {
    const client = createOauthClient(site)
    for (const [kind, options] of [
      ['desktop', {}],
      ['phone', { viewport: PHONE, isMobile: true }],
      ['dark', { colorScheme: 'dark' }],
    ] as const) {
      const callback = await startCallback()
      const keeper = createKeeper(callback.url)
      await assert.rejects(SDKS[1]?.tools(tools.url, keeper) ?? Promise.resolve())
      const page = await open(options)
      await page.goto(String(keeper.kept.asked))
      await signIn(page)
      await see(page, / asks for a budget$/, `consent-${kind}`)
      await page.getByLabel('In total, at most').fill('much')
      await allow(page)
      await see(page, / asks for a budget$/, `consent-wrong-${kind}`)
      await page.getByLabel('In total, at most').fill('2')
      await allow(page)
      await page.getByText('Read the sentence again').waitFor()
      await allow(page)
      await page.getByRole('heading', { name: 'Back in the program' }).waitFor()
      await page.goto('/grants')
      await see(page, 'What you allow', `grants-${kind}`)

      const clientId = await registered(client, {
        grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
        ...{ redirect_uris: [], client_name: 'Command line' },
      })
      const { json } = await client.post('/oauth/device', { client_id: clientId })
      await page.goto('/device')
      await see(page, 'Connect a device', `device-${kind}`)
      await page.getByLabel('Code').fill('BBBB-BBBB')
      await page.getByRole('button', { name: 'Continue' }).click()
      await see(page, 'Connect a device', `device-wrong-${kind}`)
      await page.goto(String(json.verification_uri))
      await page.getByLabel('Code').fill(String(json.user_code))
      await page.getByRole('button', { name: 'Continue' }).click()
      await see(page, / asks for a budget$/, `device-consent-${kind}`)
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

  it('are shown in no frame of another page', async () => {
    const page = await open({ javaScriptEnabled: true })
    await page.route('http://evil.example/**', (route) =>
      route.fulfill({ contentType: 'text/html', body: `<iframe src="${site.url}/grants"></iframe>` }),
    )
    await page.goto('http://evil.example/')
    const [, frame] = page.frames()
    assert.equal(await frame?.locator('main').count(), 0)
    await page.context().close()
  })
})
