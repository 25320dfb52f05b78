import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import pg from 'pg'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { daysOf, literal, Positions, textLiteral } from './columns.ts'

const { url } = await freshDatabase()
const client = new pg.Pool({ connectionString: url })
// The database is dropped before this file's own hooks run.
client.on('error', () => {})
after(() => client.end())

describe('columns of a batch', () => {
  it('bring any text to PostgreSQL as it is', async () => {
    const text = fc.string({ unit: 'binary' }).filter((one) => !one.includes('\0') && one.isWellFormed())
    await fc.assert(
      fc.asyncProperty(fc.array(text), async (values) => {
        const { rows } = await client.query('select $1::text[] as values', [textLiteral(values)])
        assert.deepEqual(rows[0]?.values, values)
      }),
      { numRuns: 300 },
    )
  })

  for (const word of ['NULL', 'null', '', '{}', '"', '\\', ' a ', 'a,b', "it's", '\n']) {
    it(`bring ${JSON.stringify(word)} as text`, async () => {
      const { rows } = await client.query('select $1::text[] as values', [textLiteral([word, word])])
      assert.deepEqual(rows[0]?.values, [word, word])
    })
  }

  it('bring numbers, amounts, flags and nothing', async () => {
    const { rows } = await client.query('select $1::bigint[]::text[] as amounts, $2::boolean[] as flags', [
      literal([0n, 9_223_372_036_854_775_807n, null]),
      literal([true, false]),
    ])
    assert.deepEqual(rows[0], { amounts: ['0', '9223372036854775807', null], flags: [true, false] })
  })

  it('name the days of ids once each, by UTC', () => {
    const at = (time: string) => ({
      id: `${Date.parse(time)
        .toString(16)
        .padStart(12, '0')
        .replace(/^(.{8})/, '$1-')}-7000-8000-000000000000`,
    })
    assert.equal(
      daysOf([at('2026-11-14T23:59:59.999Z'), at('2026-11-15T00:00:00.000Z'), at('2026-11-15T12:00:00Z')]),
      '{2026-11-14,2026-11-15}',
    )
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
