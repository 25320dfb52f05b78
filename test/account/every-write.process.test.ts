import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import type { AccountRoute } from '../../server/src/account/route.ts'
import { ACCOUNT_ROUTES } from '../../server/src/account/routes.ts'
import { isUpdate } from '../../server/src/api/answer.ts'
import { ids } from '../acceptance/installation.ts'
import { type Asker, ask, join, makeTeam, startHouse, type Team, type Told } from './house.ts'
import { SAMPLES, type Sample } from './samples.ts'

/** Every change that the document has, over 3 processes: sent at the same time, sent again, and sent by several who know nothing of each other. */
const PROOF = 'account-races'
const ROUNDS = count({ full: 20, reduced: 1 })
const AT_ONCE = count({ full: 12, reduced: 6 })

const database = await freshDatabase()
const house = await startHouse(database.url, { processes: 3 })
const { pool, siteUrl } = house
after(house.stop)

/** Where each process is reached: browsers know them all as one site. */
const host = new URL(siteUrl).host
const sites = [siteUrl, ...house.more.map((one) => one.siteUrl)]
const anySite = (at: number) => sites[at % sites.length] ?? siteUrl
const atOnce = <T>(work: (site: string, at: number) => Promise<T>, times = AT_ONCE): Promise<T[]> =>
  Promise.all(Array.from({ length: times }, (_, at) => work(anySite(at), at)))
const known = (who: Asker): Asker => ({ ...who, headers: { ...who.headers, host } })
const isReplay = ({ headers }: Told) => headers.get('idempotency-replayed') === 'true'
const codesOf = (all: readonly Told[]) => all.map(({ status, json }) => json.code ?? status)

/** An attempt to invite counts before it is known whether it was made: a mailbox is written to a few times a day. */
const INVITING = 3
const timesOf = ({ operationId }: AccountRoute) => (operationId === 'create_invitation' ? INVITING : AT_ONCE)

const WRITES = ACCOUNT_ROUTES.filter(({ method, need }) => method !== 'GET' && need !== 'nothing')

type World = { readonly team: Team; readonly asker: Asker; readonly sample: Sample }

/** A workspace of its own, so that no change is in another one's way. */
async function worldOf({ operationId }: AccountRoute): Promise<World> {
  const team = await makeTeam(pool, ['owner'])
  const asker = known(await join(pool, team.workspaceId))
  const make = SAMPLES[operationId] ?? assert.fail(`${operationId} has no sample`)
  return { team, asker, sample: await make({ house, team, asker }) }
}

function pathOf({ path }: AccountRoute, { team, sample: { params = {}, query = '', workspaceId } }: World): string {
  const all: Readonly<Record<string, string>> = { ...params, workspace_id: workspaceId ?? team.workspaceId }
  return path.replaceAll(/\{(\w+)\}/g, (_, name) => all[name] ?? assert.fail(name)) + query
}

type Sent = { readonly key?: string; readonly headers?: Readonly<Record<string, string>>; readonly body?: unknown }

function send(site: string, route: AccountRoute, world: World, { key, headers, body }: Sent = {}): Promise<Told> {
  const { asker, sample } = world
  const given = body ?? sample.body
  return ask(site, asker, pathOf(route, world), {
    ...{ method: route.method, headers: headers ?? sample.headers ?? {} },
    ...(given !== undefined && { body: given }),
    ...(key !== undefined && { key }),
  })
}

/** How often the audit log tells of a change that whoever asks made, or that was made in the workspace that it is about. */
async function changesIn({ team, asker, sample }: World): Promise<number> {
  const { rows } = await pool.query<{ changes: number }>(
    'select count(*)::integer as changes from audit where workspace_id = any ($1) or actor = $2',
    [[team.workspaceId, sample.workspaceId ?? team.workspaceId], `member ${asker.personId}`],
  )
  return rows[0]?.changes ?? assert.fail()
}

