import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { changeBudget, listBudgets, removeBudget, setBudget } from '../../server/src/budgets/set-budgets.ts'
import { createKey } from '../../server/src/identity/keys.ts'
import { usd, ZERO } from '../../server/src/kernel/money.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { labelSteps } from '../../server/src/ledger/erase-labels.ts'
import { closeWorkspaces, endUsersToErase, keysToEnd } from '../../server/src/people/close-workspaces.ts'
import { addMember, changeRole, foundWorkspace, removeMember } from '../../server/src/people/members.ts'
import { findPlace } from '../../server/src/people/membership.ts'
import { welcome } from '../../server/src/people/welcome.ts'
import { namesStatement } from '../../server/src/storage/audit.ts'
import type { Step } from '../../server/src/storage/steps.ts'
import { inTransaction, OpenTransaction } from '../../server/src/storage/transaction.ts'
import { askClosure, cancelClosure } from '../../server/src/workspaces/closures.ts'
import { resumeWorkspace, suspendWorkspace } from '../../server/src/workspaces/suspensions.ts'
import { renameWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../acceptance/installation.ts'
import { nodesOf } from '../acceptance/plan-nodes.ts'
import { makeMember } from '../identity/granted.ts'
import { callOf, openSession, postOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { makeTeam, type Team } from './house.ts'

/** Closing as the worker's process does it, without the process. */
const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(async () => {
  await session.close()
  await pools.close()
})

const parts = { pool, ids, sendMail: async () => {}, siteUrl: 'https://site.example' }
const work = (steps: (accountId: string) => readonly Step[] = (accountId) => labelSteps(pool, accountId)) =>
  closeWorkspaces({
    ...parts,
    by: { actor: 'worker test', origin: {} },
    clock: { sleep: async () => {} },
    labelSteps: steps,
  })

const askFor = ({ workspaceId, of }: Team) => askClosure(parts, ACTOR, { workspaceId, personId: of('owner').personId })
const setDue = ({ workspaceId }: { readonly workspaceId: string }) =>
  pool.query(
    "update closures set closes_at = clock_timestamp() - interval '1 second', next_at = '-infinity' where workspace_id = $1 and state = 'asked'",
    [workspaceId],
  )
async function makeDue() {
  const team = await makeTeam(pool, ['owner'])
  await askFor(team)
  await setDue(team)
  return team
}
const rowOf = async ({ workspaceId }: { readonly workspaceId: string }) =>
  (
    await pool.query(
      "select state, failures, reached, next_at - clock_timestamp() > interval '12 seconds' as later from closures where workspace_id = $1",
      [workspaceId],
    )
  ).rows[0]
const activeOf = async ({ workspaceId }: Team) =>
  (
    await pool.query(
      'select a.active from workspaces w join accounts a on a.id in (w.live_account_id, w.test_account_id) where w.id = $1 order by a.mode',
      [workspaceId],
    )
  ).rows.map(({ active }) => active)

describe('who closes a workspace', () => {
  it('has it alone, and loses it to who comes after the lease', async () => {
    const team = await makeDue()
    const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<null>()]
    const slow: Step = {
      name: 'slow',
      portion() {
        begun.resolve()
        return goOn.promise
      },
    }
    const first = work(() => [slow])
    await begun.promise
    assert.equal(await work(), 0)
    assert.equal((await rowOf(team)).state, 'asked')
    await setDue(team)
    assert.equal(await work(), 1)
    goOn.resolve(null)
    await assert.rejects(first, /could not be closed/)
    const { rowCount } = await pool.query("select from audit where workspace_id = $1 and action = 'workspace.closed'", [
      team.workspaceId,
    ])
    assert.equal(rowCount, 1)
  })

  it('goes on where the one before ended, which failed', async () => {
    const team = await makeDue()
    const seen: (readonly string[] | null)[] = []
    const stepsOf = (failsAt: string | null) => (): readonly Step[] => [
      {
        name: 'counted',
        async portion(place) {
          seen.push(place)
          const at = Number(place?.[0] ?? 0)
          if (String(at) === failsAt) throw new Error('out of order')
          return at < 3 ? [String(at + 1)] : null
        },
      },
    ]
    await assert.rejects(work(stepsOf('2')), /1 workspaces could not be closed/)
    assert.deepEqual(seen, [null, ['1'], ['2']])
    const { state, failures, reached } = await rowOf(team)
    assert.deepEqual([state, failures, reached.after], ['asked', 1, ['2']])
    seen.length = 0
    // Not before its time, which is later with each failure.
    assert.equal(await work(stepsOf(null)), 0)
    await setDue(team)
    await assert.rejects(work(stepsOf('2')))
    assert.deepEqual([(await rowOf(team)).failures, (await rowOf(team)).later], [2, true])
    seen.length = 0
    await setDue(team)
    assert.equal(await work(stepsOf(null)), 1)
    // The rest of the first account, and all of the second one.
    assert.deepEqual(seen, [['2'], ['3'], null, ['1'], ['2'], ['3']])
  })

  it('ends all keys, of which there are more than a portion has, some of them revoked before', async () => {
    const team = await makeDue()
    await pool.query(
      `with made as (insert into credentials (id, account_id, active) select gen_random_uuid(), $1, n % 3 > 0 from generate_series(1, 1300) n returning id, active)
       insert into api_keys (id, workspace_id, name, hash, revoked_at)
       select id, $2, 'of somebody', sha256(id::text::bytea), case when not active then clock_timestamp() end from made`,
      [team.accountId, team.workspaceId],
    )
    assert.equal(await work(), 1)
    const { rows } = await pool.query(
      `select count(*)::integer as keys, count(*) filter (where revoked_at is null or name <> 'erased' or active)::integer as left
       from api_keys join credentials using (id) where workspace_id = $1`,
      [team.workspaceId],
    )
    assert.deepEqual(rows, [{ keys: 1_301, left: 0 }])
  })

  it('is kept from no other by those that fail', async () => {
    const broken: Team[] = []
    for (let made = 0; made < 21; made += 1) broken.push(await makeDue())
    const sound = await makeDue()
    const bad = new Set(
      (
        await pool.query('select live_account_id as id from workspaces where id = any ($1)', [
          broken.map(({ workspaceId }) => workspaceId),
        ])
      ).rows.map(({ id }) => id),
    )
    const steps = (accountId: string): readonly Step[] =>
      bad.has(accountId) ? [{ name: 'broken', portion: () => Promise.reject(new Error('broken')) }] : []
    await assert.rejects(work(steps), /20 workspaces/)
    await assert.rejects(work(steps), /1 workspaces/)
    assert.equal((await rowOf(sound)).state, 'closed')
    await pool.query("update closures set state = 'canceled', ended_at = clock_timestamp() where state = 'asked'")
  })

  it('finds keys, end users and changes by an index', async () => {
    const { workspaceId, accountId } = await makeTeam(pool, [])
    const others = await makeTeam(pool, [])
    await pool.query(
      `insert into audit (actor, action, workspace_id, subject) select 'operator test', 'key.changed', $1, $1::uuid::text from generate_series(1, 4000)`,
      [others.workspaceId],
    )
    await pool.query('analyze audit')
    const client = await pool.connect()
    try {
      await client.query('set enable_seqscan = off')
      const { text, values } = namesStatement(workspaceId, [])
      for (const [sql, given] of [
        keysToEnd(workspaceId, workspaceId),
        endUsersToErase(accountId, accountId),
        [text, values],
      ] as const) {
        const { rows } = await client.query(`explain (format json) ${sql}`, [...given])
        const nodes = nodesOf(Object(rows[0])['QUERY PLAN'][0].Plan)
        assert.ok(!nodes.some((node) => node['Node Type'] === 'Seq Scan'), sql)
        assert.ok(
          nodes.some((node) =>
            /^(api_keys_in_order|api_keys_revoked|end_users_pkey|audit_in_order|audit_by_action|audit_by_kind)$/.test(
              String(node['Index Name']),
            ),
          ),
          sql,
        )
      }
    } finally {
      client.release(true)
    }
  })
})

describe('a closure', () => {
  it('and a suspension stop the workspace each by itself, in whichever order they come and go', async () => {
    const told = { pool, tell: async () => 1 }
    const deeds = {
      suspend: ({ workspaceId }: Team) => suspendWorkspace(told, ACTOR, workspaceId, 'Stolen cards.'),
      resume: ({ workspaceId }: Team) => resumeWorkspace(told, ACTOR, workspaceId, 'A mistake.'),
      ask: askFor,
      cancel: ({ workspaceId }: Team) => cancelClosure(parts, ACTOR, workspaceId),
    }
    for (const order of [
      ['suspend', 'ask', 'cancel', 'resume'],
      ['suspend', 'ask', 'resume', 'cancel'],
      ['ask', 'suspend', 'cancel', 'resume'],
      ['ask', 'suspend', 'resume', 'cancel'],
    ] as const) {
      const team = await makeTeam(pool, ['owner'])
      for (const deed of order) {
        assert.deepEqual(await activeOf(team), deed === order[0] ? [true, true] : [false, false], order.join())
        await deeds[deed](team)
      }
      assert.deepEqual(await activeOf(team), [true, true], order.join())
      assert.equal(await deeds.resume(team), null, 'nothing is changed twice')
    }
  })

  it('is seen by who waited for the lock while it was asked for, with the role as it is then', async () => {
    const team = await makeTeam(pool, ['owner', 'admin'])
    const { workspaceId } = team
    const [asked, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const asking = inTransaction(pool, async (query) => {
      await askClosure({ ...parts, pool: new OpenTransaction(query) }, ACTOR, {
        ...{ workspaceId, personId: team.of('owner').personId },
      })
      await query("update members set role = 'viewer' where id = $1", [team.of('admin').memberId])
      asked.resolve()
      await commit.promise
    })
    await asked.promise
    const place = inTransaction(pool, (query) =>
      findPlace(new OpenTransaction(query), { workspaceId, personId: team.of('admin').personId, isLocked: true }),
    )
    const key = createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'test', name: 'late' })
    const refused = assert.rejects(key, { code: 'workspace_closing' })
    const waiting =
      "select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'for no key update' and datname = current_database()"
    await until(async () => ((await pool.query(waiting)).rowCount ?? 0) >= 2, PATIENCE_MS, 'two that wait')
    commit.resolve()
    await asking
    const { closesAt, role } = await place
    assert.deepEqual([closesAt instanceof Date, role], [true, 'viewer'])
    await refused
  })

  it('can be canceled by every owner: none is put out by another meanwhile', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId } = team
    const second = await makeMember(pool, workspaceId, 'owner')
    const hand = { by: ACTOR, personId: team.of('owner').personId }
    await askFor(team)
    await assert.rejects(removeMember({ pool, notices: null }, hand, workspaceId, second.memberId, null), {
      code: 'workspace_closing',
    })
    await assert.rejects(changeRole({ pool, notices: null }, hand, workspaceId, second.memberId, 'viewer'), {
      code: 'workspace_closing',
    })
    // An operator may, and who goes by themselves.
    await removeMember(
      { pool, notices: null },
      { by: ACTOR, personId: second.personId },
      workspaceId,
      second.memberId,
      null,
    )
  })

  it('is final once it is done, for operators too', async () => {
    const team = await makeDue()
    const { workspaceId } = team
    const old = await setBudget({ pool }, ACTOR, {
      ...{ workspaceId, mode: 'test', kind: 'end_user', subject: ids.next(), label: 'zoe' },
      budget: { period: 'day', amount: usd('5') },
    })
    assert.equal(await work(), 1)
    const person = await makeMember(pool, (await makeTeam(pool, [])).workspaceId)
    const closed = { code: 'workspace_closing' }
    const operator = { by: ACTOR, personId: null }
    await assert.rejects(
      addMember({ pool, ids, notices: null }, operator, workspaceId, { email: person.email, role: 'owner' }),
      closed,
    )
    await assert.rejects(createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'late' }), closed)
    await assert.rejects(renameWorkspace({ pool }, ACTOR, workspaceId, 'Anew'), closed)
    await assert.rejects(askClosure(parts, ACTOR, { workspaceId, personId: person.personId }), closed)
    const amount = usd('5')
    const ofZoe = { workspaceId, mode: 'test', kind: 'end_user', subject: ids.next(), label: 'zoe' } as const
    await assert.rejects(setBudget({ pool }, ACTOR, { ...ofZoe, budget: { period: 'day', amount } }), closed)
    await assert.rejects(changeBudget({ pool }, ACTOR, old.id, usd('6')), closed)
    await assert.rejects(removeBudget({ pool }, ACTOR, old.id), closed)
    assert.deepEqual(
      (await listBudgets(pool, workspaceId, 'test')).map(({ label, amount: left }) => [label, left]),
      [['erased', amount]],
    )
    await assert.rejects(cancelClosure(parts, ACTOR, workspaceId), { code: 'resource_not_found' })
    assert.deepEqual(await activeOf(team), [false, false])
    // Who was erased with it makes nothing any more.
    const visitor = { address: '203.0.113.1', network: '203.0.113.0/24', agent: 'a test' }
    const settings = {
      siteUrl: 'https://site.example',
      name: 'Farebox',
      signUp: 'open',
      domains: [],
      credit: ZERO,
    } as const
    const founding = { ids, settings, credit: async () => {}, testCredit: async () => {} }
    await assert.rejects(foundWorkspace(founding, team.of('owner').personId, 'Another', visitor, pool), {
      code: 'resource_not_found',
    })
  })

  it('erases the label of a call that holds nothing and still runs', async () => {
    const team = await makeTeam(pool, ['owner'])
    const party = { accountId: team.accountId, credentialId: team.keyId }
    const attribution = { model: null, endUser: { id: ids.next(), label: 'zoe' }, tags: [] }
    const free = callOf(party, { hold: 0n, attribution })
    await session.begin(free)
    await askFor(team)
    await setDue(team)
    assert.equal(await work(), 1)
    await session.end(postOf(free, 0n))
    await addUpUsage(pool)
    const { rows } = await pool.query(
      `select (select count(*)::integer from charges where account_id = $1) as charges,
         (select count(*)::integer from charges where account_id = $1 and end_user_label is not null)
           + (select count(*)::integer from usage_totals where account_id = $1 and subject_label is not null) as labels`,
      [team.accountId],
    )
    assert.deepEqual(rows, [{ charges: 1, labels: 0 }])
  })
})

