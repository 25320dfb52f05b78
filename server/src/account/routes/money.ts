import { z } from 'zod'
import { dayForm, idForm, timeForm } from '../../api/forms.ts'
import { money, moneyBody } from '../../api/money.ts'
import { cursorForm, cursorOf, PAGE, pageOf } from '../../api/pages.ts'
import { countsOf, GROUP_BY, lifeWithin, usageCounts, usageViewOf } from '../../callers/usage.ts'
import { invalidRequest } from '../../kernel/fault.ts'
import { formatUsd } from '../../kernel/money.ts'
import { readBalance } from '../../ledger/balance.ts'
import { CHARGES_KEPT_DAYS } from '../../ledger/retention.ts'
import { readStatement, type Statement, type StatementLine, type StatementPosition } from '../../ledger/statement.ts'
import { type ExactSums, readExactUsage } from '../../ledger/usage.ts'
import { accountIn } from '../../people/membership.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const mode = z.enum(['live', 'test'])
const balance = z.strictObject({
  mode,
  available: moneyBody,
  held: moneyBody.meta({ description: 'By calls that run, or whose outcome nobody knows yet.' }),
  promotional: moneyBody.meta({ description: 'As much of it was given, and is spent first.' }),
  debt: moneyBody,
  charged: moneyBody.meta({ description: 'In all.' }),
})

const statementLine = z.strictObject({
  id: z.string(),
  at: z.iso.datetime().meta({ description: 'Of usage: the day, by its beginning.' }),
  kind: z.string().meta({
    description:
      'usage for the calls of a day; payment, promotion, expiry, charge_reversal (a refund) and others one by one.',
  }),
  amount: moneyBody.meta({ description: 'What the balance was changed by: below zero where it was taken.' }),
  request_id: z.string().nullable().meta({ description: 'The call that a refund is of; null for other lines.' }),
  reference: z
    .string()
    .nullable()
    .meta({ description: 'Of a payment, as the operator noted it, such as the number of a transfer.' }),
})
const statement = pageOf(statementLine).extend({
  mode,
  from: z.iso.date(),
  to: z.iso.date(),
  opening_balance: moneyBody.meta({ description: 'At the beginning of the first day, with what was held.' }),
  closing_balance: moneyBody.meta({ description: 'At the end of the last day, or now.' }),
})

const DAY_MS = 86_400_000
const DAYS_MOST = 92
const TABLE_MOST = 5_000

function positionOf(place: string): StatementPosition | undefined {
  const [, us, id] = /^(\d{1,18}) ([0-9a-z-]{1,40})$/.exec(place) ?? []
  return us === undefined || id === undefined ? undefined : { atUs: BigInt(us), id }
}

type Days = { readonly from?: Date | undefined; readonly to?: Date | undefined }

/** The last thirty days where none are named. */
function daysOf({ from, to }: Days, nowMs: number): { readonly from: Date; readonly to: Date; readonly behind: Date } {
  const last = to ?? new Date(Math.floor(nowMs / DAY_MS) * DAY_MS)
  const first = from ?? new Date(last.getTime() - 29 * DAY_MS)
  const days = (last.getTime() - first.getTime()) / DAY_MS + 1
  if (days < 1) throw invalidRequest('"from" is after "to". Swap them.', 'from')
  // A day at the edge may be dropped while it is read.
  const kept = new Date((Math.floor(nowMs / DAY_MS) - CHARGES_KEPT_DAYS + 1) * DAY_MS)
  if (first < kept)
    throw invalidRequest(
      `Usage is kept for ${CHARGES_KEPT_DAYS} days. "from" can be ${dayText(kept)} at the earliest.`,
      'from',
    )
  if (days > DAYS_MOST)
    throw invalidRequest(`The window is ${days} days; the limit is ${DAYS_MOST}. Ask for fewer days.`)
  return { from: first, to: last, behind: new Date(last.getTime() + DAY_MS) }
}

const dayText = (day: Date) => day.toISOString().slice(0, 10)

/** Kinds and ids are ours, so that no cell is read as a formula. */
function tableOf({ lines }: Statement): string {
  const rows = lines.map(({ at, kind, id, amount }) => [at.toISOString(), kind, id, formatUsd(amount)].join(','))
  return `${['at,kind,id,amount_usd', ...rows].join('\r\n')}\r\n`
}

function toldLine({ id, at, kind, amount, request_id, reference }: StatementLine) {
  return { id, at: at.toISOString(), kind, amount: money(amount), request_id, reference }
}

const usageSums = z.strictObject({ ...usageCounts, value: moneyBody, charged: moneyBody })
const usageBucket = usageSums.extend({ start: z.iso.datetime(), end: z.iso.datetime() })
const usage = z.strictObject({
  mode,
  start: z.iso.datetime(),
  end: z.iso.datetime(),
  bucket: z.enum(['day', 'hour']),
  totals: usageSums,
  buckets: z.array(usageBucket).meta({ description: 'In the order of time.' }),
  group_by: z.string().nullable(),
  groups: z
    .array(
      z.strictObject({
        kind: z.enum(['group', 'other', 'none']).meta({
          description: 'A group; the smaller ones together; or what has none of what it is grouped by.',
        }),
        value: z.string().nullable(),
        label: z.string().nullable(),
        totals: usageSums,
        buckets: z.array(usageBucket),
      }),
    )
    .nullable()
    .meta({
      description: 'The largest 50 first. They add up to the totals, to the nano. Null where it is not grouped.',
    }),
  other_groups: z.int().nullable().meta({
    description: 'How many are told as one. Null where it is not grouped, or where they are too many to count.',
  }),
})

const text = z.string().min(1).max(200).optional()

