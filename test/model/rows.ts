import assert from 'node:assert/strict'
import type pg from 'pg'
import { type Sums, sumsOf } from './account.ts'
import { paidOf } from './credits.ts'
import type { Model } from './ledger-model.ts'

/** Compares what PostgreSQL has of the model's accounts with the model, table by table. */
export async function compareRows(pool: pg.Pool, model: Model): Promise<void> {
  await compareAccounts(pool, model)
  await compareCalls(pool, model)
  await compareEntries(pool, model)
  await comparePromotions(pool, model)
  await compareAllowances(pool, model)
  await compareClaims(pool, model)
}

export async function compareAccounts(pool: pg.Pool, model: Model): Promise<void> {
  assert.deepEqual(
    await read(
      pool,
      'select id, active, paid, credited, debt, charged, held, promo, lapsed from accounts where id = any ($1) order by id',
      model.accounts,
    ),
    [...model.accounts]
      .map(([id, account]) => ({ id, active: account.active, paid: paidOf(model, id), ...sumsOf(account) }))
      .sort(byId),
  )
}

async function compareCalls(pool: pg.Pool, model: Model): Promise<void> {
  assert.deepEqual(
    await read(
      pool,
      'select id, amount, unsettled_at is not null as unsettled from holds where account_id = any ($1) order by id',
      model.accounts,
    ),
    [...model.holds]
      .map(([id, { amount, unsettledAtUs }]) => ({ id, amount, unsettled: unsettledAtUs !== null }))
      .sort(byId),
  )
  assert.deepEqual(
    await read(
      pool,
      'select id, outcome, amount, promo, overrun from charges where account_id = any ($1) order by id',
      model.accounts,
    ),
    [...model.ended]
      .map(([id, { outcome, amount, promo, overrun }]) => ({ id, outcome, amount, promo, overrun }))
      .sort(byId),
  )
}

/** By account and kind: what one statement enters for several calls is one entry there and several here. */
async function compareEntries(pool: pg.Pool, model: Model): Promise<void> {
  const sums = new Map<string, Omit<Sums, 'held' | 'lapsed'> & { overrun: bigint }>()
  for (const { accountId, kind, credited, charged, promo, debt, overrun } of model.entries.values()) {
    const id = `${accountId} ${kind}`
    const before = sums.get(id) ?? { credited: 0n, charged: 0n, promo: 0n, debt: 0n, overrun: 0n }
    sums.set(id, {
      credited: before.credited + credited,
      charged: before.charged + charged,
      promo: before.promo + promo,
      debt: before.debt + debt,
      overrun: before.overrun + overrun,
    })
  }
  assert.deepEqual(
    await read(
      pool,
      `select account_id || ' ' || kind as id, sum(credited)::bigint as credited, sum(charged)::bigint as charged,
        sum(promo)::bigint as promo, sum(debt)::bigint as debt, sum(overrun)::bigint as overrun
      from entries where account_id = any ($1) group by 1`,
      model.accounts,
    ).then((rows) => rows.sort(byId)),
    [...sums].map(([id, columns]) => ({ id, ...columns })).sort(byId),
  )
}

/** PostgreSQL counts grants only when it must; here it is made to. */
async function comparePromotions(pool: pg.Pool, model: Model): Promise<void> {
  await read(pool, 'select count_promotions(id) from unnest($1::uuid[]) id', model.accounts)
  assert.deepEqual(
    await read(pool, 'select id, remaining from promotions where account_id = any ($1) order by id', model.accounts),
    [...model.accounts.values()]
      .flatMap(({ grants }) => grants.map(({ id, remaining }) => ({ id, remaining })))
      .sort(byId),
  )
}

async function compareAllowances(pool: pg.Pool, model: Model): Promise<void> {
  assert.deepEqual(
    await read(
      pool,
      'select allowance_id as id, charged, held from allowance_periods where allowance_id = any ($1) and charged + held > 0 order by 1',
      model.allowances,
    ),
    [...model.periods]
      .map(([key, { charged, held }]) => ({ id: key.split(' ')[0] ?? '', charged, held }))
      .filter(({ charged, held }) => charged + held > 0n)
      .sort(byId),
  )
}

async function compareClaims(pool: pg.Pool, model: Model): Promise<void> {
  assert.deepEqual(
    await read(
      pool,
      `select credential_id || ' ' || scope || ' ' || key as id, call_id, fingerprint, kept_until is null as open from claims
      where credential_id = any ($1) and (kept_until is null or kept_until > clock_timestamp())
      union all
      select credential_id || ' concurrency all', id, '', true from holds where credential_id = any ($1) and at_once
      order by 1, 2`,
      model.credentials,
    ),
    [...model.claims]
      .flatMap(([id, places]) =>
        places
          .filter(({ keptUntilUs }) => keptUntilUs === null || keptUntilUs > BigInt(Date.now()) * 1000n)
          .map((place) => ({
            id,
            call_id: place.callId,
            fingerprint: place.fingerprint,
            open: place.keptUntilUs === null,
          })),
      )
      .sort((a, b) => byId(a, b) || (a.call_id < b.call_id ? -1 : 1)),
  )
}

export async function compareWindows(pool: pg.Pool, model: Model): Promise<void> {
  assert.deepEqual(
    await read(
      pool,
      "select credential_id || ' ' || limit_group as id, requests, tokens::float8 from windows where credential_id = any ($1) order by 1",
      model.credentials,
    ),
    [...model.windows].map(([id, { requests, tokens }]) => ({ id, requests, tokens })).sort(byId),
  )
}

type Row = { readonly id: string; readonly [column: string]: unknown }

async function read(pool: pg.Pool, sql: string, of: ReadonlyMap<string, unknown>): Promise<Row[]> {
  return (await pool.query<Row>(sql, [[...of.keys()]])).rows
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id === b.id ? 0 : a.id < b.id ? -1 : 1
}
