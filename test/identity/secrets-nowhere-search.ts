import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type pg from 'pg'

/** What a key or a token consists of: where it belongs, its secret and its checksum. */
const SECRET = /^fb_[a-z]+_[0-9a-f]{35}_(.+).{6}$/

/** A text in every form that it can be had back from without knowing it. */
function formsOf(text: string): readonly string[] {
  const hex = Buffer.from(text).toString('hex')
  const percent = hex.replace(/../g, (byte) => `%${byte}`)
  // Base64 of a longer text has the text in it in one of three ways, by where it begins; the ends depend on what is around.
  const inBase64 = [0, 1, 2].map((before) => {
    const encoded = Buffer.from('\0'.repeat(before) + text).toString('base64')
    return encoded.slice(before === 0 ? 0 : 4, encoded.length - 4)
  })
  const reversed = [...text].reverse().join('')
  return [text, reversed, hex, hex.toUpperCase(), percent, percent.toUpperCase(), ...inBase64]
}

/** What must be found nowhere: a key as a whole, and its secret part alone, which is as good. */
export function needlesOf(keys: readonly string[]): readonly Buffer[] {
  return needlesOfTexts(keys.flatMap((key) => [key, SECRET.exec(key)?.[1] ?? key]))
}

/** Secrets of other kinds. */
export function needlesOfTexts(texts: readonly string[]): readonly Buffer[] {
  return texts.flatMap(formsOf).map((form) => Buffer.from(form))
}

export type Place = { readonly where: string; readonly content: Buffer }

/** The places that a needle was found in, each with what stands around it. */
export function search(needles: readonly Buffer[], places: readonly Place[]): readonly string[] {
  return places.flatMap(({ where, content }) =>
    needles.flatMap((needle) => {
      const at = content.indexOf(needle)
      return at < 0
        ? []
        : [`${where}: …${content.subarray(Math.max(0, at - 80), at + needle.length).toString('latin1')}`]
    }),
  )
}

export function textPlace(where: string, text: string): Place {
  return { where, content: Buffer.from(text) }
}

/** Every row of every table that is not PostgreSQL's own, as text; bytes are in hexadecimal. */
export async function rowsOf(pool: pg.Pool): Promise<Place[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema') order by 1`,
  )
  const places: Place[] = []
  for (const { name } of tables) {
    const { rows } = await pool.query<{ line: string }>(`select t::text as line from ${name} t`)
    places.push(textPlace(`table ${name}`, rows.map(({ line }) => line).join('\n')))
  }
  return places
}

/** Every file below a folder: of a PostgreSQL that is stopped, its tables, its write-ahead log and what it logged. */
export function filesOf(folder: string): Place[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .map((file) => {
      const [where, content] = [path.relative(folder, file), readFileSync(file)]
      return { where, content: SEGMENT.test(where) ? recordsOf(content) : content }
    })
}

const SEGMENT = /(^|\/)pg_wal\/[0-9A-F]{24}$/
const WAL_PAGE_BYTES = 8192
const WAL_PAGE_HEADER_BYTES = 24
/** The first page of a segment says more of itself. */
const WAL_FIRST_PAGE_HEADER_BYTES = 40

/** A segment of the write-ahead log without its pages' headers: a record that crosses pages has one in its middle. */
function recordsOf(segment: Buffer): Buffer {
  const pages: Buffer[] = []
  for (let at = 0; at < segment.length; at += WAL_PAGE_BYTES) {
    const header = at === 0 ? WAL_FIRST_PAGE_HEADER_BYTES : WAL_PAGE_HEADER_BYTES
    pages.push(segment.subarray(at + header, at + WAL_PAGE_BYTES))
  }
  return Buffer.concat(pages)
}