function sumsOf(sums: ExactSums) {
  return { ...countsOf(sums), value: money(sums.value), charged: money(sums.charged) }
}

function bucketOf(one: ExactSums & { readonly startSeconds: number; readonly endSeconds: number }) {
  return { start: time(one.startSeconds), end: time(one.endSeconds), ...sumsOf(one) }
}

const time = (seconds: number) => new Date(seconds * 1_000).toISOString()

export const MONEY_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'get_balance',
    method: 'GET',
    path: '/workspaces/{workspace_id}/balance',
    need: 'billing.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'What a workspace can spend now',
    tag: 'money',
    answer: { description: 'The balance.', body: balance },
    async run({ pool }, { place, mode: asked }) {
      const { free, held, promo, debt, charged } = await readBalance(pool, accountIn(place, asked))
      return {
        body: {
          ...{ mode: asked, available: money(free), held: money(held), promotional: money(promo) },
          ...{ debt: money(debt), charged: money(charged) },
        },
      }
    },
  }),
  inWorkspace({
    operationId: 'get_statement',
    method: 'GET',
    path: '/workspaces/{workspace_id}/statement',
    need: 'billing.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'What changed the balance, the latest first',
    description:
      'What calls were charged is one line a day (UTC), less what was given back that day. At most 92 days, of the last 1,100. As text/csv, with format=csv, it is all of the window, at most 5,000 lines.',
    tag: 'money',
    query: z.strictObject({
      limit: PAGE.limit,
      cursor: cursorForm(positionOf),
      from: dayForm.optional().meta({ description: 'The first day (UTC); 30 days where both are left out.' }),
      to: dayForm.optional().meta({ description: 'The last day (UTC); today where left out.' }),
      format: z.enum(['json', 'csv']).default('json').meta({ description: 'JSON in pages, or a table of all.' }),
    }),
    answer: { description: 'A page of the statement, or all of it as a table.', body: statement, isTable: true },
    async run({ pool, time: clock }, { place, mode: asked, query }) {
      const { limit, cursor, format } = query
      const { from, to, behind } = daysOf(query, clock.nowMs())
      const most = format === 'csv' ? TABLE_MOST + 1 : limit + 1
      const window = { accountId: accountIn(place, asked), from, to: behind, most }
      const read = await readStatement(pool, { ...window, after: format === 'csv' ? undefined : cursor })
      if (format === 'csv') {
        if (read.lines.length > TABLE_MOST)
          throw invalidRequest(`The window has more than ${TABLE_MOST} lines. Ask for fewer days.`)
        return { body: tableOf(read), type: 'text/csv; charset=utf-8' }
      }
      const lines = read.lines.slice(0, limit)
      const last = read.lines.length > limit ? lines.at(-1) : undefined
      return {
        body: {
          ...{ mode: asked, from: dayText(from), to: dayText(to) },
          ...{ opening_balance: money(read.opening), closing_balance: money(read.closing) },
          data: lines.map(toldLine),
          next_cursor: last === undefined ? null : cursorOf(`${last.at_us} ${last.id}`),
        },
      }
    },
  }),
  inWorkspace({
    operationId: 'get_usage',
    method: 'GET',
    path: '/workspaces/{workspace_id}/usage',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'What all keys of a workspace have used',
    tag: 'money',
    query: z.strictObject({
      start: timeForm.meta({ description: 'Where the window starts.' }),
      end: timeForm.optional().meta({ description: 'Where it ends; now where left out.' }),
      bucket: z.enum(['day', 'hour']).default('day').meta({ description: 'How long a bucket is.' }),
      group_by: z
        .string()
        .regex(GROUP_BY, 'must be key, operation, model, end_user or tag:<name>')
        .optional()
        .meta({ description: 'What usage is told apart by: key, operation, model, end_user, or tag:<name>.' }),
      operation: text.meta({ description: 'Calls of this operation alone.' }),
      model: text.meta({ description: 'Calls of this model alone.' }),
      key: idForm.optional().meta({ description: 'Calls of this key alone.' }),
      tag: text.meta({ description: 'Calls with this tag alone: name=value.' }),
      end_user: idForm.optional().meta({ description: 'Calls for this end user alone, by its id.' }),
    }),
    answer: { description: 'The report.', body: usage },
    async run({ pool, time: clock }, { place, mode: asked, query }) {
      const accountId = accountIn(place, asked)
      const { start, end, ...said } = query
      const view = usageViewOf(Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)))
      const nowSeconds = Math.floor(clock.nowMs() / 1_000)
      if (end !== undefined && end < start) throw invalidRequest('"start" is after "end". Swap them.', 'start')
      const within = await lifeWithin(pool, accountId, nowSeconds)
      const secondsOf = (at: Date) => within(Math.floor(at.getTime() / 1_000))
      const endSeconds = end === undefined ? within(nowSeconds + 1) : secondsOf(end)
      const window = { scope: { accountId }, startSeconds: secondsOf(start), endSeconds, nowSeconds }
      const { exact, groups, otherGroups = null } = await readExactUsage(pool, { ...window, ...view })
      return {
        body: {
          ...{ mode: asked, start: start.toISOString(), end: (end ?? new Date(nowSeconds * 1_000)).toISOString() },
          ...{ bucket: view.bucket, totals: sumsOf(exact.totals), buckets: exact.buckets.map(bucketOf) },
          group_by: query.group_by ?? null,
          groups:
            groups?.map(({ kind, value, label, totals, buckets }) => ({
              ...{ kind, value, label, totals: sumsOf(totals), buckets: buckets.map(bucketOf) },
            })) ?? null,
          other_groups: otherGroups,
        },
      }
    },
  }),
]
