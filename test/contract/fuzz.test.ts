import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { contractHere } from '../../harness/recorded-contract.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Customer, chargesOf, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { createDeclared } from './declared.ts'
import { createFuzz, type Fuzzed } from './fuzzed-requests.ts'
import { createRandom } from './generate.ts'

const REQUESTS = count({ full: 100_000, reduced: 2_000 })
const AT_ONCE = 16
/** Some limits are of a key and a minute: many keys meet them less often. */
const CUSTOMERS = 40

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, gateways } = installation
after(installation.stop)

const declared = createDeclared(contractHere().bytes)
const customers = await Promise.all(
  // Some have nothing, and are refused for that.
  Array.from({ length: CUSTOMERS }, (_, at) => makeCustomer(pool, { money: at % 8 === 0 ? 0n : 1_000_000_000_000n })),
)

type Answered = {
  readonly status: number
  readonly id: Id
  readonly isOurs: boolean
  readonly isQuote: boolean
  readonly cost: string | null
}

const MODE = 'x-farebox-cost-mode'
const problems: string[] = []

async function send(fuzzed: Fuzzed, { secret }: Customer): Promise<Answered> {
  const { method, headers, body } = fuzzed
  const target = new URL(url + fuzzed.path)
  const asked = new Headers({ authorization: `Bearer ${secret}`, 'content-type': 'application/json', ...headers })
  const response = await fetch(target, {
    method,
    headers: asked,
    redirect: 'manual',
    ...(method !== 'GET' && { body: body ?? null }),
  })
  const text = await response.text()
  const { status } = response
  const exchange = { method, path: target.pathname + target.search, asked, status, headers: response.headers, text }
  const wrong = declared.undeclared(exchange)
  const shown = `${method} ${fuzzed.path.slice(0, 300)} ${body?.slice(0, 1_000)} → ${status} ${text.slice(0, 500)}`
  if (wrong !== undefined) problems.push(`${wrong}: ${shown}`)
  const id = response.headers.get('x-request-id') ?? ''
  const isOurs = status >= 400 && (text.includes(id) || text.startsWith('{"error":"') || text.startsWith('<!doctype'))
  if (status >= 500 && isOurs && !text.includes('"unsupported_uri"')) problems.push(`failed: ${shown}`)
  return { status, id, isOurs, isQuote: asked.get(MODE) === 'quote', cost: response.headers.get('x-farebox-cost-usd') }
}

describe('requests that are made from the contract, whole and damaged', () => {
  it('are answered as it declares, break nothing, and cost nothing where they are refused', async () => {
    const fuzz = createFuzz(declared, createRandom(seed))
    const answered: Answered[] = []
    let left = REQUESTS
    async function work(): Promise<void> {
      while (left > 0) {
        left -= 1
        answered.push(await send(fuzz.next(), customers[left % CUSTOMERS] ?? assert.fail()))
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work))

    assert.deepEqual(problems.slice(0, 20), [], `${problems.length} answers are wrong`)
    assert.equal(answered.length, REQUESTS)
    assert.equal((await fetch(`${url}/readyz`)).status, 200)
    assert.equal(await Promise.race([gateways[0]?.exited.then(() => 'gone'), 'alive']), 'alive')
    const open = async () =>
      Number((await pool.query("select count(*) from holds where operation <> 'video_synthesis'")).rows[0]?.count ?? 0)
    await until(async () => (await open()) === 0, PATIENCE_MS, 'that every call has ended')

    const charged = new Map<Id, bigint>()
    for (const { accountId } of customers)
      for (const [id, amount] of await chargesOf(pool, accountId)) charged.set(id, amount)
    const refused = answered.filter(({ isOurs }) => isOurs)
    for (const { id, cost } of refused) {
      assert.equal(charged.get(id) ?? 0n, 0n, id)
      assert.ok(cost === null || /^0\.0+$/.test(cost), `${id} ${cost}`)
    }
    for (const { id, isQuote } of answered) if (isQuote) assert.equal(charged.has(id), false, id)
    assert.deepEqual(await verifyLedger(pool, null), [])

    const statuses = Map.groupBy(answered, ({ status }) => status)
    const paid = answered.filter(({ id }) => (charged.get(id) ?? 0n) > 0n).length
    // It would show nothing if everything were refused, or nothing.
    assert.ok(paid > REQUESTS / 50 && refused.length > REQUESTS / 5, `${paid} paid, ${refused.length} refused`)
    recordProof('contract-fuzzing', 'requests made from the contract, whole and damaged', {
      requests: REQUESTS,
      operations: fuzz.operations,
      paid,
      refused: refused.length,
      statuses: Object.fromEntries(
        [...statuses].sort(([a], [b]) => a - b).map(([status, list]) => [status, list.length]),
      ),
      undeclared_answers: 0,
      charged_refusals: 0,
    })
  })
})
