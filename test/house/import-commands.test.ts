import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { requireModel } from '../../server/src/pricing/require-model.ts'
import { keepModelPrice } from '../../server/src/pricing/set-model-price.ts'
import { SERVICE } from '../../server/src/storage/audit.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { connect } from '../ledger/world.ts'
import { startShell, startShellBeside } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())
const folder = mkdtempSync(path.join(tmpdir(), 'import-commands-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const env = { ...process.env, FAREBOX_DATABASE_URL: database.url, FAREBOX_SECRETS_MASTER_KEY: makeMasterKey().reveal() }
const { farebox, said } = startShell(env)
const { farebox: other } = startShellBeside(env)

type Models = Readonly<Record<string, object>>

function listOf(models: Models): string {
  return JSON.stringify({ format: 'farebox-prices/1', models })
}

let files = 0
function fileOf(content: string): string {
  const file = path.join(folder, `prices-${files++}.yaml`)
  writeFileSync(file, content)
  return file
}

const LIMITS = { context_window: 200_000, output_cap: 4_096, output_most: 64_000 }

async function versions(model: string): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    'select version, input::text, output::text from model_prices where model = $1 order by version',
    [model],
  )
  return rows
}

/** All that an import may write. */
async function everything(): Promise<unknown> {
  const { rows } = await pool.query(
    `select (select jsonb_agg(m order by id) from models m) as models,
       (select jsonb_agg(p order by model, version) from model_prices p) as prices,
       (select count(*)::integer from audit) as audit, (select count(*)::integer from change_log) as changes`,
  )
  return rows[0]
}

async function isAnybodyWaiting(): Promise<boolean> {
  const { rows } = await pool.query(`select from pg_locks join pg_database on pg_database.oid = database
     where datname = current_database() and locktype = 'advisory' and not granted`)
  return rows.length > 0
}

