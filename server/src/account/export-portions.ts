/**
 * Lines of an export in portions. What a download keeps while its reader is slow is one portion, which is bounded by its bytes, however large rows are;
 * one line alone may be larger. Rows beyond it are read again.
 */

export type Line = Readonly<Record<string, unknown>> & { readonly type: string }
export type Written = { readonly type: string; readonly text: string }
export type Portions = AsyncGenerator<readonly Written[]>

export const PORTION_BYTES = 262_144
export const PORTION_ROWS = 500
const FIRST_ROWS = 50

export type Page<Row> = { readonly after: Row | undefined; readonly most: number }

/** Of a list that is read page by page: a page begins behind the last row that was told, and has as many as fit by those before. */
export async function* inPortions<Row>(
  read: (page: Page<Row>) => Promise<readonly Row[]>,
  told: (row: Row) => Line,
): Portions {
  let page: Page<Row> | undefined = { after: undefined, most: FIRST_ROWS }
  while (page !== undefined) {
    // What is read beyond the portion is gone before it is handed out.
    const portion: Portion<Row> = portionOf(await read(page), page, told)
    yield portion.lines
    page = portion.next
  }
}

type Portion<Row> = { readonly lines: readonly Written[]; readonly next: Page<Row> | undefined }

function portionOf<Row>(rows: readonly Row[], { most }: Page<Row>, told: (row: Row) => Line): Portion<Row> {
  const all = rows.map((row) => written(told(row)))
  const lines = fitting(all, 0)
  const isLast = lines.length === rows.length && rows.length < most
  if (isLast || lines.length === 0) return { lines, next: undefined }
  const bytes = all.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  const fit = Math.floor((PORTION_BYTES * all.length) / bytes)
  return { lines, next: { after: rows[lines.length - 1], most: Math.min(PORTION_ROWS, Math.max(1, fit)) } }
}

/** Of a list that is short, and there. */
export function* ofList(list: readonly Line[]): Generator<readonly Written[]> {
  const all = list.map(written)
  for (let from = 0; from < all.length; ) {
    const lines = fitting(all, from)
    yield lines
    from += lines.length
  }
}

const written = (line: Line): Written => ({ type: line.type, text: `${JSON.stringify(line)}\n` })

/** Those from one on that are no more than a portion, and at least that one. */
function fitting(all: readonly Written[], from: number): readonly Written[] {
  let bytes = 0
  let to = from
  for (const { text } of all.slice(from)) {
    bytes += Buffer.byteLength(text)
    if (bytes > PORTION_BYTES && to > from) break
    to += 1
  }
  return all.slice(from, to)
}
