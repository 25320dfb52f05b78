import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../identity/customers.ts'
import { connect } from '../ledger/world.ts'
import { startShell } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const env = { ...process.env, FAREBOX_DATABASE_URL: database.url, FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal() }
const { farebox, said } = startShell(env)

const LIMITS = ['--context-window', '200000', '--output-cap', '4096', '--output-most', '64000']

describe('farebox models', () => {
  it('set, price and route make a model that can be sold, and say what it lacks until then', async () => {
    assert.equal(await said('models', 'list'), 'There are no models: see farebox models set.\n')
    assert.equal(
      await said('models', 'set', 'maker/one', ...LIMITS, '--image-tokens', '256', '--tokenizer', 'o200k'),
      'maker/one  window 200000  output 4096 to 64000  image 256  o200k.\n' +
        'It has no price, so calls are refused: see farebox models price maker/one.\n' +
        'It has no route, so calls are refused: see farebox models route maker/one.\n',
    )
    assert.equal(
      await said('models', 'price', 'maker/one', '--input', '0.50', '--output', '2', '--cache-read', '0.05'),
      'Price of maker/one, version 1, in USD per million tokens: input 0.50, output 2, cache read 0.05, cache write 0.50.\n',
    )
    const route = ['models', 'route', 'maker/one', '--slot', 'openai', '--protocol', 'openai']
    const made = await said(...route, '--upstream-model', 'one-2026')
    const [, id = ''] =
      /^Route ([0-9a-f-]{36}): maker\/one is sent to slot openai as one-2026, protocol openai\.\n/.exec(made) ?? []
    assert.notEqual(id, '', made)
    assert.match(made, /Slot openai has no upstream yet: see farebox upstreams add openai\.\n$/)
    // A slot that a route names can be filled.
    await said('upstreams', 'add', 'openai', 'https://models.vendor.example', '--requests-per-minute', '500')
    assert.match(
      await said('upstreams', 'list'),
      /openai {2}live {2}\S+ {2}native {2}no credential {2}500 requests per minute\n/,
    )
    const changed = await said(...route, '--upstream-model', 'one-2026', '--priority', '-5', '--weight', '3')
    assert.equal(changed, `Route ${id}: maker/one is sent to slot openai as one-2026, protocol openai.\n`)
    assert.equal(
      await said('models', 'list'),
      'maker/one  window 200000  output 4096 to 64000  image 256  o200k  ' +
        '0.50 / 2 / 0.05 / 0.50 USD per million (in / out / cache read / cache write)  version 1\n' +
        `  ${id}  openai  openai  one-2026  priority -5  weight 3\n`,
    )
  })

  it('price takes classes, steps, tiers and tools, list shows them, and what is left out of a step is refused', async () => {
    await said('models', 'set', 'maker/dear', ...LIMITS)
    const plain = ['models', 'price', 'maker/dear', '--input', '3', '--output', '15', '--cache-write', '3.75']
    const step = '200000:input=6,output=22.5,cache_write=7.5,cache_write_1h=12'
    const told = await said(
      ...[...plain, '--class', 'cache_write_1h=6', '--above', step],
      ...['--tier', 'flex=0.5x', '--tier', 'priority:input=6,output=30,cache_write=7,cache_write_1h=9'],
      ...['--tier', `priority>${step}`, '--tool', 'web_search=0.01', '--tool-calls', '5', '--tool-input', '20000'],
    )
    const classes = {
      rates: { cache_write_1h: '6' },
      above: [{ tokens: 200_000, rates: { input: '6', output: '22.5', cache_write: '7.5', cache_write_1h: '12' } }],
      tiers: {
        flex: { times: '0.5' },
        priority: {
          rates: { input: '6', output: '30', cache_write: '7', cache_write_1h: '9' },
          above: [{ tokens: 200_000, rates: { input: '6', output: '22.5', cache_write: '7.5', cache_write_1h: '12' } }],
        },
      },
      tools: { web_search: '0.01' },
      tool_calls: 5,
      tool_input: 20_000,
    }
    const [, beyond = ''] = /^Further prices: (.*)$/m.exec(told) ?? []
    assert.deepEqual(JSON.parse(beyond), classes)
    const [, listed = ''] = /further prices (\{.*\}) {2}version 1$/m.exec(await said('models', 'list')) ?? []
    assert.deepEqual(JSON.parse(listed), classes)
    for (const [options, says] of [
      [['--above', '200000:input=6,output=22.5'], /above 200000 needs a price of cache_write too/],
      [['--class', 'thoughts=6'], /classes\.rates/],
      [['--class', 'cache_write_1h'], /must be class=usd/],
      [['--tier', 'flex=half'], /must be tier=times/],
      [['--class', '__proto__=6'], /must be class=usd/],
      [['--tier', '__proto__=0.5x'], /must be tier=times/],
      [['--tool', 'mcp=1'], /classes\.tools/],
      [['--tool-calls', '0'], /classes\.tool_calls/],
      [[], /The price of maker\/dear has classes, which would be removed: .*cache_write_1h.*--no-classes\.\n$/],
      [['--no-classes', '--class', 'cache_write_1h=6'], /do not give both/],
    ] as const) {
      const { code, output } = await farebox(...plain, ...options)
      assert.notEqual(code, 0)
      assert.match(output, says)
    }
    assert.match(await said(...plain, '--no-classes'), /^Price of .*, version 2, /)
    assert.match(await said(...plain), /^Price of .*, version 3, /)
    assert.doesNotMatch(await said('models', 'list'), /further prices/)
  })

  it('route says how its upstreams differ from their protocol, keeps what is not named, and list shows it', async () => {
    await said('models', 'set', 'maker/odd', ...LIMITS)
    const route = ['models', 'route', 'maker/odd', '--slot', 'openai', '--protocol', 'openai']
    const shown = async () =>
      /^ {2}\S{36} {2}openai {2}openai {2}maker\/odd {2}(.*)$/m.exec(await said('models', 'list'))?.[1]
    await said(
      ...route,
      '--output-limit',
      'max_tokens',
      '--unknown',
      'pass',
      '--reasoning',
      'apart',
      '--on-abort',
      'stops',
    )
    assert.equal(await shown(), 'priority 0  weight 1  limit max_tokens  unknown pass  reasoning apart  on abort stops')
    await said(...route, '--priority', '3', '--unknown', 'refuse')
    await said(...route, '--output', 'seen', '--token-bytes', '2', '--top-speed', '300')
    assert.equal(
      await shown(),
      'priority 3  weight 1  limit max_tokens  reasoning apart  on abort stops  output seen  2 bytes per token  300 tokens per second',
    )
    await said(...route, '--output-limit', 'none', '--reasoning', 'within', '--on-abort', 'runs-on')
    await said(...route, '--output', 'hidden', '--token-bytes', '1', '--top-speed', 'none')
    assert.equal(await shown(), 'priority 3  weight 1')
    await said('models', 'remove', 'maker/odd')
  })

  it('route turns a route off and on, and leaves it as it is where neither is said', async () => {
    await said('models', 'set', 'maker/off', ...LIMITS)
    const route = ['models', 'route', 'maker/off', '--slot', 'openai', '--protocol', 'openai']
    const shown = async () => /maker\/off {2}priority (.*)$/m.exec(await said('models', 'list'))?.[1]
    assert.match(await said(...route, '--off'), /^Route \S{36} is off\.\n/)
    assert.match(await said(...route, '--output-limit', 'max_tokens'), /^Route \S{36} is off\.\n/)
    assert.equal(await shown(), '0  weight 1  limit max_tokens  off')
    assert.match(await said(...route, '--on'), /^Route \S{36}: maker\/off is sent to slot /)
    assert.equal(await shown(), '0  weight 1  limit max_tokens')
    await said('models', 'remove', 'maker/off')
  })

  it('set changes what is named and keeps the rest', async () => {
    await said('models', 'set', 'maker/two', ...LIMITS, '--image-tokens', '9')
    const set = await said('models', 'set', 'maker/two', '--output-cap', '10', '--image-tokens', 'none')
    assert.match(set, /^maker\/two {2}window 200000 {2}output 10 to 64000 {2}bytes_3\.\n/)
    await said('models', 'set', 'maker/two', '--display-name', 'The Two', '--owned-by', 'Maker Ltd')
    const { rows } = await pool.query("select display_name, owned_by from models where id = 'maker/two'")
    assert.deepEqual(rows, [{ display_name: 'The Two', owned_by: 'Maker Ltd' }])
  })

  it('off takes a model out of sale and on sells it again, each with its reason', async () => {
    await said('models', 'set', 'maker/off', ...LIMITS)
    const off = ['models', 'off', 'maker/off', '--reason', 'its provider raised the price']
    assert.match(await said(...off), /^Model maker\/off is off: calls are refused with 404 not_sold\./)
    assert.match(await said('models', 'list'), /^maker\/off .* off {2}no price$/m)
    assert.match(await said(...off), /was off already\. Nothing was changed\.\n$/)
    await said('models', 'set', 'maker/off', '--output-cap', '10')
    assert.match(await said('models', 'list'), /^maker\/off .* off {2}no price$/m, 'a setting leaves it off')
    const on = await said('models', 'on', 'maker/off', '--reason', 'its price is back')
    assert.match(on, /^Model maker\/off is on\.\nIt has no price, so calls are refused/)
    await said('models', 'remove', 'maker/off')
  })

  it('price keeps what the upstream charges us until it is told anew', async () => {
    await said('models', 'set', 'maker/three', ...LIMITS)
    const own = ['--input', '1', '--output', '1']
    await said('models', 'price', 'maker/three', ...own, '--provider-input', '0.7', '--provider-cache-write', '0.9')
    await said('models', 'price', 'maker/three', ...own, '--cache-write', '1.25', '--provider-output', '0.8')
    const { rows } = await pool.query(
      `select version, cache_read::text, cache_write::text, provider_input::text, provider_output::text,
         provider_cache_read::text, provider_cache_write::text
       from model_prices where model = 'maker/three' order by version`,
    )
    const none = { cache_read: null, provider_cache_read: null }
    assert.deepEqual(rows, [
      {
        version: 1,
        ...none,
        cache_write: null,
        provider_input: '0.7',
        provider_output: null,
        provider_cache_write: '0.9',
      },
      {
        version: 2,
        ...none,
        cache_write: '1.25',
        provider_input: '0.7',
        provider_output: '0.8',
        provider_cache_write: '0.9',
      },
    ])
  })

  it('price and account sell nothing below cost unless they are told to, and tell the margin', async () => {
    await said('models', 'set', 'maker/margin', ...LIMITS)
    const price = ['models', 'price', 'maker/margin', '--output', '10', '--provider-output', '8']
    const told = await farebox(...price, '--input', '0.5', '--provider-input', '5')
    assert.deepEqual(
      [told.code, told.output],
      [
        1,
        'farebox: maker/margin would be sold below cost: input (-900.0 %). Correct the price or the cost, or allow it with --below-cost.\n',
      ],
    )
    assert.match(await said('models', 'list'), /^maker\/margin .* no price$/m)
    assert.match(
      await said(...price, '--input', '0.5', '--provider-input', '5', '--below-cost'),
      /, version 1, .*\nMargin: input -900\.0 %, output 20\.0 %\.\n$/,
    )
    // What the upstream charges us stays where it is left out, and so does what it forbids.
    assert.match(
      (await farebox('models', 'price', 'maker/margin', '--input', '4', '--output', '7')).output,
      /below cost: input \(-25\.0 %\), output \(-14\.3 %\)/,
    )
    // Cached input is dearer than its price only if somebody says so.
    await said('models', 'price', 'maker/margin', '--input', '10', '--output', '10', '--cache-read', '1')
    assert.match(await said('models', 'list'), /^maker\/margin .* version 2 {2}margin input 50\.0 %, output 20\.0 %$/m)
    const classes = ['--class', 'cache_write_1h=6', '--tier', 'flex=0.5x', '--tool', 'web_search=0.01']
    const dear = [
      '--provider-class',
      'cache_write_1h=7',
      '--provider-tier',
      'flex=0.9x',
      '--provider-tool',
      'web_search=0.02',
    ]
    const { output } = await farebox(
      'models',
      'price',
      'maker/margin',
      '--input',
      '10',
      '--output',
      '10',
      ...classes,
      ...dear,
    )
    assert.match(
      output,
      /below cost: tools\.web_search \(-100\.0 %\), cache_write_1h \(-16\.7 %\), .*tiers\.flex\.output \(-44\.0 %\)/,
    )
    const { id, liveAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Customer' })
    assert.match(
      (await farebox('models', 'account', id, 'maker/margin', '0.7x')).output,
      /would pay less for maker\/margin than it costs us: output \(-14\.3 %\)/,
    )
    assert.equal(
      await said('models', 'account', id, 'maker/margin', '0.9x'),
      `Account ${id} pays 0.9x the price of maker/margin, also when that price changes.\nMargin: input 44.4 %, output 11.1 %.\n`,
    )
    await said('models', 'account', id, 'maker/margin', '0.1x', '--below-cost')
    const { rows } = await pool.query('select operation, unit_price::text from account_prices where account_id = $1', [
      liveAccountId,
    ])
    assert.deepEqual(rows, [{ operation: 'model:maker/margin', unit_price: '0.1' }])
  })

  it('price takes prices of pictures instead, and list shows them', async () => {
    await said('models', 'set', 'maker/painter', ...LIMITS)
    const images = ['--image', '1024x1024/high=0.167', '--image', 'auto/auto=0.042']
    assert.equal(
      await said('models', 'price', 'maker/painter', ...images, '--provider-image', 'auto/auto=0.03'),
      'Price of maker/painter, version 1: 1024x1024/high 0.167, auto/auto 0.042 USD per image; tokens are free.\n' +
        'Margin: images.auto/auto 28.6 %.\n',
    )
    assert.match(
      await said('models', 'list'),
      /^maker\/painter .* auto\/auto 0\.042, 1024x1024\/high 0\.167 USD per image {2}version 1 {2}margin images\.auto\/auto 28\.6 %$/m,
    )
    await said('models', 'price', 'maker/painter', '--image', 'auto/auto=0.05')
    const { rows } = await pool.query(
      `select input::text, output::text, images, provider_images from model_prices
       where model = 'maker/painter' and version = 2`,
    )
    assert.deepEqual(rows, [
      { input: '0', output: '0', images: { 'auto/auto': '0.05' }, provider_images: { 'auto/auto': '0.03' } },
    ])
  })

  it('remove takes a route, or the model with all of them', async () => {
    await said('models', 'set', 'maker/four', ...LIMITS)
    const route = () => said('models', 'route', 'maker/four', '--slot', 'openai', '--protocol', 'openai')
    const id = (await route()).slice(6, 42)
    assert.equal(await said('models', 'remove', 'maker/four', '--route', id), `Route ${id} is removed.\n`)
    await route()
    assert.equal(await said('models', 'remove', 'maker/four'), 'Model maker/four is removed.\n')
    const { rows } = await pool.query("select from model_routes where model = 'maker/four'")
    assert.equal(rows.length, 0)
  })

  const route = ['route', 'maker/one', '--slot', 'openai', '--protocol', 'openai']
  for (const [what, args, says] of [
    ['a new model without limits', ['set', 'maker/new'], /contextWindow: is needed for a new model/],
    ['a name that is none', ['set', 'a b', ...LIMITS], /id: must be letters/],
    ['what is no number', ['set', 'maker/one', '--output-cap', '4k'], /--output-cap must be a whole number/],
    ['no tokens', ['set', 'maker/one', '--image-tokens', '0'], /--image-tokens must be a whole number above 0/],
    ['a cap above the most', ['set', 'maker/one', '--output-cap', '64001'], /outputCap: must be within outputMost/],
    [
      'an unknown tokenizer',
      ['set', 'maker/one', '--tokenizer', 'x'],
      /there is no tokenizer "x": use one of o200k, cl100k, bytes_3/,
    ],
    ['an off of no model', ['off', 'none', '--reason', 'why'], /There is no model "none"/],
    [
      'a price that is none',
      ['price', 'maker/one', '--input', 'x', '--output', '1'],
      /input: not a plain decimal number: "x"/,
    ],
    ['half of a price', ['price', 'maker/one', '--input', '1'], /a price for input and one for output/],
    [
      'both ways to sell',
      ['price', 'maker/one', '--input', '1', '--image', 'a/b=1'],
      /per token, per image or per second/,
    ],
    ['a picture without a price', ['price', 'maker/one', '--image', '1024x1024/high'], /must be size\/quality=usd/],
    ['a picture without a quality', ['price', 'maker/one', '--image', '1024x1024=1'], /must be size\/quality/],
    ['a picture twice', ['price', 'maker/one', '--image', 'a/b=1', '--image', 'a/b=2'], /a\/b is given twice/],
    ['a price of no model', ['price', 'none', '--input', '1', '--output', '1'], /There is no model "none"/],
    ['a negative price', ['price', 'maker/one', '--input', '1', '--output', '-1'], /output: a price is not negative/],
    [
      'an unknown protocol',
      [...route.slice(0, 4), '--protocol', 'soap'],
      /there is no protocol "soap": use one of openai, openai_responses, anthropic/,
    ],
    ['a route on and off at once', [...route, '--on', '--off'], /a route is on or off: give either --on or --off/],
    ['a weight of nothing', [...route, '--weight', '0'], /weight: must be a whole number from 1 to 1000000/],
    [
      'a limit that the protocol does not have',
      [...route, '--output-limit', 'max_output_tokens'],
      /profile\.outputLimit: must be one of max_completion_tokens, max_tokens in the protocol openai/,
    ],
    [
      'a limit where nothing is limited',
      [...route.slice(0, 4), '--protocol', 'openai_embeddings', '--output-limit', 'max_tokens'],
      /profile\.outputLimit: there is no limit in the protocol openai_embeddings/,
    ],
    [
      'reasoning where there is none',
      [...route.slice(0, 4), '--protocol', 'openai_images', '--reasoning', 'apart'],
      /profile\.reasoning: there is none in the protocol openai_images/,
    ],
    ['what can not become of members', [...route, '--unknown', 'drop'], /--unknown must be one of refuse, pass/],
    ['an output that is neither', [...route, '--output', 'some'], /--output must be one of seen, hidden/],
    ['tokens of no bytes', [...route, '--token-bytes', '0'], /must be 1 to 4/],
    ['a speed that is none', [...route, '--top-speed', '0'], /must be above 0/],
    ['a speed beyond all', [...route, '--top-speed', '100001'], /topSpeed: must be at most 100000\.\n$/],
    [
      'a priority beyond all',
      [...route, '--priority', '1001'],
      /priority: must be a whole number from -1000 to 1000\./,
    ],
    ['an abort that is none', [...route, '--on-abort', 'runs_on'], /--on-abort must be one of stops, runs-on/],
    ['a route of no model', ['route', 'none', ...route.slice(2)], /There is no model "none"/],
    ['to remove no model', ['remove', 'none'], /There is no model "none"/],
    ['to remove what is no route', ['remove', 'maker/one', '--route', 'x'], /"x" is not an id/],
  ] as const)
    it(`say what is wrong with ${what}, and change nothing`, async () => {
      const before = await said('models', 'list')
      const { code, output } = await farebox('models', ...args)
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.match(output, /^farebox: /)
      assert.equal(await said('models', 'list'), before)
    })

  it('upstreams add refuses a quota that is none', async () => {
    const add = (...args: readonly string[]) => farebox('upstreams', 'add', ...args)
    for (const quota of ['0', '-1', '1.5', 'many']) {
      const { code, output } = await add('openai', 'https://a.example', '--requests-per-minute', quota)
      assert.deepEqual([code, /--requests-per-minute must be a whole number above 0/.test(output)], [1, true], output)
    }
  })

  it('upstreams add takes a slot that no route names yet, says so, and whether it looks mistyped', async () => {
    assert.match(
      await said('upstreams', 'add', 'later', 'https://a.example'),
      /^Upstream \S+ added to the slot later\.\nNo operation and no route uses the slot later yet\. Next: farebox models route <model> --slot later --protocol <name>\n$/,
    )
    assert.match(
      await said('upstreams', 'add', 'rerankk', 'https://a.example'),
      /\nNo operation and no route uses the slot rerankk yet\. Did you mean rerank\? If not: farebox models route /,
    )
  })

  it('upstreams add refuses a URL whose end would stand twice in what is asked, unless it is told that it does', async () => {
    await said('models', 'set', 'maker/doubled', ...LIMITS)
    await said('models', 'route', 'maker/doubled', '--slot', 'anthropic_like', '--protocol', 'anthropic')
    for (const [slot, url, doubled, shorter] of [
      ['not_yet_routed', 'https://a.example/v1', '/v1', 'https://a.example'],
      ['not_yet_routed', 'https://a.example/v1beta/', '/v1beta', 'https://a.example'],
      ['anthropic_like', 'https://a.example/vendor/v1/', '/v1', 'https://a.example/vendor'],
      ['rerank', 'https://a.example/v1', '/v1', 'https://a.example'],
      ['reseller', 'https://a.example/api/v1', '/api/v1', 'https://a.example'],
    ] as const) {
      const { code, output } = await farebox('upstreams', 'add', slot, url)
      assert.equal(code, 1, output)
      assert.equal(
        output,
        `farebox: ${doubled} would be twice in the requests to it: give the URL without it, ${shorter}, or add --keep-path if the provider really has it twice\n`,
      )
    }
    await said('upstreams', 'add', 'anthropic_like', 'https://a.example/v1', '--keep-path')
    // What only another protocol begins with is no part of what is asked there.
    await said('upstreams', 'add', 'anthropic_like', 'https://a.example/v1beta')
    const leaky = await farebox('upstreams', 'add', 'rerank', 'https://user:canary-77@a.example/v1')
    assert.deepEqual([leaky.code, leaky.output.includes('canary')], [1, false], leaky.output)
  })
})
