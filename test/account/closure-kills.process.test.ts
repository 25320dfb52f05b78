import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { count, isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { askClosure, cancelClosure } from '../../server/src/workspaces/closures.ts'
import { ACTOR, ids } from '../acceptance/installation.ts'
import { makeGranted } from '../identity/granted.ts'
import { callOf, openSession, postOf } from '../ledger/session.ts'
import { connect } from '../ledger/world.ts'
import { makeTeam } from './house.ts'
import type { Mortal, Survived } from './mortal-closure.ts'

/** In the gate a few statements, which go round with the seed. */
const SAMPLE = count({ full: 1_000, reduced: 6 })
const LABEL = 'zoe@customers.example'

const { url } = await freshDatabase()
const { pools } = connect(url)
const pool = pools.rest
const session = await openSession(url)
after(async () => {
  await session.close()
  await pools.close()
})
const masterKey = makeMasterKey()
const parts = { pool, ids, sendMail: async () => {}, siteUrl: 'https://site.example' }

/** So that PostgreSQL shows whether somebody is still at it. */
const mortalUrl = (() => {
  const named = new URL(url)
  named.searchParams.set('application_name', 'mortal')
  return named.href
})()

async function run(dieAfter: number | null): Promise<Survived | null> {
  const victim = fork(path.join(import.meta.dirname, 'mortal-closure.ts'))
  victim.send({ url: mortalUrl, masterKey: masterKey.reveal(), dieAfter } satisfies Mortal)
  const told: Survived[] = []
  victim.on('message', (message: Survived) => told.push(message))
  const [, signal] = await once(victim, 'exit')
  assert.equal(signal, told.length === 0 ? 'SIGKILL' : null)
  const alive = async () =>
    (await pool.query("select from pg_stat_activity where application_name = 'mortal'")).rowCount !== 0
  await until(async () => !(await alive()), PATIENCE_MS, 'that PostgreSQL has noticed')
  return told[0] ?? null
}

/** A workspace with calls, a grant and two members, which an owner has asked to close. */
async function makeClosing() {
  const team = await makeTeam(pool, ['owner', 'viewer'])
  const { workspaceId, accountId, keyId } = team
  const grant = await makeGranted(pool, { workspaceId, mode: 'test', personId: team.of('owner').personId })
  const attribution = { model: null, endUser: { id: ids.next(), label: LABEL }, tags: [] }
  const made = callOf({ accountId, credentialId: keyId }, { hold: 100n, attribution })
  await session.begin(made)
  await session.end(postOf(made, 60n))
  await addUpUsage(pool)
  await askClosure(parts, ACTOR, { workspaceId, personId: team.of('owner').personId })
  return { ...team, grant }
}

const letDue = ({ workspaceId }: { readonly workspaceId: string }) =>
  pool.query("update closures set closes_at = clock_timestamp() - interval '1 second' where workspace_id = $1", [
    workspaceId,
  ])

const endLease = ({ workspaceId }: { readonly workspaceId: string }) =>
  pool.query("update closures set next_at = '-infinity' where workspace_id = $1", [workspaceId])

/** The first statement takes it; it has not left PostgreSQL for sure when the process dies. */
const CLAIMED = 1

type Closing = Awaited<ReturnType<typeof makeClosing>>

/** How it stands: closed once and wholly, or not at all as far as anybody is told. */
async function stateOf({ workspaceId, accountId, of }: Closing) {
  const { rows } = await pool.query(
    `select (select state from closures where workspace_id = $1) as state,
       (select count(*)::integer from audit where workspace_id = $1 and action = 'workspace.closed') as audited,
       (select count(*)::integer from members where workspace_id = $1) as members,
       (select count(*)::integer from people where id = any ($3) and erased_at is null) as people,
       (select count(*)::integer from api_keys where workspace_id = $1 and revoked_at is null) as keys,
       (select count(*)::integer from grants where workspace_id = $1 and revoked_at is null) as grants,
       (select count(*)::integer from charges where account_id = $2 and end_user_label is not null)
         + (select count(*)::integer from usage_totals where account_id = $2 and subject_label is not null)
         + (select count(*)::integer from usage_sums where account_id = $2 and subject_label is not null)
         + (select count(*)::integer from usage_tail where account_id = $2 and end_user_label is not null)
         + (select count(*)::integer from entries where account_id = $2 and end_user_label is not null)
         + (select count(*)::integer from end_users where account_id = $2 and label <> 'erased') as labels,
       (select count(*)::integer from api_keys where workspace_id = $1 and name <> 'erased')
         + (select count(*)::integer from workspaces where id = $1 and name <> 'erased')
         + (select count(*)::integer from audit where workspace_id = $1 and coalesce(after->>'name', before->>'name', 'erased') <> 'erased') as names,
       (select sum(amount)::integer from charges where account_id = $2) as charged`,
    [workspaceId, accountId, [of('owner').personId, of('viewer').personId]],
  )
  return rows[0]
}

const CLOSED = {
  state: 'closed',
  audited: 1,
  members: 0,
  people: 0,
  keys: 0,
  grants: 0,
  labels: 0,
  names: 0,
  charged: 60,
}
const letters = async () => Number((await pool.query("select count(*) from outbox where kind = 'mail'")).rows[0].count)

describe('a worker that is killed while it closes a workspace', () => {
  it('leaves it to the next one, which closes it once: after each statement', async () => {
    const first = await makeClosing()
    await letDue(first)
    const survived = await run(null)
    assert.equal(survived?.closed, 1)
    assert.deepEqual(await stateOf(first), CLOSED)
    const statements = survived?.statements ?? 0
    const all = Array.from({ length: statements }, (_, n) => n + 1)
    // Those around the commit that closes it are always among them.
    const moments = all.filter(
      (n) => isFullProof || n >= statements - 1 || (n + seed) % Math.ceil(statements / SAMPLE) === 0,
    )
    const figures = { statements, kills: 0, open: 0, closed: 0, twice: 0 }
    for (const moment of moments) {
      const closing = await makeClosing()
      await letDue(closing)
      const sent = await letters()
      if ((await run(moment)) === null) figures.kills += 1
      const left = await stateOf(closing)
      const isClosed = left.state === 'closed'
      figures[isClosed ? 'closed' : 'open'] += 1
      if (isClosed) assert.deepEqual(left, CLOSED, `after statement ${moment}`)
      else assert.deepEqual([left.members, left.people, left.audited, await letters()], [2, 2, 0, sent], `${moment}`)
      // Until the lease of the dead one is over, nobody comes; then two at once, of which one gets it.
      if (!isClosed && moment > CLAIMED) assert.equal((await run(null))?.closed, 0, `after statement ${moment}`)
      await endLease(closing)
      const next = await Promise.all([run(null), run(null)])
      const closed = next.reduce((sum, one) => sum + (one?.closed ?? 0), 0)
      assert.equal(closed, isClosed ? 0 : 1, `after statement ${moment}`)
      assert.deepEqual(await stateOf(closing), CLOSED)
      assert.equal(await letters(), sent + 2)
    }
    assert.ok(figures.kills > 0 && figures.open > 0)
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof('account-closure', 'closed once through kill -9 after each statement', figures)
  })
})

describe('a closure that is due', () => {
  it('waits for a call that runs, which ends as usual and is charged; and can not be canceled', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId, accountId, keyId } = team
    const running = callOf({ accountId, credentialId: keyId }, { hold: 100n })
    assert.deepEqual(
      (await session.begin(running)).map(({ outcome }) => outcome),
      ['begun'],
    )
    await askClosure(parts, ACTOR, { workspaceId, personId: team.of('owner').personId })
    const late = callOf({ accountId, credentialId: keyId }, { hold: 1n })
    assert.deepEqual(
      (await session.begin(late)).map(({ outcome }) => outcome),
      ['account_inactive'],
    )
    await letDue(team)
    assert.equal((await run(null))?.closed, 0)
    await assert.rejects(cancelClosure(parts, ACTOR, workspaceId), { code: 'workspace_closing' })
    await session.end(postOf(running, 70n))
    assert.equal((await run(null))?.closed, 1)
    const { rows } = await pool.query('select amount from charges where id = $1', [running.id])
    assert.equal(rows[0].amount, 70n)
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
