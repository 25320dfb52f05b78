import type { UsageFilter, UsageQuery } from './usage-query.ts'
import { type Cut, DAY_SECONDS, floorTo, HOUR_SECONDS, type Span, splitByDays, splitByHours } from './usage-window.ts'

/** The largest; the others are told as one. */
export const GROUPS_MOST = 50
/** Of so many the largest are found exactly; where there are more, among those that are the largest of a day. */
export const CANDIDATES_MOST = 500
/** Of all days together. */
const LEADERS_ALL = 4_000
/**
 * So many combined sums are read for a report, of hours by key, operation, model and route and of days by the same without the route, also those
 * that a filter leaves out. One that would need more is refused: it would take longer than a report may. One more is read, so that it is seen.
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
export const TOLD = COUNTED.map((column) => `${column}::bigint as ${column}`).join(', ')

/** Of which sums a report is made: of all hours, or of those that say whose spend it was. */
export type About = '' | 'end_user' | `tag:${string}`

/** What used is told with: `at`, `item`, `label`, the counts, and in `read` of how many combined sums it comes. */
export type Sources = {
  /** What all of them read: `single` is what is in no sum, or in a sum of which the window has a part. */
  readonly common: string
  /** All that the report is about. */
  readonly all: () => string
  readonly groups: (groupBy: 'key' | 'operation' | 'model') => string
  /** Whether `groups`, with what has none, are made of all that the report is about: then it need not be read again. */
  readonly areGroupsAll: boolean
  /** The largest of each day that the window touches, by all that they used on it; `is_cut` where a day has more of them. */
  readonly leaders: (about: About) => string
  /** What those used that a table has as `subject`, such as `candidates`. */
  readonly subjects: (about: About, table: string) => string
  /** The same of `candidates`, by days where there are any; undefined where `subjects` reads no more than this. */
  readonly ranking: (about: About) => string | undefined
  /** What all used that have an end user, or a tag of that name. */
  readonly some: (about: About) => string
}

/** A part of the sums: which subjects, by a condition, and what they are told by. A condition is made where it is used: it may have parameters. */
type Part = {
  readonly about: About
  readonly item: string
  readonly subject: () => string
  /** The same of one dimension alone, of which there are sums of hours and of days; none where it is of two. */
  readonly alone?: { readonly about: string; readonly item: string; readonly subject: () => string }
}

