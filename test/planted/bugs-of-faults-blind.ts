import type { BugOfFaults } from './bugs-of-faults.ts'
import { BEGINNING, START_OF_BEGIN, START_OF_END, STATEMENTS, SWEEPING, WINDOWS_READ } from './statements.ts'

const TABLES = 'server/src/storage/migrations/0002_ledger.sql'
const CREDITS = 'server/src/storage/migrations/0004_credits_and_reversals.sql'
/** Where calls of dead processes are marked. */
const MARKS = 'server/src/storage/migrations/0012_tasks.sql'
const CALLS = 'server/src/calls/calls.ts'
const SWEEP = 'server/src/calls/orphans.ts'
const PIPELINE = 'server/src/gateway/pipeline.ts'
const PRICES = 'server/src/pricing/prices.ts'
const APP = 'server/src/app.ts'

/** Without these PostgreSQL itself would refuse what the bug does, and callers would be told of a mistake instead. */
const WITHOUT_CONSTRAINTS = [
  {
    file: TABLES,
    find: `  constraint no_overspend check (charged + held <= credited + debt),
  constraint debt_is_paid_first check (debt = 0 or charged + held = credited + debt),
`,
    replace: '',
  },
  { file: TABLES, find: ',\n  constraint no_overspend check (charged + held <= amount)\n', replace: '\n' },
]

const ORPHANS_FOUND = `select own.id from owners cross join lateral open_calls_of(owners.id, most) own (id)
    where owners.lease_until < at limit most`
const SWEEPS = `  return query select orphan.id, orphan.account_id, orphan.owner_id
  from mark_unsettled(array(
    ${ORPHANS_FOUND}
  ), null) orphan;
`
const SWEEPS_VARIABLES = 'graceful constant timestamptz := at - make_interval(secs => grace_seconds);\n'
const GIVES_UP = `      open.delete(call.id)
      if (!(error instanceof Late)) throw error
      // What was sent may hold money yet, even after this: the void leaves a tombstone for a hold that comes late.
      if (error.sent && call.hold !== null) settleInBackground(voidOf(call))
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
      ...WITHOUT_CONSTRAINTS,
      {
        file: STATEMENTS,
        find: '-- END: posts or voids a batch of calls, once each:',
        replace: `create table released_holds (like holds);

create function hold_again(hold holds, sign integer) returns void
language sql volatile as $$
  update accounts row set held = row.held + sign * hold.amount where row.id = hold.account_id;
  update allowance_periods row set held = row.held + sign * hold.amount from allowances a
  where a.id = any (hold.allowances) and row.allowance_id = a.id and row.starts_at = period_start(a.period, hold.begun_at)
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

-- END: posts or voids a batch of calls, once each:`,
      },
      {
        file: STATEMENTS,
        find: START_OF_END,
        replace: `${START_OF_END}  perform 1 from accounts where id = any (accounts_in) order by id for no key update;
  perform hold_again(row(released.*)::holds, 1) from released_holds released where released.id = any (call_ids);
  insert into holds select * from released_holds where id = any (call_ids);
  delete from released_holds where id = any (call_ids);
`,
      },
      {
        file: CALLS,
        find: '      const settlement = await endings.submit(ending, endDeadlineMs)\n',
        replace: `      const values = [ending.id, ending.accountId]
      if (ending.amount !== null)
        await query({ name: 'release_hold', text: 'select release_hold($1, $2)', values }).catch(() => {})
      const settlement = await endings.submit(ending, endDeadlineMs)
`,
      },
    ],
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
      {
        file: SWEEPING,
        find: SWEEPS,
        replace: `  return query select holds.id, holds.account_id, holds.owner_id from holds where holds.id = any (array(
    ${ORPHANS_FOUND}
  ));
