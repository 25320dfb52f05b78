import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { freshAddress, linkIn } from '../people/site.ts'
import { freshEmail, PASSWORD } from '../people/visitor.ts'
import { startConsole } from './console-house.ts'

/** A person's way through the console, in a browser with and without scripts. */

const database = await freshDatabase()
const house = await startConsole(database.url)
after(house.stop)
const browser: Browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible } = createPageChecks(browser)

const KINDS = [
  ['phone-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
  ['light', { viewport: { width: 1440, height: 900 } }],
  ['dark', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' }],
  ['phone-light', { viewport: { width: 390, height: 844 } }],
  ['light-without-script', { viewport: { width: 1440, height: 900 }, javaScriptEnabled: false }],
] as const satisfies readonly (readonly [string, BrowserContextOptions])[]

async function mailTo(address: string) {
  await until(async () => (await house.sandbox.mail(address)).length > 0, PATIENCE_MS, `mail to ${address}`)
  const [newest] = await house.sandbox.mail(address)
  return newest ?? assert.fail()
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()

async function signUp(page: Page, kind: string): Promise<void> {
  const email = freshEmail(kind)
  await page.goto('/sign-up')
  await page.getByLabel('Your name').fill('Mira Halloran')
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await press(page, 'Create the account')
  await page.goto(new URL(linkIn(await mailTo(email), /^\/verify\//)).pathname)
  await press(page, 'This is my address')
}

for (const [kind, options] of KINDS)
  describe(`a person (${kind})`, () => {
    it('signs up, makes a key, and sees the first call appear with its cost', async () => {
      const context = await browser.newContext({
        ...{ baseURL: house.siteUrl, extraHTTPHeaders: { 'x-forwarded-for': freshAddress() } },
        ...options,
      })
      const page = await context.newPage()
      const frowned: string[] = []
      page.on('console', (message) => frowned.push(message.text()))
      page.on('pageerror', (error) => frowned.push(String(error)))
      const see = async (title: string, name: string) => {
        await page.getByRole('heading', { level: 1, name: title }).waitFor()
        await picture(page, `${name}-${kind}`)
        await fits(page)
        await isAccessible(page)
      }
      await signUp(page, kind)
      await see('Make your first call', 'first-run')
      await press(page, 'Make a key')
      const secret = (await page.locator('#secret').textContent()) ?? ''
      assert.match(secret, /^fb_test_/)
      await see('Make your first call', 'first-key')
      const called = await fetch(`${house.baseUrl}/v1/rerank`, {
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
        body: '{"query": "a quick animal", "documents": ["a snail", "a fox", "a stone"]}',
      })
      assert.equal(called.status, 200, await called.text())
      const cost = called.headers.get('x-farebox-cost-usd') ?? ''
      if (!kind.endsWith('without-script')) {
        await page.getByText('rerank is here').waitFor()
        assert.equal(await page.locator('[data-cost-charged]').textContent(), `$${cost}`)
        await see('Make your first call', 'first-call')
      }
      const path = new URL(page.url()).pathname.replace(/\/first-key$/, '')
      await page.goto(path)
      await see('Overview', 'overview')
      await page.goto(`${path}/keys`)
      await see('Keys', 'keys')
      await page.getByRole('link', { name: 'New key' }).click()
      await see('New key', 'key-new')
      await page
        .getByLabel('Name')
        .fill('nightly-jobs-for-the-quarterly-report-of-the-harbour-with-eighty-characters-in-it')
      await page.getByLabel('Amount, in USD').fill('0.000001')
      await page.getByLabel('May call').fill('rerank, models')
      await press(page, 'Make the key')
      await page.getByText('Copy the key now').waitFor()
      await picture(page, `key-made-${kind}`)
      await fits(page)
      await isAccessible(page)
      await page.goto(`${path}/keys`)
      await page.getByRole('link', { name: /^nightly-jobs/ }).click()
      await see('nightly-jobs', 'key')
      await press(page, 'Rotate the key')
      await page.getByText('The old one works until').waitFor()
      await page.getByRole('link', { name: 'Revoke' }).click()
      await see('Revoke nightly-jobs', 'key-revoke')
      await press(page, 'Revoke the key')
      await page.getByText('Revoked').waitFor()
      assert.deepEqual(frowned, [])
      await context.close()
    })
  })