/** `combinedUntil` is up to when there are combined sums of days, in seconds: there may be more since. */
export function createSources(
  query: UsageQuery,
  parameter: (value: string | number) => string,
  combinedUntil: number,
): Sources {
  const { scope, filter = {}, bucket = 'day' } = query
  const { whole, cuts } = splitByHours(query)
  const [column, owner] =
    'credentialId' in scope ? ['credential_id', scope.credentialId] : ['account_id', scope.accountId]
  const isOurs = `${column} = ${parameter(owner)}`
  const at = (seconds: number) => `to_timestamp(${parameter(seconds)})`
  const binned = (time: string) => `date_bin('1 ${bucket}', ${time}, 'epoch'::timestamptz)`
  const ofKey = filter.credentialId === undefined ? 'true' : `credential_id = ${parameter(filter.credentialId)}`
  const { operation, model } = filter
  const ofCalls = [
    ...(operation === undefined ? [] : [`operation = ${parameter(operation)}`]),
    ...(model === undefined ? [] : [`model = ${parameter(model)}`]),
  ]
  const asked = aboutOf(filter)
  const subjectAsked = filter.tag?.value ?? filter.endUserId
  const isPlain = asked === '' && ofCalls.length === 0
  const matches = [ofKey, ...ofCalls].join(' and ')
  // The index of a key has all of its sums. Whose key it is, and of what they are, is looked at in what was found.
  const ofOwnerOrKey = filter.credentialId === undefined ? isOurs : ofKey
  const afterwards = [...(filter.credentialId === undefined ? [] : [isOurs]), ...ofCalls]

  // Read once: it may have many rows that are dead and not yet gone.
  const tail = `select at, credential_id, operation, coalesce(model, '') as model, end_user, end_user_label, tags, ${COLUMNS}
    from usage_tail where ${isOurs}`
  const inWhole = `select * from tail where at >= ${at(whole.from)} and at < ${at(whole.to)}`
  const singles = [inWhole, ...cuts.map((cut) => cutHour(isOurs, cut, parameter))].join(' union all ')
  const common = `tail as materialized (${tail}), single as materialized (${singles})`

  function ofHours(item: string): string {
    // Added up here already: a year of many keys has tens of thousands of hours, and some hundred days.
    return `select ${binned('hour')} as at, ${item} as item, null::text as label, ${SUMS}, 0 as read
      from usage_hours where ${isOurs} and hour >= ${at(whole.from)} and hour < ${at(whole.to)} and ${ofKey} group by 1, 2
      union all select ${binned('at')}, ${item}, null, ${COLUMNS}, 0 from single where ${ofKey}`
  }

  /** Days where there are sums of them, and hours around them: of one subject, or of each that a table has. */
  function ofStored({ about, item, subject, alone }: Part, isByDay = bucket === 'day', table?: string): string {
    if (alone === undefined) return combinedSums({ about, item, subject }, isByDay, table)
    const { days, hours } = splitByDays(whole, isByDay)
    const ofDays = days.map((span) => ofEach(sumsOf('usage_days', 'day', span, alone), table))
    const ofHours = hours.map((span) => ofEach(sumsOf('usage_hour_sums', 'hour', span, alone), table))
    return [...ofDays, ...ofHours].join(' union all ')
  }

  function sumsOf(from: string, time: string, span: Span, alone: Part['alone']): string {
    return `select ${binned(time)} as at, ${alone?.item} as item, subject_label as label, ${COLUMNS}, 0 as read from ${from}
      where ${ofScope()} and about = ${parameter(alone?.about ?? '')} and ${alone?.subject()} and ${time} >= ${at(span.from)} and ${time} < ${at(span.to)}`
  }

  /**
   * Of a row for each key, operation, model and route, or of days that are over, without the route. What is found by an index is bounded, and filtered only then: what a filter throws away was
   * read too, and counts. In the order of the indexes: PostgreSQL might else look for the first so many in all that there is.
   */
  function combinedSums({ about, item, subject }: Omit<Part, 'alone'>, isByDay: boolean, table?: string): string {
    const { days, hours } = splitByDays(whole, isByDay, combinedUntil)
    const find = (from: string, time: string, span: Span) => {
      const found = `select ${time} as at, account_id, credential_id, operation, model, subject, subject_label, ${COLUMNS} from ${from}
        where ${ofOwnerOrKey} and about = ${parameter(about)} and ${subject()} and ${time} >= ${at(span.from)} and ${time} < ${at(span.to)} order by ${time}`
      return `(${ofEach(found, table)})`
    }
    const found = [
      ...days.map((span) => find('usage_combined_days', 'day', span)),
      ...hours.map((span) => find('usage_sums', 'hour', span)),
    ]
    const bounded = `(${found.join(' union all ')} limit ${COMBINED_SUMS_MOST + 1}) found`
    // Added up here already: PostgreSQL would else keep all of it to sort it.
    const filtered = afterwards.length === 0 ? '' : ` filter (where ${afterwards.join(' and ')})`
    const sums = COUNTED.map((column) => `coalesce(sum(${column})${filtered}, 0) as ${column}`)
    return `select ${binned('found.at')} as at, ${item} as item, max(subject_label) as label, ${sums.join(', ')}, count(*) as read from ${bounded} group by 1, 2`
  }

  /** What is in no sum. */
  function ofSingles({ about, item, subject }: Pick<Part, 'about' | 'item' | 'subject'>): string {
    return `select ${binned('at')} as at, ${item} as item, label, ${COLUMNS}, 0 as read
      from single cross join lateral (${subjectsOf(about, parameter)}) one (subject, label)
      where operation is not null and ${subject()} and ${matches}`
  }

  /** The sums of a key stand under its own id. */
  function ofScope(): string {
    if (filter.credentialId === undefined) return `scope_id = ${parameter(owner)}`
    const isOfOwner = 'credentialId' in scope ? `scope_id = ${parameter(owner)}` : isOurs
    return `scope_id = ${parameter(filter.credentialId)} and ${isOfOwner}`
  }

  const subjectIs = (value: string) => () => `subject = ${parameter(value)}`
  const both = (part: Part) => [ofStored(part), ofSingles(part)].join(' union all ')

  function all(): string {
    if (isPlain) return ofHours('null::text')
    const part = { about: asked, item: 'null::text', subject: subjectIs(subjectAsked ?? '') }
    if (subjectAsked !== undefined) return both({ ...part, ...(ofCalls.length === 0 && { alone: part }) })
    if (operation !== undefined && model !== undefined) return both(part)
    const about = operation === undefined ? 'model' : 'operation'
    return both({ ...part, alone: { about, item: part.item, subject: subjectIs(operation ?? model ?? '') } })
  }

  function groups(groupBy: 'key' | 'operation' | 'model'): string {
    if (groupBy === 'key' && isPlain) return ofHours('credential_id::text')
    const subject = subjectIs(subjectAsked ?? '')
    if (groupBy === 'key') return both({ about: asked, item: 'credential_id::text', subject })
    const part = { about: asked, item: `nullif(${groupBy}, '')`, subject }
    return both({
      ...part,
      ...(isPlain && { alone: { about: groupBy, item: 'subject', subject: () => `subject <> ''` } }),
    })
  }

  function leaders(about: About): string {
    if (subjectAsked !== undefined)
      return `select ${parameter(subjectAsked)}::text as subject, 0 as charged, 0 as requests, false as is_cut`
    const { days, most } = leadersOf(query)
    return `select large.* from unnest(array[${days.map(at).join(', ')}]) one (day)
      cross join lateral (
        select subject, charged, requests, count(*) over () > ${most} as is_cut from (
          select subject, charged, requests from usage_days
          where ${ofScope()} and about = ${parameter(about)} and usage_days.day = one.day and subject <> '' order by size desc limit ${2 * most}
        ) of_day order by charged desc, requests desc, subject limit ${most}
      ) large
      union all
      select subject, charged, requests, false from single cross join lateral (${subjectsOf(about, parameter)}) one (subject, label)
      where operation is not null and ${matches}`
  }

  const subjectsPart = (about: About): Part => {
    const part = { about, item: 'subject', subject: () => 'subject = candidate.subject' }
    return { ...part, ...(ofCalls.length === 0 && { alone: part }) }
  }

  function subjects(about: About, table: string, isByDay = bucket === 'day'): string {
    const part = subjectsPart(about)
    // What is in no sum is read once, and not for each.
    const alone = ofSingles({ ...part, subject: () => `subject in (select ${table}.subject from ${table})` })
    return `${ofStored(part, isByDay, table)} union all ${alone}`
  }

  function ranking(about: About): string | undefined {
    const hasDays = splitByDays(whole, true).days.length > 0
    if (bucket === 'day' || !hasDays || subjectAsked !== undefined || ofCalls.length > 0) return undefined
    return subjects(about, 'candidates', true)
  }

  function some(about: About): string {
    const part = { about, item: 'null::text', subject: subjectIs(subjectAsked ?? '') }
    const alone = ofSingles({ ...part, ...(subjectAsked === undefined && { subject: () => 'true' }) })
    return `${ofStored({ ...part, ...(ofCalls.length === 0 && { alone: part }) })} union all ${alone}`
  }

  return { common, all, groups, areGroupsAll: !isPlain, leaders, subjects, ranking, some }
}

