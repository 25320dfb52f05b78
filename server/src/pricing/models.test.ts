import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { judge } from '../../../harness/figures.ts'
import { startPostgres } from '../../../harness/postgres.ts'
import {
  CONVERSATION_PROTOCOLS,
  EMBEDDING_MODEL,
  IMAGE_MODEL,
  IMAGE_TOKENS_MODEL,
  OPENAI_ONLY_MODEL,
  SANDBOX_MODELS,
  SANDBOX_PRICE,
  seedModel,
  seedModels,
  UNPRICED_MODEL,
  VIDEO_MODEL,
} from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { catalogue } from '../catalogue/catalogue.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { NANOS_PER_USD, perMillion } from '../kernel/money.ts'
import { decimal, multiply, rational } from '../kernel/rational.ts'
import { Secret } from '../kernel/secret.ts'
import { PLAIN_PROFILE } from '../protocols/route-profile.ts'
import { createChangeFeed } from '../storage/change-feed.ts'
import { migrate } from '../storage/migrate.ts'
import { createPools } from '../storage/pools.ts'
import { silentLog } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { removeUpstream, saveUpstream } from '../upstreams/configure.ts'
import { removeModel, removeRoute, saveModel, saveRoute, setModelPrice } from './configure-models.ts'
import { createModels, type Model, priceOfModel } from './models.ts'

const PROOF = 'models'

const { url } = await freshDatabase()
/** One whose tables let in what they should not. */
const loose = await freshDatabase()
const ids = createIds({ clock: systemClock })

function connect(databaseUrl: string) {
  const pools = createPools({ url: new Secret(databaseUrl), log: silentLog })
  after(() => pools.close())
  return pools.rest
}
const pool = connect(url)
const loosePool = connect(loose.url)

/** Models as one process sees them. */
async function startProcess(own = pool, databaseUrl = url) {
  const metrics = createMetrics()
  const feed = createChangeFeed({ url: new Secret(databaseUrl), log: silentLog, clock: systemClock, metrics })
  const models = createModels({ pool: own, feed, clock: systemClock, metrics, catalogue })
  feed.start()
  after(() => feed.close())
  await until(() => feed.lagMs() < 1_000, PATIENCE_MS)
  const loads = async () =>
    (await metrics.cacheLoads.get()).values.find(({ labels }) => labels.cache === 'models')?.value ?? 0
  return { ...models, loads }
}

const idsOf = (models: readonly { readonly id: string }[]) => models.map(({ id }) => id)
let names = 0
const perPicture = (usd: string) => multiply(decimal(usd), rational(NANOS_PER_USD))
const nextName = () => `maker/model-${names++}`

function refusesPrice(model: Model | undefined): void {
  assert.ok(model !== undefined)
  assert.throws(
    () => priceOfModel(model),
    (fault) => fault instanceof Fault && fault.code === 'invalid_billing_configuration',
  )
}

