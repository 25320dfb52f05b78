import { z } from 'zod'
import type { DataOperation } from '../catalogue/operation.ts'
import { Fault } from '../kernel/fault.ts'

type Given = {
  readonly query: string
  readonly readBody: () => unknown
}

const DETAIL_LIMIT = 500
/** No URL has them, and no upstream is sent them: some servers read them as something else. */
const NOT_IN_A_QUERY = /["\\]/

/** The input of an operation as its schema has it, or the fault that says what is wrong with it. */
export function parseInput(operation: DataOperation, { query, readBody }: Given): unknown {
  if (NOT_IN_A_QUERY.test(query))
    throw new Fault('invalid_request', { detail: 'The characters " and \\ in a query have to be percent-encoded.' })
  const given = operation.method === 'GET' ? parameters(query) : readBody()
  requireNoneRefused(operation.refuses ?? {}, given)
  const { success, data, error } = operation.input.safeParse(given)
  if (success) return data
  throw new Fault('invalid_request', { detail: z.prettifyError(error).slice(0, DETAIL_LIMIT) })
}

/** Servers read several spellings as one name: `Name`, `name[]`, `name[0]`, and what follows a semicolon. */
function requireNoneRefused(refuses: NonNullable<DataOperation['refuses']>, given: unknown): void {
  if (typeof given !== 'object' || given === null) return
  const spelt = Object.keys(given).flatMap((name) => name.split(';'))
  const values = Object.values(given).filter((value) => typeof value === 'string' && value.includes(';'))
  const names = new Set([...spelt, ...values.flatMap((value) => String(value).split(';'))].map(plainName))
  for (const [name, why] of Object.entries(refuses)) {
    if (names.has(name)) throw new Fault('invalid_request', { detail: `"${name}" is not taken: ${why}.` })
  }
}

function plainName(name: string): string {
  return (/^[^[=]*/.exec(name)?.[0] ?? '').trim().toLowerCase()
}

/** What is given once is a text, what is given several times a list. */
function parameters(query: string): Record<string, string | string[]> {
  const search = new URLSearchParams(query)
  const given: Record<string, string | string[]> = Object.create(null)
  for (const name of new Set(search.keys())) {
    const values = search.getAll(name)
    given[name] = values.length === 1 ? (values[0] ?? '') : values
  }
  return { ...given }
}
