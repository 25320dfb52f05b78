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
  ['dark-by-keyboard', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' }],
  ['phone-light', { viewport: { width: 390, height: 844 } }],
  ['light-without-script', { viewport: { width: 1440, height: 900 }, javaScriptEnabled: false }],
] as const satisfies readonly (readonly [string, BrowserContextOptions])[]

async function mailTo(address: string) {
  await until(async () => (await house.sandbox.mail(address)).length > 0, PATIENCE_MS, `mail to ${address}`)
  const [newest] = await house.sandbox.mail(address)
  return newest ?? assert.fail()
}

/** A person who is counted: what they click, and how long they take. By keyboard, each click is a way to what it is about and Enter. */
function createHand(page: Page, isKeyboard: boolean) {
  let clicks = 0
  const began = performance.now()
  const click = async (target: ReturnType<Page['locator']>) => {
    clicks += 1
    if (!isKeyboard) return target.click()
    await target.focus()
    await page.keyboard.press('Enter')
  }
  return {
    press: (name: string) => click(page.getByRole('button', { name, exact: true })),
    follow: (name: string | RegExp) => click(page.getByRole('link', { name, exact: typeof name === 'string' }).first()),
    /** A way in that a narrow window keeps in its menu. */
    async enter(name: string) {
      const link = page.getByRole('link', { name, exact: true }).filter({ visible: true })
      if ((await link.count()) === 0) await click(page.locator('header summary').first())
      await click(link.first())
    },
    /** Of a mail, which opens in the browser. */
    async open(path: string) {
      clicks += 1
      await page.goto(path)
    },
    clicks: () => clicks,
    seconds: () => (performance.now() - began) / 1_000,
  }
}
type Hand = ReturnType<typeof createHand>

const MOST_CLICKS = 12
const MOST_SECONDS = 180

