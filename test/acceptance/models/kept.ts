import assert from 'node:assert/strict'
import type pg from 'pg'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { ask } from '../installation.ts'

/** The record of a call as its caller reads it, with the detail that is written behind the answer. */
export async function recordOf(url: string, secret: string, id: string) {
  const read = async () => (await ask(url, secret, `/v1/requests/${id}`)).json
  await until(async () => (await read()).detail !== null, PATIENCE_MS, 'the detail of a call')
  const { cost, tokens, detail, failed } = await read()
  const { formula, evidence } = Object(detail)
  return { costUsd: Object(cost).usd, tokens, failed, formula, evidence }
}

/** What the ledger has of a call. */
export async function rowOf(pool: pg.Pool, id: string) {
  const { rows } = await pool.query<{ outcome: string; amount: bigint; overrun: bigint; value: bigint }>(
    'select outcome, amount, overrun, value from charges where id = $1',
    [id],
  )
  assert.equal(rows.length, 1, 'one row in the ledger')
  return rows[0]
}

export async function usageOf(url: string, secret: string): Promise<Record<string, number>> {
  return Object((await ask(url, secret, '/v1/usage?start_time=1')).json.totals)
}

export function usdOf(nanos: bigint): string {
  const digits = String(nanos).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}
