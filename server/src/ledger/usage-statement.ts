import type { Id } from '../kernel/ids.ts'

/** What a credential used, or all credentials of an account, by days or hours of UTC. */
export type UsageQuery = {
  readonly scope: { readonly credentialId: Id } | { readonly accountId: Id }
  /** Whole Unix seconds, the first of which belongs to the window. */
  readonly startSeconds: number
  /** Whole Unix seconds, the first of which is past the window. */
  readonly endSeconds: number
  /** About now, by PostgreSQL's clock. It decides what is read, never what the report says. */
  readonly nowSeconds?: number
  readonly bucket?: 'day' | 'hour'
  /** Of all that was used, what matches every one of these. */
  readonly filter?: UsageFilter
  readonly groupBy?: GroupBy
}

export type UsageFilter = {
  readonly credentialId?: Id
  readonly operation?: string
  readonly model?: string
  /** At most one of the two: there are no sums of both. */
  readonly tag?: { readonly name: string; readonly value: string }
  readonly endUserId?: Id
}

/** A tag by its name. */
export type GroupBy = 'key' | 'operation' | 'model' | 'end_user' | { readonly tag: string }

export type Statement = { readonly text: string; readonly values: readonly (string | number)[] }

export const HOUR_SECONDS = 3_600
export const DAY_SECONDS = 86_400
/** The largest; the others are told as one. */
const GROUPS_MOST = 50

/**
 * Charges stand by the day of their id and are asked for by the time of their end, so the days are bounded that are looked
 * at: all of them, a thousand and more, would take longer to plan than the report may take.
 *
 * An id is made when its call arrives. From then, a call runs for minutes and a task for hours, and one that nobody runs
 * any more is voided after a day. A week and a day leaves the upkeep that voids it a week in which to fail.
 */
const IDS_BEFORE_SECONDS = 8 * DAY_SECONDS
/** A call begins only where its id has a partition, and those are made for seven days after today. */
const IDS_AFTER_SECONDS = 8 * DAY_SECONDS

const COUNTED = [
  'requests',
  'failed_requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'value',
  'charged',
] as const

const COLUMNS = COUNTED.join(', ')
const SUMS = COUNTED.map((column) => `sum(${column}) as ${column}`).join(', ')
const TOLD = COUNTED.map((column) => `${column}::bigint as ${column}`).join(', ')

/** Of which sums a report is made: of all hours, or of those that say whose spend it was. */
type About = '' | 'end_user' | `tag:${string}`

/**
 * The statement of a report. It has no name, so that it is planned for its values: only then are the charges of other days
 * neither locked nor looked at. All of it is of one state of the ledger, so that a row of the tail is there or in the sums.
 */
export function usageStatement(query: UsageQuery): Statement {
  const { filter = {}, groupBy } = query
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const sources = createSources(query, parameter)
  const about = aboutOf(filter)
  const isPlain = about === '' && filter.operation === undefined && filter.model === undefined
  const all = isPlain ? sources.ofHours('null::text') : sources.ofSums(about, 'null::text')
  const base = `select at, ${SUMS} from (${all}) used group by at`
  if (groupBy === undefined)
    return {
      text: `with ${sources.common}
        select 'all' as part, null as item, null as label, 0 as groups, extract(epoch from at)::float8 as at, ${TOLD} from (${base}) base`,
      values,
    }
  const groups = groupsOf(sources, { groupBy, about, isPlain })
  return {
    text: `with ${sources.common},
      base as (${base}),
      grouped as materialized (
        select at, item, max(label) as label, ${SUMS} from (${groups}) used where item is not null group by at, item
        having sum(requests) <> 0 or sum(charged) <> 0
      ),
      whole as materialized (select item, sum(charged) as charged, sum(requests) as requests from grouped group by item),
      largest as materialized (select item from whole order by charged desc, requests desc, item limit ${GROUPS_MOST})
      select part, item, label, (select count(*) from whole)::integer as groups, extract(epoch from at)::float8 as at, ${TOLD} from (
        select 'all' as part, null as item, null as label, at, ${COLUMNS} from base
        union all select 'group', item, label, at, ${COLUMNS} from grouped where item in (select item from largest)
        union all select 'other', null, null, at, ${SUMS} from grouped where item not in (select item from largest) group by at
      ) told`,
    values,
  }
}

