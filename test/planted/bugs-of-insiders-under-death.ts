import type { PlantedBug } from './planted-bug.ts'
import { CHANGED_WITHOUT_A_HOLD, STATEMENTS, SWEEPING } from './statements.ts'

const TABLES = 'server/src/storage/migrations/0002_ledger.sql'
const CREDITS = 'server/src/storage/migrations/0004_credits_and_reversals.sql'
const OWNERS = 'server/src/storage/migrations/0005_owners.sql'
/** Where calls of dead processes are marked. */
const MARKS = 'server/src/storage/migrations/0012_tasks.sql'

/** Of deaths, debts and reversals, by who knows the code and the tests. */
export const bugsOfInsidersUnderDeath: readonly PlantedBug[] = [
  {
    id: 'orphan-voided-by-the-sweep',
    title: 'the sweep voids the calls of a dead process at once, instead of marking them as unsettled',
    promise: 'The money of an orphan stays held until evidence resolves it, or for 24 hours.',
    author: 'insider',
    edits: [
      {
        file: SWEEPING,
        find: '  ), null) orphan;\n',
        replace: `  ), null) orphan
  cross join lateral end_unsettled(array[orphan.id], array[orphan.account_id], array[null::bigint], false) ended;
`,
      },
    ],
    caughtBy: [
      { file: 'test/ledger/orphans.test.ts', title: 'marks the call of a dead process' },
      { file: 'test/ledger/orphans.test.ts', title: 'is voided after the deadline and not before' },
    ],
  },
  {
    id: 'orphan-counted-by-every-sweeper',
    title: 'the sweep does not look again, under the lock, whether another has marked the call meanwhile',
    promise: 'An orphan is found once, however many sweep.',
    author: 'insider',
    edits: [
      {
        file: MARKS,
        find: 'where holds.id = any (ids) and unsettled_at is null\n',
        replace: 'where holds.id = any (ids)\n',
      },
    ],
    caughtBy: [{ file: 'test/ledger/orphans-at-once.test.ts', title: '(2) find each orphan once' }],
  },
  {
    id: 'lease-held-since-it-was-first-taken',
    title: 'a lease that was renewed late counts as held all along, so there is no grace after an outage',
    promise: 'After an outage nobody is swept until every process that lives had the time to renew its lease.',
    author: 'insider',
    edits: [
      {
        file: OWNERS,
        find: 'held_since = case when row.renew_by >= at then row.held_since else at end',
        replace: 'held_since = row.held_since',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/orphans.test.ts', title: 'is not for who renewed after its lease had ended' },
      { file: 'test/ledger/orphans.test.ts', title: 'is not for who could not renew in time itself' },
    ],
  },
  {
    id: 'keys-freed-with-the-process',
    title: 'the death of a process frees its idempotency keys and quotes as well as its slots',
    promise: 'Slots free when their process dies; keys and quotes do not.',
    author: 'insider',
    edits: [
      {
        file: MARKS,
        find: 'where claims.call_id = marked.id and claims.ends_with_owner',
        replace: 'where claims.call_id = marked.id',
      },
    ],
    caughtBy: [{ file: 'test/ledger/orphans.test.ts', title: 'marks the call of a dead process' }],
  },
  {
    id: 'disowned-at-first-sight',
    title: 'a process disowns a call that it knows nothing of at the first look, though it may be about to know it',
    promise: 'A process gives up a call of its own only when it is lost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/ownership.ts',
        find: 'const lost = [...unknown].filter((id) => unknownBefore.has(id))',
        replace: 'const lost = [...unknown]',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/orphans-at-once.test.ts', title: 'disowns one that it knows nothing of at the second look' },
    ],
  },
  {
    id: 'posted-after-a-void',
    title: 'a settlement that comes after a void is charged, as far as the account has money',
    promise: 'A void wins over what comes after it, which is the operator’s loss.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: `    elsif before_outcomes[i] = 'voided' and coalesce(call_amounts[i], 0) <> before_overruns[i] then
`,
        replace: `    elsif before_outcomes[i] = 'voided' and coalesce(call_amounts[i], 0) <> before_overruns[i] then
      if not call_forgiven[i] then
        account_charge[account] := account_charge[account] + least(coalesce(call_amounts[i], 0), account_free[account]);
      end if;
`,
      },
      ...CHANGED_WITHOUT_A_HOLD,
    ],
    caughtBy: [{ file: 'test/ledger/overrun.test.ts', title: 'charges nothing where the call was held' }],
  },
  {
    id: 'late-loss-booked-each-time',
    title: 'the loss of a settlement that comes after a void is booked again each time that it is sent',
    promise: 'Every verb is idempotent by its id.',
    author: 'insider',
    edits: [
      {
        file: STATEMENTS,
        find: "select id, call_accounts[i], 'late_settlement',",
        replace: "select gen_random_uuid(), call_accounts[i], 'late_settlement',",
      },
    ],
    caughtBy: [{ file: 'test/ledger/overrun.test.ts', title: 'charges nothing where the call was held' }],
  },
  {
    id: 'debt-ignored-by-a-credit',
    title: 'a credit pays no debt, and the table no longer refuses an account that has money beside its debt',
    promise: 'Whatever adds money to an account in debt pays the debt first.',
    author: 'insider',
    edits: [
      {
        file: TABLES,
        find: '  constraint debt_is_paid_first check (debt = 0 or charged + held = credited + debt),\n',
        replace: '',
      },
      {
        file: CREDITS,
        find: ':= least(before.debt + new_debt, free);',
        replace: ':= case when credit > 0 then 0 else least(before.debt + new_debt, free) end;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/debt.test.ts', title: 'pays its debt first with a credit' }],
  },
  {
    id: 'debt-ignored-by-a-release',
    title: 'what an ending releases pays no debt, and the table no longer refuses it',
    promise: 'Whatever frees money on an account in debt pays the debt first.',
    author: 'insider',
    edits: [
      {
        file: TABLES,
        find: '  constraint debt_is_paid_first check (debt = 0 or charged + held = credited + debt),\n',
        replace: '',
      },
      {
        file: STATEMENTS,
        find: 'account_debt_paid[place] := least(account_debt[place], account_free[place]);',
        replace: 'account_debt_paid[place] := 0;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/debt.test.ts', title: 'pays its debt with what an ending releases' }],
  },
  {
    id: 'flush-at-once',
    title: 'a flush returns at once: what is still to be written when a process stops is lost',
    promise: 'A process that is told to stop writes every ending before it lets go.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/calls.ts',
        find: 'while (begins.size() + endings.size() + background.size > 0) {',
        replace: 'while (begins.size() + endings.size() + background.size < 0) {',
      },
    ],
    caughtBy: [{ file: 'test/ledger/late-statements.test.ts', title: 'a flush that begins before a begin fails' }],
  },
  {
    id: 'expiry-becomes-debt',
    title: 'promotional credit that expires while calls hold it is taken at once, and what is not free becomes debt',
    promise: 'Expiry takes what is free now and the rest when it is released, never as debt.',
    author: 'insider',
    edits: [
      {
        file: CREDITS,
        find: 'update accounts set credited = credited - taken, promo = promo - taken, lapsed = lapsed + expired - taken where id = account;',
        replace: `update accounts set credited = credited - expired, promo = promo - expired, debt = debt + expired - taken where id = account;
    insert into entries (id, account_id, kind, credited, promo, debt, entered_at)
    select gen_random_uuid(), account, 'expiry', taken - expired, taken - expired, expired - taken, at where expired > taken;`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'rest-of-a-payment-read-before-the-lock',
    title: 'what is left of a payment is read before the account is locked: a refund and a dispute at once exceed it',
    promise: 'A reversal never exceeds its payment.',
    author: 'insider',
    edits: [
      {
        file: CREDITS,
        find: `  if not found then raise exception 'there is no payment %', payment_id; end if;
`,
        replace: `  if not found then raise exception 'there is no payment %', payment_id; end if;
  reversible := reversible_of(payment_id);
`,
      },
      {
        file: CREDITS,
        find: '  reversed bigint;\n',
        replace: '  reversed bigint;\n  reversible bigint;\n',
      },
      {
        file: CREDITS,
        find: 'least(most, reversible_of(payment_id))',
        replace: 'least(most, reversible)',
      },
    ],
    caughtBy: [{ file: 'test/ledger/caught-under-death.test.ts', title: 'is taken back once when both come at once' }],
  },
  {
    id: 'dispute-won-twice',
    title: 'a dispute is credited once for each entry that says it was won, not once for the dispute',
    promise: 'A won dispute gives back what the dispute took, once.',
    author: 'insider',
    edits: [
      {
        file: CREDITS,
        find: 'case when exists (select from entries where corrects = dispute_id) then 0 else -dispute.credited end',
        replace: '-dispute.credited',
      },
    ],
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'cut-hour-counted-twice',
    title: 'a report counts the last hour that its window cuts as a whole as well as in part',
    promise: 'What the usage report says and what the ledger holds agree, in any window.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/usage-statement.ts',
        find: `from usage_hours where \${isOurs} and hour >= \${from} and hour < \${to}`,
        replace: `from usage_hours where \${isOurs} and hour >= \${from} and hour <= \${to}`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/usage-report.test.ts', title: 'has what calls have just booked' }],
  },
]
