import type { BugOfFaults } from './bugs-of-faults.ts'
import { BEFORE_THE_LOCK, END, SETTLE, storedFunction } from './statements.ts'

const CALLS = 'server/src/calls/calls.ts'
const ORPHANS = 'server/src/calls/orphans.ts'
const PRICES = 'server/src/pricing/prices.ts'
const APP = 'server/src/app.ts'
const SWEEP = storedFunction('sweep_orphans')

/** Without these PostgreSQL itself would refuse what the bug does, and callers would be told of a mistake instead. */
const WITHOUT_CONSTRAINTS = `alter table accounts drop constraint no_overspend, drop constraint debt_is_paid_first;
alter table kept_periods drop constraint no_overspend;
alter table credentials drop constraint no_overspend;
`

/** A gateway sleeps past its lease once, or PostgreSQL for longer than a begin may take; the rest only fills up. */
const FILLERS = ['slow client', 'slow upstream', 'slow client', 'slow upstream', 'slow client'] as const
const LONG_SLEEP = { kinds: ['pause gateway', ...FILLERS] as const, seconds: 30 }
const LONG_PAUSE = { kinds: ['pause postgres', ...FILLERS] as const, seconds: 30 }

/** Described by somebody who has seen neither the code nor the judge. */
export const bugsOfFaultsByTheBlind: readonly BugOfFaults[] = [
  {
    id: 'hold-released-before-post',
    title: 'the hold is given back first, and the charge is posted in a second step',
    promise: 'Nobody spends more than they have, and no call that the upstream bills is lost.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: BEFORE_THE_LOCK,
        replace: `perform 1 from accounts where id = any (accounts_in) order by id for no key update;
  perform hold_again(row(released.*)::holds, 1) from released_holds released where released.id = any (call_ids);
  insert into holds select * from released_holds where id = any (call_ids);
  delete from released_holds where id = any (call_ids);
  ${BEFORE_THE_LOCK}`,
      },
      {
        file: CALLS,
        find: 'const settlement = await endings.submit(ending, endDeadlineMs)',
        replace: `const values = [ending.id, ending.accountId]
      if (ending.amount !== null)
        await query({ name: 'release_hold', text: 'select release_hold($1, $2)', values }).catch(() => {})
      const settlement = await endings.submit(ending, endDeadlineMs)`,
      },
    ],
    sql: `${WITHOUT_CONSTRAINTS}
create table released_holds (like holds);

create function hold_again(hold holds, sign integer) returns void
language sql volatile as $$
  update accounts row set held = row.held + sign * hold.amount where row.id = hold.account_id;
  update kept_periods row set held = row.held + sign * hold.amount from allowances a
  where a.id = any (hold.allowances) and row.allowance_id = a.id and row.starts_at = period_start(a.period, hold.begun_at);
  update credentials row set budget_held = row.budget_held + sign * hold.amount from allowances a
  where a.id = any (hold.allowances) and row.budget_id = a.id and row.budget_starts_at = period_start(a.period, hold.begun_at)
$$;

create function release_hold(call_id uuid, account uuid) returns void
language plpgsql volatile as $$
declare
  hold holds%rowtype;
begin
  perform 1 from accounts where id = account for no key update;
  delete from holds where id = call_id returning * into hold;
  if not found then return; end if;
  insert into released_holds select hold.*;
  perform hold_again(hold, -1);
end
$$;
`,
    caughtBy: {
      invariants: ['nobody overspends', 'one billed upstream call per charge'],
      kinds: ['slow database', 'kill gateway'],
      seconds: 18,
    },
  },
  {
    id: 'resolver-overrules-late-settlement',
    title: 'the sweep decides by a list that it read earlier, and does not look again under the lock',
    promise: 'A call has ended once, whoever else had thought it dead.',
    author: 'blind',
    edits: [
      { file: SWEEP, find: 'from mark_unsettled(array(', replace: 'from holds orphan where orphan.id = any (array(' },
      { file: SWEEP, find: '), null) orphan;', replace: '));' },
      {
        file: ORPHANS,
        find: "'select id, owner_id from sweep_orphans(sweeper => $1, grace_seconds => $2, most => $3)'",
        replace:
          "'select o.id, o.owner_id, to_jsonb(holds) as hold from sweep_orphans(sweeper => $1, grace_seconds => $2, most => $3) o join holds using (id)'",
      },
      {
        file: ORPHANS,
        find: 'for (const { id, owner_id } of rows)',
        replace: `for (const { hold } of rows) {
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      await pool.query(
        \`with put as (
          insert into holds select (jsonb_populate_record(null::holds, $1)).*
          on conflict (id) do update set unsettled_at = clock_timestamp()
          returning account_id, amount, xmax = 0 as is_new)
        update accounts set held = held + put.amount from put where id = put.account_id and is_new\`,
        [{ ...hold, unsettled_at: new Date() }],
      )
    }
    for (const { id, owner_id } of rows)`,
      },
    ],
    caughtBy: { invariants: ['money is conserved', 'no call is charged twice'], ...LONG_SLEEP },
  },
  {
    id: 'topup-repeat-credits-again',
    title: 'a repeated top-up adds to the balance again, although its entry is written once',
    promise: 'Money is conserved: the same id again answers as the first time.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('credit_account'),
        find: 'then return false; end if;',
        replace: 'then perform change_account(account, credit, credit, 0, 0, 0); return false; end if;',
      },
    ],
    caughtBy: { invariants: ['money is conserved'], kinds: ['cut operator', 'slow operator'], seconds: 12 },
  },
  {
    id: 'refund-takes-held-money',
    title: 'a refund takes what open calls have on hold, and less of it becomes debt',
    promise: 'At no instant is more charged and held than an account has.',
    author: 'blind',
    edits: [
      {
        file: storedFunction('change_account'),
        find: '- charge - before.held;',
        replace: '- charge - case when new_debt > 0 then 0 else before.held end;',
      },
    ],
    sql: WITHOUT_CONSTRAINTS,
    caughtBy: { invariants: ['nobody overspends'], kinds: ['slow upstream'], seconds: 18 },
  },
  {
    id: 'usage-batch-loses-repeated-key',
    title: 'when several calls of one key end in one batch, the usage report gets only one of them',
    promise: 'Header, usage report and ledger say the same.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'group by hold.account_id, hold.credential_id, hold.operation',
        replace: `and i = (select max(other.ordinality) from unnest(ending) with ordinality other where other.credential_id = hold.credential_id)
      group by hold.account_id, hold.credential_id, hold.operation`,
      },
    ],
    caughtBy: { invariants: ['header, record, usage and ledger agree'], kinds: ['slow database'], seconds: 15 },
  },
  {
    id: 'end-retry-releases-hold-twice',
    title: 'a settlement that is repeated because its answer was lost releases its hold a second time',
    promise: 'What an account holds is the sum of its open holds.',
    author: 'blind',
    edits: [
      {
        file: END,
        find: 'if has_entries then',
        replace: `if before_outcomes is not null then
    update accounts row set held = greatest(0, row.held - ended.held)
    from (
      select c.account_id, sum(c.held) as held from unnest(call_ids) with ordinality item (id, i) join charges c using (id)
      where before_outcomes[i] is not null group by 1
    ) ended
    where row.id = ended.account_id and row.debt = 0;
    update kept_periods row set held = greatest(0, row.held - ended.held)
    from (
      select one.id, sum(c.held) as held from unnest(call_ids) with ordinality item (id, i) join charges c using (id)
      cross join unnest(c.allowances) one (id)
      where before_outcomes[i] is not null group by 1
    ) ended
    where row.allowance_id = ended.id;
  end if;
  if has_entries then`,
      },
      {
        file: END,
        find: 'row.held - account_release[place]',
        replace: 'greatest(0, row.held - account_release[place])',
      },
      { file: SETTLE, find: 'row.held - change.held', replace: 'greatest(0, row.held - change.held)' },
    ],
    caughtBy: { invariants: ['money is conserved'], kinds: ['cut database'], seconds: 20 },
  },
  {
    id: 'abandoned-begin-kept-as-alive',
    title: 'a hold that was given up is neither voided nor forgotten, so that nobody ever clears it away',
    promise: 'Nothing leaks: no hold that belongs to nobody.',
    author: 'blind',
    edits: [
      {
        file: CALLS,
        find: 'call.hold !== null) settleInBackground(voidOf(call))',
        replace: 'call.hold !== null) open.add(call.id)',
      },
    ],
    caughtBy: { invariants: ['nothing leaks', 'everything is resolved'], ...LONG_PAUSE },
  },
  {
    id: 'price-in-force-by-own-clock',
    title: "whether a price is in force yet is decided by the gateway's own clock",
    promise: 'A price that changed is known a second later.',
    author: 'blind',
    edits: [
      {
        file: PRICES,
        find: 'load: (operation) => loadVersion(pool, operation),',
        replace: `load: async (operation) => {
      const { rows } = await pool.query(
        \`select version, unit_price::text, provider_cost::text, extract(epoch from created_at)::float8 * 1000 as since
         from price_versions where operation = $1 order by version desc limit 100\`,
        [operation],
      )
      return rows.map((row) => ({ since: row.since, read: setPriceIn(row) }))
    },`,
      },
      { file: PRICES, find: 'const [set, own] =', replace: 'const [sets, own] =' },
      {
        file: PRICES,
        find: 'return operationTerms(operation, caller, { set, own })',
        replace: `const set = sets?.find(({ since }) => since <= clock.nowMs())?.read
      return operationTerms(operation, caller, { set, own })`,
      },
    ],
    caughtBy: { invariants: ['a new price is known in time'], kinds: ['move clock'], seconds: 15 },
  },
  {
    id: 'lease-dropped-at-start-of-drain',
    title: 'a process that is told to end gives up its lease first, and ends its calls afterwards',
    promise: 'A call is unsettled only where nobody can know what became of it.',
    author: 'blind',
    edits: [
      { file: APP, find: 'await money.ownership.stop()', replace: '' },
      {
        file: APP,
        find: 'const drained = await',
        replace: 'await money.ownership.stop()\n  const drained = await',
      },
    ],
    caughtBy: {
      invariants: ['unsettled only for a reason'],
      kinds: ['restart gateway', 'slow upstream'],
      seconds: 24,
    },
  },
]
