import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { startChromium } from '../../harness/chromium.ts'
import { createPageChecks } from '../../harness/page-checks.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createPasswords } from '../../server/src/people/passwords.ts'
import { codeAt } from './authenticator.ts'
import { BESIDE, freshAddress, linkIn, type Site, startSite } from './site.ts'
import { startSiteHere } from './site-here.ts'
import { createVisitor, freshEmail, PASSWORD, signUp } from './visitor.ts'

/** How people get in, in a browser without scripts. */
const PROOF = 'people-browser'
const PHONE = { width: 360, height: 740 }

const database = await freshDatabase()
const site = await startSite(database.url)
after(site.stop)
const browser: Browser = await startChromium()
after(() => browser.close())
const { picture, fits, isAccessible, looked } = createPageChecks(browser)

type Visit = {
  readonly page: Page
  /** Looks at the page that is shown: its title, its picture, that it fits and is accessible. */
  readonly see: (title: string, name: string) => Promise<void>
  readonly leave: () => Promise<void>
}

/** A browser of its own for somebody, which notes all that a careful visitor would frown at. */
async function visit(kind: string, options: BrowserContextOptions = {}, at: Pick<Site, 'url'> = site): Promise<Visit> {
  const context = await browser.newContext({
    javaScriptEnabled: false,
    baseURL: at.url,
    extraHTTPHeaders: { 'x-forwarded-for': freshAddress() },
    ...options,
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const frowned: string[] = []
  page.on('console', (message) => {
    // That a form was answered with 400 is ours to say, and Chromium's to repeat.
    if (!/^Failed to load resource: the server responded with a status of/.test(message.text()))
      frowned.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => frowned.push(`error: ${error.message}`))
  page.on('requestfailed', (request) => {
    // A browser that leaves a page gives up what it still loads there.
    const reason = request.failure()?.errorText
    if (reason !== 'net::ERR_ABORTED') frowned.push(`failed: ${request.url()} ${reason}`)
  })
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== at.url) frowned.push(`elsewhere: ${request.url()}`)
    const { referer = '' } = request.headers()
    if (referer !== '' && referer !== `${at.url}/`) frowned.push(`referrer: ${referer}`)
  })
  return {
    page,
    async see(title, name) {
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      await picture(page, `${name}-${kind}`)
      assert.match(await page.title(), / · Farebox$/)
      await fits(page)
      await isAccessible(page)
    },
    async leave() {
      assert.deepEqual(frowned, [])
      await context.close()
    },
  }
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const alertIn = (page: Page) => page.getByRole('alert').textContent()

/** Who is in arrives in the console, and goes on to what is their own. */
async function toAccount(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1, name: 'Make your first call' }).waitFor()
  await page.goto('/sessions')
}

async function signInAs(page: Page, email: string, password = PASSWORD): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await press(page, 'Sign in')
}

const fromHere = () => ({ address: freshAddress(), network: freshAddress(), agent: '' })
const pathOf = (link: string) => new URL(link).pathname

const DESKTOP = { width: 1440, height: 900 }
/** The gate looks at the first, which has least room and the other colours; a proof at all. */
const KINDS = [
  ['phone-dark', { viewport: PHONE, colorScheme: 'dark' }],
  ['desktop', { viewport: DESKTOP }],
  ['phone', { viewport: PHONE }],
  ['dark', { viewport: DESKTOP, colorScheme: 'dark' }],
] as const

