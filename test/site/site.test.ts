import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { FIGURES } from '../../server/src/site/home/figures.ts'
import { RECORDED_CALL } from '../../server/src/site/home/recorded-call.ts'
import { ask, makeCustomer } from '../acceptance/installation.ts'
import { codeIn, textOf } from './page-text.ts'
import { startShownSite } from './shown-site.ts'

const { url: databaseUrl } = await freshDatabase()
const site = await startShownSite(databaseUrl)
after(site.stop)
const get = (at: string, headers: Record<string, string> = {}) =>
  fetch(site.siteUrl + at, { headers, redirect: 'manual' })

/** Of all that a browser asks for to show a page, as it was sent. */
async function transferredOf(at: string): Promise<{ readonly bytes: number; readonly page: string }> {
  const headers = { 'accept-encoding': 'gzip' }
  const sent = async (address: string) => {
    const response = await fetch(address, { headers })
    assert.equal(response.status, 200, address)
    const body = Buffer.from(await response.arrayBuffer())
    // The length that was sent: fetch has unpacked what it gives.
    return { body, length: Number(response.headers.get('content-length') ?? body.length) }
  }
  const first = await sent(site.siteUrl + at)
  const page = first.body.toString('utf8')
  const parts = [...page.matchAll(/<(?:link|img|script)[^>]*(?:href|src)="(\/assets\/[^"]+)"/g)].map(
    ([, one = '']) => one,
  )
  const styles = await Promise.all(parts.map((one) => sent(site.siteUrl + one)))
  const fonts = styles.flatMap(({ body }) =>
    [...body.toString('latin1').matchAll(/url\("(\/assets\/[^"]+woff2)"\)/g)].map(([, one = '']) => one),
  )
  const own = await Promise.all(
    [...new Set(fonts)].filter((one) => !parts.includes(one)).map((one) => sent(site.siteUrl + one)),
  )
  return { bytes: [first, ...styles, ...own].reduce((sum, { length }) => sum + length, 0), page }
}

