import type { PlantedBug } from './planted-bug.ts'
import { BEGIN, END, storedFunction } from './statements.ts'

const ADD_UP = storedFunction('add_up_usage')
const REVERSE_CHARGE = storedFunction('reverse_charge')
const CASES = 'test/ledger/attribution.test.ts'
const REPORT = 'test/ledger/usage-report.test.ts'
const STATEMENT = 'server/src/ledger/usage-sources.ts'

const TAKE = 'delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *'
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
    id: 'usage-taken-and-not-added',
    title: 'a step empties the tail, and adds only as much as it was told to',
    promise: 'A row is in the tail or in the sums.',
    author: 'insider',
    edits: [
      {
        file: ADD_UP,
        find: 'with taken as (',
        replace: 'with gone as (delete from usage_tail returning *), taken as (',
      },
      { file: ADD_UP, find: TAKE, replace: 'select * from gone limit most' },
    ],
    caughtBy: [{ file: CASES, title: 'dies at any step' }],
  },
  {
    id: 'watermark-passes-a-late-commit',
    title: 'a step takes what was settled since the newest that it has seen, so that what commits late is in no sum',
    promise: 'No commit is too late for the sums.',
    author: 'blind',
    edits: [
      {
        file: ADD_UP,
        find: 'with taken as (',
        replace: `with passed as (
    delete from usage_tail where at <= (select max(watermark.at) from watermark)
  ), taken as (`,
      },
      {
        file: ADD_UP,
        find: '), hours as (',
        replace: `), seen as (
    insert into watermark select max(taken.at) from taken having max(taken.at) is not null
  ), hours as (`,
      },
      {
        file: ADD_UP,
        find: 'ctid = any (array(select ctid from usage_tail limit most))',
        replace: `at > coalesce((select max(watermark.at) from watermark), '-infinity')
      and ctid = any (array(select ctid from usage_tail limit most))`,
      },
    ],
    sql: 'create table watermark (at timestamptz);',
    caughtBy: [{ file: CASES, title: 'committed late' }],
  },
  {
    id: 'sums-of-an-hour-added-once',
    title: 'what comes to an hour of which the key has sums already is added to its totals and to no group',
    promise: 'Usage by whose it is equals the ledger.',
    author: 'insider',
    edits: [
      {
        file: ADD_UP,
        find: 'where operation is not null',
        replace: `where operation is not null and not exists (
      select from usage_sums old where old.credential_id = taken.credential_id and old.hour = date_trunc('hour', taken.at, 'UTC'))`,
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'days-of-the-account-alone',
    title: 'sums by day are kept of accounts, and of none of their keys',
    promise: 'Usage by whose it is equals the ledger.',
    author: 'insider',
    edits: [
      {
        file: ADD_UP,
        find: 'cross join lateral (values (account_id), (credential_id)) scope (scope_id)',
        replace: 'cross join lateral (values (account_id)) scope (scope_id)',
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'reversal-without-its-dimensions',
    title: 'what is given back of a charge is taken from no tag and from no end user',
    promise: 'What is given back of a call is given back to whom it was booked for.',
    author: 'blind',
    edits: [
      {
        file: REVERSE_CHARGE,
        find: 'at, charge.operation, charge.model, charge.route, charge.end_user, charge.end_user_label,',
        replace: 'at, charge.operation, charge.model, charge.route, null, null,',
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
    id: 'tags-lost-alone',
    title: 'a call that ends alone in its batch loses its tags where usage is noted, and keeps them on its charge',
    promise: 'Usage by tag equals the ledger.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: 'own.operation, own.asked_model, call_routes[1], own.end_user, own.end_user_label, own.tags,',
        replace: 'own.operation, own.asked_model, call_routes[1], own.end_user, own.end_user_label, null,',
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'report-without-the-tail',
    title: 'a report has what was added up, and nothing of what is still in the tail',
    promise: 'A charge is in the report no later than one second after its response ended.',
    author: 'insider',
    edits: [{ file: STATEMENT, find: 'from tail where ', replace: 'from tail where false and ' }],
    caughtBy: [EQUAL, { file: REPORT, title: 'has what calls have just booked' }],
  },
  {
    id: 'cut-hour-of-known-keys-alone',
    title: 'a report finds nothing in a part of an hour of which the key has no sum yet',
    promise: 'What the usage report says and what the ledger holds agree, in any window.',
    author: 'insider',
    edits: [
      {
        file: STATEMENT,
        find: 'union select credential_id from tail',
        replace: 'union select credential_id from tail where false',
      },
    ],
    caughtBy: [{ file: REPORT, title: 'has what calls have just booked' }],
  },
  {
    id: 'booked-twice-in-part',
    title: 'a charge that its END has booked by itself is told under its operation where the window cuts its hour',
    promise: 'A report says the same of an hour whether it has it as a whole or in part.',
    author: 'insider',
    edits: [{ file: STATEMENT, find: 'case when not booked then operation end', replace: 'operation' }],
    caughtBy: [{ file: CASES, title: 'of the release before has booked it' }],
  },
]