const lasting = ({ json: { secret: _, ...rest } }: Told) => rest

describe('every change of the account API over 3 processes', () => {
  for (const route of WRITES) {
    const { operationId, answer } = route
    const status = answer.status ?? 200

    it(`${operationId} is made once, however often it is sent with its key, and then told again`, async () => {
      for (let round = 0; round < ROUNDS; round += 1) {
        const world = await worldOf(route)
        const key = ids.next()
        const before = await changesIn(world)
        const told = await atOnce((site) => send(site, route, world, { key }), timesOf(route))
        const first = told.find((one) => !isReplay(one) && one.status === status) ?? assert.fail(codesOf(told).join())
        // What asks a platform is done before it is noted: who comes in between finds it done.
        const others = told.filter((one) => one !== first && !(route.isOutside === true && one.status === 404))
        for (const one of others)
          assert.deepEqual([one.status, isReplay(one), lasting(one)], [status, true, lasting(first)])
        const made = (await changesIn(world)) - before
        assert.equal(made, 1, `${made} rows of the audit log`)
        const again = await send(anySite(round), route, world, { key })
        assert.deepEqual([again.status, isReplay(again), lasting(again)], [status, true, lasting(first)])
        assert.ok([...others, again].every(({ json }) => (json.secret ?? null) === null))
        // With another body it is another change.
        const other = await send(siteUrl, route, world, { key, body: { something: 'else' } })
        assert.ok([422, 403, 404].includes(other.status), other.text)
        assert.equal((await changesIn(world)) - before, made)
      }
    })

    if (isUpdate(route))
      it(`${operationId} is refused without If-Match and with an old one; of many with the same ETag, exactly one is made`, async () => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const world = await worldOf(route)
          const before = await changesIn(world)
          const none = await send(siteUrl, route, world, { headers: {} })
          assert.deepEqual([none.status, none.json.code], [428, 'precondition_required'])
          const old = await send(siteUrl, route, world, { headers: { 'if-match': '"old"' } })
          assert.deepEqual([old.status, old.json.code], [412, 'precondition_failed'])
          assert.equal(await changesIn(world), before)
          const told = await atOnce((site) => send(site, route, world))
          assert.equal(told.filter((one) => one.status === status).length, 1, codesOf(told).join())
          assert.ok(
            told.every((one) => one.status === status || one.json.code === 'precondition_failed'),
            codesOf(told).join(),
          )
          assert.equal((await changesIn(world)) - before, 1)
        }
      })
  }

  it('are all of them', () => {
    assert.ok(WRITES.length >= 18, `${WRITES.length}`)
    assert.equal(WRITES.filter(isUpdate).length, 6)
    recordProof(PROOF, 'every change is made once', {
      ...{ changes: WRITES.length, updates: WRITES.filter(isUpdate).length, rounds: ROUNDS },
      ...{ at_once: AT_ONCE, processes: sites.length, twice: 0 },
    })
  })
})

/** Nobody answers: the connection broke. An answer that is not in the document is no such thing. */
function lostWithIt(error: unknown): null {
  if (error instanceof Error && 'code' in error) return null
  throw error
}

