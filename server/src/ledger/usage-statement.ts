import type { UsageQuery } from './usage-query.ts'
import {
  CANDIDATES_MOST,
  COLUMNS,
  COUNTED,
  createSources,
  GROUPS_MOST,
  type Sources,
  SUMS,
  valuesOf,
} from './usage-sources.ts'

export type Statement = { readonly text: string; readonly values: readonly string[] }

/**
 * The statement of a report. It has no name, so that it is planned for its values: only then are the charges of other days
 * neither locked nor looked at. All of it is of one state of the ledger, so that a row of the tail is there or in the sums. Up to when
 * there are combined sums of days may have been read before: there are never fewer afterwards.
 */
export function usageStatement(query: UsageQuery, combinedUntil = 0): Statement {
  const sources = createSources(query, combinedUntil)
  return bind(textOf(sources, query.groupBy), valuesOf(query))
}

function textOf(sources: Sources, groupBy: UsageQuery['groupBy']): string {
  if (groupBy === undefined) return ofAll(sources)
  return groupBy === 'end_user' || typeof groupBy === 'object' ? bySubject(sources) : byItem(sources, groupBy)
}

/** `:name`, where it is no cast. */
const NAME = /(?<!:):([a-z]+)/g

/** A text with values by name as one with values by place, as PostgreSQL takes them. */
function bind(text: string, values: Readonly<Record<string, string | undefined>>): Statement {
  const names: string[] = []
  const bound = text.replace(NAME, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  const given = names.map((name) => {
    const value = values[name]
    if (value === undefined) throw new Error(`The statement of a report names ${name}, which the query lacks.`)
    return value
  })
  return { text: bound, values: given }
}

/** A row of a report. `read` says of how many combined sums these tables come. */
function told(groups: string, ...tables: readonly string[]): string {
  const read = tables.map((table) => `coalesce((select sum(read) from ${table}), 0)`).join(' + ')
  const counts = COUNTED.map((column) => `${column}::bigint as ${column}`).join(', ')
  return `select part, item, label, ${groups} as groups, extract(epoch from at)::float8 as at, ${counts}, (${read})::integer as read`
}

/** What all used, by bucket. */
function baseOf(rows: string): string {
  return `base as materialized (select at, ${SUMS}, sum(read) as read from ${rows} used group by at)`
}

const ALL = `select 'all' as part, null as item, null as label, at, ${COLUMNS} from base`

function ofAll({ common, all }: Sources): string {
  return `with ${common}, ${baseOf(`(${all})`)} ${told('0', 'base')} from (${ALL}) told`
}

/** Of keys, operations and models there are few: all are added up. */
function byItem(sources: Sources, groupBy: 'key' | 'operation' | 'model'): string {
  return `with ${sources.common},
    ${grouped(sources.groups(groupBy))},
    ${baseOf(sources.areGroupsAll ? 'everything' : `(${sources.all})`)},
    ${largestOf('grouped')}
    ${told('(select count(*) from whole)::integer', 'everything')} from (
      ${ALL}
      union all select 'group', item, label, at, ${COLUMNS} from grouped where item in (select subject from largest)
      union all select 'other', null, null, at, ${SUMS} from grouped where item not in (select subject from largest) group by at
    ) told`
}

/**
 * Of end users and values of a tag there may be very many. So only candidates are added up, which are all where there are not that many;
 * 'some' is what all that have one used, and the smaller ones are what the largest leave of it. By the hour, candidates are ranked by their
 * days, and only the hours of the largest are read.
 */
function bySubject({ common, all, leaders, subjects, ranking, some }: Sources): string {
  const groups =
    ranking === undefined
      ? [grouped(subjects('candidates')), largestOf('grouped')]
      : [ranked(ranking), largestOf('ranked'), grouped(subjects('largest'))]
  return `with ${common},
    ${baseOf(`(${all})`)},
    leaders as materialized (${leaders}),
    candidates as materialized (
      select subject from leaders group by subject order by sum(charged) desc, sum(requests) desc, subject limit ${CANDIDATES_MOST}
    ),
    ${groups.join(', ')},
    having_one as materialized (select at, ${SUMS}, sum(read) as read from (${some}) used group by at),
    counted as (select case when (select count(distinct subject) from leaders) <= ${CANDIDATES_MOST} and not exists (select from leaders where is_cut)
      then (select count(*) from whole)::integer end as groups)
    ${told('(select groups from counted)', 'base', 'everything', 'having_one', ...(ranking === undefined ? [] : ['ranked']))} from (
      ${ALL}
      union all select 'group', item, label, at, ${COLUMNS} from grouped where item in (select subject from largest)
      union all select 'some', null, null, at, ${COLUMNS} from having_one
    ) told`
}

function grouped(rows: string): string {
  return `everything as materialized (
      select at, item, max(label) as label, ${SUMS}, sum(read) as read from (${rows}) used group by at, item
    ),
    grouped as materialized (select * from everything where item is not null and (requests <> 0 or charged <> 0))`
}

function ranked(rows: string): string {
  return `ranked as materialized (
      select item, sum(charged) as charged, sum(requests) as requests, sum(read) as read from (${rows}) used group by item
    )`
}

function largestOf(table: string): string {
  return `whole as materialized (
      select item, sum(charged) as charged, sum(requests) as requests from ${table} where requests <> 0 or charged <> 0 group by item
    ),
    largest as materialized (select item as subject from whole order by charged desc, requests desc, item limit ${GROUPS_MOST})`
}
