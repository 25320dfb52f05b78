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
  const probes = new Map<string, Promise<Page>>()

  /**
   * Where copies of pages are looked at, since pages themselves run no scripts: one for each site, under its address and so with the same
   * parts, and for each scheme of colours. It is kept, because what looks at a page is large and slow to start.
   */
  async function probeFor(page: Page): Promise<Page> {
    const colorScheme = await schemeOf(page)
    const url = new URL('/axe', page.url()).href
    const key = `${colorScheme} ${url}`
    const probe = probes.get(key) ?? openProbe(browser, url, colorScheme)
    probes.set(key, probe)
    return probe
  }

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
      const probe = await probeFor(page)
      // As text: it runs in the browser, of which this program knows nothing.
      await probe.evaluate(`(${SHOW})(${JSON.stringify(await page.content())})`)
      const { violations, incomplete } = await probe.evaluate<Judged>('axe.run()')
      const invisible = incomplete.map(({ id, nodes }) => ({ id, nodes: nodes.filter(isInvisible) }))
      assert.deepEqual(
        [...violations, ...invisible].flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`)),
        [],
      )
      looked += 1
    },

    /** How many pages were looked at for that. */
    looked: () => looked,
  }
}

type JudgedNode = { readonly html: string; readonly any: readonly { readonly data: unknown }[] }
type Judged = Readonly<
  Record<'violations' | 'incomplete', readonly { readonly id: string; readonly nodes: readonly JudgedNode[] }[]>
>

/** Text in the very colour of what is behind it: axe takes it for hidden on purpose, and only asks somebody to look. */
function isInvisible({ any }: JudgedNode): boolean {
  return any.some(({ data }) => Object(data).messageKey === 'equalRatio')
}

/** Puts a page in the place of the one that is shown, and waits until it has its style, without slow changes from the one before. */
const SHOW = `async (markup) => {
  const { documentElement } = new DOMParser().parseFromString(markup, 'text/html')
  document.documentElement.replaceWith(document.adoptNode(documentElement))
  const sheets = [...document.querySelectorAll('link[rel=stylesheet]')]
  await Promise.all(sheets.map((sheet) => sheet.sheet ?? new Promise((resolve, reject) => Object.assign(sheet, { onload: resolve, onerror: reject }))))
  for (const change of document.getAnimations()) if (change instanceof CSSTransition) change.finish()
}`

async function openProbe(browser: Browser, url: string, colorScheme: 'dark' | 'light'): Promise<Page> {
  const context = await browser.newContext({ colorScheme })
  const probe = await context.newPage()
  await probe.route(
    (at) => at.href === url,
    (route) => route.fulfill({ contentType: 'text/html; charset=utf-8', body: '<!doctype html>' }),
  )
  await probe.goto(url)
  await probe.addScriptTag({ content: axe.source })
  return probe
}

async function schemeOf(page: Page): Promise<'dark' | 'light'> {
  return (await page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")) ? 'dark' : 'light'
}