/** A tag or an end user that is asked for has sums of its own. */
function aboutOf({ tag, endUserId }: UsageFilter): About {
  if (tag !== undefined) return `tag:${tag.name}`
  return endUserId === undefined ? '' : 'end_user'
}

type Grouping = { readonly groupBy: GroupBy; readonly about: About; readonly isPlain: boolean }

function groupsOf(sources: Sources, { groupBy, about, isPlain }: Grouping): string {
  if (typeof groupBy === 'object') return sources.ofSums(`tag:${groupBy.tag}`, 'subject')
  if (groupBy === 'end_user') return sources.ofSums('end_user', 'subject')
  if (groupBy !== 'key') return sources.ofSums(about, `nullif(${groupBy}, '')`)
  return isPlain ? sources.ofHours('credential_id::text') : sources.ofSums(about, 'credential_id::text')
}

type Sources = {
  /** What all of them read: `single` is what is in no sum, or in a sum of which the window has a part. */
  readonly common: string
  /** What was used by hour, with what it is grouped by: `at`, `item`, `label` and the counts. */
  readonly ofHours: (item: string) => string
  /** The same of the sums that say whose it was. */
  readonly ofSums: (about: About, item: string) => string
}

function createSources(query: UsageQuery, parameter: (value: string | number) => string): Sources {
  const { scope, filter = {}, bucket = 'day' } = query
  const { whole, cuts } = splitByHours(query)
  const [column, owner] =
    'credentialId' in scope ? ['credential_id', scope.credentialId] : ['account_id', scope.accountId]
  const isOurs = `${column} = ${parameter(owner)}`
  const [from, to] = [`to_timestamp(${parameter(whole.from)})`, `to_timestamp(${parameter(whole.to)})`]
  const binned = (time: string) => `date_bin('1 ${bucket}', ${time}, 'epoch'::timestamptz)`
  const ofKey = filter.credentialId === undefined ? 'true' : `credential_id = ${parameter(filter.credentialId)}`

  // Read once: it may have many rows that are dead and not yet gone.
  const tail = `select at, credential_id, operation, coalesce(model, '') as model, end_user, end_user_label, tags, ${COLUMNS}
    from usage_tail where ${isOurs}`
  const inWhole = `select * from tail where at >= ${from} and at < ${to}`
  const singles = [inWhole, ...cuts.map((cut) => cutHour(isOurs, cut, parameter))].join(' union all ')
  const common = `tail as materialized (${tail}), single as materialized (${singles})`

  function ofHours(item: string): string {
    // Added up here already: a year of many keys has tens of thousands of hours, and some hundred days.
    return `select ${binned('hour')} as at, ${item} as item, null::text as label, ${SUMS}
      from usage_hours where ${isOurs} and hour >= ${from} and hour < ${to} and ${ofKey} group by 1, 2
      union all select ${binned('at')}, ${item}, null, ${COLUMNS} from single where ${ofKey}`
  }

  function ofSums(about: About, item: string): string {
    const { operation, model, tag, endUserId } = filter
    const subject = tag?.value ?? endUserId
    const matches = [
      ofKey,
      ...(operation === undefined ? [] : [`operation = ${parameter(operation)}`]),
      ...(model === undefined ? [] : [`model = ${parameter(model)}`]),
      ...(subject === undefined ? [] : [`subject = ${parameter(subject)}`]),
    ].join(' and ')
    return `select ${binned('hour')} as at, ${item} as item, max(label) as label, ${SUMS} from usage_sums
      where ${isOurs} and about = ${parameter(about)} and hour >= ${from} and hour < ${to} and ${matches} group by 1, 2
      union all
      select ${binned('at')}, ${item}, label, ${COLUMNS}
      from single cross join lateral (${subjectsOf(about, parameter)}) one (subject, label)
      where operation is not null and ${matches}`
  }

  return { common, ofHours, ofSums }
}