describe('a model', () => {
  it('takes long input where its context window reaches beyond its steps', async () => {
    const { find } = await startProcess()
    for (const [tokens, isSold] of [
      [7_999, true],
      [8_000, false],
    ] as const) {
      const id = nextName()
      await saveModel({ pool }, { id, contextWindow: 8_000, outputCap: 500, outputMost: 2_000 })
      const classes = { above: [{ tokens, rates: { input: '6', output: '6' } }] }
      await setModelPrice({ pool }, { model: id, input: '3', output: '3', classes })
      assert.equal((await find(id))?.limits.sold?.needs.has('long_context'), isSold)
    }
  })

  it('is found by its name, with its limits, its newest price for a token and its routes', async () => {
    const id = nextName()
    await saveModel(
      { pool },
      {
        id,
        displayName: 'A model',
        contextWindow: 8_000,
        outputCap: 500,
        outputMost: 2_000,
        partTokens: { image: 85, file: 3_000 },
        tokenizer: 'o200k',
      },
    )
    await setModelPrice({ pool }, { model: id, input: '9', output: '9', providerInput: '0.4', providerOutput: '1.6' })
    await setModelPrice({ pool }, { model: id, input: '0.5', output: '2', cacheRead: '0.05' })
    const named = { outputLimit: 'max_tokens', unknown: 'pass', reasoning: 'apart', abort: 'stops' } as const
    const profile = { ...PLAIN_PROFILE, ...named }
    const second = await saveRoute({ pool, ids }, { model: id, slot: 'b', protocol: 'anthropic', priority: 2, profile })
    const first = await saveRoute(
      { pool, ids },
      { model: id, slot: 'a', protocol: 'openai', upstreamModel: 'theirs', weight: 3 },
    )
    await saveRoute({ pool, ids }, { model: id, slot: 'c', protocol: 'openai', enabled: false })
    const { find } = await startProcess()
    const model = await find(id)
    assert.ok(model !== undefined)
    const { createdAt, price, ...rest } = model
    const route = { priority: 0, weight: 1, profile: PLAIN_PROFILE }
    assert.ok(Math.abs(createdAt.getTime() - Date.now()) < 60_000)
    assert.deepEqual(rest, {
      id,
      displayName: 'A model',
      ownedBy: 'maker',
      limits: { contextWindow: 8_000, outputCap: 500, outputMost: 2_000, partTokens: { image: 85, file: 3_000 } },
      tokenizer: 'o200k',
      routes: [
        { ...route, id: first, slot: 'a', protocol: 'openai', upstreamModel: 'theirs', weight: 3 },
        { ...route, id: second, slot: 'b', protocol: 'anthropic', upstreamModel: id, priority: 2, profile },
      ],
    })
    const input = { published: perMillion('0.5'), providerCost: perMillion('0.4') }
    assert.deepEqual(price, {
      version: '2',
      images: null,
      videos: null,
      rates: {
        input,
        output: { published: perMillion('2'), providerCost: perMillion('1.6') },
        cacheRead: { published: perMillion('0.05'), providerCost: perMillion('0.4') },
        cacheWrite: input,
      },
    })
    assert.equal(priceOfModel(model), price)
  })

  it('has a price for each size and quality of a picture, where it sells them by the piece', async () => {
    const id = nextName()
    await seedModel(pool, { id, price: null })
    const images = { '1024x1024/high': '0.167', 'auto/auto': '0' }
    await setModelPrice({ pool }, { model: id, images: { 'auto/auto': '9' }, providerImages: { 'auto/auto': '0.01' } })
    await setModelPrice({ pool }, { model: id, images })
    const { find, list } = await startProcess()
    const model = await find(id)
    assert.ok(model !== undefined)
    const price = priceOfModel(model)
    assert.equal(price.version, '2')
    assert.deepEqual(
      price.images,
      new Map([
        ['auto/auto', { published: perPicture('0'), providerCost: perPicture('0.01') }],
        ['1024x1024/high', { published: perPicture('0.167'), providerCost: null }],
      ]),
    )
    assert.ok(idsOf(await list()).includes(id))
    await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
    await until(async () => Object((await find(id))?.price).images === null, PATIENCE_MS)
  })

  for (const [what, images] of [
    ['that is negative', { 'auto/auto': '-1' }],
    ['that is no decimal', { 'auto/auto': '1', '1024x1024/high': '1e3' }],
    ['that is a number', { 'auto/auto': 1 }],
    ['in a list', ['1']],
  ] as const)
    it(`is refused where a picture has a price ${what}: neither nothing nor the price before stands in for it`, async () => {
      const id = nextName()
      await seedModel(loosePool, { id })
      await loosePool.query('alter table model_prices drop constraint if exists images_are_readable')
      await loosePool.query(
        'insert into model_prices (model, version, input, output, images) values ($1, 2, 0, 0, $2)',
        [id, JSON.stringify(images)],
      )
      const { find, list } = await startProcess(loosePool, loose.url)
      refusesPrice(await find(id))
      assert.ok(!idsOf(await list()).includes(id))
    })

  it('says that it is off, and is not found where it is unknown or has a name that none can have', async () => {
    const id = nextName()
    await seedModel(pool, { id })
    await saveModel({ pool }, { id, enabled: false })
    const { find, loads } = await startProcess()
    assert.deepEqual([(await find(id))?.id, (await find(id))?.isOff], [id, true])
    assert.equal(await find('nobody/has-this'), undefined)
    const before = await loads()
    for (const name of ['', ' ', 'a b', '-a', 'a\n', 'ä', "a'", 'a'.repeat(201), 'x\u0000'])
      assert.equal(await find(name), undefined)
    assert.equal(await loads(), before)
  })

  it('is read once for all who ask at once, and then from memory; so is that there is none', async () => {
    const id = nextName()
    await seedModel(pool, { id })
    const { find, loads } = await startProcess()
    await Promise.all(Array.from({ length: 100 }, () => find(id)))
    for (let i = 0; i < 100; i += 1) await find('unknown/one')
    assert.equal(await loads(), 2)
  })

  it('remembers few of the names that nobody has, so that guesses fill no memory', async () => {
    const { find, loads } = await startProcess()
    for (let i = 0; i < 1_500; i += 1) await find(`guess/${i}`)
    const before = await loads()
    await find('guess/1499')
    assert.equal(await loads(), before)
    await find('guess/0')
    assert.equal(await loads(), before + 1)
  })

  it('is as it is now, on every process, within a second of any change to it, its price or its routes', async () => {
    const id = nextName()
    const times: number[] = []
    const processes = await Promise.all([startProcess(), startProcess()])
    const seen = (wanted: string) => async () =>
      (await Promise.all(processes.map(({ find }) => find(id)))).every((model) => {
        const price = model?.price === null ? 'none' : Object(model?.price).version
        return `${model?.limits.outputCap} ${price} ${model?.routes.length}${model?.isOff ? ' off' : ''}` === wanted
      })
    assert.ok(await seen('undefined undefined undefined')())
    await seedModel(pool, { id, protocols: [], price: null })
    times.push(await until(seen('4096 none 0'), PATIENCE_MS))
    await saveModel({ pool }, { id, outputCap: 7 })
    times.push(await until(seen('7 none 0'), PATIENCE_MS))
    await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
    times.push(await until(seen('7 1 0'), PATIENCE_MS))
    const route = await saveRoute({ pool, ids }, { model: id, slot: 'openai', protocol: 'openai' })
    times.push(await until(seen('7 1 1'), PATIENCE_MS))
    await pool.query('update model_routes set enabled = false where id = $1', [route])
    times.push(await until(seen('7 1 0'), PATIENCE_MS))
    await pool.query('update models set enabled = false where id = $1', [id])
    times.push(await until(seen('7 1 0 off'), PATIENCE_MS))
    judge(PROOF, 'from a change to its effect on every process', { unit: 'ms', atMost: 1_000 }, times)
  })

  it('is refused where it has no price', async () => {
    const id = nextName()
    await seedModel(pool, { id, price: null })
    const { find } = await startProcess()
    refusesPrice(await find(id))
  })

  for (const [column, price] of [
    ['input', 'NaN'],
    ['output', 'Infinity'],
    ['cache_read', '-1'],
    ['cache_write', `0.${'0'.repeat(30)}1`],
    ['provider_input', '1'.repeat(30)],
  ] as const)
    it(`is refused where its ${column} costs ${price}: neither nothing nor the price before stands in for it`, async () => {
      const id = nextName()
      await seedModel(loosePool, { id })
      // The table itself refuses it; this is for whatever came there all the same.
      await loosePool.query(`alter table model_prices drop constraint ${column}_is_readable`)
      await loosePool.query(`insert into model_prices (model, version, input, output) values ($1, 2, 1, 1)`, [id])
      await loosePool.query(`update model_prices set ${column} = $2 where model = $1 and version = 2`, [id, price])
      const { find, list } = await startProcess(loosePool, loose.url)
      refusesPrice(await find(id))
      assert.ok(!idsOf(await list()).includes(id))
    })

  it('can not be asked for without PostgreSQL: that is 503, and over with the outage', async () => {
    const postgres = await startPostgres()
    after(postgres.remove)
    await migrate({ url: new Secret(postgres.url()), log: silentLog })
    const own = connect(postgres.url())
    await seedModel(own, { id: 'a' })
    const { find, list } = await startProcess(own, postgres.url())
    await postgres.kill()
    const isFault = (error: unknown) => error instanceof Fault && error.code === 'billing_dependency_timeout'
    await assert.rejects(async () => find('a'), isFault)
    await assert.rejects(list(), isFault)
    await postgres.start()
    const found = async () => find('a')
    await until(async () => (await found().catch(() => undefined))?.id === 'a', PATIENCE_MS)
  })
})

