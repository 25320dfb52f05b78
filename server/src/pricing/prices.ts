import type pg from 'pg'
import { z } from 'zod'
import type { DataOperation } from '../catalogue/operation.ts'
import type { Caller } from '../identity/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { asUnavailable, unavailable } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Rational } from '../kernel/rational.ts'
import { type By, difference, record, SERVICE } from '../storage/audit.ts'
import { createCache } from '../storage/cache.ts'
import type { ChangeFeed } from '../storage/change-feed.ts'
import { inTransaction, type Query, type Transactions } from '../storage/transaction.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import {
  type AccountPrices,
  accountPricesIn,
  modelOf,
  OWN_MODEL_LIMIT,
  operationTerms,
  ownModel,
  setPriceIn,
  timesOf,
  versionRow,
} from './operation-terms.ts'
import type { Terms } from './terms.ts'
import { unitPriceIn } from './unit-prices.ts'

export type Prices = {
  readonly termsFor: (operation: DataOperation, caller: Caller) => Promise<Terms>
  /** How many times the price of a model the caller's account pays: once, unless something else was agreed. */
  readonly timesFor: (model: string, caller: Pick<Caller, 'accountId'>) => Rational | Promise<Rational>
}

type Parts = {
  readonly pool: pg.Pool
  readonly feed: Pick<ChangeFeed, 'subscribe' | 'lagMs'>
  readonly clock: Clock
  readonly metrics: Pick<Metrics, 'cacheLoads'>
}

const MAX_OPERATIONS = 10_000
const MAX_ACCOUNTS = 100_000

export function createPrices({ pool, feed, clock, metrics }: Parts): Prices {
  const shared = { feed, clock, metrics }
  const versions = createCache({
    ...shared,
    name: 'prices',
    topic: 'price',
    load: (operation) => loadVersion(pool, operation),
    maxEntries: MAX_OPERATIONS,
  })
  const accounts = createCache({
    ...shared,
    name: 'account_prices',
    topic: 'account_price',
    load: (accountId) => loadAccountPrices(pool, accountId),
    maxEntries: MAX_ACCOUNTS,
  })
  return {
    timesFor(model, { accountId }) {
      const known = accounts.peek(accountId)
      if (known !== undefined) return timesOf(known, model)
      return accounts.get(accountId).then((own) => timesOf(own, model), asUnavailable)
    },
    async termsFor(operation, caller) {
      const [set, own] = await Promise.all([versions.get(operation.id), accounts.get(caller.accountId)]).catch(
        (cause: unknown) => {
          throw unavailable(cause)
        },
      )
      return operationTerms(operation, caller, { set, own })
    },
  }
}

async function loadVersion(pool: pg.Pool, operation: string) {
  const { rows } = await pool.query(
    `select version, unit_price::text, provider_cost::text from price_versions
     where operation = $1 order by version desc limit 1`,
    [operation],
  )
  return rows[0] && setPriceIn(rows[0])
}

/** The prices that operators have set, each at its newest version. */
export async function listPrices(pool: pg.Pool) {
  const { rows } = await pool.query(
    `select distinct on (operation) operation, version, unit_price::text, provider_cost::text from price_versions
     order by operation, version desc`,
  )
  return new Map(rows.map((row) => [z.object({ operation: z.string() }).parse(row).operation, versionRow.parse(row)]))
}

async function loadAccountPrices(pool: pg.Pool, accountId: Id): Promise<AccountPrices> {
  const { rows } = await pool.query('select operation, unit_price::text from account_prices where account_id = $1', [
    accountId,
  ])
  return accountPricesIn(rows)
}

export type NewPrice = {
  readonly operation: string
  /** Decimal USD for a unit. */
  readonly unitPrice: string
  readonly providerCost?: string
}

