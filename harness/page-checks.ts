import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import axe from 'axe-core'
import type { Browser, Page } from 'playwright-core'

/** Where pictures of every page go, for whoever wants to look at them. */
const PICTURES = process.env.HARNESS_PICTURES

export type PageChecks = ReturnType<typeof createPageChecks>

/** What every page of ours is held against. */
export function createPageChecks(browser: Browser) {
  let looked = 0

  return {
    async picture(page: Page, name: string): Promise<void> {
      if (PICTURES === undefined) return
      mkdirSync(PICTURES, { recursive: true })
      await page.screenshot({ path: path.join(PICTURES, `${name}.png`), fullPage: true })
    },

    /** That everything is to be seen without scrolling sideways. */
    async fits(page: Page): Promise<void> {
      // As text: it runs in the browser, of which this program knows nothing.
      const [content, window] = await page.evaluate<readonly [number, number]>(
        '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
      )
      assert.ok(content <= window, `${content} px in ${window} px`)
    },

    /** That whoever can not see, or point, gets along too. */
    async isAccessible(page: Page): Promise<void> {
      const context = await browser.newContext({ colorScheme: await schemeOf(page) })
      const probe = await context.newPage()
      // Without scripts on the page itself, a copy of it is looked at, under the same address and so with the same parts.
      await probe.route(
        (at) => at.pathname === '/axe',
        async (route) => route.fulfill({ contentType: 'text/html; charset=utf-8', body: await page.content() }),
      )
      await probe.goto(new URL('/axe', page.url()).href)
      await probe.addScriptTag({ content: axe.source })
      const { violations } = await probe.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
        'axe.run()',
      )
      await context.close()
      assert.deepEqual(
        violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`)),
        [],
      )
      looked += 1
    },

    /** How many pages were looked at for that. */
    looked: () => looked,
  }
}

async function schemeOf(page: Page): Promise<'dark' | 'light'> {
  return (await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")) ? 'dark' : 'light'
}
