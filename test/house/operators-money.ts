import assert from 'node:assert/strict'
import type pg from 'pg'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { readStatement } from '../../server/src/ledger/statement.ts'
import { readExactUsage } from '../../server/src/ledger/usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callLines, readCall } from '../../server/src/operate/call-view.ts'

/** What an account has, as every place tells it that tells of money: they are to agree to the nano. */
export type Books = { readonly accountId: Id; readonly calls: readonly Id[] }

const DAY_MS = 86_400_000
const REFUNDS: readonly string[] = ['charge_reversal', 'forgiveness']

/** The ledger's own invariants, and that account, statement and usage say the same. */
export async function assertAgreed(pool: pg.Pool, { accountId }: Pick<Books, 'accountId'>): Promise<void> {
  assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  const { rows } = await pool.query<Record<'charged' | 'balance', bigint>>(
    'select charged, credited + debt - charged as balance from accounts where id = $1',
    [accountId],
  )
  const { charged = 0n, balance = 0n } = rows[0] ?? assert.fail()
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const [from, to] = [new Date(today - 2 * DAY_MS), new Date(today + 2 * DAY_MS)]

  const statement = await readStatement(pool, { accountId, from, to, most: 1_000 })
  const sumOf = (kinds: (kind: string) => boolean) =>
    statement.lines.filter(({ kind }) => kinds(kind)).reduce((sum, { amount }) => sum + amount, 0n)
  assert.deepEqual([statement.opening, sumOf(() => true), statement.closing], [0n, balance, balance], 'statement')
  // What of a refund pays debt does not change what can be spent.
  const { rows: sums } = await pool.query<Record<'used' | 'refunded', bigint>>(
    `select (select coalesce(sum(amount), 0)::bigint from charges where account_id = $1) as used,
       (select coalesce(sum(debt - charged), 0)::bigint from entries where account_id = $1 and kind = any ($2)) as refunded`,
    [accountId, REFUNDS],
  )
  const ofStatement = { used: -sumOf((kind) => kind === 'usage'), refunded: sumOf((kind) => REFUNDS.includes(kind)) }
  assert.deepEqual(sums, [ofStatement], 'usage and refunds of the statement')

  const window = { startSeconds: from.getTime() / 1_000, endSeconds: to.getTime() / 1_000 }
  const usage = await readExactUsage(pool, { scope: { accountId }, ...window, groupBy: 'operation' })
  assert.equal(usage.exact.totals.charged, charged, 'usage')
  assert.equal(
    (usage.groups ?? []).reduce((sum, { totals }) => sum + totals.charged, 0n),
    charged,
    'usage by operation',
  )
}

/** And what is shown of each of its calls, one by one. */
export async function assertCallsAgreed(pool: pg.Pool, { accountId, calls }: Books): Promise<void> {
  let costs = 0n
  for (const id of calls) {
    const call = await readCall(pool, id)
    if (call === undefined || !('endedAt' in call)) assert.fail(id)
    const givenBack = call.entries.reduce((sum, entry) => sum - entry.charged, 0n)
    assert.deepEqual([call.givenBack, call.cost], [givenBack, nanos(call.charged - givenBack)])
    assert.ok(call.cost >= 0n && call.givenBack >= 0n)
    assert.ok(callLines(call).some((line) => line.startsWith('Cost: ')))
    costs += call.cost
  }
  const { rows } = await pool.query<{ charged: bigint }>('select charged from accounts where id = $1', [accountId])
  assert.equal(costs, rows[0]?.charged)
}

const ROWS = [
  'select one::text as row from accounts one where id = $1',
  ...['entries', 'promotions', 'charges', 'holds', 'usage_tail', 'usage_totals'].map(
    (table) => `select one::text from ${table} one where account_id = $1`,
  ),
  'select note::text from entry_notes note join entries on entries.id = entry_id where account_id = $1',
  'select one::text from audit one where workspace_id = $2',
  'select id::text from outbox where $1::uuid is not null',
]

/** Every row that a command about money could have changed, and all that was said about it, as a digest. */
export async function digestOf(
  pool: pg.Pool,
  { workspaceId, accountId }: { readonly workspaceId: Id; readonly accountId: Id },
) {
  // What calls have spent of each grant is counted lazily: whoever looks first changes rows, and no money.
  await pool.query('select count_promotions(account => $1)', [accountId])
  const { rows } = await pool.query<{ digest: string }>(
    `select md5(string_agg(row, ' ' order by row)) as digest from (${ROWS.join(' union all ')}) all_rows`,
    [accountId, workspaceId],
  )
  return rows[0]?.digest
}