describe('farebox models import', () => {
  it('shows what differs and writes nothing, until it is told to; a second time there is nothing to write', async () => {
    const file = fileOf(`
format: farebox-prices/1
models:
  maker/one:
    context_window: 200000
    output_most: 64000
    tokenizer: o200k
    price:
      input: 3.00
      output: 15
      cache_read: 0.30
      classes:
        above:
          - tokens: 200000
            rates: { input: 6, output: 22.5, cache_read: 0.6 }
        tiers: { flex: { times: 0.5 } }
`)
    await said(
      'models',
      'set',
      'maker/other',
      ...['--context-window', '1000', '--output-cap', '10', '--output-most', '100'],
    )
    const before = await everything()
    const dry = await said('models', 'import', file)
    assert.equal(
      dry,
      `  maker/one  new
    display_name              maker/one
    owned_by                  maker
    context_window            200000
    output_cap                4096
    output_most               64000
    tokenizer                 o200k
    price.input               3
    price.output              15
    price.cache_read          0.3
    price.above.200000.input  6
    price.above.200000.output  22.5
    price.above.200000.cache_read  0.6
    price.tiers.flex.times    0.5

${file}: 1 new. Nothing is written yet: add --apply.
Not in the file, and unchanged: maker/other.
`.replace(/^( {4}\S+) {2,}/gm, (_, member: string) => `${member.padEnd(33)}  `),
    )
    assert.deepEqual(await everything(), before)

    assert.match(await said('models', 'import', file, '--apply'), /: 1 new\. Written\.\n/)
    const written = await everything()
    assert.notDeepEqual(written, before)
    const { rows } = await pool.query(
      `select input::text, cache_read::text, classes, output_cap, tokenizer, enabled from model_prices join models on id = model
       where model = 'maker/one'`,
    )
    assert.deepEqual(rows, [
      {
        ...{ input: '3.00', cache_read: '0.30', output_cap: 4_096, tokenizer: 'o200k', enabled: true },
        classes: {
          above: [{ tokens: 200_000, rates: { input: '6', output: '22.5', cache_read: '0.6' } }],
          tiers: { flex: { times: '0.5' } },
        },
      },
    ])
    assert.match(await said('models', 'import', file), /^\S+: 1 unchanged\.\n/)
    assert.match(await said('models', 'import', file, '--apply'), /^\S+: 1 unchanged\. Nothing to write\.\n/)
    assert.deepEqual(await everything(), written)
  })

  it('tells before, after and how many times, in lines and as JSON', async () => {
    await said(
      'models',
      'import',
      fileOf(listOf({ 'maker/two': { ...LIMITS, price: { input: '3', output: '15', cache_read: '0.5' } } })),
      '--apply',
    )
    const file = fileOf(
      listOf({ 'maker/two': { output_cap: 2_048, price: { input: '3.60', output: '5', cache_write: '3.75' } } }),
    )
    const lines = (await said('models', 'import', file)).split('\n')
    assert.deepEqual(
      lines.slice(0, 6),
      [
        '  maker/two  changed',
        '    output_cap            4096 → 2048      ÷ 2',
        '    price.input              3 → 3.6       × 1.2',
        '    price.output            15 → 5         ÷ 3',
        '    price.cache_read       0.5 → as input',
        '    price.cache_write  as input → 3.75',
      ].map((line) =>
        line.replace(
          /^ {4}(\S+) +(.+?) →/,
          (_, member: string, was: string) => `    ${member.padEnd(17)}  ${was.padStart(8)} →`,
        ),
      ),
    )
    const json = JSON.parse((await farebox('models', 'import', file, '--json')).output)
    assert.equal(json.applied, false)
    assert.deepEqual(json.models, [
      {
        ...{ model: 'maker/two', state: 'changed' },
        changes: [
          { member: 'output_cap', before: '4096', after: '2048', factor: 0.5 },
          { member: 'price.input', before: '3', after: '3.6', factor: 1.2 },
          { member: 'price.output', before: '15', after: '5', factor: 1 / 3 },
          { member: 'price.cache_read', before: '0.5', after: null, factor: null },
          { member: 'price.cache_write', before: null, after: '3.75', factor: null },
        ],
        held: [],
      },
    ])
    assert.ok(json.others.includes('maker/one'))
  })

  it('holds back moves above ten times and to or from zero, applies the rest, and says so by its exit code', async () => {
    const start = { 'maker/far': { ...LIMITS, price: { input: '3', output: '15' } } }
    const free = { 'maker/free': { ...LIMITS, price: { input: '1', output: '0' } } }
    const near = { 'maker/near': { ...LIMITS, price: { input: '3', output: '15' } } }
    await said('models', 'import', fileOf(listOf({ ...start, ...free, ...near })), '--apply')
    const file = fileOf(
      listOf({
        'maker/far': { output_cap: 100, price: { input: '3', output: '150.01' } },
        'maker/free': { price: { input: '0', output: '1' } },
        'maker/near': { price: { input: '30', output: '1.5' } },
        'maker/gift': { ...LIMITS, price: { input: '0', output: '0' } },
      }),
    )
    const dry = await farebox('models', 'import', file)
    assert.equal(dry.code, 2)
    const { code, output } = await farebox('models', 'import', file, '--apply')
    assert.equal(code, 2)
    for (const line of [
      '! maker/far  changed, held back',
      '    ! output_cap 4096 → 100, by more than 10 times',
      '    ! price.output 15 → 150.01, by more than 10 times',
      '! maker/free  changed, held back',
      '    ! price.input 1 → 0, to zero',
      '    ! price.output 0 → 1, from zero',
      '  maker/near  changed',
      '! maker/gift  new, held back',
      '    ! price: everything in it is free',
      `${file}: 1 changed, 3 held back. Written.`,
      'Held back, not written: maker/far, maker/free, maker/gift.',
      'Check them. If they are right, run the command again with --allow maker/far --allow maker/free --allow maker/gift.',
    ])
      assert.ok(output.split('\n').includes(line), `${line}\n\n${output}`)
    assert.deepEqual(await versions('maker/near'), [
      { version: 1, input: '3', output: '15' },
      { version: 2, input: '30', output: '1.5' },
    ])
    assert.equal((await versions('maker/far')).length, 1)
    assert.equal((await versions('maker/free')).length, 1)
    const { rows } = await pool.query(
      "select id, output_cap from models where id in ('maker/far', 'maker/gift') order by id",
    )
    assert.deepEqual(rows, [{ id: 'maker/far', output_cap: 4_096 }], 'a model is held back whole')

    const some = await farebox('models', 'import', file, '--apply', '--allow', 'maker/far', '--allow', 'maker/gift')
    assert.equal(some.code, 2)
    assert.deepEqual((await versions('maker/far')).at(-1), { version: 2, input: '3', output: '150.01' })
    assert.equal((await versions('maker/free')).length, 1)
    await said('models', 'import', file, '--apply', '--allow-all')
    assert.deepEqual((await versions('maker/free')).at(-1), { version: 2, input: '0', output: '1' })
    assert.match(await said('models', 'import', file, '--apply'), /: 4 unchanged\. Nothing to write\./)
  })

  it('keeps what the list does not say: routes, limits, what the upstream charges, and other models', async () => {
    const settings = ['--context-window', '1000', '--output-cap', '10', '--output-most', '100', '--image-tokens', '5']
    await said('models', 'set', 'maker/kept', ...settings)
    await said('models', 'off', 'maker/kept', '--reason', 'not yet')
    await said('models', 'price', 'maker/kept', '--input', '1', '--output', '2', '--provider-input', '0.7')
    await said('models', 'route', 'maker/kept', '--slot', 'openai', '--protocol', 'openai')
    await said(
      'models',
      'import',
      fileOf(listOf({ 'maker/kept': { price: { input: '1.1', output: '2' } } })),
      '--apply',
    )
    const { rows } = await pool.query(
      `select output_cap, part_tokens, enabled, provider_input::text, version,
         (select count(*)::integer from model_routes where model = 'maker/kept') as routes
       from models join model_prices on model = id where id = 'maker/kept' order by version desc limit 1`,
    )
    assert.deepEqual(rows, [
      { output_cap: 10, part_tokens: { image: 5 }, enabled: false, provider_input: '0.7', version: 2, routes: 1 },
    ])
  })

  it('does not take a price for another because it is written otherwise', async () => {
    const file = (price: object) => fileOf(listOf({ 'maker/same': { ...LIMITS, price } }))
    await said('models', 'import', file({ input: '0.50', output: '2.0', images: undefined }), '--apply')
    assert.match(await said('models', 'import', file({ input: '0.5', output: '2' }), '--apply'), /1 unchanged/)
    assert.match(await said('models', 'import', file({ output: '2.000', input: '00.5' })), /1 unchanged/)
    assert.equal((await versions('maker/same')).length, 1)
    // Audio is sold from now on, at the price that it would have.
    const audio = { input: '0.5', output: '2', classes: { rates: { input_audio: '0.5' } } }
    assert.match(await said('models', 'import', file(audio)), /price\.input_audio +none → 0\.5\n/)
  })

  it('of two at once, one comes whole after the other', async () => {
    const names = Array.from({ length: 20 }, (_, n) => `race/${n}`)
    const file = (input: string, order: readonly string[]) =>
      fileOf(listOf(Object.fromEntries(order.map((name) => [name, { ...LIMITS, price: { input, output: '5' } }]))))
    const [one, two] = [file('1', names), file('2', names.toReversed())]
    for (let round = 0; round < 3; round += 1) {
      const ended = await Promise.all([
        farebox('models', 'import', one, '--apply'),
        other('models', 'import', two, '--apply'),
      ])
      assert.deepEqual(
        ended.map(({ code }) => code),
        [0, 0],
        ended.map(({ output }) => output).join('\n'),
      )
      const { rows } = await pool.query(
        "select version, array_agg(distinct input::text) as inputs, count(*)::integer from model_prices where model like 'race/%' group by version order by version",
      )
      for (const { version, inputs, count } of rows) assert.deepEqual([version, inputs.length, count], [version, 1, 20])
    }
  })

  it('waits for whoever changes one model, and compares with what that has left', async () => {
    const file = (input: string) => fileOf(listOf({ 'race/price': { ...LIMITS, price: { input, output: '5' } } }))
    await said('models', 'import', file('1'), '--apply')
    const { importing } = await inTransaction(pool, async (query) => {
      await requireModel(query, 'race/price')
      const begun = farebox('models', 'import', file('3'), '--apply')
      let hasEnded = false
      void begun.then(() => (hasEnded = true))
      await until(async () => hasEnded || (await isAnybodyWaiting()), PATIENCE_MS)
      await keepModelPrice(query, SERVICE, { model: 'race/price', input: '2', output: '5' })
      return { importing: begun }
    })
    const { code, output } = await importing
    assert.deepEqual([code, /price\.input +2 → 3 /.test(output)], [0, true], output)
    assert.deepEqual(await versions('race/price'), [
      { version: 1, input: '1', output: '5' },
      { version: 2, input: '2', output: '5' },
      { version: 3, input: '3', output: '5' },
    ])
  })

  it('writes nothing of a list that has anything wrong in it', async () => {
    const before = await everything()
    for (const [content, says] of [
      [
        listOf({ 'maker/new': { price: { input: '1', output: '1' } } }),
        /: line 1: maker\/new: context_window: is needed for a new model\n/,
      ],
      [
        listOf({ 'maker/fine': { ...LIMITS }, 'maker/new': { ...LIMITS, output_most: 300_000 } }),
        /: line 1: maker\/new: output_most: must be within context_window\n/,
      ],
      [
        listOf({ 'maker/fine': { ...LIMITS }, 'maker/new': { routes: [] } }),
        /: line 1: maker\/new: routes: is not a member here\n/,
      ],
      ['format: farebox-prices/1\nmodels: &a\n  x: *a\n', /: line 2: anchors/],
      ['x'.repeat(9 * 1024 * 1024), /: it has 8388609 bytes; the limit is 8388608/],
    ] as const) {
      const { code, output } = await farebox('models', 'import', fileOf(content), '--apply')
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.match(output, /^farebox: \S+prices-\d+\.yaml: /)
    }
    const stranger = await farebox('models', 'import', fileOf(listOf({})), '--allow', 'maker/x')
    assert.deepEqual(
      [stranger.code, /--allow names maker\/x, which is not in the file/.test(stranger.output)],
      [1, true],
    )
    const nowhere = await farebox('models', 'import', '/nowhere/prices.yaml')
    assert.deepEqual([nowhere.code, /\/nowhere\/prices\.yaml/.test(nowhere.output)], [1, true])
    assert.deepEqual(await everything(), before)
  })
})

