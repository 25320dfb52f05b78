import type { PlantedBug } from './planted-bug.ts'
import { CHANGED_WITHOUT_A_HOLD, END, storedFunction } from './statements.ts'

const MARK = storedFunction('mark_unsettled')
const SWEEP = storedFunction('sweep_orphans')
const OWNERSHIP = 'server/src/calls/ownership.ts'
const LANE = 'server/src/calls/lane.ts'
const ORPHANS = 'test/ledger/orphans.test.ts'
const ORPHANS_AT_ONCE = 'test/ledger/orphans-at-once.test.ts'

/** Of processes that die, stop or lose PostgreSQL, and of what becomes of their calls. */
export const bugsOfDeaths: readonly PlantedBug[] = [
  {
    id: 'orphan-voided-when-swept',
    title: 'a call whose process died is voided when it is found, instead of becoming unsettled',
    promise: 'What is not known is not guessed: the money stays held until there is evidence, or for 24 hours.',
    author: 'blind',
    edits: [
      {
        file: SWEEP,
        find: '), null) orphan;',
        replace: `), null) orphan
  cross join lateral end_unsettled(array[orphan.id], array[orphan.account_id], array[null::bigint], false) ended;`,
      },
    ],
    caughtBy: [
      { file: ORPHANS, title: 'marks the call of a dead process' },
      { file: ORPHANS, title: 'is voided after the deadline and not before' },
    ],
  },
  {
    id: 'sweep-frees-idempotency-key',
    title: 'the sweep frees every claim of a dead process, its idempotency keys and quotes too',
    promise: 'One charge for each idempotency key and quote, whatever was sent again.',
    author: 'blind',
    edits: [{ file: MARK, find: ' and claims.ends_with_owner', replace: '' }],
    caughtBy: [{ file: ORPHANS, title: 'marks the call of a dead process' }],
  },
  {
    id: 'sweep-keeps-places',
    title: 'the call of a dead process keeps its place among the calls at once',
    promise: 'A process that dies takes nobody’s place among the calls at once.',
    author: 'insider',
    edits: [{ file: MARK, find: ', at_once = false', replace: '' }],
    caughtBy: [{ file: ORPHANS, title: 'marks the call of a dead process' }],
  },
  {
    id: 'sweep-ignores-renewal-race',
    title:
      'the sweep does not look at the lease again before it marks, so a process that renewed meanwhile loses its calls',
    promise: 'Only the calls of a process whose lease has ended become unsettled.',
    author: 'blind',
    edits: [{ file: MARK, find: 'when of is null then', replace: 'when of is null then true or' }],
    caughtBy: [{ file: ORPHANS, title: 'takes nothing from a process that lives' }],
  },
  {
    id: 'outage-grace-from-postmaster-alone',
    title: 'the sweep gives grace after a start of PostgreSQL alone: an outage of the network gets none',
    promise: 'After an outage nobody is swept until every process that lives had the time to renew its lease.',
    author: 'blind',
    edits: [{ file: SWEEP, find: ' and held_since <= graceful', replace: '' }],
    caughtBy: [
      { file: ORPHANS, title: 'whose lease is younger than the grace' },
      { file: ORPHANS, title: 'is not for who renewed after its lease had ended' },
    ],
  },
  {
    id: 'deadline-counts-from-hold',
    title: 'the 24 hours of an unsettled call are counted from its begin, not from when it became unsettled',
    promise: 'An unsettled call stays held for 24 hours, so that evidence or an operator can resolve it.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('resolve_overdue'),
        find: 'where unsettled_at <',
        replace: 'where unsettled_at is not null and begun_at <',
      },
    ],
    caughtBy: [{ file: ORPHANS, title: 'is voided after the deadline and not before' }],
  },
  {
    id: 'operator-resolution-ignores-bound',
    title: 'an operator who resolves a call with more than it held makes the customer pay all of it',
    promise: 'A charge never exceeds its hold; the excess is overrun, the operator’s loss.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('resolve_call'),
        find: 'return query select',
        replace: `update accounts row set held = row.held + greatest(0, resolve_call.amount - hold.amount)
  from holds hold where hold.id = call_id and row.id = account;
  update holds set amount = greatest(holds.amount, resolve_call.amount) where holds.id = call_id;
  return query select`,
      },
    ],
    caughtBy: [{ file: ORPHANS, title: 'by a charge of at most what it held' }],
  },
  {
    id: 'late-settlement-skips-the-allowance',
    title: 'a late settlement of an unsettled call leaves what it held of its allowances, and charges them nothing',
    promise: 'A late settlement of a call that is still held posts as any other, allowances included.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'settle_allowances(own.allowances',
        replace: "settle_allowances(case when own.unsettled_at is null then own.allowances else '{}' end",
      },
      { file: END, find: 'where hold.amount > 0', replace: 'where hold.amount > 0 and hold.unsettled_at is null' },
    ],
    sql: `alter table kept_periods drop constraint kept_periods_charged_check;
alter table credentials drop constraint budget_is_sound;`,
    caughtBy: [{ file: 'test/ledger/verbs.test.ts', title: 'agrees on every answer and every row' }],
  },
  {
    id: 'disowned-at-first-sight',
    title: 'a process disowns a call that it knows nothing of at the first look, though it may be about to know it',
    promise: 'A process gives up a call of its own only when it is lost.',
    author: 'insider',
    edits: [{ file: OWNERSHIP, find: '.filter((id) => unknownBefore.has(id))', replace: '' }],
    caughtBy: [{ file: ORPHANS_AT_ONCE, title: 'disowns one that it knows nothing of at the second look' }],
  },
  {
    id: 'clock-learnt-once',
    title: 'a process learns PostgreSQL’s clock when it starts and never again',
    promise: 'Ids carry PostgreSQL’s time, whatever the clock of the process does.',
    author: 'blind',
    edits: [{ file: OWNERSHIP, find: 'offsetMs = thereMs', replace: 'offsetMs ??= thereMs' }],
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
        find: 'while (begins.size() + endings.size()',
        replace: 'if (begins.size() + endings.size()',
      },
      { file: LANE, find: 'while (running || aside.size > 0)', replace: 'if (running || aside.size > 0)' },
      {
        file: LANE,
        find: 'if (again.length === 0) {',
        replace: `for (const resolve of idlers.splice(0)) resolve()
      if (again.length === 0) {`,
      },
    ],
    caughtBy: [{ file: 'test/ledger/caught-under-death.test.ts', title: 'awaits what collects behind the batch' }],
  },
  {
    id: 'posted-after-a-void',
    title: 'a settlement that comes after a void is charged, as far as the account has money',
    promise: 'A void wins over what comes after it, which is the operator’s loss.',
    author: 'insider',
    edits: [
      {
        file: END,
        find: 'has_late := true;',
        replace: `has_late := true;
      if not call_forgiven[i] then
        account_charge[account] := account_charge[account] + least(coalesce(call_amounts[i], 0), account_free[account]);
      end if;`,
      },
      ...CHANGED_WITHOUT_A_HOLD,
    ],
    caughtBy: [{ file: 'test/ledger/overrun.test.ts', title: 'charges nothing where the call was held' }],
  },
]
