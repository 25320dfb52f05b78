import type { UsageFilter, UsageQuery } from './usage-query.ts'
import { type Cut, DAY_SECONDS, floorTo, HOUR_SECONDS, type Spans, splitByDays, splitByHours } from './usage-window.ts'

/** The largest; the others are told as one. */
export const GROUPS_MOST = 50
/** Of so many the largest are found exactly; where there are more, among those that are the largest of a day. */
export const CANDIDATES_MOST = 500
/** Of all days together. */
const LEADERS_ALL = 4_000
/**
 * So many combined sums are read for a report, of hours and days by key, operation and model, also those that a filter leaves out. One that would need
 * more is refused: it would take longer than a report may. One more is read, so that it is seen.
 */
export const COMBINED_SUMS_MOST = 50_000

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

/** What is counted of usage, in every table of it. */
export const COUNTED = [
  'requests',
  'failed_requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'value',
  'charged',
] as const

export const COLUMNS = COUNTED.join(', ')
export const SUMS = COUNTED.map((column) => `sum(${column}) as ${column}`).join(', ')

/** Of which calls a sum is: of all, or of those that say whose spend it was. */
export type About = '' | 'end_user' | `tag:${string}`

/**
 * Queries for what used: `at`, `item`, `label`, the counts, and in `read` of how many combined sums it comes. What the caller asks for stands in them as `:name`
 * (see `valuesOf`); times and limits are numbers of ours.
 */
export type Sources = {
  /** Tables that all of them read: `single` is what is in no sum, or in a sum of which the window has a part. */
  readonly common: string
  /** All that the report is about. */
  readonly all: string
  readonly groups: (groupBy: 'key' | 'operation' | 'model') => string
  /** Whether `groups`, with what has none, are made of all that the report is about: then it need not be read again. */
  readonly areGroupsAll: boolean
  /** The largest of each day that the window touches, by all that they used on it; `is_cut` where a day has more of them. */
  readonly leaders: string
  /** What those used that a table has as `subject`, such as `candidates`. */
  readonly subjects: (table: string) => string
  /** The same of `candidates`, by days where there are any; undefined where `subjects` reads no more than this. */
  readonly ranking: string | undefined
  /** What all used that have an end user, or a tag of that name. */
  readonly some: string
}

/** What stands in the queries as `:name`. */
export function valuesOf({ scope, filter = {}, groupBy }: UsageQuery): Readonly<Record<string, string | undefined>> {
  const about = aboutOf(filter) || aboutOfGroups(groupBy)
  return {
    owner: 'credentialId' in scope ? scope.credentialId : scope.accountId,
    key: filter.credentialId,
    operation: filter.operation,
    model: filter.model,
    about,
    prefix: about.startsWith('tag:') ? `${about.slice('tag:'.length)}=` : undefined,
    subject: filter.tag?.value ?? filter.endUserId,
  }
}

/** Sums of one `about`: of which, by SQL behind `subject`, and what they are told by. */
type Part = { readonly about: string; readonly subject: string; readonly item: string }

const ALL_CALLS = { about: "''", subject: "= ''" }