describe('the website', () => {
  it('sends its home page with all that it shows in less than 100 KB, and needs no script for it', async () => {
    const { bytes, page } = await transferredOf('/')
    assert.ok(bytes > 50_000 && bytes < 100_000, `${bytes} bytes`)
    assert.doesNotMatch(page, /<script|\son\w+=|style="/)
  })

  it('lets nothing run and nothing be asked for elsewhere', async () => {
    for (const at of ['/', '/catalogue', '/models', '/reference']) {
      const policy = (await get(at)).headers.get('content-security-policy') ?? ''
      assert.match(policy, /^default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; form-action 'self'/)
      assert.doesNotMatch(policy, /script-src|unsafe/)
    }
  })

  it('lets a page be kept, by a tag, and says that it differs by cookie and by packing', async () => {
    const first = await get('/catalogue')
    assert.match(first.headers.get('cache-control') ?? '', /^public, max-age=\d+$/)
    assert.equal(first.headers.get('vary'), 'cookie, accept-encoding')
    const tag = first.headers.get('etag') ?? ''
    const again = await get('/catalogue', { 'if-none-match': tag })
    assert.deepEqual([again.status, await again.text()], [304, ''])
    const dark = await get('/catalogue', { 'if-none-match': tag, cookie: 'fb_theme=dark' })
    assert.equal(dark.status, 200)
  })

  it('lets no page be kept that a query was asked with: there are as many as spellings', async () => {
    for (const at of ['/catalogue?q=reel', '/models?q=sandbox', '/models/sandbox/text?text=Hello', '/llms.txt?q=a']) {
      const { status, headers } = await get(at, { 'accept-encoding': 'gzip' })
      assert.equal(status, 200, at)
      assert.equal(headers.get('cache-control'), 'no-store', at)
      assert.deepEqual([headers.get('etag'), headers.get('content-encoding')], [null, null], at)
    }
  })

  it('keeps the chosen colours in a cookie, leads back to a page of its own, and to no other', async () => {
    const choose = (fields: Record<string, string>) =>
      fetch(`${site.siteUrl}/theme`, { method: 'POST', redirect: 'manual', body: new URLSearchParams(fields) })
    const chosen = await choose({ theme: 'dark', back: '/models' })
    assert.deepEqual([chosen.status, chosen.headers.get('location')], [303, '/models'])
    const [cookie = ''] = (chosen.headers.get('set-cookie') ?? '').split(';')
    const page = await (await get('/models', { cookie })).text()
    assert.match(page, /<html lang="en" data-theme="dark">/)
    assert.match(page, /value="dark" aria-pressed="true"/)
    assert.match(page, /value="system" aria-pressed="false"/)
    for (const back of ['//elsewhere.example', '/\\elsewhere.example', 'https://elsewhere.example/', '/a\r\nb'])
      assert.equal((await choose({ theme: 'light', back })).headers.get('location'), '/', back)
    assert.equal((await choose({ theme: 'pink', back: '/' })).status, 400)
  })

  it('has pages for what it knows alone, whatever is asked for', async () => {
    for (const at of ['/catalogue/none', '/models/none', '/reference/none', '/catalogue/%00', '/models/constructor'])
      assert.equal((await get(at)).status, 404, at)
    const strange = await (await get(`/models?q=${encodeURIComponent('"><script>alert(1)</script>')}`)).text()
    assert.doesNotMatch(strange, /<script/)
    assert.match(strange, /&lt;script&gt;/)
  })

  it('renders the reference from the very bytes of the contract: all of its operations and their parameters', async () => {
    const { contentHash } = Object(await (await get('/api/contracts/version')).json())
    const contract = Object(await (await get(`/api/contracts/source?hash=${contentHash}&bundled=1`)).json())
    const index = await (await get('/reference')).text()
    assert.ok(index.includes(contentHash))
    for (const methods of Object.values(Object(contract.paths)))
      for (const operation of Object.values(Object(methods))) {
        const { operationId, parameters = [] } = Object(operation)
        assert.ok(index.includes(`href="/reference/${operationId}"`), operationId)
        const page = await (await get(`/reference/${operationId}`)).text()
        for (const { name } of parameters) assert.ok(page.includes(`<code>${name}</code>`), `${operationId} ${name}`)
      }
  })
})

describe('the page of an operation', () => {
  it('explains every member that it takes, and shows what it answers', async () => {
    for (const id of [
      'rerank',
      'chat_completions',
      'messages',
      'embeddings',
      'tweet_quotes',
      'financial_metrics_snapshot',
    ]) {
      const page = await (await get(`/catalogue/${id}`)).text()
      const [, taken = ''] = /id="fields">(.*?)<\/section>/s.exec(page) ?? []
      const [top = ''] = /<ul class="fb-tree">.*<\/ul>/s.exec(taken) ?? []
      const unexplained = [...topItems(top)].filter((item) => !item.includes('<p>'))
      assert.deepEqual(unexplained, [], id)
      assert.match(
        codeIn(page).get('The answer') ?? '',
        /^(X-Farebox-Price-Version: .+\n)?(X-Farebox-Cost-Usd: \d+\.\d{9}\n)?\n?\{/,
        id,
      )
      const [, answer = ''] = /id="answer">What an answer has(.*?)<\/section>/s.exec(page) ?? []
      assert.match(answer, /200<\/span>.*<ul class="fb-tree">/s, id)
    }
  })
})

/** The lines of a tree that hang on nothing. */
function* topItems(tree: string): Generator<string> {
  let depth = 0
  for (const [token, line = ''] of tree.matchAll(/<ul[^>]*>|<\/ul>|<li>(<div>.*?<\/div>)/gs)) {
    if (token.startsWith('<ul')) depth += 1
    else if (token === '</ul>') depth -= 1
    else if (depth === 1) yield line
  }
}

describe('pages with prices', () => {
  it('say that those are published estimates', async () => {
    for (const at of ['/', '/catalogue', '/catalogue/rerank', '/models', '/models/sandbox/text', '/docs/catalogue'])
      assert.match(await (await get(at)).text(), /published estimate/, at)
  })
})

describe('the page of a model', () => {
  it('says beside what a quote would say why more is held for than the text has', async () => {
    const page = await (await get('/models/sandbox/text?text=Hi')).text()
    assert.match(
      page,
      /a token for each byte, and up to 300 for what providers put around a prompt.*#bounds-and-estimates/,
    )
  })
})

describe('addresses that people and browsers guess', () => {
  it('lead to the guides and to the icon', async () => {
    const guides = await get('/guides')
    assert.deepEqual([guides.status, guides.headers.get('location')], [303, '/docs'])
    const icon = await get('/favicon.ico')
    assert.equal(icon.status, 303)
    const shown = await get(icon.headers.get('location') ?? '')
    assert.deepEqual([shown.status, shown.headers.get('content-type')], [200, 'image/svg+xml'])
  })
})

describe('the pages of proofs', () => {
  it('lay out the table of the home page and the files by rules of their own', async () => {
    const [home, proof] = await Promise.all(['/', '/proof'].map(async (at) => (await get(at)).text()))
    assert.match(home ?? '', /<table class="[^"]*\bproofs"/)
    assert.doesNotMatch(proof ?? '', /class="[^"]*\bproofs\b/)
  })
})

describe('the list of models', () => {
  it('ends with those that fail on purpose, as for tests', async () => {
    const page = await (await get('/models')).text()
    const at = page.indexOf('<h2 id="t-conversation">For tests')
    const [answering, tests] = [page.slice(0, at), page.slice(at)]
    const names = (text: string) =>
      [...text.matchAll(/<a href="\/models\/(sandbox\/[^"#]+)">/g)].map(([, name]) => name)
    assert.ok(names(answering).includes('sandbox/echo') && names(answering).includes('sandbox/video'))
    for (const failing of ['sandbox/429', 'sandbox/hang', 'sandbox/garbage-frame']) {
      assert.ok(!names(answering).includes(failing), failing)
      assert.ok(names(tests).includes(failing), failing)
    }
  })
})

describe('the home page', () => {
  it('shows a call that was made, with what it held and cost', async () => {
    const customer = await makeCustomer(site.pool)
    const { path: at, body, maxCostUsd, tokens, chargedUsd, heldUsd, backUsd, costs, priceVersion } = RECORDED_CALL
    const quote = await ask(site.url, customer.secret, at, { body, headers: { 'x-farebox-cost-mode': 'quote' } })
    assert.equal(Object(quote.json.max).usd, heldUsd)
    const made = await ask(site.url, customer.secret, at, { body, headers: { 'x-farebox-max-cost-usd': maxCostUsd } })
    assert.equal(made.costUsd, chargedUsd)
    assert.equal(made.headers.get('x-farebox-price-version'), priceVersion)
    const { prompt_tokens, completion_tokens } = Object(made.json.usage)
    assert.deepEqual({ input: prompt_tokens, output: completion_tokens }, { ...tokens })
    const nanos = (usd: string) => BigInt(usd.replace('.', ''))
    assert.equal(nanos(costs.input) + nanos(costs.output), nanos(chargedUsd))
    assert.equal(nanos(heldUsd) - nanos(chargedUsd), nanos(backUsd))
    const shown = await (await get('/')).text()
    const request = codeIn(shown).get('The request') ?? ''
    const sent = JSON.parse(/-d '(.*)'$/s.exec(request)?.[1] ?? '')
    assert.deepEqual(sent, body)
    assert.ok(textOf(shown).includes(`Cost-Usd: ${chargedUsd}`))
  })

  it('has figures that proofs hold, not older than it says', () => {
    for (const { proof, at, value, on } of FIGURES) {
      const file = JSON.parse(readFileSync(path.join(ROOT, 'docs/proof', `${proof}.json`), 'utf8'))
      assert.equal(
        at.reduce((found, name) => Object(found)[name], file.shown),
        value,
        proof,
      )
      assert.ok(file.recorded_at.slice(0, 10) >= on, proof)
    }
    const races = JSON.parse(readFileSync(path.join(ROOT, 'docs/proof/ledger-races.json'), 'utf8'))
    const shown = races.shown['an allowance of 5 USD and 1,000 calls of 0.10 USD: exactly 50 are begun']
    const outcomes = Object.values<{ outcomes: object }>(shown.last_round).map((round) => round.outcomes)
    assert.deepEqual([shown.processes, shown.rounds_each], [3, 15])
    for (const outcome of outcomes) assert.deepEqual(outcome, { begun: 50, allowance_spent: 950 })
    const cuts = JSON.parse(readFileSync(path.join(ROOT, 'docs/proof/stream-cuts.json'), 'utf8'))
    assert.ok(cuts.shown['what is left afterwards'].calls >= 3_000)
  })
})

describe('what is packed', () => {
  it('is the page that is sent plain', async () => {
    const plain = await (await get('/reference', { 'accept-encoding': 'identity' })).text()
    const { default: http } = await import('node:http')
    const packed = await new Promise<Buffer>((resolve, reject) => {
      http
        .get(`${site.siteUrl}/reference`, { headers: { 'accept-encoding': 'gzip' } }, (response) => {
          assert.equal(response.headers['content-encoding'], 'gzip')
          response.toArray().then((pieces) => resolve(Buffer.concat(pieces)), reject)
        })
        .on('error', reject)
    })
    assert.equal(gunzipSync(packed).toString('utf8'), plain)
    assert.ok(packed.length * 3 < plain.length)
  })
})
