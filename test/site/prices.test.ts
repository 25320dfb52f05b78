import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isSoldByUnit } from '../../server/src/catalogue/operation.ts'
import { decimalText } from '../../server/src/kernel/rational.ts'
import { setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { readPriceBook } from '../../server/src/pricing/price-book.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { ask, ids, makeCustomer } from '../acceptance/installation.ts'
import { amountsIn, codeIn, rowsIn, textOf } from './page-text.ts'
import { startShownSite } from './shown-site.ts'

const { url: databaseUrl } = await freshDatabase()
const site = await startShownSite(databaseUrl)
after(site.stop)
const customer = await makeCustomer(site.pool)
const page = async (path: string) => {
  const response = await fetch(site.siteUrl + path)
  assert.equal(response.status, 200, path)
  return response.text()
}
const plain = (usd: string) => usd.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')

describe('prices on pages', () => {
  it('of every operation are those of the price book, in the list and on its own page', async () => {
    const rows = rowsIn(await page('/catalogue'))
    for (const operation of catalogue.operations) {
      const [, , price = '', unit = ''] = rows.find(([name]) => name === operation.id) ?? []
      const own = amountsIn(await page(`/catalogue/${operation.id}`))
      if (isSoldByUnit(operation)) {
        const { unitPrice } = operation.price
        const isByMillion = operation.price.unit === 'token'
        assert.equal(plain(price), decimalText(unitPrice, isByMillion ? 3 : 9), operation.id)
        assert.equal(unit, isByMillion ? 'million tokens' : operation.price.unit)
        assert.ok(own.includes(decimalText(unitPrice, 9)), operation.id)
      } else {
        assert.ok(['by model', 'Free'].includes(price), operation.id)
        assert.deepEqual(own, [])
      }
    }
  })

  it('of every model are those that /v1/models tells, in the list and on its own page', async () => {
    const { json } = await ask(site.url, customer.secret, '/v1/models')
    const models = Array.isArray(json.data) ? json.data : assert.fail('there is no list')
    const list = await page('/models')
    assert.equal([...list.matchAll(/<th scope="row(?:group)?"[^>]*><a href="\/models\//g)].length, models.length)
    for (const { id, pricing } of models) {
      const { per_million_tokens, per_image, per_second } = pricing
      const told = Object.values<string>(per_million_tokens ?? per_image ?? per_second).toSorted()
      const own = rowsIn(await page(`/models/${id}`)).filter(([, unit = '']) =>
        /^a (million|picture|second)/.test(unit),
      )
      assert.deepEqual(own.map(([, , usd = '']) => plain(usd)).toSorted(), told, id)
    }
    const text = rowsIn(list).find(([name]) => name === 'sandbox/text')
    assert.deepEqual(text?.slice(1, 5).map(plain), ['0.5', '2', '0.05', '0.625'])
  })

  it('follow a change within moments, and a history keeps what was before, as steps', async () => {
    await setPrice(site.pool, { operation: 'tag_detail', unitPrice: '0.00246' })
    await setModelPrice({ pool: site.pool }, { model: 'sandbox/echo', input: '0.75', output: '3.125' })
    const has = async (path: string, usd: string) => amountsIn(await page(path)).includes(usd)
    await until(() => has('/catalogue/tag_detail', '0.00246'), PATIENCE_MS, 'the price of the operation')
    await until(() => has('/models/sandbox/echo', '3.125'), PATIENCE_MS, 'the price of the model')
    const own = await page('/models/sandbox/echo')
    const versions = rowsIn(own).filter(([version = '']) => /^\d+$/.test(version))
    assert.deepEqual(
      versions.map(([version, , usd = '']) => [version, plain(usd)]),
      [
        ['2', '3.125'],
        ['1', '2'],
      ],
    )
    assert.match(own, /<path class="price" d="M0 [\d.]+H[\d.]+V[\d.]+H100"\/>/)
    assert.doesNotMatch(own, /are not in this table/)
  })

  it('of many versions say which are left out', async () => {
    const versions = Array.from({ length: 12 }, (_, at) => `${at + 4}.25`)
    for (const output of versions)
      await setModelPrice({ pool: site.pool }, { model: 'sandbox/openai-only', input: '0.75', output })
    const newest = versions.at(-1) ?? ''
    await until(
      async () => amountsIn(await page('/models/sandbox/openai-only')).includes(newest),
      PATIENCE_MS,
      'the newest price of the model',
    )
    const own = await page('/models/sandbox/openai-only')
    const shown = rowsIn(own).flatMap(([version = '']) => (/^\d+$/.test(version) ? [version] : []))
    assert.deepEqual(shown, ['13', '12', '11', '10', '9', '8', '7', '6', '5', '4'])
    assert.match(textOf(own), /Versions before 4 are not in this table\./)
  })

  it('have the history of every model, and keep what is known where nothing was told', async () => {
    const now = () => 0
    const whole = await readPriceBook(site.pool, catalogue, now)
    assert.deepEqual([...whole.histories.keys()].toSorted(), whole.models.map(({ id }) => id).toSorted())
    assert.equal(whole.histories.get('sandbox/openai-only')?.length, 13)
    const [[id = '', steps] = []] = whole.histories
    const again = await readPriceBook(site.pool, catalogue, now, new Map([[id, steps ?? []]]))
    assert.equal(again.histories.get(id), steps)
    assert.deepEqual(new Map([...again.histories].toSorted()), new Map([...whole.histories].toSorted()))
  })

  it('are of one state, though one is set while they are read', async () => {
    const setMeanwhile = { model: 'sandbox/slow', input: '9.75', output: '19.5' }
    const books = [
      await readPriceBook(poolThatChanges(setMeanwhile), catalogue, () => 0),
      await readPriceBook(site.pool, catalogue, () => 0),
    ]
    const told = books.map(({ models, histories }) => [
      Object(models.find(({ id }) => id === setMeanwhile.model)?.price).version,
      histories.get(setMeanwhile.model)?.[0]?.version,
    ])
    assert.deepEqual(told, [
      ['1', 1],
      ['2', 2],
    ])
  })
})

/** The installation's pool, in which a price is set right after the models have been read. */
function poolThatChanges(price: Parameters<typeof setModelPrice>[1]) {
  return new Proxy(site.pool, {
    get: (pool, name) => (name === 'connect' ? connect : Reflect.get(pool, name, pool)),
  })
  async function connect() {
    const client = await site.pool.connect()
    return {
      async query(text: string, values: unknown[]) {
        const result = await client.query(text, values)
        if (text.includes('from models where')) await setModelPrice({ pool: site.pool }, price)
        return result
      },
      release: (error?: Error) => client.release(error),
    }
  }
}

/** Numbers that look like chance and are the same in every run of a commit. */
function createChance(start: number) {
  let state = start >>> 0
  return (most: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * most)
  }
}

describe('the calculator', () => {
  const CASES = count({ full: 1_000, reduced: 60 })
  const WORDS = ['harbour', 'tram', '雪の中の狐', '🦊', 'the', '"quoted"', '<b>', '&amp;', '\\n', 'market.']
  const MODELS = [
    ...['sandbox/text', 'sandbox/echo', 'sandbox/openai-only', 'sandbox/embedding'],
    ...['sandbox/image', 'sandbox/image-tokens', 'sandbox/video'],
  ]
  const SIZES: Readonly<Record<string, readonly string[]>> = {
    'sandbox/image': ['auto/auto', '1024x1024/low', '1536x1024/high'],
    'sandbox/video': ['480P', '720P', '1080P'],
  }

  it('says what a quote says, of any model and any request', async () => {
    const chance = createChance(seed)
    const pick = <T>(list: readonly T[]) => list[chance(list.length)] as T
    for (let at = 0; at < CASES; at += 1) {
      const model = pick(MODELS)
      const text = Array.from({ length: 1 + chance(40) }, () => pick(WORDS)).join(' ')
      const query = new URLSearchParams({ text })
      if (model === 'sandbox/video') query.set('most', String(1 + chance(15)))
      else if (chance(3) > 0) query.set('most', String(1 + chance(64_000)))
      if (SIZES[model] !== undefined) query.set('size', pick(SIZES[model]))
      if (model.startsWith('sandbox/image')) query.set('count', String(1 + chance(4)))
      const shown = await page(`/models/${model}?${query}`)
      const [label, code] = [...codeIn(shown)].find(([name]) => name.startsWith('The request: ')) ?? []
      const operation = catalogue.find(label?.slice('The request: '.length) ?? '') ?? assert.fail(textOf(shown))
      const {
        status,
        json,
        text: told,
      } = await ask(site.url, customer.secret, operation.path, {
        method: 'POST',
        headers: { 'x-farebox-cost-mode': 'quote', 'x-farebox-async': 'enable' },
        body: JSON.stringify(JSON.parse(code ?? '')),
      })
      assert.equal(status, 200, told)
      const [expected, most] = amountsIn(shown.slice(shown.indexOf('What a quote would say')))
      const quoted = { expected: Object(json.expected).usd, most: Object(json.max).usd }
      assert.deepEqual({ expected, most }, quoted, `${model} ${query}`)
      assert.ok(textOf(shown).includes(String(json.assumption)))
    }
  })

  it('says why a call would be refused, in the words of the gateway', async () => {
    const shown = await page('/models/sandbox/text?text=Hello&most=64001')
    const { json } = await ask(site.url, customer.secret, '/v1/chat/completions', {
      body: { model: 'sandbox/text', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 64_001 },
    })
    const { message } = Object(json.error)
    assert.ok(textOf(shown).includes(message), message)
  })
})

describe('models that only test keys can call', () => {
  const listedIn = (list: string) =>
    [...list.matchAll(/<th scope="row(?:group)?"[^>]*><a href="\/models\/([^"]+)"/g)].map(([, id]) => id).toSorted()

  it('are listed as such while none is sold in live mode, and not at all once one is', async () => {
    for (const path of ['/models', '/models/sandbox/text', '/catalogue/chat_completions'])
      assert.match(textOf(await page(path)), /Test mode only/, path)
    assert.match(textOf(await page('/')), /can be tried here with test keys/)
    const all = listedIn(await page('/models'))
    const { rows } = await site.pool.query("select slot from model_routes where model = 'sandbox/openai-only'")
    await site.pool.query(
      `insert into upstreams (id, slot, mode, base_url, kind)
         select $1, slot, 'live', base_url, kind from upstreams where slot = $2 and mode = 'test'`,
      [ids.next(), rows[0].slot],
    )
    const live = await makeCustomer(site.pool, { key: { mode: 'live' } })
    await until(async () => !(await page('/models')).includes('Test mode only'), PATIENCE_MS, 'what is sold live')
    const { json } = await ask(site.url, live.secret, '/v1/models')
    const sold = (Array.isArray(json.data) ? json.data : []).map(({ id }) => id).toSorted()
    assert.deepEqual(listedIn(await page('/models')), sold)
    assert.ok(sold.includes('sandbox/openai-only') && sold.length < all.length, sold.join(' '))
    assert.match(textOf(await page('/')), new RegExp(`${sold.length} models are sold here`))
    const gone = all.find((id) => !sold.includes(id))
    assert.equal((await fetch(`${site.siteUrl}/models/${gone}`)).status, 404)
  })
})
