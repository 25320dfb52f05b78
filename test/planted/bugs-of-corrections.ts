import type { PlantedBug } from './planted-bug.ts'
import { END, storedFunction } from './statements.ts'

const REVERSE_PAYMENT = storedFunction('reverse_payment')
const REVERSE_CHARGE = storedFunction('reverse_charge')
const USAGE = 'server/src/ledger/usage-sources.ts'
const CAUGHT = 'test/ledger/caught-under-death.test.ts'
const VERBS = { file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }

/** Of debts, reversals, promotional credit, and of what reports say afterwards. */
export const bugsOfCorrections: readonly PlantedBug[] = [
  {
    id: 'debt-paid-by-all-that-was-held',
    title:
      'an ending pays debt with all that the call held, not with what it frees (the table’s own check then fails the batch)',
    promise: 'What an ending frees pays the debt first; open calls still post.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'least(account_debt[place], account_free[place])',
        replace: 'least(account_debt[place], account_release[place])',
      },
    ],
    caughtBy: [
      { file: 'test/ledger/debt.test.ts', title: 'pays as much of its debt as two endings of one batch release' },
    ],
  },
  {
    id: 'rest-of-a-payment-read-before-the-lock',
    title: 'what is left of a payment is read before the account is locked: a refund and a dispute at once exceed it',
    promise: 'A reversal never exceeds its payment.',
    author: 'insider',
    edits: [
      {
        file: REVERSE_PAYMENT,
        find: 'perform 1 from accounts',
        replace: `reversible := reversible_of(payment_id);
  perform 1 from accounts`,
      },
      { file: REVERSE_PAYMENT, find: 'reversed bigint;', replace: 'reversed bigint; reversible bigint;' },
      { file: REVERSE_PAYMENT, find: 'least(most, reversible_of(payment_id))', replace: 'least(most, reversible)' },
    ],
    caughtBy: [{ file: CAUGHT, title: 'is taken back once when both come at once' }],
  },
  {
    id: 'reversal-capped-by-the-payment-alone',
    title: 'a reversal is compared with its payment alone, not with what is left of it after those before',
    promise: 'A reversal never exceeds its payment.',
    author: 'blind',
    edits: [
      {
        file: REVERSE_PAYMENT,
        find: 'reversible_of(payment_id)',
        replace: '(select credited from entries where id = payment_id)',
      },
    ],
    caughtBy: [{ file: CAUGHT, title: 'is taken back once, though the account has the money' }],
  },
  {
    id: 'won-dispute-credits-the-payment',
    title: 'a won dispute credits all of the payment instead of what the dispute took of it',
    promise: 'A won dispute gives back what the dispute took, once.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('win_dispute'),
        find: 'else -dispute.credited end',
        replace: 'else (select credited from entries where id = dispute.corrects) end',
      },
    ],
    caughtBy: [VERBS],
  },
  {
    id: 'expiry-forgets-what-is-held',
    title:
      'the expiry of promotional credit takes what is free and forgets the rest, which comes back when calls release it',
    promise: 'Expiry takes what is free now and the rest when it is released, never as debt.',
    author: 'blind',
    edits: [{ file: storedFunction('expire_promotions'), find: ', lapsed = lapsed + expired - taken', replace: '' }],
    caughtBy: [VERBS],
  },
  {
    id: 'reversed-promotion-becomes-cash',
    title: 'what promotional credit paid of a charge comes back as cash, which does not expire',
    promise: 'What promotional credit paid is promotional credit again when it is given back.',
    author: 'blind',
    edits: [
      {
        file: REVERSE_CHARGE,
        find: 'given_promo := least(given_before + given,',
        replace: 'given_promo := least(given_before,',
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
      { file: REVERSE_CHARGE, find: 'row.charged - given', replace: 'greatest(0, row.charged - given)' },
      {
        file: REVERSE_CHARGE,
        find: 'row.starts_at = period_start(allowance.period, charge.begun_at)',
        replace: 'row.starts_at = period_start(allowance.period, at)',
      },
    ],
    caughtBy: [{ file: 'test/ledger/periods.test.ts', title: 'by the day gets back what a void releases' }],
  },
  {
    id: 'day-dropped-by-its-begin',
    title: 'a day of charges is dropped as soon as its begin is too old, though its end is not',
    promise: 'Charges are kept for as long as was said.',
    author: 'blind',
    edits: [{ file: storedFunction('drop_charges_before'), find: 'day >= first_kept', replace: 'day > first_kept' }],
    caughtBy: [{ file: CAUGHT, title: 'is kept for as long as its last charge' }],
  },
  {
    id: 'window-inside-one-hour',
    title: 'a report whose window lies inside one hour reads that hour from its start on and up to its end',
    promise: 'What the usage report says and what the ledger holds agree, in any window.',
    author: 'blind',
    edits: [
      {
        file: 'server/src/ledger/usage-window.ts',
        find: 'if (from > to) return',
        replace: 'if (from > to + HOUR_SECONDS) return',
      },
    ],
    caughtBy: [{ file: 'server/src/ledger/usage-window.test.ts', title: 'is read as it is where it lies inside' }],
  },
  {
    id: 'cut-hour-by-ids-alone',
    title: 'a report looks in a part of an hour only for calls that began in it too',
    promise: 'Usage counts when it is settled, whenever its call began.',
    author: 'blind',
    edits: [
      { file: USAGE, find: 'IDS_BEFORE_SECONDS = 8 *', replace: 'IDS_BEFORE_SECONDS = 0 *' },
      { file: USAGE, find: 'IDS_AFTER_SECONDS = 8 *', replace: 'IDS_AFTER_SECONDS = 0 *' },
    ],
    caughtBy: [
      { file: 'test/ledger/usage-report.test.ts', title: 'is the plain sum of charges and what was given back' },
    ],
  },
]
