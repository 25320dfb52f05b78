import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../../harness/chromium.ts'
import { createPageChecks } from '../../../harness/page-checks.ts'
import { recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { ask, type Customer, codeOf, makeCustomer, startInstallation } from '../installation.ts'
import { CALLBACK, follow, LINKS, startLink } from './linking.ts'
import { platformOf } from './sandbox-platform.ts'

const PHONE = { width: 360, height: 740 }
const PROOF = 'links-browser'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { pool, sandbox, url } = installation
after(installation.stop)
const browser: Browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible, looked } = createPageChecks(browser)

type Visit = {
  readonly page: Page
  /** Whatever a careful visitor would frown at: errors, warnings, failed requests, other hosts. */
  readonly frowned: readonly string[]
  readonly requests: () => number
}

/** A browser of its own for one user, which notes all that it says and asks. */
async function visit(options: BrowserContextOptions = {}): Promise<Visit> {
  const context = await browser.newContext({ javaScriptEnabled: false, ...options })
  await context.addCookies([{ name: 'sandbox_user', value: 'alice', url: sandbox.url }])
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const frowned: string[] = []
  let requests = 0
  const hosts = new Set([new URL(url).host, new URL(sandbox.url).host])
  page.on('console', (message) => {
    // That a page was answered with 400 is ours to say, and Chromium's to repeat.
    if (!/^Failed to load resource: the server responded with a status of/.test(message.text()))
      frowned.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => frowned.push(`error: ${error.message}`))
  page.on('requestfailed', (request) => {
    // A browser that leaves a page gives up what it still loads there: a slow machine leaves before the icon came.
    const reason = request.failure()?.errorText
    if (reason !== 'net::ERR_ABORTED') frowned.push(`failed: ${request.url()} ${reason}`)
  })
  page.on('request', (request) => {
    requests += 1
    if (!hosts.has(new URL(request.url()).host)) frowned.push(`elsewhere: ${request.url()}`)
    const { referer = '' } = request.headers()
    if (referer !== '' && !referer.startsWith(sandbox.url)) frowned.push(`referrer: ${referer}`)
  })
  return { page, frowned, requests: () => requests }
}

async function named(name: string): Promise<Customer> {
  const customer = await makeCustomer(pool)
  await pool.query('update workspaces set name = $2 where id = $1', [customer.workspaceId, name])
  return customer
}

const authUrlOf = async ({ secret }: Customer) => String((await startLink(url, secret)).json.auth_url)

/** The user allows it, or not, with the platform's own buttons. */
async function decide(page: Page, authUrl: string, button: 'Authorize app' | 'Cancel' = 'Authorize app') {
  await page.goto(authUrl)
  await page.getByRole('button', { name: button }).click()
  await page.waitForURL((at) => at.pathname === CALLBACK)
}

/** And confirms to us for whom it is. */
async function link(page: Page, authUrl: string) {
  await decide(page, authUrl)
  await page.getByRole('button', { name: 'Link the account' }).click()
  await undoButton(page).waitFor()
}

const heading = (page: Page) => page.getByRole('heading', { level: 1 }).textContent()
const undoButton = (page: Page) => page.getByRole('button', { name: 'Undo the link' })

describe('linking an account in a browser', () => {
  for (const [name, options] of [
    ['light', {}],
    ['dark', { colorScheme: 'dark' }],
    ['phone', { viewport: PHONE }],
    ['phone-dark', { viewport: PHONE, colorScheme: 'dark' }],
    ['with-scripts', { javaScriptEnabled: true }],
  ] as const) {
    it(`names the account, who acts for it and what it may do, and takes it back: ${name}`, async () => {
      const customer = await named('Acme Newsroom')
      const { page, frowned, requests } = await visit(options)
      await decide(page, await authUrlOf(customer))
      await picture(page, `asked-${name}`)
      assert.equal(await heading(page), 'Link @alice?')
      await fits(page)
      await isAccessible(page)
      assert.equal(codeOf(await follow(url, customer.secret)), 'link_required')
      await page.getByRole('button', { name: 'Link the account' }).click()
      await undoButton(page).waitFor()
      await picture(page, `linked-${name}`)
      assert.equal(await heading(page), '@alice is linked')
      assert.equal(await page.title(), '@alice is linked · Farebox')
      const text = (await page.getByRole('main').textContent()) ?? ''
      assert.match(text, /Acme Newsroom/)
      assert.match(text, /somebody may have sent you their link/)
      for (const scope of ['follows.write', 'dm.write', 'Send direct messages for you'])
        assert.ok(text.includes(scope), scope)
      await fits(page)
      await isAccessible(page)
      assert.equal((await follow(url, customer.secret)).status, 200)

      await undoButton(page).click()
      await page.getByText('The link was undone').waitFor()
      await picture(page, `undone-${name}`)
      assert.equal(await heading(page), 'The link was undone')
      assert.ok(!page.url().includes('?'), 'nothing secret is in the address')
      await fits(page)
      await isAccessible(page)
      assert.equal(codeOf(await follow(url, customer.secret)), 'link_required')
      assert.deepEqual((await ask(url, customer.secret, LINKS)).json.data, [])
      await page.reload()
      assert.equal(await heading(page), 'There is nothing to undo here')
      await picture(page, `too-late-${name}`)
      assert.deepEqual(frowned, [])
      recordProof(PROOF, name, { requests: requests(), to_other_hosts: 0, console_errors: 0, failed_requests: 0 })
      await page.context().close()
    })
  }

  it('is done with the keyboard alone', async () => {
    const customer = await named('Acme Newsroom')
    const { page, frowned } = await visit()
    await link(page, await authUrlOf(customer))
    await page.keyboard.press('Tab')
    await picture(page, 'focused')
    // The key goes another way than the question: the answer may come before the key was taken.
    await page.waitForFunction('document.activeElement !== document.body')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Undo the link')
    await page.keyboard.press('Enter')
    await page.getByText('The link was undone').waitFor()
    assert.deepEqual(frowned, [])
    await page.context().close()
  })

  it('says so where it was not allowed, has expired, was used already, is unknown, or the platform fails', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, frowned } = await visit({ colorScheme })
      const see = async (title: string, name: string) => {
        await picture(page, `${name}-${colorScheme}`)
        assert.equal(await heading(page), title)
        assert.equal(await undoButton(page).count(), 0)
        assert.match((await page.getByRole('main').textContent()) ?? '', /You can close this page|Ask for a new link/)
        await fits(page)
        await isAccessible(page)
      }
      const denied = await named('Acme')
      await decide(page, await authUrlOf(denied), 'Cancel')
      await see('Nothing was linked', 'denied')
      assert.deepEqual((await ask(url, denied.secret, LINKS)).json.data, [])

      const late = await named('Acme')
      const authUrl = await authUrlOf(late)
      await pool.query('update link_attempts set expires_at = clock_timestamp() where credential_id = $1', [late.keyId])
      await decide(page, authUrl)
      await see('This link has expired', 'expired')

      await decide(page, await authUrlOf(await named('Acme')))
      await page.reload()
      await see('This link was already used', 'used')

      const older = await named('Acme')
      const first = await authUrlOf(older)
      await authUrlOf(older)
      await decide(page, first)
      await see('This link does not work', 'unknown')

      await platformOf(sandbox.url).turn({ code_seconds: 0 })
      await decide(page, await authUrlOf(await named('Acme')))
      await see('Nothing was linked', 'failed')
      await platformOf(sandbox.url).turn({ code_seconds: 30 })
      assert.deepEqual(frowned, [])
      await page.context().close()
    }
  })

  it('shows names as they are, whatever is in them, and runs nothing of it', async () => {
    const names = {
      html: '<img src=x onerror=alert(1)><script>alert(2)</script><b>Bold & "quoted"</b>',
      long: 'Wolfeschlegelsteinhausenbergerdorff'.repeat(3).slice(0, 100),
      right: 'שירות העיתונות של חיפה',
      // Turns around what follows, where nothing holds it.
      turned: 'Acme \u202Eecivres',
    }
    for (const [kind, name] of Object.entries(names)) {
      const { page, frowned } = await visit({ viewport: PHONE, javaScriptEnabled: true })
      page.on('dialog', () => assert.fail('something ran'))
      await decide(page, await authUrlOf(await named(name)))
      await picture(page, `name-${kind}`)
      assert.equal(await page.locator('bdi b').first().textContent(), name)
      assert.equal(await page.locator('img, script, bdi b *').count(), 0)
      await fits(page)
      await isAccessible(page)
      assert.deepEqual(frowned, [])
      await page.context().close()
    }
  })

  it('says so where the platform can not be told, and lets its user try again', async () => {
    const customer = await named('Acme')
    const { page, frowned } = await visit()
    await link(page, await authUrlOf(customer))
    await sandbox.fault('platform', ['status=503'])
    await undoButton(page).click()
    await page.getByText('could not be told').waitFor()
    await picture(page, 'not-told')
    assert.equal(codeOf(await follow(url, customer.secret)), 'link_required')
    await page.getByRole('button', { name: 'Tell the platform' }).click()
    await page.getByText('The link was undone').waitFor()
    assert.deepEqual((await ask(url, customer.secret, LINKS)).json.data, [])
    assert.deepEqual(frowned, [])
    await page.context().close()
    recordProof(PROOF, 'accessibility (axe-core, all rules)', { pages: looked(), violations: 0 })
  })
})
