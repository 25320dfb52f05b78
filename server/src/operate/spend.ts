import { z } from 'zod'
import { formatUsd, type Nanos, nanos } from '../kernel/money.ts'
import { readSpendTop, SPEND_GROUPS, type Spend, type SpendGroup } from '../ledger/spend-top.ts'
import { workspacesOfAccounts } from '../workspaces/account-owners.ts'
import { action, field, flag } from './action.ts'
import { inColumns } from './columns.ts'
import { choiceOf, timeOf, wholeNumber } from './fields.ts'

const HOUR_MS = 3_600_000
const WEEK_MS = 7 * 24 * HOUR_MS
const ROWS_MOST = 1_000

const by: Readonly<Record<string, SpendGroup>> = Object.fromEntries(SPEND_GROUPS.map((one) => [one, one]))

const top = action({
  name: 'spend top',
  summary:
    'list who or what was charged most in a window, with the cost at the providers and the margin, where you have set costs',
  effect: 'reads',
  positional: ['by'],
  input: z.object({
    by: field('by', 'customer, model, operation or upstream (default: customer)', (text) => choiceOf(text, by)).default(
      'customer',
    ),
    since: field('time', 'from this time, to the hour (default: seven days ago)', timeOf).optional(),
    until: field('time', 'until this time, to the hour (default: now)', timeOf).optional(),
    test: flag('of test money (default: of live money)'),
    limit: field('rows', `maximum number of rows, up to ${ROWS_MOST} (default: 20)`, (text) =>
      wholeNumber(text, ROWS_MOST),
    ).default(20),
  }),
  async run({ pool, clock }, { by: group, since, until, test, limit }) {
    const nowMs = clock.nowMs()
    // The running hour is in it, as far as it is over.
    const toMs = until === undefined ? (Math.floor(nowMs / HOUR_MS) + 1) * HOUR_MS : floorToHour(until.getTime())
    const fromMs = floorToHour(since?.getTime() ?? (until?.getTime() ?? nowMs) - WEEK_MS)
    if (fromMs >= toMs) throw new Error('the window is empty: --since must be an hour or more before --until')
    const mode = test ? ('test' as const) : ('live' as const)
    const window = { fromSeconds: fromMs / 1_000, toSeconds: toMs / 1_000 }
    const report = await readSpendTop(pool, { by: group, mode, ...window, most: limit })
    const ids = group === 'customer' ? report.top.flatMap(({ item }) => item ?? []) : []
    const names = await workspacesOfAccounts(pool, ids)
    return {
      by: group,
      mode,
      since: new Date(fromMs),
      until: until === undefined ? null : new Date(toMs),
      top: report.top.map(({ item, ...spend }) => {
        const customer = item === null ? undefined : names.get(item)
        return { id: customer?.id ?? item, name: customer?.name ?? item, ...withMargin(spend) }
      }),
      others: report.others && { items: report.others.items, ...withMargin(report.others) },
      total: withMargin(report.all),
    }
  },
  lines({ by: group, mode, since, until, top: rows, others, total }) {
    const money = mode === 'test' ? 'test money' : 'live money'
    if (rows.length === 0) return [`Nothing was charged of ${money} since ${since.toISOString()}.`]
    const table = [
      ...rows.map((row) => line(group === 'customer' ? `${row.name}  ${row.id}` : (row.name ?? `no ${group}`), row)),
      ...(others === null ? [] : [line(`${others.items} others`, others)]),
      line('all', total),
    ]
    return [
      `Charged of ${money} from ${since.toISOString()} until ${until?.toISOString() ?? 'now'}, in USD, less refunds:`,
      ...inColumns([group, ' calls', ' charged', ' cost', ' margin', ' '], table),
      ...(total.uncosted > 0n
        ? [
            `No cost is known for ${formatUsd(total.uncosted)} USD of it, which is in no margin: set costs with farebox models price or prices set.`,
          ]
        : []),
    ]
  },
})

const floorToHour = (ms: number) => Math.floor(ms / HOUR_MS) * HOUR_MS

type WithMargin = Spend & { readonly margin: Nanos | null; readonly marginPercent: number | null }

/** Of what has a known cost; null where nothing has. */
function withMargin({ requests, charged, cost, uncosted }: Spend): WithMargin {
  const costed = charged - uncosted
  const isKnown = cost > 0n
  return {
    requests,
    charged,
    cost,
    uncosted,
    margin: isKnown ? nanos(costed - cost) : null,
    marginPercent: isKnown && costed > 0n ? Number((1_000n * (costed - cost)) / costed) / 10 : null,
  }
}

function line(name: string, { requests, charged, cost, margin, marginPercent }: WithMargin): readonly string[] {
  return [
    name,
    requests.toLocaleString('en-US'),
    formatUsd(charged),
    margin === null ? 'not known' : formatUsd(cost),
    margin === null ? '' : formatUsd(margin),
    marginPercent === null ? '' : `${marginPercent.toFixed(1)} %`,
  ]
}

export const spend = [top]
