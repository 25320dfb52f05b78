import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Customer, Told } from '../acceptance/installation.ts'
import { ENDPOINTS, type Endpoint } from './endpoints.ts'
import { type Probe, sendsNothing } from './probe.ts'
import type { Request, Stack } from './stack.ts'

/** How a paid endpoint is called, quoted and refused. */
export type Rule = {
  readonly says: string
  readonly of?: readonly Endpoint[]
  readonly check: (stack: Stack, endpoint: Endpoint) => Promise<void>
}

export const QUOTE = { 'x-farebox-cost-mode': 'quote' }
export const cap = (amount: string) => ({ 'x-farebox-max-cost-usd': amount })

/** The same request with more headers. */
export function having(endpoint: Endpoint, headers: Readonly<Record<string, string>>): Request {
  return { ...requestOf(endpoint), headers: { ...endpoint.headers, ...headers } }
}

export function requestOf({ method, path, body, headers }: Endpoint): Request {
  return {
    path,
    ...(method !== undefined && { method }),
    ...(body !== undefined && { body }),
    ...(headers && { headers }),
  }
}

export function changed(endpoint: Endpoint): Request {
  const { path, body } = endpoint
  if (body === undefined) return { ...requestOf(endpoint), path: `${path}2` }
  const other = JSON.parse(JSON.stringify(body).replace(/Hello|a fox|why|a quick/, (word) => `${word} now`))
  return { ...requestOf(endpoint), body: other }
}

export async function recordOf(stack: Stack, { secret }: Customer, id: string): Promise<Record<string, unknown>> {
  let record: Told | undefined
  await until(
    async () => {
      record = await stack.send(secret, { path: `/v1/requests/${id}` })
      return Object(record.json.cost).usd !== undefined && record.json.detail !== null
    },
    PATIENCE_MS,
    'the record of a call',
  )
  return record?.json ?? {}
}

export async function quoteOf(stack: Stack, { secret }: Customer, endpoint: Endpoint): Promise<Told> {
  const told = await stack.send(secret, having(endpoint, QUOTE))
  assert.equal(told.status, 200, told.text)
  return told
}

export async function maxOf(stack: Stack, customer: Customer, endpoint: Endpoint): Promise<string> {
  return String(Object((await quoteOf(stack, customer, endpoint)).json.max).usd)
}

/** That a request is refused, and neither charged nor sent. */
export async function refused(stack: Stack, customer: Customer, request: Request): Promise<Told> {
  const told = await sendsNothing(stack, () => stack.send(customer.secret, request))
  assert.equal(await stack.chargedOf(customer), 0n)
  return told
}

/** Each rule of each endpoint that it is about. */
export function probesOf(rules: readonly Rule[]): readonly Probe[] {
  return rules.flatMap(({ says, of = ENDPOINTS, check }) =>
    of.map((endpoint): Probe => [`${says}: ${endpoint.name}`, (stack) => check(stack, endpoint)]),
  )
}
