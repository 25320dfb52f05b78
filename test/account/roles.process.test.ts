import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { judge } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { answerMember } from '../../server/src/account/guard.ts'
import type { AccountParts } from '../../server/src/account/parts.ts'
import type { AccountRoute } from '../../server/src/account/route.ts'
import { ACCOUNT_ROUTES } from '../../server/src/account/routes.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { may, ROLES } from '../../server/src/kernel/role.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { ACTOR, ids, makeKey } from '../acceptance/installation.ts'
import { connectPeople } from '../identity/people/world.ts'
import { type Asker, ask, join, letIn, listIn, MEMBER, makeTeam, plainProblem, startHouse, type Told } from './house.ts'
import { SAMPLES, type Sample } from './samples.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl } = house
after(house.stop)

const team = await makeTeam(pool, ['owner'])
const foreign = await makeTeam(pool, ['owner'])
const stranger = foreign.of('owner')
/** Looks like an id, and is nothing's. */
const ABSENT = '01a1e0c2-0000-7000-8000-00000000ffff'
const ROUNDS = count({ full: 200, reduced: 1 })

function pathOf({ path }: AccountRoute, sample: Sample, workspaceId = sample.workspaceId ?? team.workspaceId): string {
  const { params = {}, query = '' } = sample
  return (
    path.replaceAll(/\{(\w+)\}/g, (_, name) => (name === 'workspace_id' ? workspaceId : (params[name] ?? ABSENT))) +
    query
  )
}

async function sampleOf({ operationId }: AccountRoute, asker: Asker): Promise<Sample> {
  const make = SAMPLES[operationId] ?? assert.fail(`${operationId} has no sample`)
  return make({ house, team, asker })
}

function send(
  route: AccountRoute,
  who: Parameters<typeof ask>[1],
  sample: Sample,
  workspaceId?: string,
): Promise<Told> {
  const { body, headers } = sample
  const { method } = route
  return ask(siteUrl, who, pathOf(route, sample, workspaceId), {
    ...{ method, ...(method !== 'GET' && body !== undefined && { body }), ...(headers !== undefined && { headers }) },
  })
}

/** Who belongs to a workspace, and whose it is, is decided by people. */
const BY_PEOPLE = [
  ...['create_workspace', 'update_member', 'remove_member', 'transfer_workspace', 'create_invitation'],
  ...['revoke_invitation', 'ask_closure', 'cancel_closure'],
]
/** About no money: a client sees it whichever money it is for. */
const BOTH = [
  ...['get_me', 'list_workspaces', 'get_workspace', 'list_members', 'get_member', 'list_invitations'],
  'list_webhooks',
]
/** What is of test money, or of both, as it is made here: not there for a client for live money. */
const ABSENT_FOR_LIVE = ['get_key', 'get_budget', 'get_request', 'get_export', 'download_export']

const routeNamed = (operationId: string) =>
  ACCOUNT_ROUTES.find((one) => one.operationId === operationId) ?? assert.fail(operationId)

/** A sample about live money: of a live key or budget where it is about one, and in live mode where the query names it. */
async function liveSampleOf(route: AccountRoute, owner: Asker): Promise<Sample> {
  const { body, query = '', params = {} } = await sampleOf(route, owner)
  const { key_id: keyId, budget_id: budgetId, ...others } = params
  const key = keyId === undefined ? null : await makeKey(pool, team.workspaceId, { mode: 'live' })
  const budget =
    budgetId === undefined
      ? null
      : await setBudget({ pool }, MEMBER, {
          ...{ workspaceId: team.workspaceId, mode: 'live', kind: 'tag', subject: 'team=live', label: 'team=live' },
          budget: { period: 'month', amount: usd('5') },
        })
  return {
    params: { ...others, ...(key && { key_id: key.keyId }), ...(budget && { budget_id: budget.id }) },
    query: query.replace('mode=test', 'mode=live'),
    ...(body !== undefined && { body }),
    headers: { 'if-match': '*' },
  }
}

function statusForTestMoney(operationId: string, { params = {}, query = '' }: Sample): number {
  if (BOTH.includes(operationId)) return 200
  if (operationId === 'list_exports') return 200
  if (operationId === 'create_export') return 201
  if (query.includes('mode=live')) return 403
  // Live things, and exports of both modes, are as absent as what never was.
  return ['key_id', 'budget_id', 'export_id'].some((name) => name in params) ? 404 : 403
}

const isOfWorkspace = ({ path }: AccountRoute) => path.includes('{workspace_id}')

