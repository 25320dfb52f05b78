import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type pg from 'pg'
import { ROOT } from './root.ts'

export const FUNCTIONS = 'server/src/storage/functions'

/** Its text names the days that there are: name_days_of_charges writes it anew every day. */
const REWRITTEN_DAILY = ['has_ended']

/** A stored function as a database has it. */
export type SqlFunction = {
  readonly name: string
  /** The names, types and defaults of its arguments: whoever calls it by name depends on all of them. */
  readonly takes: string
  readonly gives: string
}

/** All that are ours to write, by name. */
export async function functionsIn(client: pg.Client): Promise<readonly SqlFunction[]> {
  const { rows } = await client.query<SqlFunction>(
    `select proname as name, pg_get_function_arguments(oid) as takes, pg_get_function_result(oid) as gives
     from pg_proc where pronamespace = 'public'::regnamespace and proname <> all ($1) order by proname, oid`,
    [REWRITTEN_DAILY],
  )
  return rows
}

/** The definitions of today, one a file, by the function's name. */
export function functionFiles(): ReadonlyMap<string, string> {
  const folder = path.join(ROOT, FUNCTIONS)
  const files = readdirSync(folder).filter((file) => file.endsWith('.sql'))
  return new Map(
    files.sort().map((file) => [path.basename(file, '.sql'), readFileSync(path.join(folder, file), 'utf8')]),
  )
}

/** Whether a file is comments, then the function of its name, and nothing else. */
export function definesItself(name: string, text: string): boolean {
  const statement = new RegExp(`^(--.*\n)*create or replace function ${name}\\s*\\(`)
  return statement.test(text) && text.match(/^create /gm)?.length === 1
}

/** What a function says, by which a release knows that it has changed since. */
export function checksumOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