/** From the home page to the console. */
async function signUp(page: Page, hand: Hand, kind: string): Promise<void> {
  const email = freshEmail(kind)
  await page.goto('/')
  await hand.enter('Sign in')
  await hand.follow('Create an account')
  await page.getByLabel('Your name').fill('Mira Halloran')
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await hand.press('Create the account')
  await hand.open(new URL(linkIn(await mailTo(email), /^\/verify\//)).pathname)
  await hand.press('This is my address')
}

function rerank(secret: string): Promise<Response> {
  return fetch(`${house.baseUrl}/v1/rerank`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: '{"query": "a quick animal", "documents": ["a snail", "a fox", "a stone"]}',
  })
}

const costIn = ({ headers }: Response) => headers.get('x-farebox-cost-usd') ?? ''
const hasScript = (kind: string) => !kind.endsWith('without-script')

/** Whatever the browser frowns on, and every address that is asked for. */
function overhear(page: Page) {
  const frowned: string[] = []
  const asked: string[] = []
  page.on('console', (message) => frowned.push(message.text()))
  page.on('pageerror', (error) => frowned.push(String(error)))
  page.on('request', (request) => asked.push(`${request.url()} ${request.headers().referer ?? ''}`))
  return { frowned, asked }
}

for (const [kind, options] of KINDS)
  describe(`a person (${kind})`, () => {
    it('signs up, sees the first call appear, has one refused with its fix, rotates the key, and gives somebody without an account a ticket', async (test) => {
      const own = { baseURL: house.siteUrl, extraHTTPHeaders: { 'x-forwarded-for': freshAddress() }, ...options }
      const context = await browser.newContext(own)
      const page = await context.newPage()
      const hand = createHand(page, kind.endsWith('by-keyboard'))
      const { frowned } = overhear(page)
      const look = async (on: Page, name: string) => {
        await picture(on, `${name}-${kind}`)
        await fits(on)
        await isAccessible(on)
      }
      const see = async (title: string, name: string) => {
        await page.getByRole('heading', { level: 1, name: title }).waitFor()
        await look(page, name)
      }

      await signUp(page, hand, kind)
      await see('Make your first call', 'first-run')
      await hand.press('Make a key')
      const secret = (await page.locator('#secret').textContent()) ?? ''
      assert.match(secret, /^fb_test_/)
      await look(page, 'first-key')
      const called = await rerank(secret)
      assert.equal(called.status, 200, await called.text())
      if (hasScript(kind)) {
        await page.getByText('rerank is here').waitFor()
        assert.equal(await page.locator('[data-cost-charged]').textContent(), `$${costIn(called)}`)
        await look(page, 'first-call')
      }
      test.diagnostic(`${hand.clicks()} clicks, ${hand.seconds().toFixed(0)} s from the home page to the first call`)
      assert.ok(hand.clicks() <= MOST_CLICKS, `${hand.clicks()} clicks`)
      assert.ok(hand.seconds() <= MOST_SECONDS, `${hand.seconds()} s`)
      const path = new URL(page.url()).pathname.replace(/\/first-key$/, '')
      await page.goto(path)
      await see('Overview', 'overview')

      await page.goto(`${path}/keys`)
      await see('Keys', 'keys')
      await hand.follow('New key')
      await see('New key', 'key-new')
      await page
        .getByLabel('Name')
        .fill('nightly-jobs-for-the-quarterly-report-of-the-harbour-with-eighty-characters-in-it')
      await page.getByLabel('Amount, in USD').fill('0.000001')
      await page.getByLabel('May call').fill('rerank, models')
      await hand.press('Make the key')
      await page.getByText('Copy the key now').waitFor()
      await look(page, 'key-made')
      const bounded = (await page.locator('#secret').textContent()) ?? ''
      const refused = await rerank(bounded)
      assert.equal(refused.status, 402, await refused.text())
      await page.goto(`${path}/keys`)
      await hand.follow(/^nightly-jobs/)
      // Refusals are written once a minute.
      if (kind.startsWith('light')) {
        const isTold = async () => {
          await page.reload()
          return (await page.getByText('Raise the budget, or wait until its period begins again.').count()) === 1
        }
        await until(isTold, PATIENCE_MS, 'that the refusal is told')
      }
      await see('nightly-jobs', 'key')
      await hand.press('Rotate the key')
      await page.getByText('The old one works until').waitFor()

      await page.goto(`${path}/keys`)
      await hand.follow('Give a ticket')
      await see('Give a ticket', 'ticket-new')
      await page.getByLabel('Name').fill('Workshop at the harbour, table 4')
      await page.getByLabel('Amount in total, in USD').fill('0.01')
      await hand.press('Make the ticket')
      await page.getByText('Send this link now').waitFor()
      await look(page, 'ticket-made')
      const link = (await page.locator('#secret').textContent()) ?? ''

      const charged = await holderSpends(own, link, kind, look)
      await page.goto(`${path}/keys?kind=ticket`)
      await hand.follow(/^Workshop/)
      await see('Workshop', 'ticket')
      if (charged !== '') await page.locator(`data[value="${charged}"]`).first().waitFor()
      await hand.follow('End it')
      await see('End Workshop', 'ticket-end')
      await hand.press('End the ticket')
      await page.getByText('It has ended.').waitFor()
      await page.goto('/sessions')
      await hand.follow('Back to the console')
      assert.deepEqual(frowned, [])
      await context.close()
    })
  })

/** Somebody without an account, who has nothing but the link. Returns what they were charged. */
async function holderSpends(
  own: BrowserContextOptions,
  link: string,
  kind: string,
  look: (on: Page, name: string) => Promise<void>,
): Promise<string> {
  const secret = new URL(link).hash.slice(1)
  assert.match(secret, /^fb_test_/)
  const context = await browser.newContext(own)
  const page = await context.newPage()
  const { frowned, asked } = overhear(page)
  await page.goto(link)
  if (hasScript(kind)) {
    await page.getByRole('heading', { level: 1, name: 'Workshop at the harbour' }).waitFor()
    await look(page, 'holder')
    assert.match((await page.locator('#secret').textContent()) ?? '', new RegExp(secret))
  } else {
    await page.getByText('Without the script, ask for it yourself').waitFor()
    await look(page, 'holder')
    const told = await fetch(`${house.baseUrl}/v1/balance`, { headers: { authorization: `Bearer ${secret}` } })
    assert.equal(Object(Object(await told.json()).budget).left.usd, '0.010000000')
  }
  const called = await rerank(secret)
  assert.equal(called.status, 200, await called.text())
  const cost = costIn(called)
  if (hasScript(kind)) {
    await page.locator(`data[data-money="charged"][value="${cost}"]`).waitFor()
    await look(page, 'holder-spent')
    assert.equal(await page.evaluate('JSON.stringify(history.state) + document.referrer'), 'null')
  }
  for (const one of asked) assert.doesNotMatch(one.replace(link, ''), new RegExp(secret))
  assert.deepEqual(await context.cookies(), [])
  assert.deepEqual(frowned, [])
  await context.close()
  return cost
}
