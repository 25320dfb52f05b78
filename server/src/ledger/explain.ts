import type pg from 'pg'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { formatUsd, nanos } from '../kernel/money.ts'
import { recordDetail } from './requests.ts'

const money = z.bigint().transform((amount) => `${formatUsd(nanos(amount))} USD`)
const time = z.date().transform((at) => at.toISOString())

const hold = z.object({
  account_id: z.string(),
  credential_id: z.string(),
  /** Null of a task, which any worker ends. */
  owner_id: z.string().nullable(),
  operation: z.string(),
  amount: money,
  begun_at: time,
  unsettled_at: time.nullable(),
})
const charge = z.object({
  account_id: z.string(),
  credential_id: z.string().nullable(),
  operation: z.string().nullable(),
  outcome: z.string(),
  amount: money,
  promo: z.bigint(),
  overrun: z.bigint(),
  begun_at: time.nullable(),
  ended_at: time,
})
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
  entered_at: time,
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

const task = z.object({
  model: z.string(),
  state: z.string(),
  created_at: time,
  ended_at: time.nullable(),
  code: z.string().nullable(),
})

/** What the ledger knows of an id, be it a call's, a task's, an entry's or an account's, in lines for an operator. */
export async function explainId(pool: pg.Pool, id: Id): Promise<readonly string[]> {
  const one = async <T extends z.ZodType>(type: T, sql: string) =>
    z.array(type).parse((await pool.query(sql, [id])).rows)
  const [[open], [ended], [run], [made], entries, [holder]] = await Promise.all([
    one(hold, 'select * from holds where id = $1'),
    one(charge, 'select * from charges where id = $1'),
    one(z.object({ detail: recordDetail }), 'select detail from request_records where id = $1'),
    one(task, 'select model, state, created_at, ended_at, code from tasks where id = $1'),
    one(entry, 'select * from entries where id = $1 or corrects = $1 order by entered_at, id'),
    one(
      account,
      `select accounts.*, credited + debt - charged - held as free,
         (select count(*)::integer from holds where account_id = $1 and unsettled_at is null) as open,
         (select count(*)::integer from holds where account_id = $1 and unsettled_at is not null) as unsettled
       from accounts where id = $1`,
    ),
  ])
  return [
    ...(open === undefined ? [] : linesOfHold(id, open)),
    ...(ended === undefined ? [] : linesOfCharge(id, ended)),
    ...(run === undefined ? [] : linesOfRun(run.detail)),
    ...(made === undefined ? [] : [lineOfTask(made)]),
    ...(holder === undefined ? [] : linesOfAccount(id, holder)),
    ...entries.map((row) => lineOfEntry(row)),
  ]
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

function linesOfHold(id: Id, row: z.output<typeof hold>): readonly string[] {
  const owner = row.owner_id === null ? 'the workers' : `process ${row.owner_id}`
  const state =
    row.unsettled_at === null
      ? `is open, run by ${owner}`
      : `is unsettled since ${row.unsettled_at}: its process ${row.owner_id ?? ''} is gone, and its usage is unknown`
  return [
    `Call ${id} (${row.operation}) ${state}.`,
    `It holds ${row.amount} of account ${row.account_id}, by credential ${row.credential_id}, since ${row.begun_at}.`,
    ...(row.unsettled_at === null
      ? []
      : [`When you know what the provider did: farebox ledger resolve ${id} --charge <usd>, or --void.`]),
  ]
}

function linesOfCharge(id: Id, row: z.output<typeof charge>): readonly string[] {
  if (row.credential_id === null) return [`Call ${id} was voided at ${row.ended_at} before it had begun.`]
  return [
    `Call ${id} (${row.operation}) was ${row.outcome} at ${row.ended_at}, begun at ${row.begun_at}.`,
    `It charged ${row.amount} to account ${row.account_id}, by credential ${row.credential_id}${parts({ 'promotional credit': row.promo, 'overrun (our loss)': row.overrun })}.`,
  ]
}

function linesOfRun({
  model,
  status,
  upstream,
  routing,
  first_byte_ms,
}: z.output<typeof recordDetail>): readonly string[] {
  const asked = model === null ? '' : ` Model: ${model}.`
  const firstByte = first_byte_ms === null ? '' : ` First byte after ${first_byte_ms} ms.`
  return [
    ...(status === null ? [] : [`The caller got status ${status}.${asked}${firstByte}`]),
    ...(routing === null ? [] : [`Route: ${routing.upstream_model} of ${routing.slot} (${routing.reason}).`]),
    ...upstream.map((attempt, at) => lineOfAttempt(attempt, at + 1)),
  ]
}

type RecordedAttempt = z.output<typeof recordDetail>['upstream'][number]

function lineOfAttempt({ slot, upstream_id, began_ms, ended_ms, ...how }: RecordedAttempt, place: number): string {
  const whom = upstream_id === null ? slot : `${slot}, upstream ${upstream_id}`
  const when = began_ms === null || ended_ms === null ? '' : `, from ${began_ms} to ${ended_ms} ms`
  const { outcome, status, reason } = how
  return `Attempt ${place}: ${whom}${when}: ${[outcome.replaceAll('_', ' '), status, reason].filter((part) => part !== null).join(' ')}.`
}

function linesOfAccount(id: Id, row: z.output<typeof account>): readonly string[] {
  return [
    `Account ${id} (${row.mode}) is ${row.active ? 'active' : 'closed'}${row.debt > 0n ? ', suspended because of its debt' : ''}.`,
    `It was credited ${row.credited} and charged ${row.charged}, holds ${row.held}, and has ${row.free} available${parts({ debt: row.debt, 'promotional credit left': row.promo })}.`,
    `Calls: ${row.open} open, ${row.unsettled} unsettled.`,
  ]
}

function lineOfTask({ model, state, created_at: since, ended_at: ended, code }: z.output<typeof task>): string {
  const end = ended === null ? 'has not ended' : `ended at ${ended}${code === null ? '' : ` with ${code}`}`
  return `It is a task of ${model}: ${state}, created at ${since}, ${end}.`
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

function lineOfEntry(row: z.output<typeof entry>): string {
  const { credited, charged, promo, debt, overrun } = row
  const about = row.corrects === null ? `of account ${row.account_id}` : `corrects ${row.corrects}`
  return `Entry ${row.id}, ${row.kind.replaceAll('_', ' ')} at ${row.entered_at}, ${about}${parts({ credited, charged, 'promotional credit': promo, debt, overrun })}.`
}

/** Those that are not nothing, each by its name. */
function parts(amounts: Readonly<Record<string, bigint>>): string {
  return Object.entries(amounts)
    .filter(([, amount]) => amount !== 0n)
    .map(([name, amount]) => `, ${name} ${formatUsd(nanos(amount))} USD`)
    .join('')
}
