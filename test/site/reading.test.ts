import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { ROOT } from '../../harness/root.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { FAULTS } from '../../server/src/kernel/fault.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { GUIDES } from '../../server/src/site/guides/list.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { SHOWS_ALL } from './shown-site.ts'

const postgres = await startPostgres()
after(() => postgres.remove())
await migrate({ url: new Secret(postgres.url()), log: silentLog })
const gateway = await startGateway({
  databaseUrl: postgres.url(),
  env: { FAREBOX_LOG_LEVEL: 'silent', ...SHOWS_ALL },
})
after(() => gateway.stop())
const site = gateway.siteUrl

async function read(at: string, init: RequestInit = {}) {
  const response = await fetch(site + at, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}

/** fetch sends a Host of its own. */
async function readAs(host: string, url: string): Promise<string> {
  const [response] = await once(get(url, { headers: { host } }), 'response')
  return text(response)
}

const names = GUIDES.flatMap(({ guides }) => guides.map(({ name }) => name))
const linksIn = (text: string) => [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, href = '']) => href)

describe('the guides', () => {
  it('are pages of docs/, and the same bytes as Markdown', async () => {
    for (const name of names) {
      const page = await read(`/docs/${name}`)
      assert.equal(page.status, 200, name)
      assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'/)
      const markdown = await read(`/docs/${name}.md`)
      assert.match(markdown.headers.get('content-type') ?? '', /^text\/markdown/)
      assert.equal(markdown.text, readFileSync(path.join(ROOT, `docs/${name}.md`), 'utf8'))
    }
    assert.ok(names.length > 25)
  })

  it('lead nowhere that is not there, to no anchor that is not there, and show their drawings', async () => {
    const pages = new Map<string, string>()
    const bodyOf = async (at: string) => {
      const known = pages.get(at) ?? (await read(at)).text
      pages.set(at, known)
      return known
    }
    for (const name of names) {
      const own = `/docs/${name}`
      for (const href of linksIn(await bodyOf(own)).filter((one) => one.startsWith('#') || one.startsWith('/docs'))) {
        const [at = '', anchor] = href.split('#')
        const target = await bodyOf(at === '' ? own : at)
        assert.doesNotMatch(target, /class="fault__code"/, `${name}: ${href}`)
        if (anchor !== undefined) assert.ok(target.includes(`id="${anchor}"`), `${name}: ${href}`)
      }
    }
    const drawing = await read('/docs/performance/overhead.svg')
    assert.equal(drawing.headers.get('content-type'), 'image/svg+xml')
  })

  it('tell every code of the table of faults, with its sentence', async () => {
    const { text } = await read('/docs/errors.md')
    for (const [code, { text: sentence }] of Object.entries(FAULTS)) {
      assert.ok(text.includes(`### ${code}\n`), code)
      assert.ok(text.includes(sentence.replaceAll('<', '\\<')), code)
    }
  })
})

describe('what programs ask a website for', () => {
  it('is llms.txt with every guide as Markdown, robots.txt, and no sitemap where nobody said what the site is called', async () => {
    const { text: list, headers } = await read('/llms.txt')
    assert.match(headers.get('content-type') ?? '', /^text\/plain/)
    for (const name of names) assert.ok(list.includes(`(/docs/${name}.md)`), name)
    assert.match((await read('/robots.txt')).text, /^User-agent: \*\nDisallow: \/search\n/)
    assert.equal((await read('/sitemap.xml')).status, 404)
  })

  it('is a sitemap of whole addresses where it is known what the site is called', async () => {
    const known = await startGateway({
      databaseUrl: postgres.url(),
      env: {
        FAREBOX_LOG_LEVEL: 'silent',
        ...SHOWS_ALL,
        FAREBOX_ROLES: 'site',
        FAREBOX_HTTP_SITE_URL: 'https://farebox.example',
      },
    })
    try {
      const map = await readAs('farebox.example', `${known.siteUrl}/sitemap.xml`)
      for (const name of names) assert.ok(map.includes(`<loc>https://farebox.example/docs/${name}</loc>`), name)
      assert.match(
        await readAs('farebox.example', `${known.siteUrl}/robots.txt`),
        /^Sitemap: https:\/\/farebox\.example\/sitemap\.xml$/m,
      )
    } finally {
      await known.stop()
    }
  })
})

