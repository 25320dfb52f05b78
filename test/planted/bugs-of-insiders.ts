import type { PlantedBug } from './planted-bug.ts'
import { BEGINNING, CHANGED_WITHOUT_A_HOLD, START_OF_BEGIN, STATEMENTS, WINDOWS_READ } from './statements.ts'

const LOCKS_LIST = `from (select ctid, * from accounts where id = any (accounts_in) order by id for no key update) row;
`

/** Written by who knows the code and the tests. */
export const bugsOfInsiders: readonly PlantedBug[] = [
  {
    id: 'begin-without-lock',
    title: 'begin_calls does not lock the accounts of its batch',
    promise: 'Nobody spends more than they have.',
    author: 'insider',
    edits: [
      {
        file: BEGINNING,
        find: 'from accounts where id = accounts_in[1] for no key update;',
        replace: 'from accounts where id = accounts_in[1];',
      },
      {
        file: BEGINNING,
        find: `account_free, account_state\n    ${LOCKS_LIST}`,
        replace: `account_free, account_state\n    ${LOCKS_LIST.replace(' for no key update', '')}`,
      },
    ],
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
        find: 'from accounts row where id = accounts_in[1] for no key update;',
        replace: 'from accounts row where id = accounts_in[1];',
      },
      {
        file: STATEMENTS,
        find: `account_promo, account_lapsed\n    ${LOCKS_LIST}`,
        replace: `account_promo, account_lapsed\n    ${LOCKS_LIST.replace(' for no key update', '')}`,
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
        find: "    elsif before_outcomes[i] = 'voided' and coalesce",
        replace: `    elsif before_outcomes[i] = 'posted' and not call_forgiven[i] then
      account_charge[account] := account_charge[account] + least(coalesce(call_amounts[i], 0), before_charges[i]);
    elsif before_outcomes[i] = 'voided' and coalesce`,
      },
      ...CHANGED_WITHOUT_A_HOLD,
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
      { file: BEGINNING, find: WINDOWS_READ, replace: '' },
      {
        file: BEGINNING,
        find: START_OF_BEGIN,
        replace: `${START_OF_BEGIN}  at := clock_timestamp();\n${WINDOWS_READ}`,
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
        find: 'update claims set kept_until = at + make_interval(secs => keep_seconds) where call_id = own.id',
        replace:
          'update claims set kept_until = own.begun_at + make_interval(secs => keep_seconds) where call_id = own.id',
      },
      {
        file: STATEMENTS,
        find: 'update claims set kept_until = at + make_interval(secs => keep_seconds) where ctid = any (claims_kept)',
        replace: `update claims set kept_until = hold.begun_at + make_interval(secs => keep_seconds)
        from unnest(ending) hold where hold.id = claims.call_id and claims.ctid = any (claims_kept)`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/claims.test.ts', title: 'is kept after a charged call, from its end' }],
  },
  {
    id: 'concurrency-costs-a-request',
    title:
      'a call that is refused for concurrency takes a request of its windows, and one for want of money takes none',
    promise: 'A refusal counts as a request where it is about money, a key or a quote; one for concurrency does not.',
    author: 'insider',
    edits: [
      {
        file: BEGINNING,
        find: 'takes_request := ask_keep_seconds[j] > 0;',
        replace: '',
      },
      {
        file: BEGINNING,
        find: "outcome := 'money_spent'; exit judged;",
        replace: "outcome := 'money_spent'; takes_request := false; exit judged;",
      },
    ],
    caughtBy: [
      { file: 'test/ledger/windows.test.ts', title: 'costs a request (money_spent)' },
      { file: 'test/ledger/windows.test.ts', title: 'consumes nothing of the others (a slot: claim_taken)' },
      { file: 'test/identity/limits.test.ts', title: 'a call refused for concurrency still burns a request' },
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
        find: 'account_charge[account] := account_charge[account] + call_charges[i];',
        replace: 'account_charge[account] := call_charges[i];',
      },
      {
        file: STATEMENTS,
        find: 'account_release[account] := account_release[account] + own.amount;',
        replace: 'account_release[account] := own.amount;',
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
        file: BEGINNING,
        find: "outcome := 'money_spent'; exit judged;",
        replace: `outcome := 'money_spent';
          account_free[account] := account_free[account] - call_amounts[i];
          free_before[account] := free_before[account] - call_amounts[i];
          exit judged;`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/batches.test.ts', title: 'are not shadowed by a large one that is refused: by money' },
    ],
  },
]
