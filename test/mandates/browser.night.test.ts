import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { makePerson, startMcpHouse } from '../agents/mcp-house.ts'
import { createKeeper, SDKS, startCallback } from '../oauth/stock-clients.ts'
import { freshAddress } from '../people/site.ts'
import { PASSWORD } from '../people/visitor.ts'
import { trace } from './house.ts'

/** Stock clients and our own tools, from nothing but the URL, and a person with a browser that runs no scripts. */
const house = await startMcpHouse()
after(house.stop)
const { site, pool } = house
const browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible, looked } = createPageChecks(browser)
const PHONE = { width: 390, height: 844 }
const DESKTOP = { width: 1440, height: 1000 }

async function open(options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({
    ...{ javaScriptEnabled: false, baseURL: site.url, viewport: DESKTOP },
    ...{ extraHTTPHeaders: { 'x-forwarded-for': freshAddress() }, ...options },
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

async function signIn(page: Page, email: string): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Fills in the consent page and reads its sentence before allowing it. */
async function allow(page: Page, name: string, { amount, call }: { amount: string; call: string }): Promise<string> {
  await see(page, / asks for a budget$/, `consent-${name}`)
  await page.getByLabel('In total, at most').fill(amount)
  await page.getByLabel('Per call, at most').fill(call)
  // Every message of a client counts.
  await page.getByLabel('How often').fill('1000')
  await page.getByLabel('Money').selectOption('test')
  await page.getByRole('button', { name: /^Allow/ }).click()
  await see(page, / asks for a budget$/, `consent-again-${name}`)
  const said = (await page.locator('.grant__box').textContent()) ?? ''
  await page.getByRole('button', { name: `Allow up to $${amount}` }).click()
  await page.getByRole('heading', { name: 'Back in the program' }).waitFor()
  return said
}

const figures = (ticker: string) => ({
  name: 'use',
  arguments: { operation_id: 'financial_metrics_snapshot', arguments: { ticker }, max_price_usd: 1 },
})

describe('a stock client that knows a URL alone', () => {
  for (const sdk of SDKS)
    it(`MCP-4 AUTH-7 signs in, is given a mandate, uses tools, is refused with a link, raised, allowed once and ended, SDK ${sdk.name}`, async () => {
      const person = await makePerson(house)
      const giver = { ...person, visitor: undefined as never }
      const callback = await startCallback()
      const keeper = createKeeper(callback.url)
      const { mcpUrl } = house
      await assert.rejects(sdk.tools(mcpUrl, keeper), sdk.isRefusal)
      const { asked } = keeper.kept
      assert.equal(asked?.searchParams.get('resource'), mcpUrl)
      const page = await open()
      await page.goto(String(asked))
      await signIn(page, person.email)
      const said = await allow(page, sdk.name, { amount: '0.03', call: '0.02' })
      assert.match(
        said,
        /Stock client may spend up to \$0\.03 of .*test money on models, company figures and website visits/,
      )
      await sdk.finish(mcpUrl, keeper, await callback.called)
      assert.deepEqual(await sdk.tools(mcpUrl, keeper), [
        'search',
        'get_details',
        'list_categories',
        'use',
        'batch_use',
      ])
      // A token that is refused is renewed without anybody being asked.
      const first = keeper.kept.tokens
      keeper.kept.tokens = { ...first, access_token: 'fb_at_gone', token_type: 'Bearer' }
      keeper.kept.asked = undefined

      const use = async (ticker: string) => Object((await sdk.call(mcpUrl, keeper, figures(ticker))).structuredContent)
      for (let call = 0; call < 3; call += 1) assert.equal((await use('A')).cost_usd, '0.010000000')
      assert.equal(keeper.kept.asked, undefined)
      assert.notEqual(keeper.kept.tokens?.refresh_token, first?.refresh_token)
      const before = await trace(house, giver)
      const { error } = await use('A')
      assert.equal(error.code, 'budget_exceeded')
      await page.goto(error.mandate_url)
      await see(page, 'Stock client', `mandate-${sdk.name}`)
      assert.deepEqual(await trace(house, giver), before)

      await page.getByLabel('In total, at most').fill('0.50')
      await page.getByLabel('Per call').fill('0.005')
      await page.getByRole('button', { name: 'Review the change' }).click()
      await see(page, 'Stock client', `mandate-sentence-${sdk.name}`)
      await page.getByRole('button', { name: 'Change it' }).click()
      await page.getByText('The mandate is changed').waitFor()

      let refused = Object()
      await until(
        async () => {
          refused = (await use('B')).error ?? {}
          return refused.code === 'approval_required'
        },
        PATIENCE_MS,
        'the new limit for a call',
      )
      const unapproved = await trace(house, giver)
      await page.goto('/grants')
      await see(page, 'What you allow', `grants-waiting-${sdk.name}`)
      await page.goto(refused.approval_url)
      await see(page, 'Stock client asks to make one call', `approval-${sdk.name}`)
      assert.equal((await use('B')).error.code, 'approval_required')
      assert.deepEqual(await trace(house, giver), unapproved)
      await page.getByRole('button', { name: 'Allow once, up to $0.01' }).click()
      await see(page, 'The call is allowed', `approval-done-${sdk.name}`)
      assert.equal((await use('B')).cost_usd, '0.010000000', 'the same call succeeds')
      assert.equal((await use('B')).error.code, 'approval_required', 'once')

      await page.goto(error.mandate_url)
      await page.getByRole('button', { name: 'End the mandate' }).click()
      await page.getByRole('status').waitFor()
      await assert.rejects(use('A'), sdk.isRefusal)
      await page.context().close()
    })
})

describe('pages about mandates', () => {
  it('are accessible and fit, on a screen, on a phone and in the dark', async () => {
    const [, sdk] = SDKS
    assert.ok(sdk !== undefined)
    for (const [kind, options] of [
      ['desktop', {}],
      ['phone', { viewport: PHONE, isMobile: true }],
      ['dark', { colorScheme: 'dark' }],
      ['phone-dark', { viewport: PHONE, isMobile: true, colorScheme: 'dark' }],
    ] as const) {
      const person = await makePerson(house)
      const callback = await startCallback()
      const keeper = createKeeper(callback.url)
      await assert.rejects(sdk.tools(house.mcpUrl, keeper))
      const page = await open(options)
      await page.goto(String(keeper.kept.asked))
      await signIn(page, person.email)
      await see(page, / asks for a budget$/, `page-consent-${kind}`)
      await page.getByLabel('In total, at most').fill('much')
      await page.getByLabel('How often').fill('0')
      await page.getByRole('button', { name: /^Allow/ }).click()
      await see(page, / asks for a budget$/, `page-consent-wrong-${kind}`)
      await page.getByLabel('How often').fill('30')
      for (const name of [/^Models/, /^Company figures/, /^Website visits/])
        await page.getByRole('checkbox', { name }).uncheck()
      await page.getByText('Single operations or models').click()
      await page.getByLabel('Also allow these').fill('no_such_thing')
      await page.getByLabel('In total, at most').fill('5.00')
      await page.getByRole('button', { name: /^Allow/ }).click()
      await see(page, / asks for a budget$/, `page-consent-unknown-${kind}`)
      await page.getByLabel('Also allow these').fill('financial_metrics_snapshot, rerank')
      await allow(page, `named-${kind}`, { amount: '5.00', call: '0.05' })
      await sdk.finish(house.mcpUrl, keeper, await callback.called)
      for (let call = 0; call < 4; call += 1) await sdk.call(house.mcpUrl, keeper, figures('A'))
      const { rows } = await pool.query('select id from grants where client_name = $1 order by id desc limit 1', [
        'Stock client',
      ])
      const path = `/mandates/${rows[0]?.id}`
      await page.goto(path)
      await see(page, 'Stock client', `page-mandate-${kind}`)
      await page.getByLabel('In total, at most').fill('-1')
      await page.getByRole('button', { name: 'Review the change' }).click()
      await see(page, 'Stock client', `page-mandate-wrong-${kind}`)
      await page.goto(path)
      await page.getByRole('button', { name: 'Pause' }).click()
      await see(page, 'Stock client', `page-mandate-paused-${kind}`)
      await page.goto('/grants')
      await see(page, 'What you allow', `page-grants-${kind}`)
      await page.goto('/mandates/01a1e0c2-0000-7000-8000-000000000001')
      await see(page, 'There is no such mandate', `page-no-mandate-${kind}`)
      await page.goto('/approvals/01a1e0c2-0000-7000-8000-000000000001')
      await see(page, 'There is nothing to decide', `page-no-approval-${kind}`)
      await page.context().close()
    }
    recordProof('mandate-pages', 'pages looked at by axe', { pages: looked(), violations: 0 })
  })

  it('are shown in no frame of another page', async () => {
    const page = await open({ javaScriptEnabled: true })
    for (const path of ['/consent/nothing-that-is-waiting-here', '/mandates/x', '/approvals/x', '/grants']) {
      await page.route('http://evil.example/**', (route) =>
        route.fulfill({ contentType: 'text/html', body: `<iframe src="${site.url}${path}"></iframe>` }),
      )
      await page.goto('http://evil.example/')
      const [, frame] = page.frames()
      assert.equal(await frame?.locator('main').count(), 0, path)
      await page.unroute('http://evil.example/**')
    }
    await page.context().close()
  })
})
