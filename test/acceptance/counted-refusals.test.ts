import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { GROUPS } from '../../server/src/catalogue/limit-groups.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { reversePayment } from '../../server/src/ledger/reverse.ts'
import { ask, type Customer, call, codeOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'
import { traceOf } from './refusals-trace.ts'

/** What a refusal costs: a request of the key's minute, where the caller's own doing can end it, and never more than that. */
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox, masterKey } = installation
after(installation.stop)

const LIMIT = 6
/** Of deep research, beside the key's own. */
const GROUP_LIMIT = GROUPS.deep_research.requestsPerMinute
const MODE = { 'x-farebox-cost-mode': 'quote' }

type Refusing = {
  readonly secret: string
  readonly operation?: string
  readonly word?: string
  readonly headers?: Readonly<Record<string, string>>
}
type Case = {
  readonly status: number
  readonly code: string
  /** Makes somebody who is refused, after so many calls that were not. */
  readonly prepare: () => Promise<Refusing>
  readonly before: number
}

const few = (also: Parameters<typeof makeCustomer>[1] = {}) => makeCustomer(pool, { requestsPerMinute: LIMIT, ...also })

async function quoteOf({ secret }: Customer): Promise<string> {
  return String((await call(url, secret, 'tag_detail', '', { headers: MODE })).json.quote_id)
}

async function withUsedKey(): Promise<Required<Pick<Refusing, 'secret' | 'headers'>>> {
  const { secret } = await few()
  const headers = { 'idempotency-key': 'used' }
  assert.equal((await call(url, secret, 'tag_detail', '', { headers })).status, 200)
  return { secret, headers }
}

/** Somebody who spent what a payment gave, and then lost the payment. */
async function indebted(): Promise<Customer> {
  const debtor = await few({ money: 0n })
  const [paymentId, amount] = [ids.next(), nanos(10_000_000n)]
  await creditAccount(pool, { entryId: paymentId, accountId: debtor.accountId, kind: 'payment', amount })
  assert.equal((await call(url, debtor.secret, 'tag_detail')).status, 200)
  await reversePayment(pool, { reversalId: ids.next(), paymentId, kind: 'payment_reversal', most: amount })
  return debtor
}

const CASES: Readonly<Record<string, Case>> = {
  'a balance that does not cover the call': {
    status: 402,
    code: 'insufficient_balance',
    before: 0,
    prepare: () => few({ money: 500n }),
  },
  'a budget that does not': {
    status: 402,
    code: 'budget_exceeded',
    before: 0,
    prepare: () => few({ key: { budget: { period: 'month', amount: nanos(500n) } } }),
  },
  'a cap that does not': {
    status: 402,
    code: 'cost_cap_exceeded',
    before: 0,
    prepare: async () => ({ secret: (await few()).secret, headers: { 'x-farebox-max-cost-usd': '0' } }),
  },
  'a cap in the words of another gateway': {
    status: 400,
    code: 'invalid_request',
    before: 0,
    prepare: async () => ({ secret: (await few()).secret, headers: { 'x-acme-max-cost-usd': '1' } }),
  },
  'an account that owes money': { status: 402, code: 'account_suspended', before: 1, prepare: indebted },
  'an idempotency key that was used': {
    status: 409,
    code: 'idempotency_completed',
    before: 1,
    prepare: withUsedKey,
  },
  'an idempotency key that was used, with a request that is wrong': {
    status: 422,
    code: 'idempotency_mismatch',
    before: 1,
    prepare: async () => {
      const { secret, headers } = await withUsedKey()
      return { secret, headers: { ...headers, 'x-farebox-max-cost-usd': '-1' }, word: 'other' }
    },
  },
  'an idempotency key of another request': {
    status: 422,
    code: 'idempotency_mismatch',
    before: 1,
    prepare: async () => ({ ...(await withUsedKey()), word: 'other' }),
  },
  'a quote that was used': {
    status: 409,
    code: 'quote_used',
    before: 2,
    prepare: async () => {
      const customer = await few()
      const headers = { 'x-farebox-quote-id': await quoteOf(customer) }
      assert.equal((await call(url, customer.secret, 'tag_detail', '', { headers })).status, 200)
      return { secret: customer.secret, headers }
    },
  },
  'a quote of another request': {
    status: 400,
    code: 'quote_invalid',
    before: 1,
    prepare: async () => {
      const customer = await few()
      return { secret: customer.secret, headers: { 'x-farebox-quote-id': await quoteOf(customer) }, word: 'other' }
    },
  },
}

const leftOf = ({ headers }: Told) => Number(headers.get('X-RateLimit-Remaining-Requests') ?? Number.NaN)

describe('a refusal counts as one request, and nothing else', () => {
  for (const [name, { status, code, before, prepare }] of Object.entries(CASES)) {
    it(`${code}: ${name}`, async () => {
      const { secret, operation = 'tag_detail', word = '', headers = {} } = await prepare()
      const trace = await traceOf({ pool, sandbox })
      for (let left = LIMIT - before - 1; left >= 0; left -= 1) {
        const told = await call(url, secret, operation, word, { headers })
        assert.deepEqual([told.status, codeOf(told), leftOf(told)], [status, code, left], told.text)
      }
      const told = await call(url, secret, operation, word, { headers })
      assert.deepEqual([told.status, codeOf(told), leftOf(told)], [429, 'rate_limit_exceeded', 0], told.text)
      assert.deepEqual(await traceOf({ pool, sandbox }), trace)
    })
  }

  it('but not where it is for concurrency', async () => {
    const customer = await few({ key: { rates: { concurrency: 1 } } })
    const cut = { FAREBOX_HTTP_DRAIN_MS: '100', FAREBOX_LOG_LEVEL: 'silent' }
    const env = { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), ...cut }
    const other = await startGateway({ databaseUrl: database.url, env })
    const running = call(other.url, customer.secret, 'deep_research', 'sandbox:delay=600000').catch(() => undefined)
    const open = () => pool.query('select 1 from holds where account_id = $1', [customer.accountId])
    await until(async () => (await open()).rowCount === 1, 10_000, 'that the call runs')
    for (let at = 0; at < 2 * LIMIT; at += 1) {
      const told = await call(url, customer.secret, 'deep_research')
      assert.deepEqual([told.status, codeOf(told), leftOf(told)], [429, 'rate_limit_exceeded', GROUP_LIMIT - 1])
    }
    // The running call has the only place; a list of models takes none.
    const next = await ask(url, customer.secret, '/v1/models')
    assert.deepEqual([next.status, leftOf(next)], [200, LIMIT - 2])
    await other.stop()
    assert.equal(await running, undefined)
  })
})
