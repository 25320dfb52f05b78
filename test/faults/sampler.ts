import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { limitOfGroup } from './endpoint-limits.ts'
import type { Person } from './people.ts'

export type Unsettled = {
  readonly id: Id
  readonly ownerId: Id
  readonly begunAtMs: number
  readonly unsettledAtMs: number
}

/** What rows showed while the run went on. */
export type Samples = {
  readonly looks: () => number
  /** Promises that a row broke, each as a sentence. */
  readonly overspent: ReadonlySet<string>
  readonly beyondWindow: ReadonlySet<string>
  /** Promises of the ledger that did not hold for a while, though they might at the end. */
  readonly violations: ReadonlySet<string>
  /** Calls that were unsettled at some time. */
  readonly unsettled: ReadonlyMap<Id, Unsettled>
  readonly stop: () => Promise<void>
}

const EVERY_MS = 150
/** It reads every charge, so it is not asked all the time. */
const VERIFIED_EVERY_LOOKS = 30

type MoneyRow = { readonly id: string; readonly ceiling: bigint; readonly spent: bigint; readonly least: bigint }

const MONEY = `
  select id::text, credited + debt as ceiling, charged + held as spent, least(credited, debt, charged, held, promo) as least from accounts
  union all
  select allowance_id || ' of ' || starts_at, amount, charged + held, least(charged, held) from allowance_periods`

/** In one snapshot, so at no instant may there be such an account or allowance. */
const HELD_WITHOUT_HOLDS = `
  select 'account ' || a.id as what, a.held, coalesce(h.amount, 0)::bigint as holds
  from accounts a left join (select account_id, sum(amount) as amount from holds group by 1) h on h.account_id = a.id
  where a.held <> coalesce(h.amount, 0)
  union all
  select 'allowance ' || p.id, p.held, coalesce(h.amount, 0)::bigint
  from (select allowance_id as id, sum(held)::bigint as held from allowance_periods group by 1) p
  left join (select one.id, sum(amount) as amount from holds cross join unnest(allowances) one (id) group by 1) h on h.id = p.id
  where p.held <> coalesce(h.amount, 0)`

/** Looks at the rows of money, windows and unsettled calls all the time, past every fault but those of PostgreSQL itself. */
export function startSampling(pool: pg.Pool, people: readonly Person[]): Samples {
  const limitOf = new Map(
    people.flatMap(({ keys, requestsPerMinute }) => keys.map(({ id }) => [id, requestsPerMinute])),
  )
  const overspent = new Set<string>()
  const beyondWindow = new Set<string>()
  const violations = new Set<string>()
  const unsettled = new Map<Id, Unsettled>()
  let looks = 0
  let isOver = false

  async function look(): Promise<void> {
    const money = await pool.query<MoneyRow>(MONEY)
    for (const { id, ceiling, spent, least } of money.rows)
      if (spent > ceiling || least < 0n) overspent.add(`${id} has spent ${spent} of ${ceiling}, least ${least}`)
    const held = await pool.query<{ what: string; held: bigint; holds: bigint }>(HELD_WITHOUT_HOLDS)
    for (const { what, held: sum, holds } of held.rows) violations.add(`${what} held ${sum}, and its calls ${holds}`)
    if (looks % VERIFIED_EVERY_LOOKS === 0)
      for (const { promise, rows } of await verifyLedger(pool)) violations.add(`${promise}: ${rows.join(', ')}`)
    const windows = await pool.query<{ credential_id: Id; limit_group: string; requests: number }>(
      'select credential_id, limit_group, requests from windows',
    )
    for (const { credential_id: id, limit_group: group, requests } of windows.rows)
      if (requests > (limitOfGroup(group) ?? limitOf.get(id) ?? requests))
        beyondWindow.add(`key ${id} has ${requests} requests in a window of ${group}`)
    for (const one of await readUnsettled(pool)) unsettled.set(one.id, one)
    looks += 1
  }

  async function run(): Promise<void> {
    while (!isOver) {
      // PostgreSQL may be away.
      await look().catch(() => {})
      await delay(EVERY_MS)
    }
    await look()
  }

  const running = run()
  return {
    looks: () => looks,
    overspent,
    beyondWindow,
    violations,
    unsettled,
    async stop() {
      isOver = true
      await running
    },
  }
}

export async function readUnsettled(pool: pg.Pool): Promise<readonly Unsettled[]> {
  const { rows } = await pool.query<{ id: Id; owner_id: Id; begun_at: Date; unsettled_at: Date }>(
    'select id, owner_id, begun_at, unsettled_at from holds where unsettled_at is not null',
  )
  return rows.map((row) => ({
    id: row.id,
    ownerId: row.owner_id,
    begunAtMs: row.begun_at.getTime(),
    unsettledAtMs: row.unsettled_at.getTime(),
  }))
}
