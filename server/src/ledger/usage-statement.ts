import type { UsageQuery } from './usage-query.ts'
import {
  type About,
  CANDIDATES_MOST,
  COLUMNS,
  createSources,
  GROUPS_MOST,
  type Sources,
  SUMS,
  TOLD,
} from './usage-sources.ts'

export type Statement = { readonly text: string; readonly values: readonly (string | number)[] }

/**
 * The statement of a report. It has no name, so that it is planned for its values: only then are the charges of other days
 * neither locked nor looked at. All of it is of one state of the ledger, so that a row of the tail is there or in the sums. Up to when
 * there are combined sums of days may have been read before: there are never fewer afterwards.
 */
export function usageStatement(query: UsageQuery, combinedUntil = 0): Statement {
  const { groupBy } = query
  const values: (string | number)[] = []
  const parameter = (value: string | number) => `$${values.push(value)}`
  const sources = createSources(query, parameter, combinedUntil)
  if (groupBy === undefined) {
    const text = `with ${sources.common}, ${baseOf(`(${sources.all()})`)}
      select 'all' as part, null as item, null as label, 0 as groups, extract(epoch from at)::float8 as at, ${TOLD}, ${readIn('base')} from base`
    return { text, values }
  }
  const text =
    groupBy === 'end_user' || typeof groupBy === 'object'
      ? bySubject(sources, groupBy === 'end_user' ? groupBy : `tag:${groupBy.tag}`)
      : byItem(sources, groupBy)
  return { text, values }
}

/** What all used, by bucket. */
function baseOf(rows: string): string {
  return `base as materialized (select at, ${SUMS}, sum(read) as read from ${rows} used group by at)`
}

/** How many combined sums these have read together. */
function readIn(...tables: readonly string[]): string {
  return `(${tables.map((table) => `coalesce((select sum(read) from ${table}), 0)`).join(' + ')})::integer as read`
}

/** Of keys, operations and models there are few: all are added up. */
function byItem(sources: Sources, groupBy: 'key' | 'operation' | 'model'): string {
  return `with ${sources.common},
    ${grouped(sources.groups(groupBy))},
    ${baseOf(sources.areGroupsAll ? 'everything' : `(${sources.all()})`)},
    ${LARGEST}
    select part, item, label, (select count(*) from whole)::integer as groups, extract(epoch from at)::float8 as at, ${TOLD},
      ${readIn('everything')} from (
      select 'all' as part, null as item, null as label, at, ${COLUMNS} from base
      union all select 'group', item, label, at, ${COLUMNS} from grouped where item in (select subject from largest)
      union all select 'other', null, null, at, ${SUMS} from grouped where item not in (select subject from largest) group by at
    ) told`
}

/**
 * Of end users and values of a tag there may be very many. So only candidates are added up, which are all where there are not that many;
 * 'some' is what all that have one used, and the smaller ones are what the largest leave of it. By the hour, candidates are ranked by their
 * days, and only the hours of the largest are read.
 */
function bySubject(sources: Sources, about: About): string {
  const ranking = sources.ranking(about)
  const groups =
    ranking === undefined
      ? [grouped(sources.subjects(about, 'candidates')), LARGEST]
      : [ranked(ranking), largestOf('ranked'), grouped(sources.subjects(about, 'largest'))]
  return `with ${sources.common},
    ${baseOf(`(${sources.all()})`)},
    leaders as materialized (${sources.leaders(about)}),
    candidates as materialized (
      select subject from leaders group by subject order by sum(charged) desc, sum(requests) desc, subject limit ${CANDIDATES_MOST}
    ),
    ${groups.join(', ')},
    having_one as materialized (select at, ${SUMS}, sum(read) as read from (${sources.some(about)}) used group by at),
    counted as (select case when (select count(distinct subject) from leaders) <= ${CANDIDATES_MOST} and not exists (select from leaders where is_cut)
      then (select count(*) from whole)::integer end as groups)
    select part, item, label, (select groups from counted) as groups, extract(epoch from at)::float8 as at, ${TOLD},
      ${readIn('base', 'everything', 'having_one', ...(ranking === undefined ? [] : ['ranked']))} from (
      select 'all' as part, null as item, null as label, at, ${COLUMNS} from base
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

const LARGEST = largestOf('grouped')