/** `combinedUntil` is up to when there are days in usage_sums, in seconds: there may be more since. */
export function createSources(query: UsageQuery, combinedUntil: number): Sources {
  const { scope, filter = {}, groupBy, bucket = 'day' } = query
  const { operation, model } = filter
  const { whole, cuts } = splitByHours(query)
  const isByDay = bucket === 'day'
  const binned = (time: string) => `date_bin('1 ${bucket}', ${time}, 'epoch'::timestamptz)`

  const isOurs = 'credentialId' in scope ? 'credential_id = :owner' : 'account_id = :owner'
  const isOfKey = filter.credentialId === undefined ? undefined : 'credential_id = :key'
  const isOfCalls = allOf(
    operation === undefined ? undefined : 'operation = :operation',
    model === undefined ? undefined : 'model = :model',
  )
  const filtersCalls = isOfCalls !== 'true'
  /** The rows of usage_totals of whom the report is about, and those of each of its keys. */
  const ofScope = filter.credentialId === undefined ? 'scope_id = :owner' : `scope_id = :key and ${of(scope)} = :owner`
  const ofKeys = filter.credentialId === undefined ? `${of(scope)} = :owner and scope_id <> account_id` : ofScope

  const isNamed = aboutOf(filter) !== ''
  const matching = isNamed ? { about: ':about', subject: '= :subject' } : ALL_CALLS
  const isPlain = !isNamed && !filtersCalls

  /** Of one dimension: days where they are whole, and hours around them. Of each candidate, where there are some. */
  function totals({ about, subject, item }: Part, { byDay = isByDay, owner = ofScope, candidates = '' } = {}): string {
    return `
      select ${binned('starts_at')} as at, ${item} as item, subject_label as label, ${COLUMNS}, 0 as read
      from ${candidates} ${valuesOfSpans(splitByDays(whole, byDay))} cross join lateral (
        select * from usage_totals
        where ${owner} and about = ${about} and grain = span.grain and subject ${subject} and starts_at >= span.first and starts_at < span.beyond
        offset 0
      ) used`
  }

  /**
   * Of two dimensions. What is found by an index is bounded, and filtered only then: what a filter throws away was read too, and counts. It is found in the
   * order of the index, or PostgreSQL might look for the first so many in all that there is, and added up here, or PostgreSQL would keep all of it to sort it.
   */
  function combined({ about, subject, item }: Part, { byDay = isByDay, candidates = '' } = {}): string {
    // The index of a key has all of its sums. Whose key it is, and of what they are, is looked at in what was found.
    const [found, filtered] = isOfKey === undefined ? [isOurs, isOfCalls] : [isOfKey, allOf(isOurs, isOfCalls)]
    const sums = COUNTED.map((column) => `coalesce(sum(${column}) filter (where ${filtered}), 0) as ${column}`)
    return `
      select ${binned('starts_at')} as at, ${item} as item, max(subject_label) as label, ${sums.join(', ')}, count(*) as read
      from (
        select used.* from ${candidates} ${valuesOfSpans(splitByDays(whole, byDay, combinedUntil))} cross join lateral (
          select * from usage_sums
          where ${found} and about = ${about} and grain = span.grain and subject ${subject} and starts_at >= span.first and starts_at < span.beyond
          order by starts_at offset 0
        ) used
        limit ${COMBINED_SUMS_MOST + 1}
      ) used
      group by 1, 2`
  }

  /** What is in no sum; of those that `isOne` is true of, where the report is about end users or values of a tag. */
  function singles(item: string, about: About = '', isOne = 'true'): string {
    return `
      select ${binned('at')} as at, ${item} as item, used.label, ${COLUMNS}, 0 as read
      from single cross join lateral (${subjectsOf(about)}) used (subject, label)
      where ${allOf(isOfKey, isOfCalls, isOne)}`
  }

  const both = (sums: string, single: string) => `${sums} union all ${single}`
  const matchingSingles = (item: string) => singles(item, aboutOf(filter), isNamed ? 'used.subject = :subject' : 'true')

  function all(): string {
    const single = matchingSingles('null::text')
    const part = { ...matching, item: 'null::text' }
    const isOfTwo = isNamed ? filtersCalls : operation !== undefined && model !== undefined
    if (isOfTwo) return both(combined(part), single)
    if (isNamed || isPlain) return both(totals(part), single)
    const ofCalls = operation === undefined ? 'model' : 'operation'
    return both(totals({ ...part, about: `'${ofCalls}'`, subject: `= :${ofCalls}` }), single)
  }

  function groups(by: 'key' | 'operation' | 'model'): string {
    const item = by === 'key' ? 'credential_id::text' : `nullif(${by}, '')`
    const single = matchingSingles(item)
    if (!isPlain) return both(combined({ ...matching, item }), single)
    if (by === 'key') return both(totals({ ...matching, item: 'scope_id::text' }, { owner: ofKeys }), single)
    return both(totals({ about: `'${by}'`, subject: "<> ''", item: 'used.subject' }), single)
  }

  const about = aboutOfGroups(groupBy)
  const sumsOfNames = filtersCalls ? combined : totals

  function subjects(table: string, byDay = isByDay): string {
    const part = { about: ':about', subject: '= candidate.subject', item: 'used.subject' }
    const sums = sumsOfNames(part, { byDay, candidates: `${table} candidate cross join` })
    // What is in no sum is read once, and not for each.
    return both(sums, singles('used.subject', about, `used.subject in (select ${table}.subject from ${table})`))
  }

  function leaders(): string {
    if (isNamed) return 'select :subject::text as subject, 0 as charged, 0 as requests, false as is_cut'
    const { first, last, most } = leadersOf(query)
    return `
      select large.* from generate_series(${at(first)}, ${at(last)}, interval '24 hours') one (day)
      cross join lateral (
        select subject, charged, requests, count(*) over () > ${most} as is_cut
        from (
          select subject, charged, requests from usage_totals
          where ${ofScope} and about = :about and grain = 'day' and starts_at = one.day and subject <> '' order by size desc limit ${2 * most}
        ) of_day
        order by charged desc, requests desc, subject limit ${most}
      ) large
      union all
      select used.subject, charged, requests, false from single cross join lateral (${subjectsOf(about)}) used (subject, label)
      where ${allOf(isOfKey, isOfCalls)}`
  }

  const ranksByDay = !isByDay && !isNamed && !filtersCalls && splitByDays(whole, true).days.length > 0
  const some = { about: ':about', subject: isNamed ? '= :subject' : "= ''", item: 'null::text' }
  return {
    // Read once: the tail may have many rows that are dead and not yet gone.
    common: `
      tail as materialized (
        select at, credential_id, operation, coalesce(model, '') as model, end_user, end_user_label, tags, ${COLUMNS} from usage_tail where ${isOurs}
      ),
      single as materialized (
        select * from tail where at >= ${at(whole.from)} and at < ${at(whole.to)}
        ${cuts.map((cut) => `union all ${cutHour(ofKeys, cut)}`).join('\n')}
      )`,
    all: all(),
    groups,
    areGroupsAll: !isPlain,
    leaders: leaders(),
    subjects,
    ranking: ranksByDay ? subjects('candidates', true) : undefined,
    some: both(sumsOfNames(some), singles('null::text', about, isNamed ? 'used.subject = :subject' : 'true')),
  }
}

