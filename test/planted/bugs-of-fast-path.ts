import type { PlantedBug } from './planted-bug.ts'
import { storedFunction } from './statements.ts'

const BEGIN = 'server/src/calls/fast-begin.ts'
const END = 'server/src/calls/fast-end.ts'
const LOCKS = 'test/ledger/fast-path-locks.test.ts'
const EDGES = 'test/ledger/fast-path-edges.test.ts'
const PATH = 'server/src/calls/fast-path.ts'
const LANE = 'server/src/calls/lane.ts'

/** Of the statements for calls that fit. */
export const bugsOfFastPath: readonly PlantedBug[] = [
  {
    id: 'fit-without-its-tombstone',
    title: 'a call that fits is begun though its id was voided while the statement waited',
    promise: 'Every verb is idempotent by its id; a void before a late hold wins.',
    author: 'insider',
    edits: [
      { file: storedFunction('calls_are_new'), find: 'language plpgsql volatile', replace: 'language plpgsql stable' },
    ],
    caughtBy: [{ file: LOCKS, title: 'holds nothing of an id that was voided meanwhile' }],
  },
  {
    id: 'unfit-keeps-its-hold',
    title: 'what an account holds for a call that does not fit is not given back',
    promise: 'A refusal leaves no hold, slot or charge behind.',
    author: 'insider',
    edits: [{ file: BEGIN, find: 'select case when fit.credentials <', replace: 'select case when 0 >' }],
    caughtBy: [{ file: LOCKS, title: 'begins nothing and changes nothing where the last requests' }],
  },
  {
    id: 'fit-into-a-raised-period',
    title: 'a call fits into what its budget was when the period began, though it was lowered since',
    promise: 'Lowering a budget takes effect at once, as what is spoken for where that is more.',
    author: 'insider',
    edits: [{ file: BEGIN, find: 'least(row.budget_amount, row.budget_ceiling)', replace: 'row.budget_amount' }],
    caughtBy: [{ file: LOCKS, title: 'was lowered below what was spoken for' }],
  },
  {
    id: 'fit-into-the-period-before',
    title: 'a call counts against the period of its budget that stands with its credential, though that is over',
    promise: 'For every allowance and period: charged + held ≤ allowance, at every instant.',
    author: 'insider',
    edits: [{ file: BEGIN, find: ' and locked.at < row.budget_ends_at', replace: '' }],
    caughtBy: [{ file: LOCKS, title: 'its budget goes to another period meanwhile' }],
  },
  {
    id: 'fast-end-forgets-a-kept-period',
    title: 'a call whose period stands elsewhere by the time it ends is charged to no period',
    promise: 'What a call holds of an allowance is released and charged in the period that it was held in.',
    author: 'insider',
    edits: [{ file: END, find: 'sums.allowance is not null and (', replace: 'false and (' }],
    caughtBy: [{ file: LOCKS, title: 'charges the period in which the call began' }],
  },
  {
    id: 'fast-end-spends-no-promotion',
    title: 'a call of an account with promotional credit is ended by the statement that spends none',
    promise: 'Promotional credit is spent first.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: 'row.debt = 0 and row.promo = 0 and row.lapsed = 0',
        replace: 'row.debt = 0 and row.lapsed = 0',
      },
    ],
    caughtBy: [{ file: LOCKS, title: 'promotional credit or debt by then' }],
  },
  {
    id: 'fit-beyond-a-fresh-window',
    title: 'a call that asks for more tokens than its limit fits into a window that has not begun',
    promise: 'A window never counts more than its limit.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: 'and (item.tokens = 0',
        replace: 'and (item.tokens = 0 or row.all_started_at is null',
      },
    ],
    caughtBy: [{ file: EDGES, title: 'begins nothing that is beyond a limit by itself' }],
  },
  {
    id: 'fit-by-a-key-of-another-account',
    title: 'a call fits by a key of another account than the one whose money it holds',
    promise: 'A key spends the money of its own account only.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: 'case when row.active and row.account_id = item.account_id',
        replace: 'case when row.active',
      },
    ],
    caughtBy: [{ file: EDGES, title: 'begins nothing by a key of another account' }],
  },
  {
    id: 'fit-known-by-the-first-day',
    title: 'of a batch whose ids are of two days only the first day is asked for calls that have ended',
    promise: 'Every verb is idempotent by its id; a void before a late hold wins.',
    author: 'blind',
    edits: [
      {
        file: BEGIN,
        find: "arrayOf('days', 'date[]', daysOf(calls))",
        replace: "arrayOf('days', 'date[]', daysOf(calls.slice(0, 1)))",
      },
    ],
    caughtBy: [{ file: EDGES, title: 'are known again each by the day of its id' }],
  },
  {
    id: 'fast-end-for-any-account',
    title: 'the end of a call is carried out whatever account it names',
    promise: 'A call can only be ended for the account that it was begun for.',
    author: 'blind',
    edits: [
      {
        file: PATH,
        find: 'if (call?.accountId !== ending.accountId || !isUsualEnding(ending)',
        replace: 'if (call === undefined || !isUsualEnding(ending)',
      },
    ],
    caughtBy: [{ file: EDGES, title: 'the end of a call for another account than its own' }],
  },
  {
    id: 'fit-without-its-task',
    title: 'a task is begun by the statement for usual calls, which makes no row of it',
    promise: 'There is no call of a task without its task.',
    author: 'blind',
    edits: [
      { file: BEGIN, find: 'hold === null || task !== undefined || windows', replace: 'hold === null || windows' },
    ],
    caughtBy: [{ file: EDGES, title: 'a call with a task' }],
  },
  {
    id: 'contended-clears-unanswered-mark',
    title: 'a call that was lost once, waited for a locked account then, and is refused there leaves no void',
    promise: 'A refusal is never followed by the hold of an earlier sending that arrives late.',
    author: 'blind',
    edits: [{ file: LANE, find: 'own.enqueue({ ...entry })', replace: 'own.enqueue({ ...entry, unanswered: false })' }],
    caughtBy: [{ file: 'test/ledger/lane-locks.test.ts', title: 'but of what was lost before' }],
  },
]