describe('farebox models convert', () => {
  const community = fileOf(
    JSON.stringify({
      'gpt-sample': {
        ...{ input_cost_per_token: 1.25e-6, output_cost_per_token: 1e-5, litellm_provider: 'openai', mode: 'chat' },
        ...{ max_input_tokens: 272_000, max_output_tokens: 128_000 },
      },
      'image-sample': { mode: 'image_generation', output_cost_per_image: 0.04 },
      'gpt-strange': { input_cost_per_token: 1e-6, output_cost_per_token: 1e-6, fee_per_call: 1 },
    }),
  )

  it('prints a list that import takes, and says what it left out', async () => {
    const output = await said('models', 'convert', community, '--only', 'gpt-*', '--provider', 'openai=openai/')
    assert.match(output, /^gpt-strange is skipped: fee_per_call is not understood, and may be a price\n/)
    assert.match(output, /\n1 converted, 1 skipped\.\n$/)
    const list = output.slice(output.indexOf('format:'), output.lastIndexOf('1 converted'))
    assert.match(await said('models', 'import', fileOf(list), '--apply'), /openai\/gpt-sample {2}new\n/)
    assert.deepEqual(await versions('openai/gpt-sample'), [{ version: 1, input: '1.25', output: '10' }])
  })

  it('says where nothing fits', async () => {
    const { code, output } = await farebox('models', 'convert', community, '--only', 'gpt')
    assert.deepEqual([code, /has no matching model that can be converted/.test(output)], [1, true])
    const bad = await farebox('models', 'convert', community, '--provider', 'openai')
    assert.deepEqual([bad.code, /must be provider=prefix/.test(bad.output)], [1, true])
  })
})

