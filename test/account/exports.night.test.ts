import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { request } from 'undici'
import { startGateway } from '../../harness/gateways.ts'
import { recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { AS_DOWNLOADED } from '../../server/src/account/export-lines.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { inTransaction, OpenTransaction } from '../../server/src/storage/transaction.ts'
import { askExport, findExport } from '../../server/src/workspaces/exports.ts'
import { ACTOR, call, chargesOf, ids } from '../acceptance/installation.ts'
import { openSession } from '../ledger/session.ts'
import { type Asker, ask, letIn, listIn, makeTeam, signedIn, startHouse, type Team, type Told } from './house.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway } = house
after(house.stop)

const exportsOf = ({ workspaceId }: Team) => `/workspaces/${workspaceId}/exports`
type Who = Pick<Asker, 'headers'>

async function makeExport(team: Team, who: Who = team.of('owner')): Promise<string> {
  const asked = await ask(siteUrl, who, exportsOf(team), { method: 'POST' })
  assert.equal(asked.status, 201, asked.text)
  const path = `${exportsOf(team)}/${asked.json.id}`
  const isReady = async () => (await ask(siteUrl, who, path)).json.state === 'ready'
  await until(isReady, PATIENCE_MS, 'that it is ready')
  return path
}

type Line = Readonly<Record<string, unknown>>

/** Its lines, as somebody reads them who wants to know whether they have all of it. */
function linesOf(text: string): readonly Line[] {
  const texts = text.split('\n').slice(0, -1)
  const last = JSON.parse(texts.at(-1) ?? '{}')
  assert.equal(last.type, 'end')
  const body = text.slice(0, text.lastIndexOf('{"type":"end"'))
  assert.equal(createHash('sha256').update(body).digest('hex'), last.sha256)
  const lines: Line[] = texts.slice(0, -1).map((one) => JSON.parse(one))
  const counts: Record<string, number> = {}
  for (const { type } of lines) counts[String(type)] = (counts[String(type)] ?? 0) + 1
  assert.deepEqual(last.counts, counts)
  return lines
}

/** Those that are the same in every download. */
const lasting = (text: string) =>
  text
    .split('\n')
    .filter(
      (one) => !AS_DOWNLOADED.some((type) => one.startsWith(`{"type":"${type}"`)) && !one.startsWith('{"type":"end"'),
    )
    .join('\n')

async function callFor(team: Team) {
  const headers = { 'x-farebox-end-user': 'zoe', 'x-farebox-tags': 'team=search' }
  assert.equal((await call(gateway.url, team.secret, 'tag_detail', '', { headers })).status, 200)
}

/** More than sockets take on the way. */
const ENTRIES = 10_000

async function fillAudit(workspaceId: string) {
  await pool.query(
    `insert into audit (actor, action, workspace_id, subject, before, after, origin)
     select 'operator test', 'test.made', $1, n::text, null, jsonb_build_object('text', repeat('x', 2000)), '{}'
     from generate_series(1, $2::integer) n`,
    [workspaceId, ENTRIES],
  )
}

const begin = (path: string, { headers }: Who) => request(`${siteUrl}/account/v1${path}/data`, { headers })

/** What comes of a download during whose first bytes something happens, and whether it breaks off. */
async function readAfter(path: string, who: Who, happens: () => Promise<unknown>) {
  const { statusCode, body } = await begin(path, who)
  assert.equal(statusCode, 200)
  let part = ''
  try {
    for await (const chunk of body) {
      if (part === '') await happens()
      part += String(chunk)
    }
  } catch {
    return { part, isBroken: true }
  }
  return { part, isBroken: false }
}

describe('an export', () => {
  it('has everything of a workspace up to a moment, and the same in every download; never a secret', async () => {
    const team = await makeTeam(pool, ['owner', 'viewer'])
    const { workspaceId, accountId } = team
    const owner = team.of('owner')
    for (let at = 0; at < 3; at += 1) await callFor(team)
    await setBudget({ pool }, ACTOR, {
      ...{ workspaceId, mode: 'test', kind: 'tag', subject: 'team=search', label: 'team=search' },
      budget: { period: 'month', amount: usd('5') },
    })
    await ask(siteUrl, owner, `/workspaces/${workspaceId}/quota-requests`, {
      method: 'POST',
      body: { requests_per_minute: 9, tokens_per_minute: 9, targets: ['rerank'], use_case: 'Search.' },
    })
    // Usage is told to the second.
    await delay(1_000)
    const path = await makeExport(team)
    const first = await ask(siteUrl, owner, `${path}/data`)
    assert.equal(first.status, 200)
    assert.equal(first.headers.get('content-type'), 'application/x-ndjson')
    const lines = linesOf(first.text)
    const of = (type: string) => lines.filter((one) => one.type === type)
    const spent = [...(await chargesOf(pool, accountId)).values()].reduce((sum, one) => sum + one, 0n)
    const sum = (type: string, name: string) =>
      of(type).reduce((all, one) => all + usd(String(Object(one[name]).usd)), 0n)
    assert.equal(of('charge').length, 3)
    assert.equal(sum('charge', 'amount'), spent)
    assert.equal(sum('usage', 'charged'), spent)
    assert.deepEqual(
      of('charge').map(({ end_user: user, tags }) => [user, tags]),
      Array.from({ length: 3 }, () => ['zoe', ['team=search']]),
    )
    assert.deepEqual(
      of('entry').map(({ kind }) => kind),
      ['payment'],
    )
    assert.deepEqual(
      of('key').map(({ id }) => id),
      [team.keyId],
    )
    assert.deepEqual(
      of('budget').map(({ subject }) => subject),
      ['team=search'],
    )
    assert.deepEqual(
      of('member')
        .map(({ email }) => email)
        .toSorted(),
      [owner.email, team.of('viewer').email].toSorted(),
    )
    assert.deepEqual(
      of('quota_request').map(({ use_case: text }) => text),
      ['Search.'],
    )
    const told = listIn(await ask(siteUrl, owner, `/workspaces/${workspaceId}/audit?limit=100`))
    assert.deepEqual(
      of('audit').map(({ id }) => id),
      told.slice(1).map(({ id }) => id),
    )
    assert.equal(told[0]?.action, 'export.asked')
    const { rows } = await pool.query<{ hash: Buffer }>('select hash from api_keys where id = $1', [team.keyId])
    const hash = rows[0]?.hash ?? assert.fail()
    for (const secret of [team.secret, hash.toString('hex'), hash.toString('base64'), hash.toString('base64url')])
      assert.ok(!first.text.includes(secret))

    // What happens later is in none, but for what is told as it is.
    await callFor(team)
    await ask(siteUrl, owner, `/workspaces/${workspaceId}`, {
      ...{ method: 'PATCH', body: { name: 'Later' }, headers: { 'if-match': '*' } },
    })
    const second = await ask(siteUrl, owner, `${path}/data`)
    assert.notEqual(second.text, first.text)
    assert.equal(lasting(second.text), lasting(first.text))
    assert.equal(linesOf(second.text).find(({ type }) => type === 'workspace')?.name, 'Later')
    assert.deepEqual(listIn(await ask(siteUrl, owner, exportsOf(team))).length, 1)
    await pool.query('update exports set expires_at = clock_timestamp() where workspace_id = $1', [workspaceId])
    assert.equal((await ask(siteUrl, owner, path)).json.state, 'expired')
    assert.equal((await ask(siteUrl, owner, `${path}/data`)).status, 404)
  })

  it('tells of grants, invitations, linked accounts, tasks and promotional credit, and never what is sealed', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId, accountId, keyId } = team
    const owner = team.of('owner')
    const client = await letIn(house, workspaceId, { personId: owner.personId })
    const invited = await ask(siteUrl, owner, `/workspaces/${workspaceId}/invitations`, {
      ...{ method: 'POST', body: { email: 'new@example.com', role: 'viewer' } },
    })
    assert.equal(invited.status, 201, invited.text)
    const [linkId, taskId] = [ids.next(), ids.next()]
    await pool.query(
      `insert into link_sessions (credential_id, id, upstream_id, username, scopes, wrapped_key, tokens, access_until, can_refresh)
       values ($1, $2, $3, 'zoe', '{read}', 'sealed-key', 'sealed-tokens', clock_timestamp() + interval '1 day', false)`,
      [keyId, linkId, ids.next()],
    )
    await pool.query(
      `insert into tasks (id, account_id, credential_id, model, state, code, created_at, ended_at)
       values ($1, $2, $3, 'a/model', 'FAILED', 'no', clock_timestamp(), clock_timestamp())`,
      [taskId, accountId, keyId],
    )
    await pool.query(
      "insert into entries (id, account_id, kind, credited, promo) values ($1, $2, 'promotion', 0, 3000000000)",
      [ids.next(), accountId],
    )
    const path = await makeExport(team)
    const { text } = await ask(siteUrl, owner, `${path}/data`)
    const one = (wanted: string, at = 0) =>
      linesOf(text).filter(({ type }) => type === wanted)[at] ?? assert.fail(wanted)
    assert.deepEqual(
      [one('grant').id, one('grant').mode, one('grant').oauth_scopes, one('grant').is_active],
      [client.id, 'test', ['account.manage'], true],
    )
    assert.deepEqual([one('invitation').id, one('invitation').email], [invited.json.id, 'new@example.com'])
    assert.deepEqual([one('link').id, one('link').credential_id, one('link').username], [linkId, keyId, 'zoe'])
    assert.deepEqual([one('task').id, one('task').status], [taskId, 'FAILED'])
    assert.deepEqual([one('entry', 1).kind, Object(one('entry', 1).promotional).usd], ['promotion', '3.000000000'])
    for (const secret of [client.token, 'sealed-key', 'sealed-tokens', Buffer.from('sealed-tokens').toString('base64')])
      assert.ok(!text.includes(secret))
    await pool.query('delete from link_sessions where id = $1', [linkId])
  })

  it('is not ready while a change is under way that began before it', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const other = await openSession(database.url)
    await other.query('begin')
    await other.query('select pg_current_xact_id()')
    const asked = await ask(siteUrl, owner, exportsOf(team), { method: 'POST', key: 'once' })
    assert.equal(asked.json.state, 'preparing')
    const path = `${exportsOf(team)}/${asked.json.id}`
    assert.equal((await ask(siteUrl, owner, path)).json.state, 'preparing')
    const early = await ask(siteUrl, owner, `${path}/data`)
    assert.deepEqual([early.json.code, early.headers.get('retry-after')], ['export_not_ready', '1'])
    await other.query('commit')
    await other.close()
    await until(async () => (await ask(siteUrl, owner, path)).json.state === 'ready', PATIENCE_MS)
    const again = await ask(siteUrl, owner, exportsOf(team), { method: 'POST', key: 'once' })
    assert.deepEqual([again.json, again.headers.get('idempotency-replayed')], [asked.json, 'true'])
  })

  it('is not ready either while one is that began beside the asking, before the moment; and not for ever in a restored database', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId } = team
    const { personId } = team.of('owner')
    const writer = await openSession(database.url)
    try {
      const { id } = await inTransaction(pool, async (query) => {
        // Numbered before the other one, as an asking is that has to wait for the accounts.
        await query('select pg_current_xact_id()')
        await writer.query('begin')
        await writer.query(
          "insert into audit (actor, action, workspace_id, subject) values ('worker test', 'test.beside', $1, 'x')",
          [workspaceId],
        )
        // The audit log is told up to the moment in whole milliseconds: the change is to be earlier by more than one.
        await query('select pg_sleep(0.01)')
        return askExport({ pool: new OpenTransaction(query), ids }, ACTOR, { workspaceId, personId, mode: null })
      })
      const find = () => findExport(pool, { workspaceId, mode: null, id })
      assert.equal((await find()).state, 'preparing')
      await writer.query('commit')
      await until(async () => (await find()).state === 'ready', PATIENCE_MS, 'that it is ready')
      const { text } = await ask(siteUrl, team.of('owner'), `${exportsOf(team)}/${id}/data`)
      assert.equal(linesOf(text).filter(({ action }) => action === 'test.beside').length, 1)
      // A database that was restored elsewhere has not counted as far.
      await pool.query("update exports set asked_in = '9000000000000000000' where id = $1", [id])
      await writer.query('begin')
      await writer.query('select pg_current_xact_id()')
      assert.equal((await find()).state, 'ready')
    } finally {
      await writer.close()
    }
  })

  it('of a client is of its mode alone, and those of people are not there for it', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const client = await letIn(house, team.workspaceId, { mode: 'test', personId: owner.personId })
    const whole = await makeExport(team)
    assert.equal((await ask(siteUrl, client, whole)).status, 404)
    assert.equal((await ask(siteUrl, client, `${whole}/data`)).status, 404)
    await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/keys?mode=live`, { method: 'POST', body: { name: 'x' } })
    const path = await makeExport(team, client)
    const lines = linesOf((await ask(siteUrl, client, `${path}/data`)).text)
    assert.deepEqual(lines[0]?.modes, ['test'])
    assert.deepEqual(new Set(lines.map(({ mode }) => mode)), new Set([undefined, 'test']))
    // The audit log is of both modes: it has, among others, the change of a live key.
    assert.ok(lines.every(({ type }) => type !== 'audit' && type !== 'quota_request'))
  })

  it('has a moment: of calls that end while it is asked for, the same ones are in every download', async () => {
    const team = await makeTeam(pool, ['owner'])
    let isOver = false
    const callers = Array.from({ length: 6 }, async () => {
      while (!isOver) await callFor(team)
    })
    const texts: [path: string, text: string][] = []
    for (let round = 0; round < 5; round += 1) {
      const path = await makeExport(team)
      texts.push([path, (await ask(siteUrl, team.of('owner'), `${path}/data`)).text])
    }
    isOver = true
    await Promise.all(callers)
    for (const [path, text] of texts) {
      const later = (await ask(siteUrl, team.of('owner'), `${path}/data`)).text
      assert.equal(lasting(later), lasting(text))
      const { rows } = await pool.query(
        'select c.id from charges c join exports e on e.id = $2 where c.account_id = $1 and c.ended_at <= e.as_of',
        [team.accountId, path.split('/').at(-1)],
      )
      const told = linesOf(later).filter(({ type }) => type === 'charge')
      assert.deepEqual(told.map(({ id }) => id).toSorted(), rows.map(({ id }) => id).toSorted())
    }
    assert.ok(texts.at(-1)?.[1].includes('"charge"'))
  })

  it('has every charge once, over pages and months, however many ended in one microsecond', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { accountId, keyId } = team
    const [CHARGES, DAYS, AT_ONCE] = [1_300, 70, 130]
    await pool.query("update accounts set created_at = clock_timestamp() - interval '80 days' where id = $1", [
      accountId,
    ])
    await pool.query('select make_charge_partition(current_date - day) from generate_series(1, $1::integer) day', [
      DAYS + 1,
    ])
    const { rows } = await pool.query<{ id: string }>(
      `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
       select (substr(first_id_at(at)::text, 1, 13) || '-7' || substr(gen_random_uuid()::text, 16))::uuid, $1, $2, 'tag_detail', 'posted', 5, 5, 0, 0, 5, 0,
         true, false, 1, 1, 0, 0, '{}', at, at
       from generate_series(0, $3::integer - 1) n
       cross join lateral (select date_trunc('day', clock_timestamp(), 'UTC') - (n / $5) * $4 / ($3 / $5) * interval '1 day' as at) moment returning id`,
      [accountId, keyId, CHARGES, DAYS, AT_ONCE],
    )
    const path = await makeExport(team)
    const lines = linesOf((await ask(siteUrl, team.of('owner'), `${path}/data`)).text)
    const told = lines.filter(({ type }) => type === 'charge').map(({ id }) => String(id))
    assert.equal(new Set(told).size, CHARGES)
    assert.deepEqual(told.toSorted(), rows.map(({ id }) => id).toSorted())
  })

  it('goes on only while whoever downloads it may: what breaks off has no last line', async () => {
    const team = await makeTeam(pool, ['owner', 'admin'])
    const { workspaceId } = team
    const { personId } = team.of('owner')
    await fillAudit(workspaceId)
    const granted = await Promise.all(Array.from({ length: 4 }, () => letIn(house, workspaceId, { personId })))
    const [revoked, paused, late, elsewhere] = granted.map((one) => one.id)
    const now = 'clock_timestamp()'
    const acts: readonly (readonly [what: string, who: Who, act: string, about: string | undefined])[] = [
      ['a revoked grant', granted[0] ?? assert.fail(), `update grants set revoked_at = ${now} where id = $1`, revoked],
      ['a paused grant', granted[1] ?? assert.fail(), `update grants set paused_at = ${now} where id = $1`, paused],
      [
        ...(['a token that expires', granted[2] ?? assert.fail()] as const),
        ...([`update access_tokens set expires_at = ${now} where grant_id = $1`, late] as const),
      ],
      [
        ...(['another network', granted[3] ?? assert.fail()] as const),
        ...(["update grants set allowed_networks = '{192.0.2.0/24}' where id = $1", elsewhere] as const),
      ],
      [
        ...(['a session that ends', { headers: await signedIn(pool, personId) }] as const),
        ...([`update browser_sessions set ended_at = ${now} where person_id = $1`, personId] as const),
      ],
      [
        ...(['an export that expires', team.of('admin')] as const),
        ...([`update exports set expires_at = ${now} where workspace_id = $1`, workspaceId] as const),
      ],
      [
        ...(['a role that allows it no more', team.of('admin')] as const),
        ...(["update members set role = 'viewer' where id = $1", team.of('admin').memberId] as const),
      ],
    ]
    for (const [what, who, act, about] of acts) {
      const path = await makeExport(team, who)
      const { part, isBroken } = await readAfter(path, who, () => pool.query(act, [about]))
      assert.match(part, /^\{"type":"export"/, what)
      assert.deepEqual([isBroken, part.includes('{"type":"end"')], [true, false], what)
    }
  })

  it('is downloaded twice at once by a person, and again as soon as one has ended', async () => {
    const team = await makeTeam(pool, ['owner', 'admin'])
    await fillAudit(team.workspaceId)
    const path = await makeExport(team)
    const owner = team.of('owner')
    const [first, second] = [await begin(path, owner), await begin(path, owner)]
    const third = await ask(siteUrl, owner, `${path}/data`)
    assert.deepEqual([third.status, third.json.code], [429, 'rate_limit_exceeded'])
    assert.match(String(third.json.detail), /2 of 2 of your downloads/)
    assert.equal(third.headers.get('retry-after'), '30')
    const other = await begin(path, team.of('admin'))
    assert.equal(other.statusCode, 200)
    for (const { body } of [first, other]) body.on('error', () => {}).destroy()
    let more: Told | undefined
    const isLetIn = async () => {
      more = await ask(siteUrl, owner, `${path}/data`)
      return more.status === 200
    }
    await until(isLetIn, PATIENCE_MS, 'that the one which was left has ended')
    linesOf(more?.text ?? '')
    second.body.on('error', () => {}).destroy()
  })

  it('is whole through kill -9 of the process that sends it: a part is known as one, and it can be repeated', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    await fillAudit(team.workspaceId)
    const path = await makeExport(team)
    const victim = await startGateway({
      databaseUrl: database.url,
      env: { ...house.env, FAREBOX_ROLES: 'gateway,site' },
    })
    const { host } = new URL(siteUrl)
    const begun = await request(`${victim.siteUrl}/account/v1${path}/data`, { headers: { ...owner.headers, host } })
    assert.equal(begun.statusCode, 200)
    let part = ''
    await assert.rejects(async () => {
      for await (const chunk of begun.body) {
        if (part === '') await victim.kill()
        part += String(chunk)
      }
    })
    assert.match(part, /^\{"type":"export"/)
    assert.ok(!part.includes('{"type":"end"'))
    const whole = await ask(siteUrl, owner, `${path}/data`)
    const found = linesOf(whole.text).filter(({ action }) => action === 'test.made').length
    assert.equal(found, ENTRIES)
    assert.ok(whole.text.startsWith(part.slice(0, part.lastIndexOf('\n') + 1)))
    recordProof('account-export', 'whole through kill -9 of the process that sends it', {
      ...{ entries: ENTRIES, lost: ENTRIES - found, bytes: Buffer.byteLength(whole.text) },
    })
  })
})
