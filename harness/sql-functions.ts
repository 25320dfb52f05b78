import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type pg from 'pg'
import { ROOT } from './root.ts'

const FOLDER = path.join(ROOT, 'server/src/storage/functions')

/** Its text names the days that there are: name_days_of_charges writes it anew every day. */
const REWRITTEN_DAILY = ['has_ended']

/** A stored function as a database has it. */
export type SqlFunction = {
  readonly name: string
  /** The names, types and defaults of its arguments: whoever calls it by name depends on all of them. */
  readonly takes: string
  readonly gives: string
  readonly definition: string
}

/** All that are ours to write, by name. */
export async function functionsIn(client: pg.Client): Promise<readonly SqlFunction[]> {
  const { rows } = await client.query<SqlFunction>(
    `select proname as name, pg_get_function_arguments(oid) as takes, pg_get_function_result(oid) as gives,
       pg_get_functiondef(oid) as definition
     from pg_proc where pronamespace = 'public'::regnamespace and proname <> all ($1) order by proname, oid`,
    [REWRITTEN_DAILY],
  )
  return rows
}

/** The definitions of today, one a file, by the function's name. */
export function functionFiles(): ReadonlyMap<string, string> {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.sql'))
  return new Map(
    files.sort().map((file) => [path.basename(file, '.sql'), readFileSync(path.join(FOLDER, file), 'utf8')]),
  )
}

export type Difference = { readonly changed: readonly string[]; readonly gone: readonly SqlFunction[] }

/**
 * Which files say something else than a database, and which of its functions no file has. The files are run there and rolled
 * back, so that both are compared as PostgreSQL reads them.
 */
export async function differences(client: pg.Client, files: ReadonlyMap<string, string>): Promise<Difference> {
  const before = await functionsIn(client)
  await client.query('begin')
  try {
    for (const [name, text] of files) await define(client, name, text)
    const after = await functionsIn(client)
    const old = new Set(before.map(({ definition }) => definition))
    const changed = new Set(after.filter(({ definition }) => !old.has(definition)).map(({ name }) => name))
    return { changed: [...changed], gone: before.filter(({ name }) => !files.has(name)) }
  } finally {
    await client.query('rollback')
  }
}

async function define(client: pg.Client, name: string, text: string): Promise<void> {
  if (!new RegExp(`^(--.*\n)*create or replace function ${name}\\s*\\(`).test(text))
    throw new Error(`functions/${name}.sql should be comments, then "create or replace function ${name}(…".`)
  try {
    await client.query(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`functions/${name}.sql: ${why}. What can't be replaced is a new function, under another name.`, {
      cause,
    })
  }
}
