import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, it } from 'node:test'
import { startChromium } from './chromium.ts'
import { createPageChecks } from './page-checks.ts'

const GOOD = '<html lang="en"><title>A page</title><main><h1>A page</h1><p class="words">Words</p></main></html>'

/** Pages with a mistake each, and what is said of it. */
const WRONG: Record<string, readonly [markup: string, rule: RegExp]> = {
  language: [GOOD.replace(' lang="en"', ''), /html-has-lang/],
  title: [GOOD.replace('<title>A page</title>', ''), /document-title/],
  label: [GOOD.replace('</main>', '<input name="email"></main>'), /label: <input name="email">/],
  style: [
    GOOD.replace('<title>', '<link rel="stylesheet" href="/faint.css"><title>'),
    /color-contrast: <p class="words">/,
  ],
  invisible: [
    GOOD.replace('<title>', '<link rel="stylesheet" href="/invisible.css"><title>'),
    /color-contrast: <p class="words">/,
  ],
  dark: [
    GOOD.replace('<title>', '<link rel="stylesheet" href="/dark.css"><title>'),
    /color-contrast: <p class="words">/,
  ],
}

const SHEETS: Record<string, string> = {
  '/invisible.css': '.words { color: #111; background: #111 }',
  '/faint.css': '.words { color: #ddd; background: #fff }',
  '/dark.css': '@media (prefers-color-scheme: dark) { .words { color: #333; background: #000 } }',
}

const server = createServer(({ url = '' }, response) => {
  const sheet = SHEETS[url]
  response.setHeader('content-type', sheet === undefined ? 'text/html' : 'text/css')
  response.end(sheet ?? `<!doctype html>${WRONG[url.slice(1)]?.[0] ?? GOOD}`)
})
await once(server.listen(0, '127.0.0.1'), 'listening')
after(() => server.close())
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const browser = await startChromium()
after(() => browser.close())

describe('a page without scripts', () => {
  for (const colorScheme of ['dark', 'light'] as const)
    it(`is looked at as it is, whatever was looked at before (${colorScheme})`, async () => {
      const { isAccessible, looked } = createPageChecks(browser)
      const context = await browser.newContext({ javaScriptEnabled: false, baseURL: url, colorScheme })
      const page = await context.newPage()
      for (const [name, [, rule]] of Object.entries(WRONG)) {
        await page.goto(`/${name}`)
        if (name === 'dark' && colorScheme === 'light') await isAccessible(page)
        else await assert.rejects(isAccessible(page), rule, name)
        await page.goto('/good')
        await isAccessible(page)
      }
      assert.equal(looked(), colorScheme === 'light' ? 7 : 6)
      await context.close()
    })
})
