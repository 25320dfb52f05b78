import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ACTOR, call, ask as callerAsks, codeOf, ids } from '../acceptance/installation.ts'
import { cancel, created, createTask, LIST, poll, untilState } from '../acceptance/tasks/video.ts'
import { ask, join, letIn, listIn, makeTeam, startHouse, type Team } from './house.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway, sandbox } = house
after(house.stop)

const LABEL = 'zoe.of.the.shop@customers.example'
const callFor = (secret: string) =>
  call(gateway.url, secret, 'tag_detail', '', { headers: { 'x-farebox-end-user': LABEL } })

const subjectsTo = async (address: string) => (await sandbox.mail(address)).map(({ subject }) => subject)
const closureOf = ({ workspaceId }: Team) => `/workspaces/${workspaceId}/closure`

/** As a member does: reads how it stands, and says that it is meant. */
async function close(team: Team, { key, name = 'Customer' }: { readonly key?: string; readonly name?: string } = {}) {
  const owner = team.of('owner')
  const etag = (await ask(siteUrl, owner, closureOf(team))).headers.get('etag') ?? ''
  return ask(siteUrl, owner, closureOf(team), {
    ...{ method: 'POST', body: { name }, headers: { 'if-match': etag }, ...(key !== undefined && { key }) },
  })
}

/** Everything of money that an account has, as the ledger tells it. */
async function moneyIn({ accountId }: Team) {
  const { rows } = await pool.query(
    `select a.credited, a.charged, a.held, a.paid, a.debt, a.promo, (select count(*) from charges where account_id = a.id) as calls,
       (select sum(amount) from charges where account_id = a.id) as amount, (select count(*) from entries where account_id = a.id) as entries,
       (select sum(charged) from usage_totals where scope_id = a.id) as used
     from accounts a where a.id = $1`,
    [accountId],
  )
  return rows[0]
}