describe('the list of models', () => {
  it('has those with a price, in the order of their names; of a mode, those that have an upstream in it', async () => {
    const { list } = await startProcess()
    const before = await list()
    const [b, a, upper, off, unpriced, unrouted] = [
      'order/b',
      'order/a',
      'order/B',
      'order/off',
      'order/no',
      'order/un',
    ]
    for (const id of [b, a, upper, off]) await seedModel(pool, { id, protocols: ['openai'] })
    await seedModel(pool, { id: unpriced, price: null })
    await seedModel(pool, { id: unrouted, protocols: [] })
    await saveModel({ pool }, { id: off, enabled: false })
    const own = async (mode?: 'live' | 'test') => idsOf(await list(mode)).filter((id) => id.startsWith('order/'))
    const are = (wanted: readonly string[], mode?: 'live' | 'test') => async () =>
      String(await own(mode)) === String(wanted)
    await until(are([upper, a, b, unrouted]), PATIENCE_MS)
    assert.equal((await list()).length, before.length + 4)
    assert.deepEqual([await own('test'), await own('live')], [[], []])

    const upstream = { slot: 'openai', baseUrl: 'http://127.0.0.1:1', kind: 'native', credential: null } as const
    const id = await saveUpstream({ pool, ids, seal: null }, { ...upstream, mode: 'test' })
    await until(are([upper, a, b], 'test'), PATIENCE_MS)
    assert.deepEqual(await own('live'), [])
    await saveUpstream({ pool, ids, seal: null }, { ...upstream, id, mode: 'live' })
    await until(are([upper, a, b], 'live'), PATIENCE_MS)
    assert.deepEqual(await own('test'), [])
    await saveUpstream({ pool, ids, seal: null }, { ...upstream, id, mode: 'live', enabled: false })
    await until(are([], 'live'), PATIENCE_MS)
    await removeUpstream({ pool }, id)
    await removeModel({ pool }, a)
    await until(are([upper, b, unrouted]), PATIENCE_MS)
  })
})

