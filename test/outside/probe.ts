import assert from 'node:assert/strict'
import type { Told } from '../acceptance/installation.ts'
import { type Stack, sentTo } from './stack.ts'

/** A statement of the specification that a caller can observe, and what shows it. */
export type Probe = readonly [statement: string, check: (stack: Stack) => Promise<void>]

export type Dialect = 'openai' | 'anthropic' | 'gemini' | 'data'

/** That an answer is an error of ours in the shape of its protocol; its members, and our code. */
export function requireError(told: Told, dialect: Dialect, status: number, code?: string): Record<string, unknown> {
  assert.equal(told.status, status, told.text)
  assert.match(told.headers.get('content-type') ?? '', /^application\/json/)
  assert.match(told.id, /^[\w-]{8,}$/)
  const error = Object(told.json.error)
  assert.ok(String(error.message).length > 10, told.text)
  const reason = CODES[dialect](told.json)
  if (code !== undefined) assert.equal(reason, code, told.text)
  return error
}

type Body = Readonly<Record<string, unknown>>
const CODES: Readonly<Record<Dialect, (body: Body) => unknown>> = {
  openai({ error }) {
    const { code, type, message, param } = Object(error)
    assert.equal(typeof type, 'string')
    assert.equal(typeof message, 'string')
    assert.notEqual(param, undefined)
    return code
  },
  anthropic({ type, error, request_id }) {
    assert.equal(type, 'error')
    assert.equal(typeof request_id, 'string')
    const { type: kind, details } = Object(error)
    assert.match(kind, /_error$|^request_too_large$/)
    return Object(details).error_code
  },
  gemini({ error }) {
    const { code, status, details } = Object(error)
    assert.equal(typeof code, 'number')
    assert.match(status, /^[A-Z_]+$/)
    return Object([details].flat()[0]).reason
  },
  data({ error }) {
    return Object(error).code
  },
}

/** Runs something that must send nothing to an upstream. */
export async function sendsNothing<T>({ sandbox }: Stack, act: () => Promise<T>): Promise<T> {
  const before = await sentTo(sandbox)
  const result = await act()
  assert.equal(await sentTo(sandbox), before, 'an upstream was asked')
  return result
}
