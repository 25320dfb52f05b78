import assert from 'node:assert/strict'
import type pg from 'pg'
import { seedModel } from '../../harness/seed.ts'
import { formatUsd, nanos } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel } from '../../server/src/pricing/configure-models.ts'
import { chargesOf as amountsOf, type Customer, type Installation } from '../acceptance/installation.ts'
import { chargeOf, costOf, settled, tokensIn } from '../acceptance/models/streams.ts'
import { AGENTS, type Agent, type Task } from './agents.ts'
import type { Exchange } from './recorder.ts'
import { KEY, type Recorded } from './scrub.ts'

/** Puts the models on sale that agents ask for by names of their own. */
export async function sellModels(pool: pg.Pool): Promise<void> {
  for (const { model } of AGENTS.flatMap(({ tasks }) => tasks)) {
    if (model.startsWith('sandbox/')) continue
    await seedModel(pool, { id: model })
    await saveModel({ pool }, { id: model, contextWindow: 1_000_000, outputMost: 128_000 })
  }
}

/** The file of a conversation, below `recorded/`. */
export function fileOf({ name }: Agent, { model }: Task): string {
  return `${name}-${model.replaceAll(/[^a-z0-9.-]/g, '-')}.json`
}

/** Sends what an agent once sent, one after the other. */
export async function replay(
  url: string,
  { secret }: Customer,
  requests: readonly Omit<Recorded, 'cost_usd'>[],
): Promise<readonly Exchange[]> {
  const exchanges: Exchange[] = []
  for (const { method, path, headers, body } of requests) {
    const sent = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, value.replaceAll(KEY, secret)]),
    )
    const text = body === undefined ? '' : JSON.stringify(body)
    const answer = await fetch(url + path, { method, headers: sent, ...(text !== '' && { body: text }) })
    const id = answer.headers.get('x-request-id') ?? ''
    exchanges.push({ method, path, headers: sent, body: text, status: answer.status, id, answer: await answer.text() })
  }
  return exchanges
}

export type Line = {
  readonly request: string
  readonly status: number
  readonly input: number
  readonly cache_read: number
  readonly cache_write: number
  readonly output: number
  readonly cost_usd: string
}

const COST = /"cost_usd":"([0-9.]+)"/g

/**
 * What a conversation came to, request by request. What the caller was told, what the ledger holds and what the upstream reported
 * are the same, and nothing else was charged.
 */
export async function judge(
  { pool, sandbox }: Installation,
  { accountId }: Customer,
  exchanges: readonly Exchange[],
): Promise<{ readonly lines: readonly Line[]; readonly total_usd: string }> {
  await settled(pool, accountId)
  const journal = await sandbox.journal()
  const lines: Line[] = []
  let total = 0n
  for (const { id, method, path, status, answer } of exchanges) {
    assert.equal(status, 200, answer)
    const reported = tokensIn(journal.find(({ request_id }) => request_id === id)?.usage)
    const charge = await chargeOf(pool, id)
    const cost_usd = formatUsd(nanos(charge.amount))
    assert.deepEqual([charge.outcome, charge.amount, charge.tokens], ['posted', costOf(reported), reported])
    assert.deepEqual(
      [...answer.matchAll(COST)].map(([, told]) => told),
      [cost_usd],
    )
    total += charge.amount
    const { input, output, cacheRead, cacheWrite } = reported
    const request = `${method} ${path}`
    lines.push({ request, status, input, cache_read: cacheRead, cache_write: cacheWrite, output, cost_usd })
  }
  const booked = [...(await amountsOf(pool, accountId)).values()]
  assert.deepEqual([booked.length, booked.reduce((sum, amount) => sum + amount, 0n)], [exchanges.length, total])
  assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  return { lines, total_usd: formatUsd(nanos(total)) }
}