describe('who may do what: every role at every route', () => {
  for (const route of ACCOUNT_ROUTES)
    for (const role of ROLES) {
      const { need, operationId, answer } = route
      const isAllowed = need === 'nothing' || need === 'sign_in' || may(role, need)
      it(`${operationId}: ${role} ${isAllowed ? 'may' : 'may not'}`, async () => {
        const asker = await join(pool, team.workspaceId, role)
        const told = await send(route, asker, await sampleOf(route, asker))
        assert.equal(told.status, isAllowed ? (answer.status ?? 200) : 403, told.text)
        if (!isAllowed) assert.match(String(told.json.detail), new RegExp(`Your role is ${role}`))
      })
    }

  it('removes others by those alone who manage members, and owners by owners alone', async () => {
    const path = (id: string) => `/workspaces/${team.workspaceId}/members/${id}`
    for (const [by, whom, status] of [
      ['developer', 'viewer', 403],
      ['viewer', 'viewer', 403],
      ['admin', 'viewer', 200],
      ['admin', 'owner', 403],
      ['owner', 'owner', 200],
    ] as const) {
      const [actor, target] = [await join(pool, team.workspaceId, by), await join(pool, team.workspaceId, whom)]
      const told = await ask(siteUrl, actor, path(target.memberId), { method: 'DELETE' })
      assert.equal(told.status, status, `${by} removes ${whom}: ${told.text}`)
    }
  })
})