`,
      },
      {
        file: SWEEP,
        find: `pool.query<{ id: Id; owner_id: Id }>(
      'select id, owner_id from sweep_orphans(sweeper => $1, grace_seconds => $2, most => $3)',`,
        replace: `pool.query(
      'select o.id, o.owner_id, to_jsonb(holds) as hold from sweep_orphans(sweeper => $1, grace_seconds => $2, most => $3) o join holds using (id)',`,
      },
      {
        file: SWEEP,
        find: `    for (const { id, owner_id } of rows)
      log.warn('a call is unsettled: its process is gone', { request_id: id, owner_id })`,
        replace: `    for (const { id, owner_id, hold } of rows) {
      await new Promise((resolve) => setTimeout(resolve, 5_000))
      await pool.query(
        \`with put as (
          insert into holds select (jsonb_populate_record(null::holds, $1)).*
          on conflict (id) do update set unsettled_at = clock_timestamp()
          returning account_id, amount, xmax = 0 as is_new)
        update accounts set held = held + put.amount from put where id = put.account_id and is_new\`,
        [{ ...hold, unsettled_at: new Date() }],
      )
      log.warn('a call is unsettled: its process is gone', { request_id: id, owner_id })
    }`,
      },
    ],
    caughtBy: { invariants: ['money is conserved', 'no call is charged twice'], ...LONG_SLEEP },
  },
  {
    id: 'window-reset-by-two',
    title: 'a rate window is read before its account is locked, and written from what was read',
    promise: 'A limit is a limit, however many processes there are.',
    author: 'blind',
    edits: [
      { file: BEGINNING, find: `\n${WINDOWS_READ}`, replace: '' },
      {
        file: BEGINNING,
        find: START_OF_BEGIN,
        replace: `${START_OF_BEGIN}  at := clock_timestamp();\n${WINDOWS_READ}`,
      },
    ],
    caughtBy: { invariants: ['no window is exceeded'], kinds: ['slow database'], seconds: 20 },
  },
  {
    id: 'orphan-voided-when-swept',
    title: 'a call whose process died is voided when it is found, instead of becoming unsettled',
    promise: 'What is not known is not guessed: the money stays held until there is evidence.',
    author: 'blind',
    edits: [
      {
        file: SWEEPING,
        find: SWEEPS,
        replace: `  select array_agg(orphan.id), array_agg(orphan.account_id) into dead, accounts_of
  from mark_unsettled(array(
    ${ORPHANS_FOUND}
  ), null) orphan;
  if dead is null then return; end if;
  return query select ended.id, ended.account_id, sweeper
  from end_unsettled(dead, accounts_of, array_fill(null::bigint, array[cardinality(dead)]), false) ended;
`,
      },
      { file: SWEEPING, find: SWEEPS_VARIABLES, replace: `${SWEEPS_VARIABLES}  dead uuid[];\n  accounts_of uuid[];\n` },
      // A settlement that comes later is taken for done, by what was metered.
      {
        file: STATEMENTS,
        find: 'has_late := true;',
        replace: 'has_late := false;',
      },
      {
        file: PIPELINE,
        find: 'told[headerNames.cost] = formatUsd(charged)',
        replace: 'told[headerNames.cost] = formatUsd(outcome.ending.forgiven ? ZERO : (outcome.ending.amount ?? ZERO))',
      },
    ],
    caughtBy: { invariants: ['one billed upstream call per charge'], kinds: ['kill gateway'], seconds: 12 },
  },
  {
    id: 'topup-repeat-credits-again',
    title: 'a repeated top-up adds to the balance again, although its entry is written once',
    promise: 'Money is conserved: the same id again answers as the first time.',
    author: 'blind',
    edits: [
      {
        file: CREDITS,
        find: '  if exists (select from entries where id = entry_id and account_id = account and kind = entry_kind and credited = credit) then return false; end if;\n',
        replace: '',
      },
      {
        file: CREDITS,
        find: "  if exists (select from entries where id = entry_id) then raise exception 'entry % is there already, and is something else', entry_id; end if;\n",
        replace: '',
      },
      {
        file: CREDITS,
        find: 'values (entry_id, account, entry_kind, credit, change.promo_change, change.debt_change);',
        replace:
          'values (entry_id, account, entry_kind, credit, change.promo_change, change.debt_change) on conflict (id) do nothing;',
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
      ...WITHOUT_CONSTRAINTS,
      {
        file: CREDITS,
        find: 'free := before.credited + credit + before.debt + new_debt - before.charged - charge - before.held;',
        replace:
          'free := before.credited + credit + before.debt + new_debt - before.charged - charge - case when new_debt > 0 then 0 else before.held end;',
      },
    ],
    caughtBy: { invariants: ['nobody overspends'], kinds: ['slow upstream'], seconds: 18 },
  },
  {
    id: 'usage-batch-loses-repeated-key',
    title: 'when several calls of one key end in one batch, the usage report gets only one of them',
    promise: 'Header, usage report and ledger say the same.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: '    where hold.id is not null and (call_executed[i] or call_charges[i] > 0);\n',
        replace: `    where hold.id is not null and (call_executed[i] or call_charges[i] > 0)
      and i = (select max(other.ordinality) from unnest(ending) with ordinality other where other.credential_id = hold.credential_id);
`,
      },
    ],
    caughtBy: {
      invariants: ['header, record, usage and ledger agree'],
      kinds: ['slow database'],
      seconds: 15,
    },
  },
  {
    id: 'end-retry-releases-hold-twice',
    title: 'a settlement that is repeated because its answer was lost releases its hold a second time',
    promise: 'What an account holds is the sum of its open holds.',
    author: 'blind',
    edits: [
      {
        file: STATEMENTS,
        find: '  if has_entries then\n',
        replace: `  if before_outcomes is not null then
    update accounts row set held = greatest(0, row.held - ended.held)
    from (
      select c.account_id, sum(c.held) as held from unnest(call_ids) with ordinality item (id, i) join charges c using (id)
      where before_outcomes[i] is not null group by 1
    ) ended
    where row.id = ended.account_id and row.debt = 0;
    update allowance_periods row set held = greatest(0, row.held - ended.held)
    from (
      select one.id, sum(c.held) as held from unnest(call_ids) with ordinality item (id, i) join charges c using (id)
      cross join unnest(c.allowances) one (id)
      where before_outcomes[i] is not null group by 1
    ) ended
    where row.allowance_id = ended.id;
  end if;
  if has_entries then
`,
      },
      {
        file: STATEMENTS,
        find: 'held = row.held - account_release[1],',
        replace: 'held = greatest(0, row.held - account_release[1]),',
      },
      {
        file: STATEMENTS,
        find: 'held = row.held - account_release[place],',
        replace: 'held = greatest(0, row.held - account_release[place]),',
      },
      {
        file: STATEMENTS,
        find: 'row set held = row.held - own.amount, charged',
        replace: 'row set held = greatest(0, row.held - own.amount), charged',
      },
      {
        file: STATEMENTS,
        find: 'row set held = row.held - change.held, charged',
        replace: 'row set held = greatest(0, row.held - change.held), charged',
      },
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
        find: GIVES_UP,
        replace: `      if (!(error instanceof Late)) {
        open.delete(call.id)
        throw error
      }
`,
      },
    ],
    caughtBy: { invariants: ['nothing leaks', 'everything is resolved'], ...LONG_PAUSE },
  },
  {
    id: 'sweep-frees-idempotency-key',
    title: 'the sweep frees every claim of a dead process, its idempotency keys and quotes too',
    promise: 'One charge for each idempotency key and quote, whatever was sent again.',
    author: 'blind',
    edits: [
      {
        file: MARKS,
        find: 'delete from claims using marked where claims.call_id = marked.id and claims.ends_with_owner',
        replace: 'delete from claims using marked where claims.call_id = marked.id',
      },
    ],
    caughtBy: { invariants: ['no call is charged twice'], kinds: ['kill gateway'], seconds: 20 },
  },
  {
    id: 'price-in-force-by-own-clock',
    title: "whether a price is in force yet is decided by the gateway's own clock",
    promise: 'A price that changed is known a second later.',
    author: 'blind',
    edits: [
      {
        file: PRICES,
        find: 'const [set, own] = await Promise.all([versions',
        replace: 'const [sets, own] = await Promise.all([versions',
      },
      {
        file: PRICES,
        find: '      return operationTerms(operation, caller, { set, own })\n',
        replace: `      const set = sets?.find(({ since }) => since <= clock.nowMs())?.read
      return operationTerms(operation, caller, { set, own })
`,
      },
      {
        file: PRICES,
        find: `\`select version, unit_price::text, provider_cost::text from price_versions
     where operation = $1 order by version desc limit 1\``,
        replace: `\`select version, unit_price::text, provider_cost::text, extract(epoch from created_at)::float8 * 1000 as since
     from price_versions where operation = $1 order by version desc limit 100\``,
      },
      {
        file: PRICES,
        find: '  return rows[0] && setPriceIn(rows[0])\n',
        replace: '  return rows.map((row) => ({ since: row.since, read: setPriceIn(row) }))\n',
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
      {
        file: APP,
        find: '  const drained = await',
        replace: '  await money.ownership.stop()\n  const drained = await',
      },
      {
        file: APP,
        find: 'await gateway.records.flush(RECORDS_DEADLINE_MS)\n  await money.ownership.stop()\n',
        replace: 'await gateway.records.flush(RECORDS_DEADLINE_MS)\n',
      },
    ],
    caughtBy: {
      invariants: ['unsettled only for a reason'],
      kinds: ['restart gateway', 'slow upstream'],
      seconds: 24,
    },
  },
]
