import type { PlantedBug } from './planted-bug.ts'
import { STATEMENTS, SWEEPING } from './statements.ts'

const CREDITS = 'server/src/storage/migrations/0004_credits_and_reversals.sql'
const OWNERS = 'server/src/storage/migrations/0005_owners.sql'
/** Where calls of dead processes are marked. */
const MARKS = 'server/src/storage/migrations/0012_tasks.sql'
const REPORT = 'server/src/ledger/usage.ts'
const USAGE = 'server/src/ledger/usage-statement.ts'

/** Of deaths, debts and reversals, described by somebody who has seen neither code nor tests. */
export const bugsOfTheBlindUnderDeath: readonly PlantedBug[] = [
  {
    id: 'sweep-ignores-renewal-race',
    title:
      'the sweep does not look at the lease again before it marks, so a process that renewed meanwhile loses its calls',
    promise: 'Only the calls of a process whose lease has ended become unsettled.',
    author: 'blind',
    edits: [
      {
        file: MARKS,
        find: 'when of is null then owner_id is not null and not exists (select from owners where owners.id = holds.owner_id and lease_until >= at)',
        replace: 'when of is null then true',
      },
    ],
    caughtBy: [{ file: 'test/ledger/orphans.test.ts', title: 'takes nothing from a process that lives' }],
  },
  {
    id: 'outage-grace-from-postmaster-alone',
    title: 'the sweep gives grace after a start of PostgreSQL alone: an outage of the network gets none',
    promise: 'After an outage nobody is swept until every process that lives had the time to renew its lease.',
    author: 'blind',
    edits: [{ file: SWEEPING, find: ' and held_since <= graceful', replace: '' }],
    caughtBy: [
      { file: 'test/ledger/orphans.test.ts', title: 'whose lease is younger than the grace' },
      { file: 'test/ledger/orphans.test.ts', title: 'is not for who renewed after its lease had ended' },
    ],
  },
  {
    id: 'deadline-counts-from-hold',
    title: 'the 24 hours of an unsettled call are counted from its begin, not from when it became unsettled',
    promise: 'An unsettled call stays held for 24 hours, so that evidence or an operator can resolve it.',
    author: 'blind',
    edits: [
      {
        file: OWNERS,
        find: 'where unsettled_at < clock_timestamp()',
        replace: 'where unsettled_at is not null and begun_at < clock_timestamp()',
      },
    ],
    caughtBy: [{ file: 'test/ledger/orphans.test.ts', title: 'is voided after the deadline and not before' }],
  },
  {
    id: 'operator-resolution-ignores-bound',
    title: 'an operator who resolves a call with more than it held makes the customer pay all of it',
    promise: 'A charge never exceeds its hold; the excess is overrun, the operator’s loss.',
    author: 'blind',
    edits: [
      {
        file: OWNERS,
        find: '  return query select ended.outcome, ended.charged, ended.overrun\n',
        replace: `  update accounts row set held = row.held + greatest(0, resolve_call.amount - hold.amount)
  from holds hold where hold.id = call_id and row.id = account;
  update holds set amount = greatest(holds.amount, resolve_call.amount) where holds.id = call_id;
  return query select ended.outcome, ended.charged, ended.overrun
`,
      },
    ],
    caughtBy: [
      { file: 'test/house/ledger-commands.test.ts', title: 'resolves an unsettled call by what the upstream' },
      { file: 'test/ledger/orphans.test.ts', title: 'by a charge of at most what it held' },
    ],
  },
  {
    id: 'late-settlement-skips-the-allowance',
    title: 'a late settlement of an unsettled call leaves what it held of its allowances, and charges them nothing',
    promise: 'A late settlement of a call that is still held posts as any other, allowances included.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'foreach allowance in array own.allowances loop',
        replace: "foreach allowance in array case when own.unsettled_at is null then own.allowances else '{}' end loop",
      },
      {
        file: STATEMENTS,
        find: 'where hold.amount > 0\n',
        replace: 'where hold.amount > 0 and hold.unsettled_at is null\n',
      },
    ],
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'reversal-capped-by-the-payment-alone',
    title: 'a reversal is compared with its payment alone, not with what is left of it after those before',
    promise: 'A reversal never exceeds its payment.',
    author: 'blind',
    edits: [
      {
        file: CREDITS,
        find: 'least(most, reversible_of(payment_id))',
        replace: 'least(most, (select credited from entries where id = payment_id))',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/caught-under-death.test.ts', title: 'is taken back once, though the account has the money' },
    ],
  },
  {
    id: 'won-dispute-credits-the-payment',
    title: 'a won dispute credits all of the payment instead of what the dispute took of it',
    promise: 'A won dispute gives back what the dispute took, once.',
    author: 'blind',
    edits: [
      {
        file: CREDITS,
        find: 'else -dispute.credited end',
        replace: 'else (select credited from entries where id = dispute.corrects) end',
      },
    ],
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'debt-paid-by-all-that-was-held',
    title:
      'an ending pays debt with all that the call held, not with what it frees (the table’s own check then fails the batch)',
    promise: 'What an ending frees pays the debt first; open calls still post.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'account_debt_paid[place] := least(account_debt[place], account_free[place]);',
        replace: 'account_debt_paid[place] := least(account_debt[place], account_release[place]);',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/debt.test.ts', title: 'pays as much of its debt as two endings of one batch release' },
    ],
  },
  {
    id: 'expiry-forgets-what-is-held',
    title:
      'the expiry of promotional credit takes what is free and forgets the rest, which comes back when calls release it',
    promise: 'Expiry takes what is free now and the rest when it is released, never as debt.',
    author: 'blind',
    edits: [
      {
        file: CREDITS,
        find: 'promo = promo - taken, lapsed = lapsed + expired - taken where id = account;',
        replace: 'promo = promo - taken where id = account;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'reversed-promotion-becomes-cash',
    title: 'what promotional credit paid of a charge comes back as cash, which does not expire',
    promise: 'What promotional credit paid is promotional credit again when it is given back.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'given_promo := least(given_before + given, charge.promo) - least(given_before, charge.promo);',
        replace: 'given_promo := 0;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/misuse.test.ts', title: 'is given back once, promotional credit as such' }],
  },
  {
    id: 'reversal-in-the-current-period',
    title:
      'the reversal of a charge lowers the allowance of the current period, at most to zero, instead of that of the charge',
    promise: 'What is given back counts in the period that it was charged in.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'update allowance_periods row set charged = row.charged - given\n',
        replace: 'update allowance_periods row set charged = greatest(0, row.charged - given)\n',
      },
      {
        file: STATEMENTS,
        find: 'row.starts_at = period_start(allowance.period, charge.begun_at);',
        replace: 'row.starts_at = period_start(allowance.period, at);',
      },
    ],
    caughtBy: [{ file: 'test/ledger/periods.test.ts', title: 'by the day gets back what a void releases' }],
  },
  {
    id: 'day-dropped-by-its-begin',
    title: 'a day of charges is dropped as soon as its begin is too old, though its end is not',
    promise: 'Charges are kept for as long as was said.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: 'if day is null or day >= first_kept then return null; end if;',
        replace: 'if day is null or day > first_kept then return null; end if;',
      },
    ],
    caughtBy: [{ file: 'test/ledger/caught-under-death.test.ts', title: 'is kept for as long as its last charge' }],
  },
  {
    id: 'clock-learnt-once',
    title: 'a process learns PostgreSQL’s clock when it starts and never again',
    promise: 'Ids carry PostgreSQL’s time, whatever the clock of the process does.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/calls/ownership.ts',
        find: 'offsetMs = thereMs - (askedAtMs + answeredAtMs) / 2',
        replace: 'offsetMs ??= thereMs - (askedAtMs + answeredAtMs) / 2',
      },
    ],
    caughtBy: [{ file: 'test/ledger/clocks.test.ts', title: 'is learnt anew with every answer' }],
  },
  {
    id: 'flush-of-one-batch',
    title: 'a flush awaits the batch that is in flight and not those that collected behind it',
    promise: 'A process that is told to stop writes every ending before it lets go.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/calls/calls.ts',
        find: 'while (begins.size() + endings.size() + background.size > 0) {',
        replace: 'if (begins.size() + endings.size() + background.size > 0) {',
      },
      {
        file: 'server/src/calls/lane.ts',
        find: 'while (running || aside.size > 0) {',
        replace: 'if (running || aside.size > 0) {',
      },
      {
        file: 'server/src/calls/lane.ts',
        find: '      inFlight = []\n      if (failed.length === 0) {',
        replace: `      inFlight = []
      for (const resolve of idlers.splice(0)) resolve()
      if (failed.length === 0) {`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/caught-under-death.test.ts', title: 'awaits what collects behind the batch' }],
  },
  {
    id: 'micros-floored-by-bucket',
    title: 'a report rounds what was charged in each bucket down by itself, so that buckets do not add up to the total',
    promise: 'The buckets of a report add up to its totals.',
    author: 'blind',
    edits: [
      {
        file: REPORT,
        find: 'microsByBucket(sums.map(({ charged }) => charged))',
        replace: 'sums.map(({ charged }) => wholeMicros(charged))',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/usage-report.test.ts', title: 'is the plain sum of charges and what was given back' },
    ],
  },
  {
    id: 'window-inside-one-hour',
    title: 'a report whose window lies inside one hour reads that hour from its start on and up to its end',
    promise: 'What the usage report says and what the ledger holds agree, in any window.',
    author: 'blind',
    edits: [{ file: USAGE, find: 'whole.from > whole.to\n', replace: 'whole.from > whole.to + HOUR_SECONDS\n' }],
    caughtBy: [{ file: 'test/ledger/usage-report.test.ts', title: 'has what calls have just booked' }],
  },
  {
    id: 'cut-hour-by-ids-alone',
    title: 'a report looks in a part of an hour only for calls that began in it too',
    promise: 'Usage counts when it is settled, whenever its call began.',
    author: 'blind',
    edits: [
      { file: USAGE, find: 'const IDS_BEFORE_SECONDS = 8 * DAY_SECONDS', replace: 'const IDS_BEFORE_SECONDS = 0' },
      { file: USAGE, find: 'const IDS_AFTER_SECONDS = 8 * DAY_SECONDS', replace: 'const IDS_AFTER_SECONDS = 0' },
    ],
    caughtBy: [
      { file: 'test/ledger/usage-report.test.ts', title: 'is the plain sum of charges and what was given back' },
    ],
  },
]