describe('farebox models history', () => {
  it('tells each version with its time, who set it and what it changed, the newest first', async () => {
    const file = (price: object) => fileOf(listOf({ 'maker/old': { ...LIMITS, price } }))
    await said('models', 'import', file({ input: '1', output: '4' }), '--apply')
    await said('models', 'price', 'maker/old', '--input', '2', '--output', '4', '--cache-read', '0.2')
    const lines = (await said('models', 'history', 'maker/old')).split('\n')
    const time = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`
    const by = `operator ${userInfo().username}`
    assert.match(lines[0] ?? '', new RegExp(`^version 2  since ${time}  set by ${by}$`))
    assert.deepEqual(lines.slice(1, 4), [
      '    price.input              1 → 2    × 2',
      '    price.cache_read  as input → 0.2',
      '',
    ])
    assert.match(lines[4] ?? '', new RegExp(`^version 1  since ${time}  set by ${by}$`))
    assert.deepEqual(lines.slice(5), ['    price.input   1', '    price.output  4', ''])
    const json = (await said('models', 'history', 'maker/old', '--json'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(
      json.map(({ version, by: who }) => [version, who]),
      [
        [2, by],
        [1, by],
      ],
    )
  })

  it('outlives the model, and says where there is none', async () => {
    await said('models', 'remove', 'maker/old')
    assert.match(await said('models', 'history', 'maker/old'), /^version 2 /)
    await said(
      'models',
      'set',
      'maker/bare',
      ...['--context-window', '1000', '--output-cap', '10', '--output-most', '100'],
    )
    assert.match(await said('models', 'history', 'maker/bare'), /^maker\/bare has never had a price/)
    const { code, output } = await farebox('models', 'history', 'none')
    assert.deepEqual([code, /There is no model "none"/.test(output)], [1, true])
  })
})
