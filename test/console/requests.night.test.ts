import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { call, ids, ask as send } from '../acceptance/installation.ts'
import { join, makeTeam } from '../account/house.ts'
import { makeBusy } from './busy.ts'
import { startConsole } from './console-house.ts'

/** Somebody looks for a call: in a browser with and without scripts, by mouse and by keyboard alone, with little and with much to see. */

const database = await freshDatabase()
const house = await startConsole(database.url)
after(house.stop)
const browser: Browser = await startChromium()
after(() => browser.close())
const { pool, siteUrl } = house
const { picture, fits, isAccessible } = createPageChecks(browser)

const KINDS = [
  ['light', { viewport: { width: 1440, height: 900 } }],
  ['dark', { viewport: { width: 1440, height: 900 }, colorScheme: 'dark' }],
  ['phone-light', { viewport: { width: 390, height: 844 } }],
  ['phone-dark', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
] as const satisfies readonly (readonly [string, BrowserContextOptions])[]

const CHAT = { model: 'sandbox/text', messages: [{ role: 'user', content: 'Which tram goes to the harbour?' }] }

/** A workspace with what can become of a call. */
async function makeWorkspace() {
  const team = await makeTeam(pool)
  const chat = (body: object, headers = {}) =>
    send(house.gateway.url, team.secret, '/v1/chat/completions', { body, headers })
  const charged = await chat(CHAT, { 'x-farebox-tags': 'team=search,run=42', 'x-farebox-end-user': 'alice' })
  const voided = await call(house.gateway.url, team.secret, 'rerank', 'sandbox:reset=before-headers')
  await call(house.gateway.url, team.secret, 'rerank')
  const open = ids.next()
  await pool.query(
    `insert into holds (id, account_id, credential_id, operation, amount, terms, allowances, token_groups, tokens_estimated, claims, begun_at, asked_model)
     values ($1, $2, $3, 'video_synthesis', 500000000, '', '{}', '{}', 0, false, clock_timestamp(), 'sandbox/video')`,
    [open, team.accountId, team.keyId],
  )
  await pool.query('update accounts set held = held + 500000000 where id = $1', [team.accountId])
  const isKept = async () =>
    (await pool.query('select from request_records where id = any ($1)', [[charged.id, voided.id]])).rowCount === 2
  await until(isKept, PATIENCE_MS, 'the records of the calls')
  return { ...team, path: `/console/${team.workspaceId}/test`, charged, voided, open }
}

async function openFor(workspaceId: string, options: BrowserContextOptions) {
  const { headers } = await join(pool, workspaceId)
  const context = await browser.newContext({ baseURL: siteUrl, ...options })
  const [name = '', value = ''] = (headers.cookie ?? '').split('=', 2)
  await context.addCookies([{ name, value, url: siteUrl }])
  const page = await context.newPage()
  const frowned: string[] = []
  page.on('console', (message) => frowned.push(message.text()))
  page.on('pageerror', (error) => frowned.push(String(error)))
  return { context, page, frowned }
}

async function see(page: Page, name: string): Promise<void> {
  await picture(page, name)
  await fits(page)
  await isAccessible(page)
}

const markupOf = async (row: Locator) => String(await row.evaluate((one) => Object(one).outerHTML))
const rowsOf = (page: Page) => page.locator('tbody[data-list] tr')

for (const [kind, options] of KINDS)
  describe(`requests (${kind})`, () => {
    it('are seen, empty and as they are, with one of each', async () => {
      const { path, workspaceId, charged, voided, open } = await makeWorkspace()
      const { context, page, frowned } = await openFor(workspaceId, options)
      await page.goto(`${path.replace('/test', '/live')}/requests`)
      await page.getByText('Requests stand here as they end').waitFor()
      await see(page, `requests-empty-${kind}`)
      await page.goto(`${path}/requests`)
      await see(page, `requests-${kind}`)
      await page.goto(`${path}/requests/${charged.id}`)
      await see(page, `request-charged-${kind}`)
      await page.goto(`${path}/requests/${voided.id}`)
      await see(page, `request-voided-${kind}`)
      await page.goto(`${path}/requests/${open}`)
      await see(page, `request-open-${kind}`)
      await page.goto(path)
      await see(page, `overview-few-${kind}`)
      assert.deepEqual(frowned, [])
      await context.close()
    })

    it('are seen where there is much', async () => {
      const { path, charged, ...team } = await makeWorkspace()
      await makeBusy(pool, { ...team, callId: charged.id, requests: 3_000 })
      const { context, page, frowned } = await openFor(team.workspaceId, options)
      for (const [name, at] of [
        ['requests-busy', '/requests'],
        ['requests-filtered', '/requests?tag=team%3Dsearch&outcome=posted&min_cost_usd=0.0001'],
        ['overview-busy', ''],
        ['overview-by-key', '?by=key'],
      ]) {
        await page.goto(path + at)
        await see(page, `${name}-${kind}`)
      }
      assert.deepEqual(frowned, [])
      await context.close()
    })
  })

describe('requests', () => {
  it('appear as they end, as the page itself would show them, and wait while somebody reads', async () => {
    const { path, workspaceId, secret } = await makeWorkspace()
    const { context, page, frowned } = await openFor(workspaceId, {})
    await page.goto(`${path}/requests`)
    await page.getByRole('status').filter({ hasText: 'Following' }).waitFor()
    const { id } = await call(house.gateway.url, secret, 'rerank')
    const row = page.locator(`tr[data-id="${id}"]`)
    await row.waitFor()
    const live = (await markupOf(row)).replace(' class="is-new"', '')
    const sums = await page.locator('.grid__foot').innerHTML()
    await page.reload()
    assert.equal(await markupOf(row), live)
    assert.equal(await page.locator('.grid__foot').innerHTML(), sums)

    await page.getByRole('button', { name: 'Pause' }).click()
    const before = await rowsOf(page).count()
    await call(house.gateway.url, secret, 'rerank')
    await page.getByRole('button', { name: 'Show 1 new' }).waitFor()
    assert.equal(await rowsOf(page).count(), before)
    await page.getByRole('button', { name: 'Show 1 new' }).click()
    await until(async () => (await rowsOf(page).count()) === before + 1, PATIENCE_MS, 'the call that waited')
    assert.deepEqual(frowned, [])
    await context.close()
  })

  for (const javaScriptEnabled of [true, false])
    it(`are found by filters ${javaScriptEnabled ? 'without a reload' : 'without a script'}, and by their id`, async () => {
      const { path, workspaceId, voided, charged } = await makeWorkspace()
      const { context, page, frowned } = await openFor(workspaceId, { javaScriptEnabled })
      let documents = 0
      page.on('request', (request) => {
        if (request.isNavigationRequest()) documents += 1
      })
      await page.goto(`${path}/requests`)
      const shows = async (count: number, url: RegExp) => {
        const isShown = async () => url.test(page.url()) && (await rowsOf(page).count()) === count
        await until(isShown, PATIENCE_MS, `${count} rows at ${url}`)
      }
      await shows(4, /\/requests$/)
      await page.getByRole('link', { name: 'Not charged' }).click()
      await shows(1, /outcome=voided/)
      assert.match((await rowsOf(page).first().textContent()) ?? '', /Not charged/)
      await page.getByRole('link', { name: 'Held', exact: true }).click()
      await shows(1, /outcome=open/)
      await page.getByRole('link', { name: 'All', exact: true }).click()
      await page.getByLabel('Operation').selectOption('rerank')
      if (!javaScriptEnabled) await page.getByRole('button', { name: 'Filter' }).click()
      await shows(2, /operation=rerank/)
      await page.getByText('More filters').click()
      await page.getByLabel('Tag').fill('team=nobody')
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByText('No request is like that').waitFor()
      if (javaScriptEnabled) {
        assert.equal(documents, 1)
        await page.goBack()
        await shows(2, /operation=rerank/)
        await page.getByLabel('Cost from').fill('cheap')
        await page.getByRole('button', { name: 'Filter' }).click()
        await page.getByRole('alert').getByText('min_cost_usd').waitFor()
      }
      await page.goto(`${path}/requests`)
      await page.getByLabel('Request id').fill(charged.id)
      await page.getByRole('button', { name: 'Filter' }).click()
      await page.getByRole('heading', { level: 1, name: 'chat_completions' }).waitFor()
      await page.goto(`${path}/requests?id=${voided.id}`)
      await page.getByText('Not charged', { exact: true }).first().waitFor()
      assert.deepEqual(
        frowned.filter((text) => !text.includes('400')),
        [],
      )
      await context.close()
    })

  it('are reached by keyboard alone', async () => {
    const { path, workspaceId, charged } = await makeWorkspace()
    const { context, page } = await openFor(workspaceId, {})
    await page.goto(`${path}/requests`)
    const focused = () => page.evaluate<string>('document.activeElement?.getAttribute("href") ?? ""')
    for (let at = 0; at < 60 && !(await focused()).endsWith(charged.id); at += 1) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'chat_completions' }).waitFor()
    await context.close()
  })

  it('that run become what they have come to', async () => {
    const { path, workspaceId, accountId, keyId, open } = await makeWorkspace()
    const { context, page } = await openFor(workspaceId, {})
    await page.goto(`${path}/requests/${open}`)
    await page.getByRole('heading', { level: 2, name: 'It runs' }).waitFor()
    await pool.query('delete from holds where id = $1', [open])
    await pool.query(
      `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
       values ($1, $2, $3, 'video_synthesis', 'posted', 500000000, 400000000, 0, 0, 400000000, 0, true, false, 0, 0, 0, 0, '{}', clock_timestamp(), clock_timestamp())`,
      [open, accountId, keyId],
    )
    await page.getByRole('heading', { level: 2, name: 'What it cost' }).waitFor()
    await context.close()
  })
})