describe('those who know nothing of each other, over 3 processes', () => {
  it('ask to close a workspace and cancel it: one of them each time, and calls are taken as it stands', async () => {
    const figures = { rounds: ROUNDS, at_once: AT_ONCE, asked: 0, canceled: 0 }
    const team = await makeTeam(pool, ['owner'])
    const path = `/workspaces/${team.workspaceId}/closure`
    const owners = [known(team.of('owner')), known(await join(pool, team.workspaceId))]
    const ownerAt = (at: number) => owners[at % owners.length] ?? assert.fail()
    const act = (method: 'POST' | 'DELETE') => (site: string, at: number) =>
      ask(site, ownerAt(at), path, {
        ...{ method, headers: { 'if-match': '*' }, ...(method === 'POST' && { body: { name: 'Customer' } }) },
      })
    const stateOf = async () =>
      (
        await pool.query(
          `select (select count(*)::integer from closures where workspace_id = w.id and state = 'asked') as closing,
             (select count(*)::integer from closures where workspace_id = w.id) as asked,
             (select count(*)::integer from audit where workspace_id = w.id and action = 'workspace.closure_asked') as told,
             (select count(*)::integer from audit where workspace_id = w.id and action = 'workspace.closure_canceled') as canceled,
             (select count(*)::integer from accounts where id in (w.live_account_id, w.test_account_id) and active) as active
           from workspaces w where w.id = $1`,
          [team.workspaceId],
        )
      ).rows[0]
    for (let round = 1; round <= ROUNDS; round += 1) {
      const asked = await atOnce(act('POST'))
      assert.equal(asked.filter(({ status }) => status === 201).length, 1, codesOf(asked).join())
      assert.ok(asked.every(({ status, json }) => status === 201 || json.code === 'workspace_closing'))
      assert.deepEqual(await stateOf(), { closing: 1, asked: round, told: round, canceled: round - 1, active: 0 })
      const canceled = await atOnce(act('DELETE'))
      assert.equal(canceled.filter(({ status }) => status === 200).length, 1, codesOf(canceled).join())
      assert.ok(canceled.every(({ status }) => status === 200 || status === 404))
      assert.deepEqual(await stateOf(), { closing: 0, asked: round, told: round, canceled: round, active: 2 })
      // Three a day are allowed.
      await pool.query("update closures set asked_at = asked_at - interval '2 days' where workspace_id = $1", [
        team.workspaceId,
      ])
      figures.asked += 1
      figures.canceled += 1
    }
    // Both at the same time: whichever came last, accounts are active where nobody has asked, and nowhere else.
    const all = await atOnce((site, at) => act(at % 2 === 0 ? 'POST' : 'DELETE')(site, at))
    const { closing, active, asked, canceled } = await stateOf()
    assert.deepEqual([active, asked - canceled], [closing === 1 ? 0 : 2, closing], codesOf(all).join())
    recordProof(PROOF, 'one asks to close it, and one cancels it', figures)
  })

  it('ask for exports: ten a day and no more', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owners = [known(team.of('owner')), known(await join(pool, team.workspaceId))]
    const told = await atOnce(
      (site, at) =>
        ask(site, owners[at % 2] ?? assert.fail(), `/workspaces/${team.workspaceId}/exports`, { method: 'POST' }),
      14,
    )
    assert.equal(told.filter(({ status }) => status === 201).length, 10, codesOf(told).join())
    assert.equal(told.filter(({ json }) => json.code === 'rate_limit_exceeded').length, 4)
    const { rowCount } = await pool.query('select from exports where workspace_id = $1', [team.workspaceId])
    assert.equal(rowCount, 10)
  })

  it('ask for higher limits: one request is open; set a budget: there is one; invite an address: one is open', async () => {
    const team = await makeTeam(pool, ['owner'])
    const path = `/workspaces/${team.workspaceId}`
    const owners = [known(team.of('owner')), known(await join(pool, team.workspaceId))]
    const post = (where: string, body: unknown, times = AT_ONCE) =>
      atOnce((site, at) => ask(site, owners[at % 2] ?? assert.fail(), path + where, { method: 'POST', body }), times)
    const wanted = { requests_per_minute: 9, tokens_per_minute: 9, targets: ['rerank'], use_case: 'Search.' }
    const quota = await post('/quota-requests', wanted)
    assert.equal(quota.filter(({ status }) => status === 201).length, 1, codesOf(quota).join())
    assert.ok(quota.every(({ status }) => status === 201 || status === 409))
    const budgets = await post('/budgets?mode=test', { period: 'day', amount_usd: '3', tag: 'team=ads' })
    assert.deepEqual(new Set(codesOf(budgets)), new Set([201]))
    assert.equal(new Set(budgets.map(({ json }) => json.id)).size, 1)
    const invited = await post('/invitations', { email: 'raced@harbour.example', role: 'viewer' }, INVITING)
    assert.deepEqual(new Set(codesOf(invited)), new Set([201]))
    const open = await ask(siteUrl, owners[0] ?? null, `${path}/invitations`)
    assert.equal(Object(open.json.data).length, 1)
  })

  it('leave: of two owners who put out or demote each other, one stays an owner', async () => {
    for (let round = 0; round < 3 * ROUNDS; round += 1) {
      const team = await makeTeam(pool, ['owner'])
      const pair = [known(team.of('owner')), known(await join(pool, team.workspaceId))]
      const told = await atOnce((site, at) => {
        const [who, whom] = at % 2 === 0 ? pair : pair.toReversed()
        const path = `/workspaces/${team.workspaceId}/members/${whom?.memberId}`
        return at % 4 < 2
          ? ask(site, who ?? null, path, { method: 'DELETE' })
          : ask(site, who ?? null, path, {
              ...{ method: 'PATCH', body: { role: 'viewer' }, headers: { 'if-match': '*' } },
            })
      })
      const { rows } = await pool.query(
        "select count(*)::integer as owners from members where workspace_id = $1 and role = 'owner'",
        [team.workspaceId],
      )
      assert.equal(rows[0].owners, 1, codesOf(told).join())
    }
  })

  it('lose a process by kill -9 while they ask to close workspaces and for exports: each is asked for once', async () => {
    const teams: Team[] = []
    const figures = { told_before: 0, lost: 0 }
    const askAll = (site: string, { workspaceId, of }: Team) => {
      const owner = known(of('owner'))
      const whole = `/workspaces/${workspaceId}`
      return [
        ask(site, owner, `${whole}/exports`, { method: 'POST', key: 'export' }),
        ask(site, owner, `${whole}/closure`, {
          ...{ method: 'POST', key: 'closure', body: { name: 'Customer' }, headers: { 'if-match': '*' } },
        }),
      ]
    }
    // Where all were told already when the process died, the next process is killed: there are two.
    for (const victim of house.more.toReversed()) {
      if (figures.lost > 0) break
      const asking = await Promise.all(Array.from({ length: count({ full: 30, reduced: 6 }) }, () => makeTeam(pool)))
      teams.push(...asking)
      const first = asking.flatMap((team) => askAll(victim.siteUrl, team)).map((one) => one.catch(lostWithIt))
      // In the middle of them: some are done, some are not, of some nobody knows.
      await Promise.race(first)
      await victim.kill()
      for (const told of await Promise.all(first)) {
        if (told === null) figures.lost += 1
        else if (told.status === 201) figures.told_before += 1
      }
    }
    sometimes(figures.lost > 0, 'a request that was under way when a process was killed')
    for (const team of teams)
      for (const told of await Promise.all(askAll(siteUrl, team))) assert.equal(told.status, 201, told.text)
    const { rows } = await pool.query(
      `select count(*)::integer as all, count(*) filter (where exports = 1 and closures = 1 and asked = 2 and active = 0)::integer as once from workspaces w
       cross join lateral (select (select count(*) from exports where workspace_id = w.id) as exports, (select count(*) from closures where workspace_id = w.id) as closures,
         (select count(*) from audit where workspace_id = w.id and action in ('export.asked', 'workspace.closure_asked')) as asked,
         (select count(*) from accounts where id in (w.live_account_id, w.test_account_id) and active) as active) found
       where w.id = any ($1)`,
      [teams.map(({ workspaceId }) => workspaceId)],
    )
    assert.deepEqual(rows, [{ all: teams.length, once: teams.length }])
    recordProof(PROOF, 'asked for once through kill -9', { workspaces: teams.length, ...figures, twice: 0 })
  })
})
