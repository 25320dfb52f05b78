import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, nanos } from '../kernel/money.ts'

const money = z.bigint().transform((amount) => `${formatUsd(nanos(amount))} USD`)
const time = z.date().transform((at) => at.toISOString())

const entry = z.object({
  id: z.string(),
  account_id: z.string(),
  kind: z.string(),
  credited: z.bigint(),
  charged: z.bigint(),
  promo: z.bigint(),
  debt: z.bigint(),
  overrun: z.bigint(),
  corrects: z.string().nullable(),
  entered_at: z.date(),
  /** By which who paid knows it, such as the number of a transfer. */
  reference: z.string().nullable(),
  /** For operators. */
  note: z.string().nullable(),
})
const account = z.object({
  mode: z.string(),
  active: z.boolean(),
  credited: money,
  debt: z.bigint(),
  charged: money,
  held: money,
  promo: z.bigint(),
  free: money,
  open: z.int(),
  unsettled: z.int(),
})

export type Entry = z.output<typeof entry>

/** An entry, and those that correct what has the id. */
export async function entriesAbout(pool: pg.Pool, id: Id): Promise<readonly Entry[]> {
  const { rows } = await pool.query(
    `select entries.*, reference, note from entries left join entry_notes on entry_id = id
     where id = $1 or corrects = $1 order by entered_at, id`,
    [id],
  )
  return z.array(entry).parse(rows)
}

/** What the ledger knows of an id that is an entry's or an account's, in lines for an operator. */
export async function explainId(pool: pg.Pool, id: Id): Promise<readonly string[]> {
  const [{ rows }, entries] = await Promise.all([
    pool.query(
      `select accounts.*, credited + debt - charged - held as free,
         (select count(*)::integer from holds where account_id = $1 and unsettled_at is null) as open,
         (select count(*)::integer from holds where account_id = $1 and unsettled_at is not null) as unsettled
       from accounts where id = $1`,
      [id],
    ),
    entriesAbout(pool, id),
  ])
  return [
    ...z
      .array(account)
      .parse(rows)
      .flatMap((row) => linesOfAccount(id, row)),
    ...entries.map(entryLine),
  ]
}

const taskRow = z.object({
  model: z.string(),
  state: z.string(),
  created_at: z.date(),
  ended_at: z.date().nullable(),
  code: z.string().nullable(),
})

/** The task that a call began; undefined where it began none. */
export async function taskOfCall(pool: pg.Pool, id: Id) {
  const { rows } = await pool.query('select model, state, created_at, ended_at, code from tasks where id = $1', [id])
  return taskRow.optional().parse(rows[0])
}

const SHOWN = 100

/** Calls that nobody runs and nobody has resolved, the oldest first. */
export async function listUnsettled(pool: pg.Pool): Promise<readonly string[]> {
  const { rows } = await pool.query(
    'select id, account_id, operation, amount, unsettled_at from holds where unsettled_at is not null order by unsettled_at limit $1',
    [SHOWN],
  )
  return z
    .array(
      z.object({ id: z.string(), account_id: z.string(), operation: z.string(), amount: money, unsettled_at: time }),
    )
    .parse(rows)
    .map(
      (row) =>
        `${row.id}  ${row.operation}  holds ${row.amount} of account ${row.account_id}  since ${row.unsettled_at}`,
    )
}

function linesOfAccount(id: Id, row: z.output<typeof account>): readonly string[] {
  return [
    `Account ${id} (${row.mode}) is ${row.active ? 'active' : 'closed'}${row.debt > 0n ? ', suspended because of its debt' : ''}.`,
    `It was credited ${row.credited} and charged ${row.charged}, holds ${row.held}, and has ${row.free} available${parts({ debt: row.debt, 'promotional credit left': row.promo })}.`,
    `Calls: ${row.open} open, ${row.unsettled} unsettled.`,
  ]
}

const claimed = z.array(z.object({ call_id: z.string() }))

/** The call that has used a quote; undefined where none has, or where that is forgotten. */
export async function callOfQuote(pool: pg.Pool, credentialId: Id, nonce: string): Promise<Id | undefined> {
  const { rows } = await pool.query(
    "select call_id from claims where credential_id = $1 and scope = 'quote' and key = $2 limit 1",
    [credentialId, nonce],
  )
  return claimed.parse(rows)[0]?.call_id
}

export function entryLine(row: Entry): string {
  const { credited, charged, promo, debt, overrun } = row
  const about = row.corrects === null ? `of account ${row.account_id}` : `corrects ${row.corrects}`
  const sums = parts({ credited, charged, 'promotional credit': promo, debt, overrun })
  const noted = [row.reference && `reference ${row.reference}`, row.note && `note: ${row.note}`].filter(Boolean)
  return `Entry ${row.id}, ${row.kind.replaceAll('_', ' ')} at ${row.entered_at.toISOString()}, ${[`${about}${sums}`, ...noted].join(', ')}.`
}

/** Those that are not nothing, each by its name. */
function parts(amounts: Readonly<Record<string, bigint>>): string {
  return Object.entries(amounts)
    .filter(([, amount]) => amount !== 0n)
    .map(([name, amount]) => `, ${name} ${formatUsd(nanos(amount))} USD`)
    .join('')
}