/** A column of usage_totals, by which its rows are found for all keys that a report may be about. */
function of(scope: UsageQuery['scope']): 'scope_id' | 'account_id' {
  return 'credentialId' in scope ? 'scope_id' : 'account_id'
}

function at(seconds: number): string {
  return `to_timestamp(${seconds})`
}

function allOf(...conditions: readonly (string | undefined)[]): string {
  return conditions.filter((one) => one !== undefined && one !== 'true').join(' and ') || 'true'
}

/** The parts of the window, each with the grain in which it is read. */
function valuesOfSpans({ days, hours }: Spans): string {
  const rows = [
    ...days.map((span) => ({ ...span, grain: 'day' })),
    ...hours.map((span) => ({ ...span, grain: 'hour' })),
  ]
  return `(values ${rows.map(({ grain, from, to }) => `('${grain}', ${at(from)}, ${at(to)})`).join(', ')}) span (grain, first, beyond)`
}

/** A tag or an end user that is asked for has sums of its own. */
function aboutOf({ tag, endUserId }: UsageFilter): About {
  if (tag !== undefined) return `tag:${tag.name}`
  return endUserId === undefined ? '' : 'end_user'
}

function aboutOfGroups(groupBy: UsageQuery['groupBy']): About {
  if (typeof groupBy === 'object') return `tag:${groupBy.tag}`
  return groupBy === 'end_user' ? groupBy : ''
}

/** The days of which the window has a part, and how many of the largest are looked at of each. */
function leadersOf({ startSeconds, endSeconds }: UsageQuery) {
  const first = floorTo(startSeconds, DAY_SECONDS)
  const days = Math.ceil((Math.max(endSeconds, startSeconds + 1) - first) / DAY_SECONDS)
  const most = Math.min(CANDIDATES_MOST, Math.max(GROUPS_MOST, Math.floor(LEADERS_ALL / days)))
  return { first, last: first + (days - 1) * DAY_SECONDS, most }
}

/** Whom or what of a kind a call was for, with what people know it by. */
function subjectsOf(about: About): string {
  if (about === '') return `select '', null::text`
  if (about === 'end_user') return 'select end_user::text, end_user_label where end_user is not null'
  return 'select substr(tag, length(:prefix) + 1), null::text from unnest(tags) tag where starts_with(tag, :prefix)'
}

/** What was booked in a part of an hour. Only keys with a row for that hour, or with one in the tail, have anything in it. */
function cutHour(ofKeys: string, { from, to, sign }: Cut): string {
  const counts = ['1', 'failed::integer', ...COUNTED.slice(2, -1), 'amount'].map((column) => `${sign}${column}`)
  const keys = `array(
    select scope_id from usage_totals
    where ${ofKeys} and about = '' and grain = 'hour' and subject = '' and starts_at = ${at(floorTo(from, HOUR_SECONDS))}
    union select credential_id from tail)`
  return `
    select ended_at, credential_id, operation, coalesce(model, ''), end_user, end_user_label, tags, ${counts.join(', ')}
    from charges
    where credential_id = any (${keys}) and executed and ended_at >= ${at(from)} and ended_at < ${at(to)}
      and id >= first_id_at(${at(Math.max(0, from - IDS_BEFORE_SECONDS))}) and id < first_id_at(${at(to + IDS_AFTER_SECONDS)})
    union all
    select entered_at, credential_id, operation, coalesce(model, ''), end_user, end_user_label, tags, 0, 0, 0, 0, 0, 0, 0, ${sign}charged
    from entries
    where credential_id = any (${keys}) and charged <> 0 and entered_at >= ${at(from)} and entered_at < ${at(to)}`
}
