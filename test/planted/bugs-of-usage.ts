import type { PlantedBug } from './planted-bug.ts'
import { STATEMENTS } from './statements.ts'

const CASES = 'test/ledger/attribution.test.ts'
const REPORT = 'test/ledger/usage-report.test.ts'
const STATEMENT = 'server/src/ledger/usage-statement.ts'

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
        file: STATEMENTS,
        find: 'delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *',
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
        file: STATEMENTS,
        find: `  with taken as (
    delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *
  )`,
        replace: `  with gone as (
    delete from usage_tail returning *
  ), taken as (
    select * from gone limit most
  )`,
      },
    ],
    caughtBy: [{ file: CASES, title: 'dies at any step' }],
  },
  {
    id: 'usage-by-a-place-in-time',
    title: 'a step takes what was settled since the last step, so that what commits late is left out of it for good',
    promise: 'No commit is too late for the sums.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `  with taken as (
    delete from usage_tail where ctid = any (array(select ctid from usage_tail limit most)) returning *
  )`,
        replace: `  create table if not exists usage_place (at timestamptz);
  with old as (
    delete from usage_tail where at <= (select max(usage_place.at) from usage_place) returning *
  ), taken as (
    delete from usage_tail where at > coalesce((select max(usage_place.at) from usage_place), '-infinity') and ctid = any (
      array(select ctid from usage_tail limit most)) returning *
  ), placed as (
    insert into usage_place select max(taken.at) from taken having max(taken.at) is not null
  )`,
      },
    ],
    caughtBy: [{ file: CASES, title: 'committed late' }],
  },
  {
    id: 'sums-overwritten',
    title: 'a sum that is there already is replaced by what comes to it',
    promise: 'Usage by whose it is equals the ledger.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `      charged = row.charged + excluded.charged
  )
  select count(*)`,
        replace: `      charged = excluded.charged
  )
  select count(*)`,
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'tag-cut-at-its-second-sign',
    title: 'the value of a tag ends at an equals sign where it is added up',
    promise: 'Usage by tag equals the ledger.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: "substr(tag, strpos(tag, '=') + 1), null from",
        replace: "split_part(tag, '=', 2), null from",
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'given-back-to-nobody',
    title: 'what is given back of a charge is taken from the totals and from no group',
    promise: 'What is given back of a call is given back to whom it was booked for.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: 'values (charge.account_id, charge.credential_id, at, charge.operation, charge.model,',
        replace: 'values (charge.account_id, charge.credential_id, at, null, charge.model,',
      },
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
        file: STATEMENTS,
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
        file: STATEMENTS,
        find: 'call_routes[1], own.end_user, own.end_user_label, own.tags,\n',
        replace: 'call_routes[1], own.end_user, own.end_user_label, null,\n',
      },
    ],
    caughtBy: [EQUAL],
  },
  {
    id: 'report-without-the-tail',
    title: 'a report has what was added up, and nothing of what is still in the tail',
    promise: 'A charge is in the report no later than one second after its response ended.',
    author: 'insider',
    edits: [
      {
        file: STATEMENT,
        find: '\n    from tail where ',
        replace: '\n    from tail where false and ',
      },
    ],
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
  {
    id: 'smaller-groups-left-out',
    title: 'groups beyond the largest are not told at all, and count as calls without a group',
    promise: 'Groups add up to the totals.',
    author: 'insider',
    edits: [
      {
        file: STATEMENT,
        find: 'from grouped where item not in (select item from largest) group by at',
        replace: 'from grouped where false group by at',
      },
    ],
    caughtBy: [{ file: CASES, title: 'tells the largest groups apart' }],
  },
]