for (const [kind, options] of KINDS.slice(0, count({ full: KINDS.length, reduced: 1 })))
  describe(`a person (${kind})`, () => {
    const email = freshEmail(kind)

    it('signs up, opens the link in the mail, and is in, with a workspace and credit', async () => {
      const { page, see, leave } = await visit(kind, options)
      await page.goto('/sign-in')
      await see('Sign in', 'sign-in')
      await page.getByRole('link', { name: 'Create an account' }).click()
      await see('Create an account', 'sign-up')
      await page.getByLabel('Your name').fill('Mira Halloran')
      await page.getByLabel('Email').fill('mira@harbour')
      await page.getByLabel('Password').fill('too short')
      await press(page, 'Create the account')
      await see('Create an account', 'sign-up-wrong')
      assert.match((await alertIn(page)) ?? '', /Two things have to be corrected.*Email.*Password/s)
      await page.getByText('It has 9 characters and needs at least 12.').waitFor()
      await page.getByText('There is no domain after the @.').waitFor()
      assert.equal(await page.getByLabel('Your name').inputValue(), 'Mira Halloran')
      assert.equal(await page.getByLabel('Password').inputValue(), '')
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill(PASSWORD)
      await press(page, 'Create the account')
      await see('Check your mail', 'verify')
      assert.match((await page.getByRole('main').textContent()) ?? '', new RegExp(email))

      await press(page, 'Send it again')
      await see('Check your mail', 'verify-too-soon')
      assert.match((await alertIn(page)) ?? '', /Wait a moment/)

      await page.goto(pathOf(linkIn(await site.mailTo(email), /^\/verify\//)))
      await see('Verify your address', 'verify-link')
      await press(page, 'This is my address')
      await toAccount(page)
      await see('Your account', 'account-new')
      await page.goto('/')
      await see('Nobody spends more than they have.', 'home-signed-in')
      await page.goto('/sign-out')
      await press(page, 'Sign out')
      await see('Sign in', 'sign-in-again')
      await page.getByLabel('Email').fill(email)
      await page.getByLabel('Password').fill('not my password')
      await press(page, 'Sign in')
      await see('Sign in', 'sign-in-wrong')
      assert.match((await alertIn(page)) ?? '', /Email or password is wrong/)
      await signInAs(page, email)
      await toAccount(page)
      await see('Your account', 'account')
      await page.getByText('Mira Halloran’s workspace').or(page.getByText("Mira Halloran's workspace")).waitFor()
      const { rows } = await site.pool.query(
        `select sum(remaining)::text as credit from promotions join workspaces on live_account_id = account_id
         join members on workspace_id = workspaces.id where email = $1`,
        [email],
      )
      assert.equal(rows[0].credit, '2000000000')
      await leave()
    })

    it('has forgotten the password, and chooses another one', async () => {
      const { page, see, leave } = await visit(kind, options)
      await page.goto('/sign-in')
      await page.getByRole('link', { name: 'Forgot your password?' }).click()
      await see('Forgotten password', 'reset')
      await page.getByLabel('Email').fill(email)
      await press(page, 'Send the link')
      await see('Check your mail', 'reset-sent')
      const { length } = await site.sandbox.mail(email)
      const path = pathOf(linkIn(await site.mailTo(email, Math.max(2, length)), /^\/reset\//))
      await page.goto(path)
      await see('Choose a new password', 'reset-new')
      await page.getByLabel('New password').fill('short')
      await press(page, 'Set the password and sign in')
      await see('Choose a new password', 'reset-new-wrong')
      await page.getByLabel('New password').fill(PASSWORD)
      await press(page, 'Set the password and sign in')
      await toAccount(page)
      await see('Your account', 'account-after-reset')
      await page.goto(path)
      await see('This link no longer works', 'link-over')
      await leave()
    })

    it('turns the second factor on, signs in with it, and with a recovery code', async () => {
      const { page, see, leave } = await visit(kind, options)
      await page.goto('/sign-in')
      await signInAs(page, email)
      await toAccount(page)
      await page.getByRole('link', { name: 'Turn it on' }).click()
      await see('Second factor', 'factor-off')
      await press(page, 'Turn it on')
      await see('Turn the second factor on', 'factor-begin')
      const key = ((await page.locator('.scan__key').textContent()) ?? '').replaceAll(' ', '')
      await page.getByLabel('Code').fill('000 000')
      await press(page, 'Turn it on')
      await see('Turn the second factor on', 'factor-begin-wrong')
      assert.equal(((await page.locator('.scan__key').textContent()) ?? '').replaceAll(' ', ''), key)
      const shown = codeAt(key)
      await page.getByLabel('Code').fill(`${shown.slice(0, 3)} ${shown.slice(3)}`)
      await press(page, 'Turn it on')
      await see('The second factor is on', 'recovery-codes')
      const codes = await page.locator('.codes code').allTextContents()
      assert.equal(codes.length, 10)
      await page.getByRole('link', { name: 'I have saved them' }).click()
      await see('Your account', 'account-factor')
      await page.getByRole('link', { name: 'Sign out' }).click()
      await see('Sign out?', 'sign-out')
      await press(page, 'Sign out')
      await see('Sign in', 'sign-in-signed-out')

      await signInAs(page, email)
      await see('Your second factor', 'second-factor')
      await page.getByLabel('Code').fill(codeAt(key, 1))
      await press(page, 'Continue')
      await toAccount(page)
      await see('Your account', 'account-signed-in')
      await page.goto('/sign-out')
      await press(page, 'Sign out')
      await signInAs(page, email)
      await page.getByLabel('Code').fill('123456')
      await press(page, 'Continue')
      await see('Your second factor', 'second-factor-wrong')
      await page.getByRole('link', { name: 'Use a recovery code' }).click()
      await page.getByLabel('Recovery code').fill('AAAAA-AAAAA')
      await press(page, 'Continue')
      await see('Use a recovery code', 'recovery')
      await page.getByLabel('Recovery code').fill(codes[0] ?? '')
      await press(page, 'Continue')
      await toAccount(page)
      await see('Your account', 'account-recovered')
      await page.getByRole('link', { name: 'Turn it off' }).click()
      await see('Second factor', 'factor-on')
      await page.getByLabel('Code').fill(codes[1] ?? '')
      await press(page, 'Turn it off')
      await see('Your account', 'account-factor-off')
      await leave()
    })

    it('is invited: joins one workspace, declines another', async () => {
      const guest = await signUp(site, { email: freshEmail('an-address-that-is-rather-long-for-a-phone') })
      const owner = await signUp(site, { name: 'Jo Larsen' })
      const { rows } = await site.pool.query(
        'select p.id, workspace_id from people p join members m on m.person_id = p.id where p.email = $1',
        [owner],
      )
      const [{ id, workspace_id: workspaceId }] = rows
      await site.pool.query("update workspaces set name = 'Harbour Labs' where id = $1", [workspaceId])
      const second = await site.people.createWorkspace(id, 'Another One', fromHere())
      const { page, see, leave } = await visit(kind, options)

      await site.people.invite(id, workspaceId, { email: guest, role: 'developer' }, fromHere())
      const path = pathOf(linkIn(await site.mailTo(guest, 2), /^\/invitations\//))
      await page.goto(path)
      await see('Join Harbour Labs', 'invitation-stranger')
      await page.getByRole('link', { name: 'Sign in' }).click()
      await signInAs(page, email)
      await see('Join Harbour Labs', 'invitation-another')
      await page.getByRole('main').getByRole('link', { name: 'Sign out' }).click()
      await press(page, 'Sign out')
      await page.goto(path)
      await page.getByRole('link', { name: 'Sign in' }).click()
      await signInAs(page, guest)
      await see('Join Harbour Labs', 'invitation')
      await press(page, `Join as ${guest}`)
      await toAccount(page)
      await see('Your account', 'account-joined')

      await site.people.invite(id, second.id, { email: guest, role: 'billing' }, fromHere())
      await page.goto(pathOf(linkIn(await site.mailTo(guest, 3), /^\/invitations\//)))
      await see('Join Another One', 'invitation-billing')
      await press(page, 'Decline')
      await see('You have declined', 'declined')

      await page.goto('/sessions')
      await page.getByRole('button', { name: 'Leave Harbour Labs' }).click()
      await see('Your account', 'account-left')
      assert.equal(await page.getByText('Harbour Labs').count(), 0)
      await leave()
    })

    it('sees where it is signed in, signs out there, and everywhere', async () => {
      const own = await signUp(site)
      const here = await visit(kind, options)
      await here.page.goto('/sign-in')
      await signInAs(here.page, own)
      const there = await visit(kind, options)
      const third = await visit(kind, options)
      for (const { page } of [there, third]) {
        await page.goto('/sign-in')
        await signInAs(page, own)
        await page.getByRole('heading', { name: 'Make your first call' }).waitFor()
      }
      await here.page.goto('/sessions')
      await here.see('Your account', 'account')
      assert.equal(await here.page.getByRole('button', { name: /^Sign out Chrome on Linux/ }).count(), 2)
      await here.page
        .getByRole('button', { name: /^Sign out Chrome on Linux/ })
        .first()
        .click()
      await here.see('Your account', 'account-ended')
      await here.page.getByRole('link', { name: 'Change' }).click()
      await here.see('Change your password', 'password')
      await here.page.getByLabel('Current password').fill('not my password')
      await here.page.getByLabel('New password').fill('another few words')
      await press(here.page, 'Change it')
      await here.see('Change your password', 'password-wrong')
      await here.page.goto('/sessions')
      await press(here.page, 'Sign out everywhere')
      await here.see('Sign in', 'sign-in-everywhere')
      for (const { page } of [here, there, third]) {
        await page.goto('/sessions')
        await page.getByRole('heading', { name: 'Sign in' }).waitFor()
      }
      for (const one of [here, there, third]) await one.leave()
    })

    it('meets a form that is out of date, and a page that is not there', async () => {
      const { page, see, leave } = await visit(kind, options)
      await page.goto('/sign-in')
      await page.context().clearCookies()
      await signInAs(page, email)
      await see('This is not allowed', 'form-refused')
      await page.goto('/nothing')
      await see('There is no such page', 'not-found')
      await leave()
    })
  })

describe('a process that hashes as many passwords as it can', () => {
  it('shows the form again, and says when to come back', async () => {
    const held = Promise.withResolvers<Buffer>()
    let isBusy = false
    const passwords = createPasswords({
      ...{ atOnce: 1, waiting: 0 },
      derive() {
        isBusy = true
        return held.promise
      },
    })
    const busy = await startSiteHere(database.url, passwords)
    try {
      const first = createVisitor(busy).fill('/sign-in', { email: freshEmail(), password: PASSWORD })
      await until(() => isBusy, PATIENCE_MS, 'that a password is hashed')
      for (const [kind, options] of [
        ['desktop', {}],
        ['phone', { viewport: PHONE, colorScheme: 'dark' }],
      ] as const) {
        const { page, see, leave } = await visit(kind, options, busy)
        await page.goto('/sign-in')
        await signInAs(page, 'mira@harbour.example')
        await page.getByRole('alert').waitFor()
        await see('Sign in', 'busy')
        assert.match((await alertIn(page)) ?? '', /The service is busy.*Try again in 2 seconds/)
        assert.equal(await page.getByLabel('Email').inputValue(), 'mira@harbour.example')
        await leave()
      }
      held.resolve(Buffer.alloc(32))
      assert.equal((await first).status, 400)
    } finally {
      held.resolve(Buffer.alloc(32))
      await busy.stop()
    }
  })
})

describe('closed sign-up', () => {
  it('says so, and what an operator has to set', async () => {
    for (const [name, env] of [
      ['closed', { FAREBOX_PEOPLE_SIGN_UP: 'closed' }],
      ['not-set-up', { FAREBOX_MAIL_URL: '' }],
    ] as const) {
      const other = await startSite(database.url, { ...BESIDE, ...env })
      try {
        for (const [kind, options] of [
          ['desktop', {}],
          ['phone', { viewport: PHONE, colorScheme: 'dark' }],
        ] as const) {
          const { page, see, leave } = await visit(kind, options, other)
          await page.goto('/sign-up')
          await see('Sign-up is closed', name)
          await leave()
        }
      } finally {
        await other.stop()
      }
    }
    recordProof(PROOF, 'accessibility (axe-core, all rules)', { pages: looked(), violations: 0 })
  })
})
