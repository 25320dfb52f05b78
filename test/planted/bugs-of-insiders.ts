import type { PlantedBug } from './planted-bug.ts'

const STATEMENTS = 'server/src/storage/migrations/0003_begin_and_end.sql'
const LOCK_OF_BEGIN = `  -- This statement only locks. A statement that locks and reads sees what was there before it waited.
  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
`

/** Written by who knows the code and the tests. */
export const bugsOfInsiders: readonly PlantedBug[] = [
  {
    id: 'begin-without-lock',
    title: 'begin_calls does not lock the accounts of its batch',
    promise: 'Nobody spends more than they have.',
    author: 'insider',
    edits: [{ file: STATEMENTS, find: LOCK_OF_BEGIN, replace: '' }],
    caughtBy: [
      { file: 'test/ledger/locks.test.ts', title: 'of the balance: money that is held meanwhile' },
      { file: 'test/ledger/locks.test.ts', title: 'of who may spend' },
      { file: 'test/ledger/locks.test.ts', title: 'of the clock' },
    ],
  },
  {
    id: 'end-without-lock',
    title: 'end_calls does not lock the accounts of its batch',
    promise: 'No call is charged twice, and the same id again answers as the first time.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `  ended_overruns bigint[];
begin
  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
`,
        replace: `  ended_overruns bigint[];
begin
`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/locks.test.ts', title: 'ends the hold that was made meanwhile' }],
  },
  {
    id: 'double-post-accepted',
    title: 'a second post of a call that was posted is charged to the account again, up to what the first one charged',
    promise: 'At most one charge per id, ever.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `        when hold.id is null or given.forgiven then 0
        else least(coalesce(given.amount, 0), hold.amount)`,
        replace: `        when given.forgiven or (hold.id is null and before.outcome is distinct from 'posted') then 0
        else least(coalesce(given.amount, 0), coalesce(hold.amount, before.amount))`,
      },
      {
        file: STATEMENTS,
        find: `    from accounted
    where outcome_before is null and not misplaced
`,
        replace: `    from accounted
    where not misplaced
`,
      },
      {
        file: STATEMENTS,
        find: 'freed - debt_paid, account_release - account_charge) as expired',
        replace: 'freed - debt_paid, greatest(0, account_release - account_charge)) as expired',
      },
      {
        file: STATEMENTS,
        find: 'select distinct on (account_place) * from ending where hold_place is not null\n',
        replace: `select distinct on (account_place) * from ending where hold_place is not null or outcome_before = 'posted'
`,
      },
      {
        file: STATEMENTS,
        find: `begun_at, at
    from ending
`,
        replace: `begun_at, at
    from ending
    on conflict (id) do nothing
`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/unanswered.test.ts', title: 'is answered as the first time by the same id sent again' },
    ],
  },
  {
    id: 'window-rolled-twice',
    title: 'begin_calls reads the windows before it waits for the lock, so that two batches begin a window anew',
    promise: 'A window never admits one more than its limit.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `  if cardinality(window_groups) > 0 then
    select
`,
        replace: `  if false then
    select
`,
      },
      {
        file: STATEMENTS,
        find: LOCK_OF_BEGIN,
        replace: `  at := clock_timestamp();
  if cardinality(window_groups) > 0 then
    select
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.started_at end order by place),
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.requests else 0 end order by place),
      array_agg(case when row.started_at + make_interval(secs => seconds) > at then row.tokens else 0 end order by place)
    into window_started, window_requests, window_tokens
    from unnest(window_credentials, window_groups, window_seconds) with ordinality item (credential_id, limit_group, seconds, place)
    left join lateral (
      select started_at, requests, tokens from windows
      where windows.credential_id = item.credential_id and windows.limit_group = item.limit_group limit 1
    ) row on true;
    window_touched := array_fill(false, array[cardinality(window_groups)]);
  end if;
${LOCK_OF_BEGIN}`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/locks.test.ts', title: 'of a window: the last request' },
      { file: 'test/ledger/locks.test.ts', title: 'of a window that has run out' },
    ],
  },
  {
    id: 'bound-rounded-down',
    title: 'a bound is rounded down to the nano',
    promise: 'What was quoted as the most is never exceeded: bounds and holds round up.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/kernel/money.ts',
        find: 'return nanos(ceiling(exact))',
        replace: 'return nanos(floor(exact))',
      },
    ],
    caughtBy: [{ file: 'server/src/kernel/money.test.ts', title: 'never rounds a bound below what it bounds' }],
  },
  {
    id: 'claim-freed-early',
    title: 'a key is kept from the begin of its call instead of from its end',
    promise: 'Keys and quotes outlive a charged call for as long as they say.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: 'update claims set kept_until = at + make_interval(secs => keep_seconds)',
        replace: `update claims set kept_until = (select begun_at from ending where ending.id = claims.call_id) + make_interval(secs => keep_seconds)`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'is kept after a charged call, from its end' }],
  },
  {
    id: 'refusal-consumes-a-request',
    title: 'a call that is refused for want of money, or for a claim, has used up a request of its windows',
    promise: 'A refusal for one reason consumes nothing of the others.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: 'call_begins[i] := true;',
        replace: `call_begins[i] := true;
      elsif outcome not in ('requests_spent', 'tokens_spent') then
        for j in window_from .. ask_windows_to[i] loop
          w := ask_windows[j];
          if window_started[w] is null then window_started[w] := at; end if;
          window_requests[w] := window_requests[w] + 1;
          window_touched[w] := true;
        end loop;
      end if;
      if outcome = 'begun' then`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/windows.test.ts', title: 'consumes nothing of the others (money_spent)' },
      { file: 'test/ledger/windows.test.ts', title: 'consumes nothing of the others (claim_taken)' },
    ],
  },
  {
    id: 'repeated-account-applied-once',
    title:
      'end_calls updates accounts from the calls of the batch, not from their sums: a repeated account is changed once',
    promise: 'An account holds the sum of its open holds, and was charged the sum of its charges.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `sum(charge) over account as account_charge,
      sum(coalesce(held, 0)) over account as account_release`,
        replace: `charge as account_charge,
      coalesce(held, 0) as account_release`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/batches.test.ts', title: 'are all counted, though many belong to one account' }],
  },
  {
    id: 'today-instead-of-the-day-of-the-id',
    title: 'what has ended is looked up under the day of the clock instead of the day that the id carries',
    promise: 'At most one charge per id, ever, midnight and partition edges included.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/columns.ts',
        find: 'items.map(({ id }) => Math.floor(idTimeMs(id) / DAY_MS))',
        replace: 'items.map(() => Math.floor(Date.now() / DAY_MS))',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/days.test.ts', title: '(yesterday) is charged once' },
      { file: 'test/ledger/days.test.ts', title: '(tomorrow) holds nothing once it has ended' },
    ],
  },
  {
    id: 'refused-call-shadows',
    title: 'a call that is refused for want of money takes its amount from what the calls behind it are judged by',
    promise: 'A refused large call does not shadow the small ones behind it in its batch.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: "outcome := 'money_spent';",
        replace: "outcome := 'money_spent'; account_free[account] := account_free[account] - call_amounts[i];",
      },
    ],
    caughtBy: [
      { file: 'test/ledger/batches.test.ts', title: 'are not shadowed by a large one that is refused: by money' },
    ],
  },
]