describe('the models of the sandbox', () => {
  it('are sold in all protocols of conversations at one price, but for one without a price and one of a single protocol', async () => {
    await seedModels(pool)
    const { find, list } = await startProcess()
    const sold = idsOf(await list()).filter((id) => id.startsWith('sandbox/'))
    assert.deepEqual(
      sold,
      [...SANDBOX_MODELS, OPENAI_ONLY_MODEL, EMBEDDING_MODEL, IMAGE_MODEL, IMAGE_TOKENS_MODEL, VIDEO_MODEL].toSorted(),
    )
    for (const id of SANDBOX_MODELS) {
      const model = await find(id)
      assert.ok(model !== undefined)
      assert.deepEqual(model.routes.map(({ protocol, slot }) => `${protocol} ${slot}`).toSorted(), [
        'anthropic anthropic',
        'gemini gemini',
        'openai openai',
        'openai_responses openai',
      ])
      assert.ok(model.routes.every(({ upstreamModel }) => upstreamModel === id))
      const { rates } = priceOfModel(model)
      assert.deepEqual(rates.cacheWrite.published, perMillion('0.625'))
    }
    assert.deepEqual(
      (await find(OPENAI_ONLY_MODEL))?.routes.map(({ protocol }) => protocol),
      ['openai'],
    )
    assert.equal((await find(UNPRICED_MODEL))?.price, null)
  })
})