/** Whom or what of a kind a call was for, with what people know it by. */
function subjectsOf(about: About, parameter: (value: string) => string): string {
  if (about === '') return `select '', null::text`
  if (about === 'end_user') return 'select end_user::text, end_user_label where end_user is not null'
  const start = parameter(`${about.slice('tag:'.length)}=`)
  return `select substr(tag, length(${start}) + 1), null::text from unnest(tags) tag where starts_with(tag, ${start})`
}

type Span = { readonly from: number; readonly to: number }

/** A part of an hour whose charges are read: they are added, or taken from the sum of their hour. */
type Cut = Span & { readonly sign: '' | '-' }

/**
 * The hours that are taken as a whole, and the parts of hours at the ends of the window, of which there are two at the most.
 *
 * Where more of the last hour lies in the window than after it, it is taken as a whole, less what came after the window. So a
 * report until now reads no more of the running hour's charges than what came since, however many there are.
 */
function splitByHours(query: UsageQuery): { readonly whole: Span; readonly cuts: readonly Cut[] } {
  const { startSeconds, endSeconds } = query
  const [from, to] = [floorTo(startSeconds + HOUR_SECONDS - 1, HOUR_SECONDS), floorTo(endSeconds, HOUR_SECONDS)]
  if (from > to) return { whole: { from, to }, cuts: [{ from: startSeconds, to: endSeconds, sign: '' }] }
  const next = to + HOUR_SECONDS
  const secondsAfter = Math.min(next, query.nowSeconds ?? next) - endSeconds
  const takesLast = endSeconds > to && secondsAfter < endSeconds - to
  const cuts: readonly Cut[] = [
    { from: startSeconds, to: from, sign: '' },
    takesLast ? { from: endSeconds, to: next, sign: '-' } : { from: to, to: endSeconds, sign: '' },
  ]
  return { whole: { from, to: takesLast ? next : to }, cuts: cuts.filter((cut) => cut.from < cut.to) }
}

export function floorTo(seconds: number, width: number): number {
  return Math.floor(seconds / width) * width
}

/**
 * What was booked in a part of an hour. Only credentials with a row for that hour, or with one in the tail, have anything in it. Whose
 * spend a charge was that its END booked by itself is said by no sum of its hour, and so not here either.
 */
function cutHour(isOurs: string, { from: first, to: last, sign }: Cut, parameter: (value: number) => string): string {
  const hour = `to_timestamp(${parameter(floorTo(first, HOUR_SECONDS))})`
  const [from, to] = [parameter(first), parameter(last)]
  const credentials = `array(select credential_id from usage_hours where ${isOurs} and hour = ${hour}
    union select credential_id from tail)`
  const counts = ['1', 'failed::integer', ...COUNTED.slice(2, -1), 'amount'].map((column) => `${sign}${column}`)
  return `
    select ended_at, credential_id, case when not booked then operation end, coalesce(model, ''), end_user, end_user_label, tags,
      ${counts.join(', ')}
    from charges
    where credential_id = any (${credentials}) and executed
      and ended_at >= to_timestamp(${from}) and ended_at < to_timestamp(${to})
      and id >= first_id_at(to_timestamp(greatest(0, ${from} - ${IDS_BEFORE_SECONDS})))
      and id < first_id_at(to_timestamp(${to} + ${IDS_AFTER_SECONDS}))
    union all
    select entered_at, credential_id, operation, coalesce(model, ''), end_user, end_user_label, tags, 0, 0, 0, 0, 0, 0, 0, ${sign}charged
    from entries
    where credential_id = any (${credentials}) and charged <> 0
      and entered_at >= to_timestamp(${from}) and entered_at < to_timestamp(${to})`
}
