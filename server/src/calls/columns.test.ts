import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { seed } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { arrayText, daysOf, encodeArray, encodeRecords, type Field, Positions } from './columns.ts'
import * as begin from './fast-begin.ts'
import * as end from './fast-end.ts'

const { url } = await freshDatabase()
const client = new pg.Pool({ connectionString: url })
// The database is dropped before this file's own hooks run.
client.on('error', () => {})
after(() => client.end())

const text = fc.string({ unit: 'binary' }).filter((one) => !one.includes('\0') && one.isWellFormed())

describe('columns of a batch', () => {
  it('bring any text to PostgreSQL as it is, in a column and in an array within one', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(text), async (values) => {
        const { rows } = await client.query('select $1::text[] as values, ($2::text[])[1]::text[] as inner', [
          encodeArray('text[]', values),
          encodeArray('text[]', [arrayText(values)]),
        ])
        assert.deepEqual(rows[0], { values, inner: values })
      }),
      { numRuns: 300, seed },
    )
  })

  for (const word of ['NULL', 'null', '', '{}', '"', '\\', ' a ', 'a,b', "it's", '\n']) {
    it(`bring ${JSON.stringify(word)} as text`, async () => {
      const { rows } = await client.query('select $1::text[] as values, $2::text[] as inner', [
        encodeArray('text[]', [word, word]),
        arrayText([word, word]),
      ])
      assert.deepEqual(rows[0], { values: [word, word], inner: [word, word] })
    })
  }

  it('bring any id, number and flag, and nothing', async () => {
    const amount = fc.option(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
    const columns = fc.tuple(
      fc.array(fc.uuid()),
      fc.array(fc.option(fc.integer())),
      fc.array(amount),
      fc.array(fc.maxSafeInteger()),
      fc.array(fc.boolean()),
    )
    await fc.assert(
      fc.asyncProperty(columns, async ([ids, integers, amounts, numbers, flags]) => {
        const { rows } = await client.query(
          `select $1::uuid[]::text[] as ids, $2::integer[] as integers, $3::bigint[]::text[] as amounts,
             $4::bigint[]::text[] as numbers, $5::boolean[] as flags`,
          [
            encodeArray('uuid[]', ids),
            encodeArray('integer[]', integers),
            encodeArray('bigint[]', amounts),
            encodeArray('bigint[]', numbers),
            encodeArray('boolean[]', flags),
          ],
        )
        const texts = (values: readonly (bigint | number | null)[]) =>
          values.map((value) => (value === null ? null : String(value)))
        assert.deepEqual(rows[0], { ids, integers, amounts: texts(amounts), numbers: texts(numbers), flags })
      }),
      { numRuns: 200, seed },
    )
  })

  for (const [type, value] of [
    ['uuid[]', '01890000-0000-7000-8000-00000000000'],
    ['uuid[]', '01890000-0000-7000-8000-0000000000zz'],
    ['uuid[]', '01890000-0000-7000-8000-0000000-0000'],
    ['integer[]', 2 ** 31],
    ['integer[]', 1.5],
    ['bigint[]', 2n ** 63n],
    ['bigint[]', 2 ** 60],
  ] as const) {
    it(`refuse ${value} as ${type}`, () => {
      assert.throws(() => encodeArray(type, [value]), RangeError)
    })
  }

  it('name the days of ids once each, by UTC', async () => {
    const at = (time: string) => ({
      id: `${Date.parse(time)
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-')}-7000-8000-000000000000`,
    })
    const days = daysOf([at('2026-11-14T23:59:59.999Z'), at('2026-11-15T00:00:00.000Z'), at('2026-11-15T12:00:00Z')])
    const { rows } = await client.query('select $1::date[]::text[] as days', [encodeArray('date[]', days)])
    assert.deepEqual(rows[0]?.days, ['2026-11-14', '2026-11-15'])
  })

  it('give each distinct thing one position, counted from 1', () => {
    const positions = new Positions<string>()
    assert.deepEqual(
      ['a', 'b', 'a'].map((key) => positions.of(key, key)),
      [1, 2, 1],
    )
    assert.deepEqual(positions.values, ['a', 'b'])
  })
})

describe('records of a batch', () => {
  it('are rows of their types, whose fields they have in the same order', async () => {
    for (const { name, fields } of [begin.ACCOUNT, begin.CREDENTIAL, begin.CALL, end.CALL]) {
      const { rows } = await client.query<{ name: string; type: string }>(
        `select attname as name, format_type(atttypid, atttypmod) || '[]' as type from pg_attribute
         where attrelid = $1::regclass order by attnum`,
        [name],
      )
      assert.deepEqual(
        rows.map((row) => [row.name, row.type]),
        fields.map(([field, type]) => [field, type]),
        name,
      )
    }
  })

  it('bring any value to PostgreSQL as it is, and nothing', async () => {
    await client.query('create type thing as (id uuid, label text, amount bigint, is_open boolean)')
    type Thing = { readonly id: string; readonly label: string | null; readonly amount: bigint; readonly open: boolean }
    const fields: readonly Field<Thing>[] = [
      ['id', 'uuid[]', ({ id }) => id],
      ['label', 'text[]', ({ label }) => label],
      ['amount', 'bigint[]', ({ amount }) => amount],
      ['is_open', 'boolean[]', ({ open }) => open],
    ]
    const thing = fc.record({
      id: fc.uuid(),
      label: fc.option(text),
      amount: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      open: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(thing), async (things) => {
        const { rows } = await client.query(
          'select id, label, amount::text, is_open as open from unnest($1::thing[]) with ordinality order by ordinality',
          [encodeRecords(fields, things)],
        )
        assert.deepEqual(
          rows,
          things.map((one) => ({ ...one, amount: String(one.amount) })),
        )
      }),
      { numRuns: 300, seed },
    )
  })
})
