import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { inPortions, ofList, type Page, PORTION_BYTES, PORTION_ROWS, type Written } from './export-portions.ts'

type Row = { readonly at: number; readonly letters: number }

const told = ({ at, letters }: Row) => ({ type: 'row', at, text: 'é'.repeat(letters) })
const bytesOf = (lines: readonly Written[]) => Buffer.byteLength(lines.map(({ text }) => text).join(''))

/** Reads all rows as a table would, and notes how many were asked for. */
async function readAll(rows: readonly Row[]) {
  const asked: number[] = []
  const read = async ({ after, most }: Page<Row>) => {
    asked.push(most)
    const from = after === undefined ? 0 : after.at + 1
    return rows.slice(from, from + most)
  }
  const portions: (readonly Written[])[] = []
  for await (const lines of inPortions(read, told)) portions.push(lines)
  return { asked, portions }
}

const rowsOf = (of: number, lettersAt: (at: number) => number) =>
  Array.from({ length: of }, (_, at) => ({ at, letters: lettersAt(at) }))

describe('portions of an export', () => {
  it('have every row once and in order, and within their bytes, when large rows come after small ones', async () => {
    const rows = rowsOf(3_000, (at) => (at < 1_500 ? 1 : (at * 7_919) % 20_000))
    const { asked, portions } = await readAll(rows)
    assert.deepEqual(
      portions.flat().map(({ text }) => JSON.parse(text).at),
      rows.map(({ at }) => at),
    )
    for (const lines of portions) assert.ok(bytesOf(lines) <= PORTION_BYTES, `${bytesOf(lines)} bytes`)
    assert.ok(Math.max(...asked) <= PORTION_ROWS)
    assert.ok(Math.min(...asked) < 50, 'of large rows few are read')
  })

  it('are one line where that is larger, and nothing of an empty list', async () => {
    const { portions } = await readAll(rowsOf(3, () => PORTION_BYTES))
    assert.deepEqual(
      portions.filter((lines) => lines.length > 0).map((lines) => lines.length),
      [1, 1, 1],
    )
    assert.deepEqual((await readAll([])).portions.flat(), [])
  })

  it('divide a list that is there', () => {
    const list = rowsOf(400, () => 1_000).map(told)
    const portions = [...ofList(list)]
    assert.deepEqual(
      portions.flat().map(({ text }) => JSON.parse(text)),
      list,
    )
    assert.ok(portions.length > 1)
    for (const lines of portions) assert.ok(bytesOf(lines) <= PORTION_BYTES)
  })
})
