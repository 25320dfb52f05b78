import type { PlantedBug } from './planted-bug.ts'
import { BEFORE_THE_LOCK, BEGIN, END } from './statements.ts'

const LOCKS = 'test/ledger/locks.test.ts'
const OF_THE_SAME_SET = `from claims mine
        join claims same on same.credential_id = mine.credential_id and same.scope = mine.scope and same.key = mine.key
          and (same.call_id = mine.call_id or mine.keep_seconds > 0)`

/** Of how calls are admitted, held for and kept apart. */
export const bugsOfBegin: readonly PlantedBug[] = [
  {
    id: 'begin-without-lock',
    title: 'begin_calls does not lock the accounts of its batch',
    promise: 'Nobody spends more than they have.',
    author: 'insider',
    edits: [{ file: BEGIN, find: 'order by id for no key update) row;', replace: 'order by id) row;' }],
    caughtBy: [
      { file: LOCKS, title: 'of the balance: money that is held meanwhile' },
      { file: LOCKS, title: 'of who may spend' },
      { file: LOCKS, title: 'of the clock' },
    ],
  },
  {
    id: 'window-reset-by-two',
    title: 'begin_calls reads the windows before it waits for the lock, so that two batches begin a window anew',
    promise: 'A limit is a limit, however many processes there are.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: BEFORE_THE_LOCK,
        replace: `select array_agg(row.started_at), array_agg(coalesce(row.requests, 0)), array_agg(coalesce(row.tokens, 0))
  into window_started, window_requests, window_tokens
  from unnest(window_groups) with ordinality item (limit_group, place)
  left join lateral (
    select started_at, requests, tokens from windows
    where credential_id = window_credentials[place] and limit_group = item.limit_group
      and started_at + make_interval(secs => window_seconds[place]) > clock_timestamp()
    limit 1
  ) row on true;
  ${BEFORE_THE_LOCK}`,
      },
      { file: BEGIN, find: "if window_groups <> '{}' then", replace: 'if false then' },
    ],
    caughtBy: [
      { file: LOCKS, title: 'of a window: the last request' },
      { file: LOCKS, title: 'of a window that has run out' },
    ],
  },
  {
    id: 'allowance-read-with-the-lock',
    title:
      'begin_calls reads the allowances in the statement that locks, and judges by how they stood before it waited',
    promise: 'For every allowance and period: charged + held ≤ allowance, at every instant.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: BEFORE_THE_LOCK,
        replace: `with waited as materialized (
    select id from accounts where id = any (accounts_in) order by id for no key update
  )
  select
    array_agg(allowance.account_id order by place),
    array_agg(period_start(allowance.period, clock_timestamp()) order by place),
    array_agg(coalesce(row.amount, allowance.amount) order by place),
    array_agg(coalesce(row.amount - row.charged - row.held, allowance.amount) order by place)
  into allowance_account, allowance_starts, allowance_amounts, allowance_free
  from (select count(*) from waited) one
  left join unnest(allowances_in) with ordinality item (id, place) on true
  left join lateral (select * from allowances where allowances.id = item.id limit 1) allowance on true
  left join lateral (
    select amount, charged, held from allowance_periods
    where allowance_id = item.id and starts_at = period_start(allowance.period, clock_timestamp()) limit 1
  ) row on true;
  ${BEFORE_THE_LOCK}`,
      },
      { file: BEGIN, find: "if allowances_in <> '{}' then", replace: 'if false then' },
    ],
    caughtBy: [
      { file: LOCKS, title: 'of an allowance: what is held of it meanwhile is not there' },
      { file: LOCKS, title: 'of an allowance: what is charged meanwhile is gone' },
    ],
  },
  {
    id: 'tombstone-checked-before-lock',
    title: 'begin_calls looks up which ids are open or have ended before it locks, and never again',
    promise: 'Every verb is idempotent by its id; a void before a late hold wins.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: BEFORE_THE_LOCK,
        replace: `call_known := array(
    select case
      when hold.account_id = accounts_in[call_accounts[place]] then 'begun'
      when hold.account_id is not null or item.id = any (ended.ids) then 'ended' end
    from (select array(select id from ended_among(call_ids, call_days)) as ids) ended
    cross join unnest(call_ids) with ordinality item (id, place)
    left join lateral (select account_id from holds where id = item.id limit 1) hold on true
  );
  ${BEFORE_THE_LOCK}`,
      },
      { file: BEGIN, find: 'if true = any (call_holds) and', replace: 'if false and' },
      { file: BEGIN, find: 'from unnest(held_calls) i;', replace: 'from unnest(held_calls) i on conflict do nothing;' },
    ],
    caughtBy: [
      { file: LOCKS, title: 'of its own id: one that was voided meanwhile' },
      { file: LOCKS, title: 'of its own id: one that was begun and posted meanwhile' },
    ],
  },
  {
    id: 'concurrency-costs-a-request',
    title:
      'a call that is refused for concurrency takes a request of its windows, and one for want of money takes none',
    promise: 'A refusal counts as a request where it is about money, a key or a quote; one for concurrency does not.',
    author: 'insider',
    edits: [
      { file: BEGIN, find: 'takes_request := ask_keep_seconds[j] > 0;', replace: '' },
      {
        file: BEGIN,
        find: "outcome := 'money_spent';",
        replace: "outcome := 'money_spent'; takes_request := false;",
      },
    ],
    caughtBy: [
      { file: 'test/ledger/windows.test.ts', title: 'costs a request (money_spent)' },
      { file: 'test/ledger/windows.test.ts', title: 'consumes nothing of the others (a slot: claim_taken)' },
    ],
  },
  {
    id: 'open-call-key-expires',
    title:
      'a key expires its time after it was claimed, though its call is still open; END extends or frees what its set has',
    promise: 'No claim expires while its call is open.',
    author: 'blind',
    edits: [
      { file: BEGIN, find: 'keep_seconds, ends_with_owner)', replace: 'keep_seconds, ends_with_owner, kept_until)' },
      {
        file: BEGIN,
        find: 'ask_ends_with_owner[j]',
        replace: `ask_ends_with_owner[j],
      case when ask_keep_seconds[j] > 0 then at + make_interval(secs => ask_keep_seconds[j]) end`,
      },
      {
        file: END,
        find: 'select ctid as place, keep_seconds > 0 and call_charges[hold.ordinality] > 0 as kept from claims where call_id = hold.id',
        replace: `select same.ctid as place, same.keep_seconds > 0 and call_charges[hold.ordinality] > 0 as kept
        ${OF_THE_SAME_SET} where mine.call_id = hold.id`,
      },
      {
        file: END,
        find: 'delete from claims where call_id = own.id and',
        replace: `delete from claims where ctid = any (array(select same.ctid ${OF_THE_SAME_SET} where mine.call_id = own.id)) and`,
      },
      {
        file: END,
        find: 'keep_seconds) where call_id = own.id and',
        replace: `keep_seconds)
      where ctid = any (array(select same.ctid ${OF_THE_SAME_SET} where mine.call_id = own.id)) and`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'an idempotency key stays taken while its call is open' }],
  },
  {
    id: 'places-uncounted-in-a-batch',
    title: 'a batch of several credentials does not count the calls that have a place among those at once',
    promise: 'No key has more calls at once than its limit.',
    author: 'insider',
    edits: [
      {
        file: BEGIN,
        find: 'then coalesce((select calls_at_once from credentials where id = set_credentials[place]), 0)',
        replace: 'then 0',
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'is each credential’s own in a batch of several' }],
  },
  {
    id: 'requeued-call-counts-as-unsent',
    title: 'a batch that got no answer counts as never sent while it waits to be sent again',
    promise: 'A hold that was not acknowledged is voided when its deadline passes.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/calls/lane.ts',
        find: 'waiting = [...again.filter(',
        replace: `for (const entry of again) entry.sent = false
      waiting = [...again.filter(`,
      },
    ],
    caughtBy: [
      {
        file: 'test/ledger/lane-deadlines.test.ts',
        title: 'while the item waits to be sent again says that it was sent',
      },
      { file: 'test/ledger/unanswered.test.ts', title: 'its answer lost) is voided when its deadline passes' },
    ],
  },
  {
    id: 'today-instead-of-the-day-of-the-id',
    title: 'what has ended is looked up under the day of the clock instead of the day that the id carries',
    promise: 'At most one charge per id, ever, midnight and partition edges included.',
    author: 'insider',
    edits: [
      { file: 'server/src/calls/columns.ts', find: 'idTimeMs(id) / DAY_MS', replace: '(id && Date.now()) / DAY_MS' },
    ],
    caughtBy: [
      { file: 'test/ledger/days.test.ts', title: '(yesterday) is charged once' },
      { file: 'test/ledger/days.test.ts', title: '(tomorrow) holds nothing once it has ended' },
    ],
  },
]
