import type { PlantedBug } from './planted-bug.ts'
import { BEGIN, storedFunction } from './statements.ts'

const ADD_UP = storedFunction('add_up_usage')
const COMBINED = 'test/ledger/combined-days.test.ts'
const REVERSE_CHARGE = storedFunction('reverse_charge')
const CASES = 'test/ledger/attribution.test.ts'
const REPORT = 'test/ledger/usage-report.test.ts'
const STATEMENT = 'server/src/ledger/usage-sources.ts'

const TAKE = 'delete from usage_tail where ctid = any (array(select place from chosen)) returning *'
const EQUAL = { file: CASES, title: 'equals the calls to the nano' }

/** What would tell usage twice, not at all, or as somebody else's. */
export const bugsOfUsage: readonly PlantedBug[] = [
  {
    id: 'usage-added-and-kept',
    title: 'what is added to the sums stays in the tail',
    promise: 'A row is in the tail or in the sums.',
    author: 'insider',
    edits: [
      {
        file: ADD_UP,
        find: TAKE,
        replace: 'select * from usage_tail limit most',
      },
    ],
    caughtBy: [{ file: CASES, title: 'committed late' }],
  },
  {
    id: 'watermark-passes-a-late-commit',
    title: 'a step takes what was settled since the newest that it has seen, so that what commits late is in no sum',
    promise: 'No commit is too late for the sums.',
    author: 'blind',
    edits: [
      {
        file: ADD_UP,
        find: 'with chosen as (',
        replace: `with passed as (
    delete from usage_tail where at <= (select max(watermark.at) from watermark)
  ), chosen as (`,
      },
      {
        file: ADD_UP,
        find: '), alike as materialized (',
        replace: `), seen as (
    insert into watermark select max(taken.at) from taken having max(taken.at) is not null
  ), alike as materialized (`,
      },
      {
        file: ADD_UP,
        find: 'ctid = any (array(select place from chosen))',
        replace: `at > coalesce((select max(watermark.at) from watermark), '-infinity')
      and ctid = any (array(select place from chosen))`,
      },
    ],
    sql: 'create table watermark (at timestamptz);',
    caughtBy: [{ file: CASES, title: 'committed late' }],
  },
  {
    id: 'late-among-the-names-of-its-key',
    title: 'what comes late to a day that was left among the names of its key is compared by its key alone',
    promise: 'Combined sums of a day equal its hours.',
    author: 'blind',
    edits: [
      {
        file: ADD_UP,
        find: `(credential_id, about collate "C", subject collate "C") <= (combined.credential_id, combined.about, combined.subject)`,
        replace: 'credential_id <= combined.credential_id',
      },
    ],
    caughtBy: [{ file: COMBINED, title: 'wherever in the order of its names a day was left' }],
  },
  {
    id: 'day-read-before-it-is-whole',
    title: 'a report reads combined sums of the day that somebody is combining',
    promise: 'Until a day is combined, a report reads its hours.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/usage.ts',
        find: 'extract(epoch from until)',
        replace: "extract(epoch from until + interval '24 hours')",
      },
    ],
    caughtBy: [{ file: COMBINED, title: 'are made of hours that are there already' }],
  },
  {
    id: 'reversal-without-its-dimensions',
    title: 'what is given back of a charge is taken from no tag and from no end user',
    promise: 'What is given back of a call is given back to whom it was booked for.',
    author: 'blind',
    edits: [
      {
        file: REVERSE_CHARGE,
        find: 'at, charge.operation, charge.model, charge.end_user, charge.end_user_label,',
        replace: 'at, charge.operation, charge.model, null, null,',
      },
      { file: REVERSE_CHARGE, find: 'charge.tags, 0,', replace: 'null, 0,' },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'attribution-of-the-first',
    title: 'all calls of a batch begin for the end user of its first',
    promise: 'A call is booked for whom it was made.',
    author: 'insider',
    edits: [
      {
        file: BEGIN,
        find: 'call_models[i], call_end_users[i],',
        replace: 'call_models[i], call_end_users[held_calls[1]],',
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'report-without-the-tail',
    title: 'a report has what was added up, and nothing of what is still in the tail',
    promise: 'A charge is in the report no later than one second after its response ended.',
    author: 'insider',
    edits: [{ file: STATEMENT, find: 'from usage_tail where ', replace: 'from usage_tail where false and ' }],
    caughtBy: [EQUAL, { file: REPORT, title: 'has what calls have just booked' }],
  },
]