describe('who asks', () => {
  it('is nobody without a session or a token: 401 at every route that is not open', async () => {
    for (const route of ACCOUNT_ROUTES.filter(({ need }) => need !== 'nothing')) {
      const told = await send(route, null, {})
      assert.deepEqual([told.status, told.json.code], [401, 'sign_in_required'], route.operationId)
    }
  })

  it('is not known by an API key, an unknown token, or one for another resource', async () => {
    const other = await letIn({ pool, siteUrl: 'https://other.example' }, team.workspaceId)
    for (const text of [team.secret, other.token, 'fb_at_nothing', 'x'.repeat(50)]) {
      const told = await ask(siteUrl, { headers: { authorization: `Bearer ${text}` } }, '/me')
      assert.deepEqual([told.status, told.json.code], [401, 'invalid_credential'], told.text)
    }
  })

  it('changes nothing from a page of somebody else, nor without the form token', async () => {
    const { headers } = await join(pool, team.workspaceId)
    for (const wrong of [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': '' },
      { origin: 'https://evil.example' },
      { 'x-form-token': '' },
      { 'x-form-token': 'A'.repeat(43) },
    ])
      for (const route of ACCOUNT_ROUTES.filter(({ need, method }) => need !== 'nothing' && method !== 'GET')) {
        const told = await send(route, { headers: { ...headers, ...wrong } }, {})
        assert.deepEqual([told.status, told.json.code], [403, 'cross_site_refused'], route.operationId)
      }
    const { origin: _, 'sec-fetch-site': __, ...noBrowser } = headers
    const [route] = ACCOUNT_ROUTES.filter(({ need, method }) => need !== 'nothing' && method !== 'GET')
    const told = await send(route ?? assert.fail(), { headers: noBrowser }, {})
    assert.match(String(told.json.detail), /The header Origin is missing/)
    const own = await ask(siteUrl, { headers }, '/me')
    assert.equal(own.json.form_token, headers['x-form-token'])
  })

  it('is a client with account.read, which reads at every route as the owner may who let it in, and changes nothing at any', async () => {
    const owner = await join(pool, team.workspaceId)
    const bounds = { mode: 'live', scopes: ['account.read'], personId: owner.personId } as const
    const client = await letIn(house, team.workspaceId, bounds)
    for (const route of ACCOUNT_ROUTES.filter(({ need }) => need !== 'nothing')) {
      const { method, operationId } = route
      const sample = method === 'GET' ? await sampleOf(route, owner) : {}
      const told = await send(route, client, {
        ...sample,
        ...(sample.query?.startsWith('?') && { query: sample.query.replace('mode=test', 'mode=live') }),
      })
      const expected = method !== 'GET' ? 403 : ABSENT_FOR_LIVE.includes(operationId) ? 404 : 200
      assert.equal(told.status, expected, `${operationId}: ${told.text}`)
    }
  })

  it('is a client with account.manage for live money, which changes at no route who belongs to a workspace, or who owns it', async () => {
    const owner = await join(pool, team.workspaceId)
    const client = await letIn(house, team.workspaceId, { mode: 'live', personId: owner.personId })
    for (const operationId of BY_PEOPLE) {
      const route = routeNamed(operationId)
      const sample = await sampleOf(route, owner)
      const told = await send(route, client, { ...sample, headers: { 'if-match': '*' } }, team.workspaceId)
      assert.deepEqual([told.status, told.json.code], [403, 'forbidden'], `${operationId}: ${told.text}`)
    }
    const managing = ACCOUNT_ROUTES.filter(({ need }) => need === 'owners.manage' || need === 'members.manage')
    for (const { operationId } of managing) assert.ok(BY_PEOPLE.includes(operationId), operationId)
  })

  it('is a client for test money, which at every route sees and changes nothing that is about live money', async () => {
    const owner = await join(pool, team.workspaceId)
    const client = await letIn(house, team.workspaceId, { personId: owner.personId })
    for (const route of ACCOUNT_ROUTES.filter(({ need }) => need !== 'nothing')) {
      const { operationId } = route
      const live = await liveSampleOf(route, owner)
      const told = await send(route, client, live, team.workspaceId)
      assert.equal(told.status, statusForTestMoney(operationId, live), `${operationId}: ${told.text}`)
      if (told.status === 403) assert.equal(told.json.code, 'forbidden', operationId)
    }
    const { rows } = await pool.query("select action from audit where origin->>'grant' = $1", [client.id])
    assert.deepEqual(rows, [{ action: 'export.asked' }])
    const [own] = listIn(await ask(siteUrl, client, `/workspaces/${team.workspaceId}/exports`))
    assert.equal(own?.mode, 'test')
  })

  it('is a client within what it was let into: one workspace, one mode, reading or changing', async () => {
    const owner = await join(pool, team.workspaceId)
    const reads = await letIn(house, team.workspaceId, { scopes: ['account.read'], personId: owner.personId })
    const manages = await letIn(house, team.workspaceId, { personId: owner.personId })
    const path = `/workspaces/${team.workspaceId}/keys`
    assert.equal((await ask(siteUrl, reads, path)).status, 200)
    const refused = await ask(siteUrl, reads, path, { method: 'POST', body: { name: 'a key' } })
    assert.deepEqual([refused.status, refused.json.code], [403, 'forbidden'])
    const made = await ask(siteUrl, manages, path, { method: 'POST', body: { name: 'a key' } })
    assert.deepEqual([made.status, made.json.mode], [201, 'test'])
    assert.equal((await ask(siteUrl, manages, `${path}?mode=live`)).status, 403)
    // A live key of the same workspace is not there for it.
    const live = await ask(siteUrl, owner, `${path}?mode=live`, { method: 'POST', body: { name: 'live' } })
    assert.equal((await ask(siteUrl, owner, `${path}/${live.json.id}`)).status, 200)
    assert.equal((await ask(siteUrl, manages, `${path}/${live.json.id}`)).status, 404)
    // Nor is it let in from elsewhere than its grant says.
    const bounds = await letIn(house, team.workspaceId, { personId: owner.personId })
    await pool.query("update grants set allowed_networks = '{198.51.100.0/24}' where id = $1", [bounds.id])
    assert.equal((await ask(siteUrl, bounds, '/me')).json.code, 'address_not_allowed')
    await pool.query('update grants set allowed_networks = null where id = $1', [bounds.id])
    assert.equal((await ask(siteUrl, bounds, '/me')).status, 200)
    // Neither is another workspace of the same person.
    await pool.query('insert into members (id, workspace_id, email, role, person_id) values ($1, $2, $3, $4, $5)', [
      ...['01a1e0c2-0000-7000-8000-0000000000aa', foreign.workspaceId, owner.email, 'owner', owner.personId],
    ])
    assert.equal((await ask(siteUrl, owner, `/workspaces/${foreign.workspaceId}`)).status, 200)
    assert.equal((await ask(siteUrl, manages, `/workspaces/${foreign.workspaceId}`)).status, 404)
    assert.deepEqual(Object(await ask(siteUrl, manages, '/workspaces')).json.data.length, 1)
    assert.equal((await ask(siteUrl, manages, '/workspaces', { method: 'POST', body: { name: 'x' } })).status, 403)
    // What it may ends with the role of whoever let it in.
    await ask(
      siteUrl,
      await join(pool, team.workspaceId),
      `/workspaces/${team.workspaceId}/members/${owner.memberId}`,
      {
        ...{ method: 'PATCH', body: { role: 'viewer' }, headers: { 'if-match': '*' } },
      },
    )
    assert.equal((await ask(siteUrl, manages, path)).status, 401)
  })
})

describe('what is somebody else’s', () => {
  it('answers as what is not there: every route of another workspace', async () => {
    for (const route of ACCOUNT_ROUTES.filter(isOfWorkspace)) {
      const sample = { body: {}, headers: { 'if-match': '*' } }
      const [theirs, absent] = [await send(route, stranger, sample), await send(route, stranger, sample, ABSENT)]
      assert.equal(theirs.status, 404, route.operationId)
      assert.equal(plainProblem(theirs), plainProblem(absent), route.operationId)
    }
  })

  it('answers as what is not there: every id of another workspace below one’s own', async () => {
    const owner = team.of('owner')
    for (const route of ACCOUNT_ROUTES.filter(({ path }) => path.split('{').length > 2)) {
      // Ids of this team, asked for by the owner of the other one below the other one.
      const sample = await sampleOf(route, owner)
      const { params = {} } = sample
      assert.notDeepEqual(params, {}, route.operationId)
      const asked = { ...sample, ...(route.method === 'PATCH' && { headers: { 'if-match': '*' } }) }
      const theirs = await send(route, stranger, asked, foreign.workspaceId)
      const absent = await send(route, stranger, { ...asked, params: {} }, foreign.workspaceId)
      assert.equal(theirs.status, 404, `${route.operationId} ${theirs.text}`)
      assert.equal(plainProblem(theirs), plainProblem(absent), route.operationId)
    }
  })
})