describe('a person who signed up, and is erased with their workspace', () => {
  it('is named nowhere any more: not in the audit log, and not in a workspace that they had left', async () => {
    const [id, name, email] = [ids.next(), 'Zenobia Quill', 'zenobia.quill@harbour.example']
    await pool.query('insert into people (id, email, name, verified_at) values ($1, $2, $3, clock_timestamp())', [
      id,
      email,
      name,
    ])
    const settings = {
      siteUrl: 'https://site.example',
      name: 'Farebox',
      signUp: 'open',
      domains: [],
      credit: ZERO,
    } as const
    await inTransaction(pool, (query) =>
      welcome(
        query,
        { ids, settings, credit: async () => {}, testCredit: async () => {} },
        { actor: `member ${id}`, origin: {} },
        { id, email, name },
      ),
    )
    const { rows } = await pool.query(
      'select workspace_id as "workspaceId", id as "memberId" from members where person_id = $1',
      [id],
    )
    const { workspaceId } = rows[0]
    await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: `Key of ${name}` })
    await renameWorkspace({ pool }, ACTOR, workspaceId, `Home of ${name}`)
    // She was in another one, with a key and a budget of her own, and was invited to a third.
    const other = await makeTeam(pool, ['owner'])
    const third = await makeTeam(pool, ['owner'])
    await pool.query('update api_keys set member_id = $2, member_person = $3, member_email = $4 where id = $1', [
      other.keyId,
      ids.next(),
      id,
      email,
    ])
    await pool.query(
      "insert into budgets (id, account_id, kind, subject, label, period, amount) values ($1, $2, 'member', $3, $4, 'month', 1)",
      [ids.next(), other.accountId, id, name],
    )
    await pool.query(
      `insert into invitations (id, workspace_id, email, role, invited_by, hash, expires_at)
       values ($1, $2, $3, 'viewer', $4, $5, clock_timestamp() + interval '1 day')`,
      [ids.next(), third.workspaceId, email, third.of('owner').personId, randomBytes(32)],
    )
    for (const table of ['people', 'members', 'workspaces', 'audit', 'api_keys', 'budgets', 'invitations'])
      assert.ok((await whereIs()).includes(table), `${table} is not among ${(await whereIs()).join()}`)
    await askClosure(parts, ACTOR, { workspaceId, personId: id })
    await setDue({ workspaceId })
    assert.equal(await work(), 1)
    assert.deepEqual(await whereIs(), [])
    const { rows: left } = await pool.query(
      "select after from audit where workspace_id = $1 and action = 'workspace.renamed'",
      [workspaceId],
    )
    assert.deepEqual(left, [{ after: { name: 'erased' } }])

    /** Tables that have it in any row, whosever that is. */
    async function whereIs(): Promise<readonly string[]> {
      const { rows: tables } = await pool.query<{ name: string }>(
        "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'",
      )
      const found: string[] = []
      for (const { name: table } of tables)
        if ((await pool.query(`select from ${table} row where row::text ~* 'zenobia' limit 1`)).rowCount !== 0)
          found.push(table)
      return found
    }
  })

  it('leaves the rest of the audit log as it is: nothing else can be changed', async () => {
    const { workspaceId } = await makeTeam(pool, ['owner'])
    await renameWorkspace({ pool }, ACTOR, workspaceId, 'Another')
    for (const change of [
      `after = after || '{"name": "somebody else"}'`,
      `after = null`,
      `before = without_name(before), after = without_name(after), actor = 'operator nobody'`,
      `at = at + interval '1 second'`,
    ])
      await assert.rejects(
        pool.query(`update audit set ${change} where workspace_id = $1 and action = 'workspace.renamed'`, [
          workspaceId,
        ]),
        /are immutable/,
        change,
      )
    await assert.rejects(pool.query('delete from audit where workspace_id = $1', [workspaceId]), /are immutable/)
  })
})
