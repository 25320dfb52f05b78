import type { PlantedBug } from './planted-bug.ts'
import { BEGINNING, LOOK_UP_OF_IDS, START_OF_BEGIN, START_OF_END, STATEMENTS } from './statements.ts'

const OF_THE_SAME_SET = `from claims mine
        join claims same on same.credential_id = mine.credential_id and same.scope = mine.scope and same.key = mine.key
          and (same.call_id = mine.call_id or mine.keep_seconds > 0)`

/** Described by somebody who has seen neither code nor tests, then put into the code's words. */
export const bugsOfTheBlind: readonly PlantedBug[] = [
  {
    id: 'allowance-read-with-the-lock',
    title:
      'begin_calls reads the allowances in the statement that locks, and judges by how they stood before it waited',
    promise: 'For every allowance and period: charged + held ≤ allowance, at every instant.',
    author: 'blind',
    edits: [
      {
        file: BEGINNING,
        find: START_OF_BEGIN,
        replace: `${START_OF_BEGIN}  with waited as materialized (
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
`,
      },
      {
        file: BEGINNING,
        find: '  if cardinality(allowances_in) = 1 then\n',
        replace: '  if false then\n',
      },
      {
        file: BEGINNING,
        find: '  elsif cardinality(allowances_in) > 1 then\n',
        replace: '  elsif false then\n',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/locks.test.ts', title: 'of an allowance: what is held of it meanwhile is not there' },
      { file: 'test/ledger/locks.test.ts', title: 'of an allowance: what is charged meanwhile is gone' },
    ],
  },
  {
    id: 'tombstone-checked-before-lock',
    title: 'begin_calls looks up which ids are open or have ended before it locks, and never again',
    promise: 'Every verb is idempotent by its id; a void before a late hold wins.',
    author: 'blind',
    edits: [
      { file: BEGINNING, find: LOOK_UP_OF_IDS, replace: '' },
      { file: BEGINNING, find: START_OF_BEGIN, replace: `${START_OF_BEGIN}${LOOK_UP_OF_IDS}` },
      {
        file: BEGINNING,
        find: 'from unnest(held_calls) i;',
        replace: 'from unnest(held_calls) i on conflict (id) do nothing;',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/locks.test.ts', title: 'of its own id: one that was voided meanwhile' },
      { file: 'test/ledger/locks.test.ts', title: 'of its own id: one that was begun and posted meanwhile' },
    ],
  },
  {
    id: 'overrun-charged-to-allowance',
    title: 'end_calls charges an allowance with all that was used, beyond the hold too',
    promise: 'A charge never exceeds its hold; the excess is overrun, the operator’s loss.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'charged = row.charged + call_charges[1]\n      where',
        replace:
          'charged = row.charged + case when call_forgiven[1] then 0 else coalesce(call_amounts[1], 0) end\n      where',
      },
      {
        file: STATEMENTS,
        find: 'sum(call_charges[hold.ordinality])::bigint as charge',
        replace:
          'sum(case when call_forgiven[hold.ordinality] then 0 else coalesce(call_amounts[hold.ordinality], 0) end)::bigint as charge',
      },
    ],
    caughtBy: [{ file: 'test/ledger/overrun.test.ts', title: 'what an upstream used beyond the hold' }],
  },
  {
    id: 'token-correction-hits-next-window',
    title: 'end_calls corrects the tokens of whichever window stands, though it began after the call',
    promise: 'Tokens are corrected only if the window that admitted them still stands.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'case when row.started_at <= coalesce(own.reserved_at, own.begun_at) then',
        replace: 'case when true then',
      },
      {
        file: STATEMENTS,
        find: 'case when standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)',
        replace: 'case when true',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/windows.test.ts', title: 'are left alone by a call of the window before' },
      { file: 'test/ledger/locks.test.ts', title: 'leaves the tokens of a window alone that was begun meanwhile' },
    ],
  },
  {
    id: 'open-call-key-expires',
    title:
      'a key expires its time after it was claimed, though its call is still open; END extends or frees what its set has',
    promise: 'No claim expires while its call is open.',
    author: 'blind',
    edits: [
      {
        file: BEGINNING,
        find: `call_id, fingerprint, keep_seconds, ends_with_owner)
    select`,
        replace: `call_id, fingerprint, keep_seconds, ends_with_owner, kept_until)
    select`,
      },
      {
        file: BEGINNING,
        find: '      ask_ends_with_owner[j]\n',
        replace: `      ask_ends_with_owner[j],
      case when ask_keep_seconds[j] > 0 then at + make_interval(secs => ask_keep_seconds[j]) end
`,
      },
      {
        file: STATEMENTS,
        find: 'select ctid as place, keep_seconds > 0 and call_charges[hold.ordinality] > 0 as kept from claims where call_id = hold.id limit 100',
        replace: `select same.ctid as place, same.keep_seconds > 0 and call_charges[hold.ordinality] > 0 as kept
        ${OF_THE_SAME_SET} where mine.call_id = hold.id limit 100`,
      },
      {
        file: STATEMENTS,
        find: 'delete from claims where call_id = own.id and',
        replace: `delete from claims where ctid = any (array(select same.ctid ${OF_THE_SAME_SET} where mine.call_id = own.id)) and`,
      },
      {
        file: STATEMENTS,
        find: 'keep_seconds) where call_id = own.id and keep_seconds > 0;',
        replace: `keep_seconds)
      where ctid = any (array(select same.ctid ${OF_THE_SAME_SET} where mine.call_id = own.id)) and keep_seconds > 0;`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'an idempotency key stays taken while its call is open' }],
  },
  {
    id: 'period-recomputed-at-end',
    title: 'end_calls finds the period of an allowance by its own clock instead of the begin of the call',
    promise: 'What a call holds of an allowance is released and charged in the period that it was held in.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'where allowance_id = allowance and starts_at <= own.begun_at order by starts_at desc limit 1',
        replace:
          'where allowance_id = allowance and starts_at = period_start((select period from allowances where id = allowance), at) limit 1',
      },
      {
        file: STATEMENTS,
        find: 'where allowance_id = one.id and starts_at <= hold.begun_at order by starts_at desc limit 1',
        replace:
          'where allowance_id = one.id and starts_at = period_start((select period from allowances where id = one.id), at) limit 1',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/periods.test.ts', title: 'is charged in the period in which the call began' },
      { file: 'test/ledger/periods.test.ts', title: 'is charged for each call of a batch in its own period' },
    ],
  },
  {
    id: 'partial-post-spends-cash-first',
    title: 'a call that costs less than it held is paid in cash first, and by promotional credit only for the rest',
    promise: 'Promotional credit is spent first.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'call_promos[i] := least(account_promo[account], call_charges[i]);',
        replace: `cash := (select credited - row.charged - promo from accounts row where id = own.account_id);
          call_promos[i] := least(account_promo[account], case when call_charges[i] < own.amount
            then greatest(0, account_charge[account] - cash) - greatest(0, account_charge[account] - call_charges[i] - cash)
            else call_charges[i] end);`,
      },
      { file: STATEMENTS, find: START_OF_END, replace: `  cash bigint;\n${START_OF_END}` },
    ],
    caughtBy: [
      { file: 'test/ledger/promotional.test.ts', title: 'pays first for a call that costs less than it held' },
    ],
  },
  {
    id: 'debt-paid-once-per-row',
    title:
      'end_calls lets each call of a batch pay the debt as it stood at first, so that two of them pay it twice (the column’s own check then fails the whole batch)',
    promise: 'What frees money on an account in debt pays the debt first, and only once.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: '      account_debt_paid[place] := least(account_debt[place], account_free[place]);\n',
        replace: '',
      },
      {
        file: STATEMENTS,
        find: '      account_release[account] := account_release[account] + own.amount;\n',
        replace: `      account_release[account] := account_release[account] + own.amount;
      account_debt_paid[account] := account_debt_paid[account] + least(account_debt[account], own.amount - call_charges[i]);
`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/debt.test.ts', title: 'pays its debt once with what two endings of one batch release' },
    ],
  },
  {
    id: 'requeued-call-counts-as-unsent',
    title: 'a batch that got no answer counts as never sent while it waits to be sent again',
    promise: 'A hold that was not acknowledged is voided when its deadline passes.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/calls/lane.ts',
        find: '      waiting = [...failed.filter(',
        replace: `      for (const entry of failed) entry.sent = false
      waiting = [...failed.filter(`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/lane.test.ts', title: 'while the item waits to be sent again says that it was sent' },
      { file: 'test/ledger/unanswered.test.ts', title: 'its answer lost) is voided when its deadline passes' },
    ],
  },
  {
    id: 'usage-booked-from-raw-input',
    title: 'end_calls books usage for every call that it is given, those that have ended before included',
    promise: 'What the usage report says and what the ledger holds agree.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: `call_values[i], call_charges[i]
    from unnest(ending) with ordinality hold cross join lateral (select hold.ordinality) item (i)
    where hold.id is not null and (call_executed[i] or call_charges[i] > 0);
`,
        replace: `call_values[i], coalesce(before_charges[i], call_charges[i])
    from (
      select raw.ordinality as i, call_accounts[raw.ordinality] as account_id,
        coalesce(raw.credential_id, (select one.credential_id from charges one where one.id = call_ids[raw.ordinality])) as credential_id,
        coalesce(raw.operation, 'probe') as operation, raw.asked_model, raw.end_user, raw.end_user_label, raw.tags
      from unnest(ending) with ordinality raw
    ) hold where hold.credential_id is not null and call_executed[i];
`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/usage.test.ts', title: 'is booked once for an ending that is sent again' }],
  },
]
