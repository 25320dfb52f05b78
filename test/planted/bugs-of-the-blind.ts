import type { PlantedBug } from './planted-bug.ts'

const STATEMENTS = 'server/src/storage/migrations/0003_begin_and_end.sql'
const LOCK_OF_BEGIN = `  -- This statement only locks. A statement that locks and reads sees what was there before it waited.
  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
`
const LOOK_UP_OF_IDS = `  ended := array(select id from ended_among(call_ids, call_days));
  select array_agg(case
    when hold.account_id = accounts_in[item.account] then 'begun'
    when hold.account_id is not null or item.id = any (ended) then 'ended' end order by place)
  into call_known
  from unnest(call_ids, call_accounts) with ordinality item (id, account, place)
  left join lateral (select account_id from holds where holds.id = item.id limit 1) hold on true;
`

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
        file: STATEMENTS,
        find: LOCK_OF_BEGIN,
        replace: `  with locked as materialized (
    select id from accounts where id = any (accounts_in) order by id for no key update
  )
  select
    array_agg(allowance.account_id order by place),
    array_agg(period_start(allowance.period, clock_timestamp()) order by place),
    array_agg(coalesce(row.amount, allowance.amount) order by place),
    array_agg(coalesce(row.amount - row.charged - row.held, allowance.amount) order by place)
  into allowance_account, allowance_starts, allowance_amounts, allowance_free
  from (select count(*) from locked) one
  left join unnest(allowances_in) with ordinality item (id, place) on true
  left join lateral (select * from allowances where allowances.id = item.id limit 1) allowance on true
  left join lateral (
    select amount, charged, held from allowance_periods
    where allowance_id = item.id and starts_at = period_start(allowance.period, clock_timestamp()) limit 1
  ) row on true;
`,
      },
      {
        file: STATEMENTS,
        find: `  if cardinality(allowances_in) > 0 then
    day_start`,
        replace: `  if false then
    day_start`,
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
      { file: STATEMENTS, find: LOOK_UP_OF_IDS, replace: '' },
      { file: STATEMENTS, find: LOCK_OF_BEGIN, replace: `${LOOK_UP_OF_IDS}${LOCK_OF_BEGIN}` },
      {
        file: STATEMENTS,
        find: 'where item.holds and item.begins;',
        replace: 'where item.holds and item.begins on conflict (id) do nothing;',
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
        find: 'sum(ending.held) as held, sum(ending.charge) as charge',
        replace:
          'sum(ending.held) as held, sum(case when ending.forgiven then 0 else coalesce(ending.amount, 0) end) as charge',
      },
    ],
    caughtBy: [{ file: 'test/ledger/overrun.test.ts', title: 'what an upstream used beyond the hold' }],
  },
  {
    id: 'token-correction-hits-next-window',
    title: 'end_calls corrects the tokens of whichever window stands, though it began after the call',
    promise: 'Tokens are corrected only if the window that admitted them still stands.',
    author: 'blind',
    edits: [{ file: STATEMENTS, find: ' and started_at <= ending.begun_at', replace: '' }],
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
        file: STATEMENTS,
        find: `call_id, fingerprint, keep_seconds, ends_with_owner)
    select`,
        replace: `call_id, fingerprint, keep_seconds, ends_with_owner, kept_until)
    select`,
      },
      {
        file: STATEMENTS,
        find: '      ask_ends_with_owner[j]\n',
        replace: `      ask_ends_with_owner[j],
      case when ask_keep_seconds[j] > 0 then at + make_interval(secs => ask_keep_seconds[j]) end
`,
      },
      {
        file: STATEMENTS,
        find: '(select ctid as place, keep_seconds from claims where claims.call_id = ending.id limit 100) row',
        replace: `(
      select same.ctid as place, same.keep_seconds from claims own
      join claims same on same.credential_id = own.credential_id and same.scope = own.scope and same.key = own.key
        and (same.call_id = own.call_id or own.keep_seconds > 0)
      where own.call_id = ending.id limit 100
    ) row`,
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
        find: 'period_start(allowance.period, ending.begun_at)',
        replace: 'period_start(allowance.period, at)',
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
        find: 'account.promo as promo_before,',
        replace: 'account.promo as promo_before, account.credited - account.charged - account.promo as cash_before,',
      },
      {
        file: STATEMENTS,
        find: '  ), accounted as (\n',
        replace: `  ), paid as (
    select judged.*,
      case when charge < held
        then least(promo_before, greatest(0, charge_so_far - cash_before)) - least(promo_before, greatest(0, charge_so_far - charge - cash_before))
        else least(promo_before, charge_so_far) - least(promo_before, charge_so_far - charge)
      end as promo_paid
    from judged
  ), accounted as (
`,
      },
      {
        file: STATEMENTS,
        find: `    from judged
    cross join lateral (
`,
        replace: `    from (select paid.*, sum(promo_paid) over (partition by account_id) as account_promo_paid from paid) judged
    cross join lateral (
`,
      },
      {
        file: STATEMENTS,
        find: 'least(promo_before, charge_so_far) - least(promo_before, charge_so_far - charge),\n      over,',
        replace: 'promo_paid,\n      over,',
      },
      {
        file: STATEMENTS,
        find: 'promo_before - least(promo_before, account_charge) as promo_left',
        replace: 'promo_before - account_promo_paid as promo_left',
      },
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
        find: 'least(debt_before, free_before + account_release - account_charge) as debt_paid,',
        replace: 'account_debt_paid as debt_paid,',
      },
      {
        file: STATEMENTS,
        find: 'sum(charge) over account as account_charge,',
        replace: `sum(charge) over account as account_charge,
      sum(least(debt_before, coalesce(held, 0) - charge)) over account as account_debt_paid,`,
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
        find: `sum(charge)
    from ending where hold_place is not null and (executed or charge > 0)
`,
        replace: `sum(coalesce(charge_before, charge))
    from (
      select raw.account_id, raw.executed, raw.failed, raw.input_tokens, raw.output_tokens, raw.cache_read_tokens,
        raw.cache_write_tokens, raw.value, raw.charge, raw.charge_before,
        coalesce(raw.credential_id, (select one.credential_id from charges one where one.id = raw.id)) as credential_id
      from judged raw
    ) given where credential_id is not null and executed
`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/usage.test.ts', title: 'is booked once for an ending that is sent again' }],
  },
]