/** Sets what an operation costs from now on, as a new version. Calls that have begun keep theirs. */
export async function setPrice(
  pool: pg.Pool,
  { operation, unitPrice, providerCost }: NewPrice,
  by: By = SERVICE,
): Promise<number> {
  unitPriceIn(unitPrice)
  if (providerCost !== undefined) unitPriceIn(providerCost)
  return inTransaction(pool, async (query) => {
    await query("select pg_advisory_xact_lock(hashtext('price ' || $1))", [operation])
    const before = await readVersion(query, operation)
    await query('insert into price_versions (operation, version, unit_price, provider_cost) values ($1, $2, $3, $4)', [
      operation,
      (before?.version ?? 0) + 1,
      unitPrice,
      providerCost ?? before?.providerCost ?? null,
    ])
    const after = await readVersion(query, operation)
    if (after === null) throw new Error(`the price of ${operation} was not kept`)
    await record(query, by, { action: 'price.set', subject: operation, ...difference(before, after) })
    await query("select record_change(topic => 'price', key => $1)", [operation])
    return after.version
  })
}

const versionText = z.object({ version: z.int(), unitPrice: z.string(), providerCost: z.string().nullable() })

/** The newest price of an operation, as it is written. */
async function readVersion(query: Query, operation: string): Promise<z.output<typeof versionText> | null> {
  const { rows } = await query(
    `select version, unit_price::text as "unitPrice", provider_cost::text as "providerCost" from price_versions
     where operation = $1 order by version desc limit 1`,
    [operation],
  )
  return versionText.optional().parse(rows[0]) ?? null
}

/** Gives an account a price of its own, or takes it back where it is null. */
export async function setAccountPrice(
  pool: Transactions,
  accountId: Id,
  operation: string,
  unitPrice: string | null,
  by: By = SERVICE,
): Promise<void> {
  if (unitPrice !== null) unitPriceIn(unitPrice)
  await inTransaction(pool, async (query) => {
    // Who gives it another one meanwhile waits, also where there is none yet.
    await query("select pg_advisory_xact_lock(hashtext('account price ' || $1 || ' ' || $2))", [accountId, operation])
    const { rows } = await query(
      'select unit_price::text as "unitPrice" from account_prices where account_id = $1 and operation = $2',
      [accountId, operation],
    )
    if (unitPrice === null)
      await query('delete from account_prices where account_id = $1 and operation = $2', [accountId, operation])
    else
      await query(
        `insert into account_prices (account_id, operation, unit_price) values ($1, $2, $3)
         on conflict (account_id, operation) do update set unit_price = excluded.unit_price`,
        [accountId, operation, unitPrice],
      )
    const before = ownPrices.parse(rows)[0] ?? null
    const after = unitPrice === null ? null : { unitPrice }
    await record(query, by, { action: 'account_price.set', of: accountId, subject: operation, before, after })
    await query("select record_change(topic => 'account_price', key => $1)", [accountId])
  })
}

const ownPrices = z.array(z.object({ unitPrice: z.string() }))

/** Lets an account pay so many times the price of a model, whatever that is or becomes; takes it back where it is null. */
export async function setAccountModelTimes(
  pool: Transactions,
  accountId: Id,
  model: string,
  times: string | null,
  by: By = SERVICE,
): Promise<void> {
  if (model.length > OWN_MODEL_LIMIT)
    throw new RangeError(`the name of the model is longer than ${OWN_MODEL_LIMIT} characters, which is the most here`)
  await setAccountPrice(pool, accountId, ownModel(model), times, by)
}

const listedOwn = z.array(z.object({ account_id: z.string(), operation: z.string(), unit_price: z.string() }))

/** What accounts pay by agreement, in words. */
export async function listAccountPrices(pool: pg.Pool, accountIds: readonly Id[]) {
  const { rows } = await pool.query(
    'select account_id, operation, unit_price::text from account_prices where account_id = any ($1) order by account_id, operation limit 1000',
    [accountIds],
  )
  return listedOwn.parse(rows).map(({ account_id: accountId, operation, unit_price: price }) => {
    const model = modelOf(operation)
    const what = model ?? operation
    return { accountId, what, price: model === undefined ? `${price} USD` : `${price}x the price of the model` }
  })
}
