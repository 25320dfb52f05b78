import type { Browser, Page } from 'playwright-core'
import type { Site } from '../people/site.ts'
import { freshAddress } from '../people/site.ts'
import { PASSWORD } from '../people/visitor.ts'

/** Somebody at a browser without scripts, who lets programs in and takes that back. */
export type PersonAtBrowser = {
  readonly page: Page
  /** Goes where a program sent them, signs in where that is asked, and decides; what the consent page said. */
  readonly letIn: (authorizeUrl: URL, choice?: Choice) => Promise<string>
  /** Takes back what a program was allowed, by the name that it has on the page. */
  readonly takeBack: (name: string) => Promise<void>
  readonly leave: () => Promise<void>
}

export type Choice = {
  readonly amount?: string
  /** The most for a call. */
  readonly call?: string
  /** Categories that are ticked beside the usual ones. */
  readonly also?: readonly string[]
  /** Looks at the page as it is when the person decides. */
  readonly looking?: () => Promise<void>
  readonly mode?: 'live' | 'test'
  readonly decision?: 'Allow' | 'Don’t allow'
}

export async function openBrowserOf(
  browser: Browser,
  site: Pick<Site, 'url'>,
  email: string,
): Promise<PersonAtBrowser> {
  const context = await browser.newContext({
    ...{ javaScriptEnabled: false, baseURL: site.url, extraHTTPHeaders: { 'x-forwarded-for': freshAddress() } },
  })
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  return {
    page,
    async letIn(authorizeUrl, choice = {}) {
      const { amount = '1.00', call = '0.04', mode = 'test', decision = 'Allow', also = ['Social'] } = choice
      const { looking = async () => {} } = choice
      await page.goto(authorizeUrl.href)
      if (new URL(page.url()).pathname === '/sign-in') {
        await page.getByLabel('Email').fill(email)
        await page.getByLabel('Password').fill(PASSWORD)
        await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      }
      await page.getByRole('heading', { level: 1, name: / asks for a budget$/ }).waitFor()
      const said = (await page.textContent('main')) ?? ''
      await page.getByLabel('In total, at most').fill(amount)
      await page.getByLabel('Per call, at most').fill(call)
      await page.getByLabel('Money').selectOption(mode)
      for (const name of also) await page.getByRole('checkbox', { name }).check()
      await page.getByRole('button', { name: decision === 'Allow' ? /^Allow/ : decision }).click()
      // What was changed is said again before it counts.
      if (decision === 'Allow') {
        await page.getByText('Read the sentence again').waitFor()
        await looking()
        await page.getByRole('button', { name: /^Allow/ }).click()
      }
      // The answer is a page of the program itself.
      await page.waitForURL((url) => url.origin !== site.url)
      return said
    },
    async takeBack(name) {
      await page.goto('/grants')
      await page.getByRole('button', { name: `Revoke access of ${name}` }).click()
      await page.getByRole('status').waitFor()
    },
    leave: () => context.close(),
  }
}
