import type { PlantedBug } from './planted-bug.ts'
import { CHANGED_WITHOUT_A_HOLD, END, SETTLE } from './statements.ts'

/** Of how calls are charged and what they held is released. */
export const bugsOfEnd: readonly PlantedBug[] = [
  {
    id: 'end-without-lock',
    title: 'end_calls does not lock the accounts of its batch',
    promise: 'No call is charged twice, and the same id again answers as the first time.',
    author: 'insider',
    edits: [{ file: END, find: 'order by id for no key update) row;', replace: 'order by id) row;' }],
    caughtBy: [{ file: 'test/ledger/locks.test.ts', title: 'ends the hold that was made meanwhile' }],
  },
  {
    id: 'double-post-accepted',
    title: 'a second post of a call that was posted is charged to the account again, up to what the first one charged',
    promise: 'At most one charge per id, ever.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: "elsif before_outcomes[i] = 'voided' and",
        replace: `elsif before_outcomes[i] = 'posted' and not call_forgiven[i] then
      account_charge[account] := account_charge[account] + least(coalesce(call_amounts[i], 0), before_charges[i]);
    elsif before_outcomes[i] = 'voided' and`,
      },
      ...CHANGED_WITHOUT_A_HOLD,
    ],
    caughtBy: [
      { file: 'test/ledger/unanswered.test.ts', title: 'is answered as the first time by the same id sent again' },
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
        file: END,
        find: 'account_charge[account] := account_charge[account] + call_charges[i];',
        replace: 'account_charge[account] := call_charges[i];',
      },
      {
        file: END,
        find: 'account_release[account] := account_release[account] + own.amount;',
        replace: 'account_release[account] := own.amount;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/batches.test.ts', title: 'are all counted, though many belong to one account' }],
  },
  {
    id: 'claim-freed-early',
    title: 'a key is kept from the begin of its call instead of from its end',
    promise: 'Keys and quotes outlive a charged call for as long as they say.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: 'kept_until = at + make_interval(secs => keep_seconds) where call_id',
        replace: 'kept_until = own.begun_at + make_interval(secs => keep_seconds) where call_id',
      },
      {
        file: END,
        find: 'kept_until = at + make_interval(secs => keep_seconds) where ctid = any (claims_kept)',
        replace: `kept_until = hold.begun_at + make_interval(secs => keep_seconds)
        from unnest(ending) hold where hold.id = claims.call_id and claims.ctid = any (claims_kept)`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'is kept after a charged call, from its end' }],
  },
  {
    id: 'overrun-charged-to-allowance',
    title: 'end_calls charges an allowance with all that was used, beyond the hold too',
    promise: 'A charge never exceeds its hold; the excess is overrun, the operator’s loss.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'array[own.amount], array[call_charges[1]]',
        replace: 'array[own.amount], array[case when call_forgiven[1] then 0 else coalesce(call_amounts[1], 0) end]',
      },
      {
        file: END,
        find: 'array_agg(call_charges[hold.ordinality])',
        replace:
          'array_agg(case when call_forgiven[hold.ordinality] then 0 else coalesce(call_amounts[hold.ordinality], 0) end)',
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
      { file: END, find: 'row.all_started_at <= coalesce(own.reserved_at, own.begun_at)', replace: 'true' },
      { file: END, find: 'row.started_at <= coalesce(own.reserved_at, own.begun_at)', replace: 'true' },
      { file: END, find: 'and standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)', replace: '' },
      { file: END, find: 'standing.started_at <= coalesce(hold.reserved_at, hold.begun_at)', replace: 'true' },
    ],
    caughtBy: [
      { file: 'test/ledger/windows.test.ts', title: 'are left alone by a call of the window before' },
      { file: 'test/ledger/locks.test.ts', title: 'leaves the tokens of a window alone that was begun meanwhile' },
    ],
  },
  {
    id: 'period-recomputed-at-end',
    title: 'end_calls finds the period of an allowance by its own clock instead of the begin of the call',
    promise: 'What a call holds of an allowance is released and charged in the period that it was held in.',
    author: 'blind',
    edits: [
      {
        file: SETTLE,
        find: 'allowance_id = part.id and starts_at <= part.begun_at',
        replace:
          'allowance_id = part.id and starts_at = period_start((select period from allowances where id = part.id), clock_timestamp())',
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
        file: END,
        find: 'call_promos[i] := least(account_promo[account], call_charges[i]);',
        replace: `cash := (select credited - row.charged - promo from accounts row where id = own.account_id);
          call_promos[i] := least(account_promo[account], case when call_charges[i] < own.amount
            then greatest(0, account_charge[account] - cash) - greatest(0, account_charge[account] - call_charges[i] - cash)
            else call_charges[i] end);`,
      },
      { file: END, find: 'freed bigint;', replace: 'freed bigint; cash bigint;' },
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
        file: END,
        find: 'account_debt_paid[place] := least(account_debt[place], account_free[place]);',
        replace: '',
      },
      {
        file: END,
        find: 'account_release[account] := account_release[account] + own.amount;',
        replace: `account_release[account] := account_release[account] + own.amount;
      account_debt_paid[account] := account_debt_paid[account] + least(account_debt[account], own.amount - call_charges[i]);`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/debt.test.ts', title: 'pays its debt once with what two endings of one batch release' },
    ],
  },
  {
    id: 'usage-booked-from-raw-input',
    title: 'end_calls books usage for every call that it is given, those that have ended before included',
    promise: 'What the usage report says and what the ledger holds agree.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'delete from holds where id = any (array(select hold.id from unnest(ending) hold));',
        replace: `insert into usage_tail (account_id, credential_id, at, operation,
      requests, failed_requests, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, value, charged)
    select one.account_id, one.credential_id, at, one.operation, 1, 0, 0, 0, 0, 0, one.value, one.amount
    from unnest(call_ids) with ordinality item (id, i) join charges one on one.id = item.id
    where before_outcomes[i] is not null and call_executed[i];
    delete from holds where id = any (array(select hold.id from unnest(ending) hold));`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/usage.test.ts', title: 'is booked once for an ending that is sent again' }],
  },
]