describe('configuring a model', () => {
  it('changes what is named and keeps the rest', async () => {
    const id = nextName()
    await seedModel(pool, { id })
    await saveModel({ pool }, { id, outputCap: 10, partTokens: { audio: 5 } })
    await saveModel({ pool }, { id, partTokens: { image: null } })
    const { find } = await startProcess()
    const model = await find(id)
    assert.deepEqual(model?.limits, {
      contextWindow: 200_000,
      outputCap: 10,
      outputMost: 64_000,
      partTokens: { audio: 5 },
    })
    assert.equal(model?.routes.length, CONVERSATION_PROTOCOLS.length)
  })

  it('changes a route of the same slot, protocol and name instead of making another, and removes it', async () => {
    const id = nextName()
    await seedModel(pool, { id, protocols: [] })
    const given = { model: id, slot: 'openai', protocol: 'openai' } as const
    const first = await saveRoute({ pool, ids }, given)
    assert.equal(await saveRoute({ pool, ids }, { ...given, weight: 9 }), first)
    assert.notEqual(await saveRoute({ pool, ids }, { ...given, upstreamModel: 'other' }), first)
    await assert.rejects(removeRoute({ pool }, 'another', first), /The model another has no route/)
    await removeRoute({ pool }, id, first)
    const { find } = await startProcess()
    assert.deepEqual(
      (await find(id))?.routes.map(({ upstreamModel }) => upstreamModel),
      ['other'],
    )
  })

  it('changes what is named of a route and keeps the rest: a profile is not lost with a new priority', async () => {
    const id = nextName()
    await seedModel(pool, { id, protocols: [] })
    const given = { model: id, slot: 'openai', protocol: 'openai' } as const
    await saveRoute(
      { pool, ids },
      {
        ...given,
        weight: 9,
        profile: { outputLimit: 'max_tokens', abort: 'stops', output: 'seen', tokenBytes: 2, topSpeed: 300 },
      },
    )
    await saveRoute({ pool, ids }, { ...given, priority: 4 })
    await saveRoute({ pool, ids }, { ...given, profile: { reasoning: 'apart', outputLimit: undefined } })
    const { find } = await startProcess()
    const grows = { abort: 'stops', output: 'seen', tokenBytes: 2, topSpeed: 300 }
    const kept = { outputLimit: 'max_tokens', unknown: 'refuse', reasoning: 'apart', ...grows }
    const [route] = (await find(id))?.routes ?? []
    assert.deepEqual([route?.priority, route?.weight, route?.profile], [4, 9, kept])
    await saveRoute({ pool, ids }, { ...given, profile: PLAIN_PROFILE })
    const { find: findAgain } = await startProcess()
    assert.deepEqual((await findAgain(id))?.routes[0]?.profile, PLAIN_PROFILE)
  })

  it('numbers no version twice: not where two set a price at once, and not after the model was removed', async () => {
    const id = nextName()
    await seedModel(pool, { id, price: null })
    const set = () => setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
    const versions = await Promise.all([set(), set(), set(), set()])
    assert.deepEqual(versions.toSorted(), [1, 2, 3, 4])
    await removeModel({ pool }, id)
    await assert.rejects(set(), /There is no model/)
    await seedModel(pool, { id, price: null })
    assert.equal(await set(), 5)
  })

  const id = 'refused/one'
  const whole = { id, contextWindow: 1_000, outputCap: 10, outputMost: 100 }
  for (const [what, work, says] of [
    ['a name with a space', () => saveModel({ pool }, { ...whole, id: 'a b' }), /id: must be letters/],
    ['a name that is too long', () => saveModel({ pool }, { ...whole, id: 'a'.repeat(201) }), /id: must be letters/],
    [
      'a new model without its window',
      () => saveModel({ pool }, { id, outputCap: 1, outputMost: 1 }),
      /contextWindow: is needed/,
    ],
    ['no tokens', () => saveModel({ pool }, { ...whole, outputCap: 0 }), /outputCap: must be above 0/],
    ['half a token', () => saveModel({ pool }, { ...whole, outputCap: 0.5 }), /outputCap: must be a whole number/],
    [
      'a cap above the most',
      () => saveModel({ pool }, { ...whole, outputCap: 101 }),
      /outputCap: must be within outputMost/,
    ],
    [
      'an output beyond the window',
      () => saveModel({ pool }, { ...whole, outputMost: 1_001 }),
      /outputMost: must be within contextWindow/,
    ],
    ['no tokens of an image', () => saveModel({ pool }, { ...whole, partTokens: { image: 0 } }), /partTokens.image/],
    ['a name of two lines', () => saveModel({ pool }, { ...whole, displayName: 'a\nb' }), /displayName/],
    [
      'a price of nothing known',
      () => setModelPrice({ pool }, { model: id, input: '1', output: '1' }),
      /There is no model/,
    ],
    [
      'a price that is none',
      () => setModelPrice({ pool }, { model: id, input: 'x', output: '1' }),
      /input: not a plain decimal/,
    ],
    [
      'a negative cost',
      () => setModelPrice({ pool }, { model: id, input: '1', output: '1', providerOutput: '-1' }),
      /providerOutput: a price is not negative/,
    ],
    [
      'a price of nothing',
      () => setModelPrice({ pool }, { model: id, input: '1' }),
      /a price for input and one for output/,
    ],
    [
      'prices of pictures and of tokens',
      () => setModelPrice({ pool }, { model: id, input: '1', output: '1', images: { 'auto/auto': '1' } }),
      /per token, per image or per second/,
    ],
    ['no pictures', () => setModelPrice({ pool }, { model: id, images: {} }), /images: give 1 to 100 prices/],
    [
      'a picture without a quality',
      () => setModelPrice({ pool }, { model: id, images: { '1024x1024': '1' } }),
      /"1024x1024" must be size\/quality/,
    ],
    [
      'a picture whose price is none',
      () => setModelPrice({ pool }, { model: id, images: { 'auto/auto': '1e3' } }),
      /auto\/auto: not a plain decimal/,
    ],
    [
      'a picture that costs us less than nothing',
      () => setModelPrice({ pool }, { model: id, images: { 'auto/auto': '1' }, providerImages: { 'auto/auto': '-1' } }),
      /auto\/auto: a price is not negative/,
    ],
    [
      'a route of nothing known',
      () => saveRoute({ pool, ids }, { model: id, slot: 'a', protocol: 'openai' }),
      /There is no model/,
    ],
    [
      'a slot with a space',
      () => saveRoute({ pool, ids }, { model: id, slot: 'a b', protocol: 'openai' }),
      /slot: must be/,
    ],
    [
      'no weight',
      () => saveRoute({ pool, ids }, { model: id, slot: 'a', protocol: 'openai', weight: 0 }),
      /weight: must be a whole number from 1 to 1000000/,
    ],
    ['to remove what is not there', () => removeModel({ pool }, id), /There is no model "refused\/one"/],
  ] as const)
    it(`refuses ${what}, and leaves nothing behind`, async () => {
      await assert.rejects(work(), (error) => error instanceof Fault && says.test(error.message))
      const { rows } = await pool.query(
        `select id from models where id = $1 union select model from model_prices where model = $1
         union select model from model_routes where model = $1`,
        [id],
      )
      assert.deepEqual(rows, [])
    })

  for (const parts of [
    '[]',
    '{"video": 1}',
    '{"image": "1"}',
    '{"image": 0}',
    '{"image": 1.5}',
    '{"file": [1]}',
    'null',
  ])
    it(`refuses ${parts} as tokens of parts in the table itself`, async () => {
      const insert = (json: string) =>
        pool.query(
          `insert into models (id, display_name, owned_by, context_window, output_cap, output_most, tokenizer, part_tokens)
           values ($1, 'a', 'a', 9, 1, 2, 'bytes_3', $2)`,
          [nextName(), json],
        )
      await assert.rejects(insert(parts), /part_tokens_are_readable/)
      await insert('{"image": 1, "audio": 2, "file": 3}')
    })

  for (const images of [
    '[]',
    '{}',
    'null',
    '"1"',
    '{"auto/auto": 1}',
    '{"auto/auto": "-1"}',
    '{"auto/auto": "1e3"}',
    '{"auto/auto": "NaN"}',
    '{"auto/auto": ""}',
    '{"auto/auto": {}}',
    '{"auto/auto": "1", "auto": "1"}',
    '{"auto/auto/auto": "1"}',
    '{"auto/ auto": "1"}',
    `{"auto/auto": "${'1'.repeat(19)}"}`,
  ])
    it(`refuses ${images} as prices of pictures in the table itself`, async () => {
      const insert = (column: string, json: string) =>
        pool.query(`insert into model_prices (model, version, input, output, ${column}) values ($1, 1, 0, 0, $2)`, [
          nextName(),
          json,
        ])
      for (const column of ['images', 'provider_images']) {
        await assert.rejects(insert(column, images), new RegExp(`${column}_are_readable`))
        await insert(column, '{"auto/auto": "0", "1024x1024/high": "0.167"}')
      }
    })

  it('refuses a price of tokens beside one of pictures in the table itself', async () => {
    await assert.rejects(
      pool.query(
        `insert into model_prices (model, version, input, output, images) values ('x', 1, 1, 0, '{"auto/auto": "1"}')`,
      ),
      /one_way_to_pay/,
    )
  })

  for (const price of ['NaN', 'Infinity', '-1', '1e18', `0.${'0'.repeat(18)}1`])
    it(`refuses ${price} as a price in the table itself`, async () => {
      const own = ['input', 'output', 'cache_read', 'cache_write']
      const columns = [...own, ...own.map((one) => `provider_${one}`)]
      for (const column of columns) {
        const rest = ['input', 'output'].filter((one) => one !== column)
        await assert.rejects(
          pool.query(
            `insert into model_prices (model, version, ${column}, ${rest.join()}) values ('x', 1, $1, ${rest.map(() => 1).join()})`,
            [price],
          ),
          new RegExp(`${column}_is_readable`),
        )
      }
    })
})
