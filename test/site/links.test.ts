import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freePort } from '../../harness/free-port.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { textOf } from './page-text.ts'
import { startShownSite } from './shown-site.ts'

const { url: databaseUrl } = await freshDatabase()
const at = `127.0.0.1:${await freePort()}`
// People can have accounts: pages that lead to how they get in lead somewhere.
const site = await startShownSite(databaseUrl, {
  FAREBOX_LISTEN_SITE: at,
  FAREBOX_HTTP_SITE_URL: `http://${at}`,
  FAREBOX_MAIL_URL: 'smtp://127.0.0.1:2525',
  FAREBOX_MAIL_FROM: 'no-reply@farebox.example',
})
after(site.stop)

/** Far more than there are: a crawl without an end is a defect of the site. */
const PAGES_MOST = 2_000

type Seen = { readonly status: number; readonly ids: ReadonlySet<string> }

/** Every page that links of pages lead to, from the first one on. What it says of each link is from where it was found. */
async function crawl(from: string) {
  const seen = new Map<string, Seen>()
  const links: { readonly on: string; readonly to: string; readonly id: string }[] = []
  const open = [from]
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue
    assert.ok(seen.size < PAGES_MOST, 'the site has no end')
    const response = await fetch(site.siteUrl + path, { redirect: 'manual' })
    const isPage = (response.headers.get('content-type') ?? '').startsWith('text/html')
    const body = await response.text()
    const page = isPage ? body : ''
    seen.set(path, {
      status: response.status,
      ids: new Set([...page.matchAll(/\sid="([^"]+)"/g)].map(([, id = '']) => textOf(id))),
    })
    for (const [, raw = ''] of page.matchAll(/\s(?:href|src|action)="([^"]*)"/g)) {
      const address = new URL(textOf(raw), site.siteUrl + path)
      if (address.origin !== site.siteUrl) continue
      // A form that is sent by POST is no link.
      const to = address.pathname + address.search
      if (to === '/theme') continue
      links.push({ on: path, to, id: decodeURIComponent(address.hash.slice(1)) })
      open.push(to)
    }
  }
  return { seen, links }
}

describe('links of the website', () => {
  it('all lead somewhere, to the very place that they name', async () => {
    const { seen, links } = await crawl('/')
    const fine = (status: number | undefined) => status === 200 || status === 303
    const dead = links.filter(({ to }) => !fine(seen.get(to)?.status))
    // Of each, one page that has it: what stands at the end of all pages is told once.
    const told = new Map(dead.map(({ on, to }) => [to, `${on} → ${to} ${seen.get(to)?.status}`]))
    assert.deepEqual([...told.values()], [])
    const nowhere = links.filter(
      ({ to, id }) => id !== '' && seen.get(to)?.status === 200 && !seen.get(to)?.ids.has(id),
    )
    assert.deepEqual([...new Set(nowhere.map(({ on, to, id }) => `${on} → ${to}#${id}`))], [])
    for (const { id } of catalogue.operations) {
      assert.ok(seen.has(`/catalogue/${id}`), id)
      assert.ok(seen.has(`/reference/${id}`), id)
    }
    for (const path of ['/models/sandbox/text', '/docs', '/proof', '/status', '/search', '/llms.txt', '/sign-in'])
      assert.ok(seen.has(path), path)
  })
})