describe('closing a workspace', () => {
  it('refuses its keys from the answer on, and takes them again when an owner cancels it', async () => {
    const team = await makeTeam(pool, ['owner', 'admin'])
    const [owner, admin] = [team.of('owner'), team.of('admin')]
    const second = await join(pool, team.workspaceId, 'owner')
    const grant = await letIn(house, team.workspaceId, { personId: owner.personId })
    const open = await ask(siteUrl, owner, closureOf(team))
    assert.deepEqual(
      [open.json.id, open.json.state, open.json.calls, open.json.closes_at, open.json.can_be_canceled],
      [null, 'open', 'accepted', null, false],
    )
    // By an owner alone, who says that it is meant and has read how it stands.
    const send = (who: Parameters<typeof ask>[1], headers: Readonly<Record<string, string>>, name = 'Customer') =>
      ask(siteUrl, who, closureOf(team), { method: 'POST', body: { name }, headers })
    assert.equal((await send(admin, { 'if-match': '*' })).status, 403)
    assert.equal((await send(grant, { 'if-match': '*' })).status, 403)
    assert.equal((await send(owner, {})).json.code, 'precondition_required')
    assert.equal((await send(owner, { 'if-match': '"another"' })).json.code, 'precondition_failed')
    assert.equal((await close(team, { name: 'customer' })).json.param, 'name')
    assert.equal((await callFor(team.secret)).status, 200)

    const asked = await close(team, { key: 'closing' })
    assert.deepEqual([asked.status, asked.json.state, asked.json.calls], [201, 'closing', 'refused'])
    assert.equal(asked.json.asked_by, owner.memberId)
    const days = (Date.parse(String(asked.json.closes_at)) - Date.parse(String(asked.json.asked_at))) / 86_400_000
    assert.equal(Math.round(days * 1_000) / 1_000, 30)
    const refused = await callFor(team.secret)
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'forbidden'])
    assert.match(refused.text, /being closed/)
    // Sent again, whatever became of the first answer.
    const again = await ask(siteUrl, owner, closureOf(team), {
      ...{ method: 'POST', body: { name: 'Customer' }, headers: { 'if-match': '*' }, key: 'closing' },
    })
    assert.deepEqual([again.status, again.json, again.headers.get('idempotency-replayed')], [201, asked.json, 'true'])
    assert.equal((await send(second, { 'if-match': '*' })).json.code, 'workspace_closing')

    // Members still see everything. They can take away, and add nothing.
    const path = `/workspaces/${team.workspaceId}`
    assert.equal((await ask(siteUrl, admin, path)).json.closes_at, asked.json.closes_at)
    assert.equal((await ask(siteUrl, admin, `${path}/statement?mode=test`)).status, 200)
    const post = (where: string, body: object) => ask(siteUrl, admin, path + where, { method: 'POST', body })
    assert.equal((await post('/keys?mode=test', { name: 'late' })).json.code, 'workspace_closing')
    assert.equal(
      (await post('/invitations', { email: 'late@harbour.example', role: 'viewer' })).json.code,
      'workspace_closing',
    )
    await assert.rejects(letIn(house, team.workspaceId), { code: 'workspace_closing' })
    const { memberId } = await pool
      .query('select id as "memberId" from members where workspace_id = $1 and person_id = $2', [
        team.workspaceId,
        admin.personId,
      ])
      .then(({ rows }) => rows[0])
    assert.equal((await ask(siteUrl, owner, `${path}/members/${memberId}`, { method: 'DELETE' })).status, 200)

    // Any owner cancels it.
    const taken = await ask(siteUrl, second, closureOf(team), {
      method: 'DELETE',
      headers: { 'if-match': asked.headers.get('etag') ?? '' },
    })
    assert.deepEqual([taken.status, taken.json], [200, { ...open.json, id: asked.json.id }])
    // Open as before, and not what was read before: whoever read that does not know that somebody has asked and canceled since.
    const stale = await send(owner, { 'if-match': open.headers.get('etag') ?? '' })
    assert.equal(stale.json.code, 'precondition_failed')
    assert.equal(taken.headers.get('etag'), (await ask(siteUrl, owner, closureOf(team))).headers.get('etag'))
    assert.equal((await callFor(team.secret)).status, 200)
    assert.equal((await ask(siteUrl, grant, path)).status, 200)
    const none = await ask(siteUrl, second, closureOf(team), { method: 'DELETE', headers: { 'if-match': '*' } })
    assert.equal(none.status, 404)
    const subjects = [owner, second].map(
      ({ email }) =>
        async () =>
          (await subjectsTo(email)).toSorted(),
    )
    for (const read of subjects)
      await until(async () => (await read()).includes('Customer will not be closed'), PATIENCE_MS, 'mail of the end')
    assert.deepEqual(await subjects[1]?.(), [
      'A member has left Customer',
      'Customer will be closed',
      'Customer will not be closed',
    ])
    const entries = listIn(await ask(siteUrl, owner, `${path}/audit?action=workspace`)).map(({ action }) => action)
    assert.deepEqual(entries.slice(0, 2), ['workspace.closure_canceled', 'workspace.closure_asked'])
    // Each is a letter to everybody.
    for (const status of [201, 201, 429]) {
      assert.equal((await close(team)).status, status)
      await ask(siteUrl, owner, closureOf(team), { method: 'DELETE', headers: { 'if-match': '*' } })
    }
  })

  it('lets keys read and cancel tasks that run until it is closed, and nothing else', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { secret } = team
    const [waits, ends] = [
      await created(gateway.url, secret, { words: 'sandbox:pending-ms=600000' }),
      await created(gateway.url, secret),
    ]
    assert.equal((await close(team)).status, 201)
    for (const refused of [await callFor(secret), await createTask(gateway.url, secret)])
      assert.deepEqual([refused.status, codeOf(refused)], [403, 'forbidden'])
    await untilState(gateway.url, secret, ends, 'SUCCEEDED')
    assert.equal((await cancel(gateway.url, secret, waits)).status, 200)
    await untilState(gateway.url, secret, waits, 'CANCELED')
    const listed = await callerAsks(gateway.url, secret, LIST)
    assert.deepEqual([listed.status, Object(listed.json.data).length], [200, 2])
    // It holds nothing any more, and was charged for the one that was made.
    const { held, charged } = await moneyIn(team)
    assert.ok(held === 0n && charged > 0n, `${held} ${charged}`)
    // Not for an account that somebody else has made inactive.
    const setState = (state: string) =>
      pool.query(
        `update closures set state = $2, ended_at = case when $2 <> 'asked' then clock_timestamp() end where workspace_id = $1`,
        [team.workspaceId, state],
      )
    await setState('canceled')
    // By the list, because a task can be polled twice a second only.
    assert.equal((await callerAsks(gateway.url, secret, LIST)).status, 403)
    await setState('asked')
    assert.equal((await callerAsks(gateway.url, secret, LIST)).status, 200)
    // Nor for a key that was revoked, before any process has heard of that.
    await pool.query('update credentials set active = false where id = $1', [team.keyId])
    for (const late of [
      await poll(gateway.url, secret, ends),
      await cancel(gateway.url, secret, waits),
      await callerAsks(gateway.url, secret, LIST),
    ])
      assert.deepEqual([late.status, codeOf(late)], [401, 'invalid_credential'])
  })

  it('erases people, ends keys, grants and sessions after the grace period, and keeps everything of money', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId, accountId } = team
    const owner = team.of('owner')
    // Somebody who is elsewhere as well.
    const elsewhere = await makeTeam(pool, ['owner'])
    const both = elsewhere.of('owner')
    await pool.query(
      "insert into members (id, workspace_id, email, role, person_id) values ($1, $2, $3, 'developer', $4)",
      [ids.next(), workspaceId, both.email, both.personId],
    )
    const path = `/workspaces/${workspaceId}`
    const grant = await letIn(house, workspaceId, { personId: owner.personId })
    const guest = `guest-${workspaceId}@harbour.example`
    await ask(siteUrl, owner, `${path}/invitations`, { method: 'POST', body: { email: guest, role: 'viewer' } })
    await ask(siteUrl, owner, `${path}/quota-requests`, {
      method: 'POST',
      body: { requests_per_minute: 9, tokens_per_minute: 9, targets: ['rerank'], use_case: 'Zoe searches.' },
    })
    await setBudget({ pool }, ACTOR, {
      ...{ workspaceId, mode: 'test', kind: 'end_user', subject: ids.next(), label: LABEL },
      budget: { period: 'month', amount: usd('5') },
    })
    for (let at = 0; at < 3; at += 1) assert.equal((await callFor(team.secret)).status, 200)
    const settled = 'select from usage_tail where account_id = $1'
    await until(async () => (await pool.query(settled, [accountId])).rowCount === 0, PATIENCE_MS, 'sums of usage')
    const before = await moneyIn(team)
    assert.ok(before.charged > 0n)

    const texts = [LABEL, owner.email, guest, 'Zoe searches.', 'Some One']
    const known = await whereIs(...texts)
    for (const table of ['people', 'members', 'invitations', 'end_users', 'budgets', 'usage_totals', 'quota_requests'])
      assert.ok(known.includes(table), `${table} is not among ${known.join()}`)
    assert.ok(known.some((table) => table.startsWith('charges_')))

    assert.equal((await close(team)).status, 201)
    const due = "update closures set closes_at = clock_timestamp() - interval '1 second' where workspace_id = $1"
    await pool.query(due, [workspaceId])
    const closed = "select from closures where workspace_id = $1 and state = 'closed'"
    await until(async () => (await pool.query(closed, [workspaceId])).rowCount === 1, PATIENCE_MS, 'the closure')

    assert.deepEqual(await moneyIn(team), before)
    assert.deepEqual(await verifyLedger(pool), [])
    // Nobody gets in any more: not by a key, not by a grant, not by a session of who was there alone.
    assert.equal(codeOf(await callFor(team.secret)), 'invalid_credential')
    assert.equal((await ask(siteUrl, grant, '/me')).status, 401)
    assert.equal((await ask(siteUrl, owner, '/me')).status, 401)
    assert.equal((await ask(siteUrl, both, path)).status, 404)
    assert.equal((await ask(siteUrl, both, `/workspaces/${elsewhere.workspaceId}`)).status, 200)
    assert.deepEqual(await whereIs(...texts), [])
    // Once: one row of the audit log, one letter each.
    const { rows } = await pool.query(
      "select actor, after from audit where workspace_id = $1 and action = 'workspace.closed'",
      [workspaceId],
    )
    assert.equal(rows.length, 1)
    assert.match(rows[0].actor, /^worker /)
    assert.deepEqual(rows[0].after, { isClosed: true, keys: 1, grants: 1, members: 2, people: 1 })
    for (const { email } of [owner, both]) {
      await until(async () => (await sandbox.mail(email)).length >= 2, PATIENCE_MS, `mail to ${email}`)
      assert.deepEqual((await subjectsTo(email)).toSorted(), ['Customer is closed', 'Customer will be closed'])
    }

    /** Tables that still have some of these in a row of this workspace or of its people. */
    async function whereIs(...texts: readonly string[]): Promise<readonly string[]> {
      const own = [workspaceId, accountId, owner.personId, owner.memberId]
      const { rows: tables } = await pool.query<{ name: string }>(
        `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r'`,
      )
      const found: string[] = []
      for (const { name } of tables) {
        const { rowCount } = await pool.query(
          `select from ${name} row where row::text ~ any ($1) and row::text like any ($2) limit 1`,
          [own, texts.map((text) => `%${text}%`)],
        )
        if (rowCount !== 0) found.push(name)
      }
      return found
    }
  })
})
