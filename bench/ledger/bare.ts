import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import type pg from 'pg'
import type { Postgres } from '../../harness/postgres.ts'
import { findPostgres } from '../../harness/postgres-binaries.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { type Accounts, ids } from './ours.ts'

/**
 * The bare engine: the fewest statements that move the same money, batched by hand. No limits, no claims, no allowances,
 * no usage, no refusals, no retries: what PostgreSQL and its client can do at the most.
 */
export const BARE_SCHEMA = `
  create table bare_accounts (id uuid primary key, balance bigint not null, held bigint not null default 0) with (fillfactor = 60);
  create table bare_holds (id uuid primary key, account_id uuid not null, amount bigint not null);
  create table bare_charges (id uuid primary key, account_id uuid not null, amount bigint not null);
`

type Item = { readonly id: Id; readonly accountId: Id }

const BATCH = 200
const HOLD = 1_000
const CHARGE = 700

/** Pairs in batches of 200, one after the other on one connection. */
export async function barePairs(
  client: pg.Client,
  accounts: Accounts,
  count: number,
  pick: () => number,
): Promise<void> {
  for (let done = 0; done < count; done += BATCH) {
    const items = Array.from({ length: BATCH }, () => ({ id: ids.next(), accountId: accounts[pick()]?.id ?? '' }))
    await begin(client, items)
    await end(client, items)
  }
}

/** What most gateways do: a transaction for each begin and each end, on 50 connections. */
export async function unbatchedPairs(
  clients: readonly pg.Client[],
  accounts: Accounts,
  count: number,
  pick: () => number,
): Promise<void> {
  let left = count
  const caller = async (client: pg.Client) => {
    while (left > 0) {
      left -= 1
      const items = [{ id: ids.next(), accountId: accounts[pick()]?.id ?? '' }]
      await begin(client, items)
      await end(client, items)
    }
  }
  await Promise.all(clients.map(caller))
}

async function begin(client: pg.Client, items: readonly Item[]): Promise<void> {
  await client.query({
    name: 'bare_begin',
    text: `with held as (
      update bare_accounts set held = held + item.amount
      from (select account_id, count(*) * ${HOLD} as amount from unnest($2::uuid[]) one (account_id) group by account_id) item
      where bare_accounts.id = item.account_id and balance - held >= item.amount
    )
    insert into bare_holds select id, account_id, ${HOLD} from unnest($1::uuid[], $2::uuid[]) item (id, account_id)`,
    values: columns(items),
  })
}

async function end(client: pg.Client, items: readonly Item[]): Promise<void> {
  await client.query({
    name: 'bare_end',
    text: `with released as (
      delete from bare_holds where id = any ($1::uuid[])
    ), charged as (
      insert into bare_charges select id, account_id, ${CHARGE} from unnest($1::uuid[], $2::uuid[]) item (id, account_id)
    )
    update bare_accounts set held = held - item.calls * ${HOLD}, balance = balance - item.calls * ${CHARGE}
    from (select account_id, count(*) as calls from unnest($2::uuid[]) one (account_id) group by account_id) item
    where bare_accounts.id = item.account_id`,
    values: columns(items),
  })
}

function columns(items: readonly Item[]): string[] {
  return [`{${items.map(({ id }) => id).join(',')}}`, `{${items.map(({ accountId }) => accountId).join(',')}}`]
}

/** PostgreSQL's own benchmark on the same server, for scale; null where the program is not installed. */
export async function pgbenchSimpleUpdates(postgres: Postgres): Promise<number | null> {
  const program = path.join(findPostgres().folder, 'pgbench')
  if (!existsSync(program)) return null
  const run = promisify(execFile)
  await run(program, ['-i', '-q', '-s', '10', postgres.url()])
  const { stdout } = await run(program, ['-N', '-c', '50', '-j', '1', '-T', '5', '-M', 'prepared', postgres.url()])
  return Number(/tps = ([\d.]+)/.exec(stdout)?.[1] ?? Number.NaN)
}