describe('what is somebody else’s, in time too', () => {
  /** The routes themselves on the same database, for whom authentication has found; what they send to PostgreSQL is kept. */
  const world = connectPeople(database.url)
  after(() => world.close())
  const sent: string[] = []
  const parts = {
    ...{ pool: world.pool, ids, people: world.people, time: systemClock, sendMail: async () => {}, siteUrl },
    ...{ turns: { take: (_: unknown, __: unknown, work: () => unknown) => work(), countWrite() {} } },
    authenticate: async () => ({ personId: stranger.personId, by: ACTOR, formToken: null, granted: null }),
  } as unknown as AccountParts

  const statementsOf = async (route: AccountRoute, sample: Sample, workspaceId: string) => {
    const asked: Readonly<Record<string, string>> = { ...sample.headers, 'idempotency-key': ids.next() }
    const params = { ...sample.params, workspace_id: workspaceId }
    const query = Object.fromEntries(new URLSearchParams(sample.query))
    const { body = {} } = sample
    sent.length = 0
    const startedMs = performance.now()
    await assert.rejects(
      answerMember(parts, route, {
        ...{
          id: ids.next(),
          visitor: visitorOf('203.0.113.9'),
          method: route.method,
          path: route.path,
          params,
          query,
          readBody: () => body,
        },
        header: (name) => asked[name],
      }),
      { code: 'resource_not_found' },
      route.operationId,
    )
    return { statements: [...sent], ms: performance.now() - startedMs }
  }

  const ANY = { 'if-match': '*' }
  const pairs = async (route: AccountRoute) => {
    const nowhere = { sample: { headers: ANY }, workspaceId: ABSENT }
    const ofWorkspace = [{ sample: { headers: ANY }, workspaceId: team.workspaceId }, nowhere] as const
    if (route.path.split('{').length <= 2) return [ofWorkspace]
    const sample = await sampleOf(route, team.of('owner'))
    const absent = Object.fromEntries(Object.keys(sample.params ?? {}).map((name) => [name, ABSENT]))
    const own = { workspaceId: foreign.workspaceId }
    const headers = { ...sample.headers, ...ANY }
    return [
      ofWorkspace,
      [
        { sample: { ...sample, headers }, ...own },
        { sample: { ...sample, headers, params: absent }, ...own },
      ] as const,
    ]
  }

  it('costs the same statements as what is not there: every route, by workspace and by id', async () => {
    const send: (...asked: unknown[]) => unknown = pg.Client.prototype.query
    Object.assign(pg.Client.prototype, {
      query(this: pg.Client, ...asked: unknown[]): unknown {
        sent.push(typeof asked[0] === 'string' ? asked[0] : String(Object(asked[0]).text))
        return send.apply(this, asked)
      },
    })
    const [theirMs, absentMs]: [number[], number[]] = [[], []]
    const median = (all: readonly number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN
    const shareOf = (theirs: readonly number[], absent: readonly number[]) =>
      Math.abs(median(theirs) / median(absent) - 1)
    const shares: { readonly operation: string; readonly share: number }[] = []
    try {
      for (const route of ACCOUNT_ROUTES.filter(isOfWorkspace))
        for (const [theirs, absent] of await pairs(route)) {
          const from = theirMs.length
          for (let round = 0; round < ROUNDS; round += 1) {
            const one = await statementsOf(route, theirs.sample, theirs.workspaceId)
            const other = await statementsOf(route, absent.sample, absent.workspaceId)
            assert.ok(one.statements.length > 0, route.operationId)
            assert.deepEqual(one.statements, other.statements, route.operationId)
            theirMs.push(one.ms)
            absentMs.push(other.ms)
          }
          shares.push({ operation: route.operationId, share: shareOf(theirMs.slice(from), absentMs.slice(from)) })
        }
    } finally {
      Object.assign(pg.Client.prototype, { query: send })
    }
    const [largest] = shares.toSorted((a, b) => b.share - a.share)
    recordProof('account-foreign', 'the route that differs most', { ...largest, routes: shares.length, rounds: ROUNDS })
    judge(
      'account-foreign',
      'time of what is somebody else’s beside what is not there',
      { unit: 'share', atMost: 0.1 },
      [shareOf(theirMs, absentMs)],
    )
  })
})