describe('the search', () => {
  it('finds guides by their headings, operations and errors, best first', async () => {
    const found = async (q: string) => linksIn((await read(`/search?q=${encodeURIComponent(q)}`)).text)
    const first = (hrefs: readonly string[], kind: string) =>
      hrefs.find((href) => href.startsWith(kind) && href !== kind)
    assert.equal(first(await found('rerank'), '/catalogue/'), '/catalogue/rerank')
    assert.equal(first(await found('cost_cap_exceeded'), '/docs/errors#'), '/docs/errors#cost_cap_exceeded')
    assert.match(first(await found('before a call: the hold'), '/docs/pricing') ?? '', /#before-a-call-the-hold$/)
  })

  it('shows of a long part where its words are', async () => {
    const { text } = await read('/search?q=settles')
    assert.match(text, /<p>… [^<]{0,220}<mark>settl/)
  })

  it('takes whatever is typed, in bounds, and gives it back as text', async () => {
    const { status, text } = await read(`/search?q=${encodeURIComponent('<script>alert(1)</script>'.repeat(50))}`)
    assert.equal(status, 200)
    assert.ok(!text.includes('<script'))
    assert.ok(text.length < 50_000)
    for (const q of ['', '%20', '()[]*', '\u{1f600}'])
      assert.equal((await read(`/search?q=${encodeURIComponent(q)}`)).status, 200)
  })
})

describe('a query', () => {
  it('that is cut within a character is answered, and what is left of it is replaced', async () => {
    const cut = (most: number, beside = '') => encodeURIComponent(`${beside.padEnd(most - 1, 'x')}\u{1f600}`)
    // Words of several kinds, so that search links to each of them; none of them is an operation.
    for (const at of [
      `/search?q=${cut(100, 'model call hold ')}`,
      `/catalogue?q=${cut(100)}`,
      `/models?q=${cut(100)}`,
    ]) {
      const { status, text } = await read(at)
      assert.equal(status, 200, at)
      assert.match(text, /value="[^"]*x\ufffd"/, at)
    }
    assert.match((await read(`/search?q=${cut(100, 'model call hold ')}`)).text, /aria-label="Kinds"/)
    assert.match((await read(`/catalogue?q=${cut(100)}`)).text, /%EF%BF%BD/)
  })
})

describe('the proof', () => {
  it('shows every file with its date, and goals missed beside goals met', async () => {
    const { text } = await read('/proof')
    const { recorded_at: at } = JSON.parse(readFileSync(path.join(ROOT, 'docs/proof/ledger-races.json'), 'utf8'))
    assert.ok(text.includes(`${String(at).slice(11, 16)} UTC`))
    assert.match(text, /id="f-money"/)
    const bench = JSON.parse(readFileSync(path.join(ROOT, 'docs/proof/bench-overhead.json'), 'utf8'))
    const { value } = bench.metrics.find(({ name }: { name: string }) => name === 'cpu_ratio_bare')
    assert.ok(text.includes(`${Number(value).toLocaleString('en', { maximumSignificantDigits: 4 })} ×`))
    assert.match(text, /Missed<\/span>/)
    assert.match(text, /Met<\/span>/)
  })
})

describe('what is not there', () => {
  it('is a page of the website with where to go on, and JSON for who wants that', async () => {
    const page = await read('/nothing/such', { headers: { accept: 'text/html' } })
    assert.equal(page.status, 404)
    assert.match(page.text, /There is no such page/)
    assert.match(page.text, /Nothing was charged/)
    assert.match(page.text, /class="fb-foot"/)
    assert.equal(page.headers.get('cache-control'), 'no-store')
    const json = await read('/nothing/such', { headers: { accept: 'application/json' } })
    assert.equal(JSON.parse(json.text).code, 'route_not_found')
  })
})

describe('the status', () => {
  it('is that of all processes, and goes on and says so while PostgreSQL is down', async () => {
    const isFine = async () => /<h1>All \d+ parts answer<\/h1>/.test((await read('/status')).text)
    await until(isFine, PATIENCE_MS, 'reports')
    const fine = await read('/status')
    assert.equal(fine.status, 200)
    assert.equal(fine.headers.get('cache-control'), 'no-store')
    assert.match(
      fine.text,
      /as (the one process that runs says of itself|all \d+ processes that run say of themselves)/,
    )
    assert.match(fine.text, /Every process has reached the ledger all the time since/)
    await postgres.stop()
    await until(
      async () => (await read('/status')).text.includes('The ledger does not answer'),
      PATIENCE_MS,
      'the outage',
    )
    const down = await read('/status')
    assert.equal(down.status, 200)
    assert.match(down.text, /Not known<\/span>/)
    for (const at of ['/docs', '/docs/pricing', '/proof', '/search?q=hold', '/llms.txt'])
      assert.equal((await read(at)).status, 200, at)
    await postgres.start()
    await until(async () => (await read('/readyz')).status === 200, PATIENCE_MS, 'readiness')
    await until(isFine, PATIENCE_MS, 'reports again')
  })
})
