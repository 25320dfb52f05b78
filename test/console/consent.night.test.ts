import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { buildIslands } from '../../harness/build-islands.ts'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { authorizePath, createOauthClient, newPkce, registered } from '../oauth/client.ts'
import { startCallback } from '../oauth/stock-clients.ts'
import { freshAddress, startSite } from '../people/site.ts'
import { PASSWORD, signUp } from '../people/visitor.ts'

/** Where a client is allowed to spend, in a browser that runs our script: what is said follows what is typed, and what was said counts. */

await buildIslands()
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const email = await signUp(site)
const client = createOauthClient(site)
const browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible } = createPageChecks(browser)

/** A client that asks, and the page on which a person decides about it. */
async function asked(options: BrowserContextOptions = {}) {
  const callback = await startCallback()
  const clientId = await registered(client, { client_name: 'Stock client', redirect_uris: [callback.url] })
  const path = authorizePath({ clientId, pkce: newPkce(), changed: { redirect_uri: callback.url } })
  const context = await browser.newContext({
    ...{ baseURL: site.url, extraHTTPHeaders: { 'x-forwarded-for': freshAddress() } },
    ...options,
  })
  const page = await context.newPage()
  const frowned: string[] = []
  page.on('console', (message) => frowned.push(message.text()))
  page.on('pageerror', (error) => frowned.push(String(error)))
  await page.goto(path)
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByRole('heading', { level: 1, name: / asks for a budget$/ }).waitFor()
  return { page, frowned }
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const amountAllowed = async () => {
  const { rows } = await site.pool.query(
    'select a.amount::text from grants g join allowances a on a.id = g.allowance_id order by g.id desc limit 1',
  )
  return rows[0]?.amount
}

describe('the page where a client is allowed to spend', () => {
  for (const [kind, options] of [
    ['light', { viewport: { width: 1440, height: 900 } }],
    ['phone-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
  ] as const satisfies readonly (readonly [string, BrowserContextOptions])[])
    it(`keeps sentence, ticket and button with what is typed, and allows that at once (${kind})`, async () => {
      const { page, frowned } = await asked(options)
      await button(page, 'Allow up to $1.00').waitFor()
      await page.getByLabel('In total, at most').fill('7.25')
      await button(page, 'Allow up to $7.25').waitFor()
      await page.getByLabel('How often').fill('12')
      await page.getByLabel('Per call, at most').fill('0.5')
      await page.getByText('at most $0.50 per call without asking you, and 12 calls per minute').waitFor()
      const sentence = page.locator('.grant__say')
      assert.match((await sentence.textContent()) ?? '', /may spend up to \$7\.25/)
      const ticket = (await page.locator('.fb-ticket').textContent()) ?? ''
      for (const word of ['$7.25', '$0.50', '12']) assert.ok(ticket.includes(word), `${word} in ${ticket}`)
      await page.getByRole('checkbox', { name: /^Social/ }).check()
      await sentence.getByText('social').waitFor()
      await picture(page, `consent-followed-${kind}`)
      await fits(page)
      await isAccessible(page)
      await page.getByLabel('In total, at most').fill('much')
      await page.getByText('Correct the fields above first').waitFor()
      await page.getByLabel('In total, at most').fill('7.25')
      await button(page, 'Allow up to $7.25').click()
      await page.getByRole('heading', { name: 'Back in the program' }).waitFor()
      assert.equal(await amountAllowed(), '7250000000')
      // The browser notes that a page for what can't be read came with 400.
      assert.deepEqual(
        frowned.filter((one) => !one.includes('400 (Bad Request)')),
        [],
      )
      await page.context().close()
    })

  it('allows nothing that was not shown: who presses before the sentence has followed reads it first', async () => {
    const { page } = await asked()
    const before = await amountAllowed()
    // In one turn, so that no sentence can come between.
    await page.evaluate(`{
      const field = document.querySelector('input[name="amount"]')
      field.value = '9'
      field.dispatchEvent(new Event('input', { bubbles: true }))
      document.querySelector('button[value="allow"]').click()
    }`)
    await page.getByText('Read the sentence again').waitFor()
    assert.equal(await amountAllowed(), before)
    await button(page, 'Allow up to $9.00').click()
    await page.getByRole('heading', { name: 'Back in the program' }).waitFor()
    assert.equal(await amountAllowed(), '9000000000')
    await page.context().close()
  })

  it('runs only our script, asks only this site, makes no markup of texts, and is framed by nobody', async () => {
    const { page } = await asked()
    const answer = await page.reload()
    const policy = (answer?.headers()['content-security-policy'] ?? '').split('; ')
    for (const part of [
      ...["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"],
      ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
    ])
      assert.ok(policy.includes(part), `${part} in ${policy.join('; ')}`)
    await page.context().close()
  })
})