/** Of each that a table has, looked up by itself: offset keeps PostgreSQL from reading those of all others to join them. */
function ofEach(rows: string, table: string | undefined): string {
  if (table === undefined) return rows
  return `select used.* from ${table} candidate cross join lateral (${rows} offset 0) used`
}

/** A tag or an end user that is asked for has sums of its own. */
function aboutOf({ tag, endUserId }: UsageFilter): About {
  if (tag !== undefined) return `tag:${tag.name}`
  return endUserId === undefined ? '' : 'end_user'
}

/** The days of which the window has a part, and how many of the largest are looked at of each. */
function leadersOf({ startSeconds, endSeconds }: UsageQuery): {
  readonly days: readonly number[]
  readonly most: number
} {
  const first = floorTo(startSeconds, DAY_SECONDS)
  const length = Math.ceil((Math.max(endSeconds, startSeconds + 1) - first) / DAY_SECONDS)
  const days = Array.from({ length }, (_, place) => first + place * DAY_SECONDS)
  return { days, most: Math.min(CANDIDATES_MOST, Math.max(GROUPS_MOST, Math.floor(LEADERS_ALL / length))) }
}

/** Whom or what of a kind a call was for, with what people know it by. */
function subjectsOf(about: About, parameter: (value: string) => string): string {
  if (about === '') return `select '', null::text`
  if (about === 'end_user') return 'select end_user::text, end_user_label where end_user is not null'
  const start = parameter(`${about.slice('tag:'.length)}=`)
  return `select substr(tag, length(${start}) + 1), null::text from unnest(tags) tag where starts_with(tag, ${start})`
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
