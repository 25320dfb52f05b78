import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { EVERY } from '../../server/src/budgets/account-budgets.ts'
import { removeBudget, setBudget } from '../../server/src/budgets/set-budgets.ts'
import { usd, ZERO } from '../../server/src/kernel/money.ts'
import { ACTOR, call, codeOf, makeKey } from '../acceptance/installation.ts'
import { linkAccount } from '../acceptance/links/linking.ts'
import { startShell } from '../house/command-shell.ts'
import { linkIn } from '../people/site.ts'
import { ask, join, letIn, listIn, makeTeam, SUPPORT, startHouse } from './house.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway, sandbox } = house
after(house.stop)
const { said, farebox } = startShell({ ...process.env, ...house.env, FAREBOX_DATABASE_URL: database.url })

const mailTo = async (address: string) => {
  await until(async () => (await sandbox.mail(address)).length > 0, PATIENCE_MS, `mail to ${address}`)
  return (await sandbox.mail(address))[0] ?? assert.fail()
}

describe('budgets of the account API', () => {
  it('are ceilings of all kinds: set, told with what is left, changed and removed', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const path = `/workspaces/${team.workspaceId}/budgets`
    const set = (body: object) => ask(siteUrl, owner, `${path}?mode=test`, { method: 'POST', body })
    const whole = await set({ period: 'day', amount_usd: '0.002' })
    assert.deepEqual([whole.status, whole.json.kind, whole.json.subject], [201, 'workspace', null])
    const kinds = [
      [{ member_id: owner.memberId }, 'member', false],
      [{ tag: 'team=search' }, 'tag', false],
      [{ end_user: '*' }, 'end_user', true],
    ] as const
    for (const [of, kind, isForEach] of kinds) {
      const { json } = await set({ period: 'month', amount_usd: '5', ...of })
      assert.deepEqual([json.kind, json.is_for_each], [kind, isForEach])
    }
    assert.equal((await set({ period: 'day', amount_usd: '1', tag: 'a=b', end_user: 'x' })).status, 400)
    assert.equal((await set({ period: 'day', amount_usd: '1', tag: 'no tag' })).status, 400)
    // It holds: the second call does not fit.
    await until(
      async () => codeOf(await call(gateway.url, team.secret, 'tag_detail')) === 'budget_exceeded',
      PATIENCE_MS,
      'the ceiling',
    )
    const listed = listIn(await ask(siteUrl, owner, `${path}?mode=test&kind=workspace`))
    assert.equal(listed.length, 1)
    const state = Object(listed[0]?.state)
    assert.ok(Number(state.spent.usd) > 0 && Number(state.left.usd) < 0.00145, JSON.stringify(state))
    assert.equal(listIn(await ask(siteUrl, owner, `${path}?mode=test`)).length, 4)
    assert.deepEqual(listIn(await ask(siteUrl, owner, path)), [])
    const one = `${path}/${whole.json.id}`
    const etag = (await ask(siteUrl, owner, one)).headers.get('etag') ?? ''
    const change = (amount: string) =>
      ask(siteUrl, owner, one, { method: 'PATCH', body: { amount_usd: amount }, headers: { 'if-match': etag } })
    assert.equal((await change('1')).status, 200)
    assert.equal((await change('2')).json.code, 'precondition_failed')
    await until(
      async () => (await call(gateway.url, team.secret, 'tag_detail')).status === 200,
      PATIENCE_MS,
      'the higher amount',
    )
    assert.equal((await ask(siteUrl, owner, one, { method: 'DELETE' })).status, 200)
    assert.equal((await ask(siteUrl, owner, one)).status, 404)
  })

  it('that the operator has set say so, and no owner changes or removes them', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const path = `/workspaces/${team.workspaceId}/budgets`
    const what = { kind: 'workspace', subject: '', label: '' } as const
    const none = {
      ...what,
      workspaceId: team.workspaceId,
      mode: 'test',
      budget: { period: 'day', amount: ZERO },
    } as const
    const { id } = await setBudget({ pool }, ACTOR, none)
    const one = `${path}/${id}`
    assert.equal((await ask(siteUrl, owner, one)).json.set_by, 'operator')
    const body = { amount_usd: '5' }
    for (const told of [
      await ask(siteUrl, owner, one, { method: 'DELETE' }),
      await ask(siteUrl, owner, one, { method: 'PATCH', body, headers: { 'if-match': '*' } }),
      await ask(siteUrl, owner, `${path}?mode=test`, { method: 'POST', body: { ...body, period: 'day' } }),
    ])
      assert.deepEqual([told.status, told.json.code], [403, 'forbidden'], told.text)
    const month = await ask(siteUrl, owner, `${path}?mode=test`, { method: 'POST', body: { ...body, period: 'month' } })
    assert.deepEqual([month.status, month.json.set_by], [201, 'member'])
    await until(
      async () => codeOf(await call(gateway.url, team.secret, 'tag_detail')) === 'budget_exceeded',
      PATIENCE_MS,
      'the ceiling of nothing',
    )
    assert.equal((await removeBudget({ pool }, ACTOR, id)).amount, ZERO)
    assert.equal((await ask(siteUrl, owner, one)).status, 404)
  })

  it('that the operator has set for every end user are not lifted by one for an end user', async () => {
    const team = await makeTeam(pool, ['owner'])
    await setBudget({ pool }, ACTOR, {
      workspaceId: team.workspaceId,
      mode: 'test',
      kind: 'end_user',
      subject: EVERY,
      label: EVERY,
      budget: { period: 'day', amount: usd('1') },
    })
    const set = (period: string, amount: string) =>
      ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/budgets?mode=test`, {
        method: 'POST',
        body: { end_user: 'alice', period, amount_usd: amount },
      })
    const above = await set('day', '1.000000001')
    assert.deepEqual([above.status, above.json.code], [403, 'forbidden'], above.text)
    assert.match(above.text, /1\.000000000 USD for everybody in this period/)
    assert.equal((await set('day', '1')).status, 201)
    assert.equal((await set('month', '100')).status, 201)
  })

  it('of members are lowered to what the operator sets for everybody after them, and are not raised again', async () => {
    const team = await makeTeam(pool, ['owner'])
    const [owner, path] = [team.of('owner'), `/workspaces/${team.workspaceId}/budgets?mode=test`]
    const set = (tag: string, amount: string, period = 'day') =>
      ask(siteUrl, owner, path, { method: 'POST', body: { tag, period, amount_usd: amount } })
    for (const [tag, amount, period] of [
      ['run=42', '100', 'day'],
      ['run=43', '0.5', 'day'],
      ['run=42', '100', 'month'],
      ['job=42', '100', 'day'],
    ] as const)
      assert.equal((await set(tag, amount, period)).status, 201)
    await setBudget({ pool }, ACTOR, {
      workspaceId: team.workspaceId,
      mode: 'test',
      kind: 'tag',
      subject: 'run=*',
      label: 'run=*',
      budget: { period: 'day', amount: usd('1') },
    })
    const listed = listIn(await ask(siteUrl, owner, path))
    const amounts = listed.map((one) => `${one.subject} ${one.period} ${Object(one.amount).usd}`).toSorted()
    assert.deepEqual(amounts, [
      'job=42 day 100.000000000',
      'run=* day 1.000000000',
      'run=42 day 1.000000000',
      'run=42 month 100.000000000',
      'run=43 day 0.500000000',
    ])
    assert.equal((await set('run=42', '2')).status, 403)
  })
})

describe('members of the account API', () => {
  it('are invited by mail once, change roles, leave, and never leave a workspace without an owner', async () => {
    const team = await makeTeam(pool, ['owner', 'viewer'])
    const owner = team.of('owner')
    const path = `/workspaces/${team.workspaceId}`
    const guest = `guest-${team.workspaceId}@harbour.example`
    const invite = () =>
      ask(siteUrl, owner, `${path}/invitations`, {
        method: 'POST',
        body: { email: guest, role: 'viewer' },
        key: 'invite',
      })
    const first = await invite()
    assert.deepEqual([first.status, (await invite()).json], [201, first.json])
    linkIn(await mailTo(guest), /^\/invitations\//)
    assert.deepEqual(
      listIn(await ask(siteUrl, owner, `${path}/invitations`)).map(({ id }) => id),
      [first.json.id],
    )
    const { rows } = await pool.query('select from invitations where workspace_id = $1', [team.workspaceId])
    assert.equal(rows.length, 1)
    assert.equal((await ask(siteUrl, owner, `${path}/invitations/${first.json.id}`, { method: 'DELETE' })).status, 200)
    assert.deepEqual(listIn(await ask(siteUrl, owner, `${path}/invitations`)), [])

    const viewer = team.of('viewer')
    const set = (id: string, role: string) =>
      ask(siteUrl, owner, `${path}/members/${id}`, { method: 'PATCH', body: { role }, headers: { 'if-match': '*' } })
    assert.equal((await set(viewer.memberId, 'admin')).json.role, 'admin')
    assert.equal((await set(owner.memberId, 'admin')).json.code, 'last_owner')
    assert.equal(
      (await ask(siteUrl, owner, `${path}/members/${owner.memberId}`, { method: 'DELETE' })).json.code,
      'last_owner',
    )
    const moved = await ask(siteUrl, owner, `${path}/transfer`, {
      method: 'POST',
      body: { member_id: viewer.memberId },
    })
    assert.equal(moved.json.role, 'owner')
    assert.equal((await ask(siteUrl, owner, path)).json.role, 'admin')
    assert.equal((await ask(siteUrl, owner, `${path}/members/${owner.memberId}`, { method: 'DELETE' })).status, 200)
    assert.equal((await ask(siteUrl, owner, path)).status, 404)
  })

  it('make workspaces of their own, and see who changed what, but not who of the operator’s people', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const made = await ask(siteUrl, owner, '/workspaces', { method: 'POST', body: { name: 'Second harbour' } })
    assert.deepEqual([made.status, made.json.role, made.json.tier], [201, 'owner', 'free'])
    assert.equal(listIn(await ask(siteUrl, owner, '/workspaces')).length, 2)
    await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/keys/${team.keyId}`, { method: 'DELETE' })
    const log = await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/audit?limit=2`)
    const [newest] = listIn(log)
    assert.deepEqual(
      [newest?.action, newest?.subject, newest?.actor],
      ['key.revoked', team.keyId, `member ${owner.personId}`],
    )
    const keys = listIn(
      await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/audit?action=key&subject=${team.keyId}`),
    )
    assert.deepEqual(
      keys.map(({ action, actor }) => [action, actor]),
      [
        ['key.revoked', `member ${owner.personId}`],
        ['key.created', 'operator'],
      ],
    )
    const next = await ask(
      siteUrl,
      owner,
      `/workspaces/${team.workspaceId}/audit?limit=2&cursor=${log.json.next_cursor}`,
    )
    assert.notEqual(listIn(next)[0]?.id, newest?.id)
  })

  it('are invited, changed and removed by no client, whose other changes the log tells of', async () => {
    const team = await makeTeam(pool, ['owner', 'viewer'])
    const [owner, viewer] = [team.of('owner'), team.of('viewer')]
    const path = `/workspaces/${team.workspaceId}`
    const client = await letIn(house, team.workspaceId, { personId: owner.personId })
    const member = `${path}/members/${viewer.memberId}`
    const refused = [
      await ask(siteUrl, client, member, { method: 'PATCH', body: { role: 'admin' }, headers: { 'if-match': '*' } }),
      await ask(siteUrl, client, member, { method: 'DELETE' }),
      await ask(siteUrl, client, `${path}/transfer`, { method: 'POST', body: { member_id: viewer.memberId } }),
      await ask(siteUrl, client, `${path}/invitations`, {
        ...{ method: 'POST', body: { email: 'friend@harbour.example', role: 'viewer' } },
      }),
    ]
    for (const told of refused) {
      assert.equal(told.json.code, 'forbidden')
      assert.match(String(told.json.detail), /An access token can not do this. Sign in/)
    }
    const made = await ask(siteUrl, client, `${path}/keys`, { method: 'POST', body: { name: 'by a client' } })
    assert.equal(made.json.grant_id, client.id)
    const rotated = await ask(siteUrl, client, `${path}/keys/${team.keyId}/rotate`, { method: 'POST', body: {} })
    assert.equal(rotated.json.grant_id, client.id)
    const own = await ask(siteUrl, owner, `${path}/keys/${team.keyId}/rotate`, { method: 'POST', body: {} })
    assert.equal(own.json.grant_id, null)
    const log = listIn(await ask(siteUrl, owner, `${path}/audit`)).slice(0, 3)
    assert.deepEqual(
      log.map(({ action, member_id: memberId, grant_id: grantId }) => [action, memberId, grantId]),
      [
        ['key.rotated', owner.memberId, null],
        ['key.rotated', owner.memberId, client.id],
        ['key.created', owner.memberId, client.id],
      ],
    )
    // A page of the log begins behind no row of another workspace.
    const another = await makeTeam(pool, ['owner'])
    await makeKey(pool, another.workspaceId, { memberId: another.of('owner').memberId })
    const { rows } = await pool.query<{ id: string }>('select id from audit where workspace_id <> $1 limit 1', [
      team.workspaceId,
    ])
    const cursor = Buffer.from(rows[0]?.id ?? '').toString('base64url')
    assert.deepEqual(listIn(await ask(siteUrl, owner, `${path}/audit?cursor=${cursor}`)), [])
  })

  it('are told by mail where somebody becomes an admin or an owner: all owners but who becomes one', async () => {
    const team = await makeTeam(pool, ['owner', 'viewer', 'developer'])
    const [owner, viewer, developer] = [team.of('owner'), team.of('viewer'), team.of('developer')]
    const other = await join(pool, team.workspaceId)
    const path = `/workspaces/${team.workspaceId}`
    const set = (id: string, role: string) =>
      ask(siteUrl, owner, `${path}/members/${id}`, { method: 'PATCH', body: { role }, headers: { 'if-match': '*' } })
    await set(developer.memberId, 'billing')
    await set(viewer.memberId, 'admin')
    for (const { email } of [owner, other]) {
      const letter = await mailTo(email)
      assert.match(letter.subject, /has a new admin/)
      assert.ok(letter.text.includes(viewer.email) && letter.text.includes('Some One'), letter.text)
    }
    await set(viewer.memberId, 'owner')
    const told = async ({ email }: { email: string }) => (await sandbox.mail(email)).length
    await until(async () => (await told(owner)) === 2 && (await told(other)) === 2, PATIENCE_MS, 'mail of a new owner')
    assert.deepEqual([await told(viewer), await told(developer)], [0, 0])
  })

  it('are not removed while keys of theirs go on spending and nobody has decided on them', async () => {
    const team = await makeTeam(pool, ['owner', 'viewer'])
    const owner = team.of('owner')
    const path = `/workspaces/${team.workspaceId}`
    const removals = [
      ['revoke', 'revoked'],
      ['keep', 'kept'],
      [`to:${owner.memberId}`, 'assigned'],
    ] as const
    for (const [decision, became] of removals) {
      const leaving = await join(pool, team.workspaceId, 'developer')
      const { keyId, secret } = await makeKey(pool, team.workspaceId, { memberId: leaving.memberId })
      assert.equal((await call(gateway.url, secret, 'tag_detail')).status, 200)
      const remove = (query: string) =>
        ask(siteUrl, owner, `${path}/members/${leaving.memberId}${query}`, { method: 'DELETE' })
      const refused = await remove('')
      assert.deepEqual([refused.status, refused.json.code, refused.json.key_count], [409, 'member_has_keys', 1])
      const [told] = Array.isArray(refused.json.keys) ? refused.json.keys : []
      assert.deepEqual([told.id, told.mode, told.charged_last_week_usd], [keyId, 'test', '0.001450000'])
      assert.equal((await ask(siteUrl, owner, `${path}/members/${leaving.memberId}`)).status, 200)
      const asViewer = await ask(siteUrl, team.of('viewer'), `${path}/members/${leaving.memberId}`, {
        method: 'DELETE',
      })
      assert.deepEqual([asViewer.status, asViewer.json.keys], [403, undefined])
      assert.equal((await remove(`?keys=${decision}`)).status, 200)
      const key = (await ask(siteUrl, owner, `${path}/keys/${keyId}`)).json
      assert.equal(key.state, became === 'revoked' ? 'revoked' : 'active')
      if (became === 'assigned') assert.equal(key.member_id, owner.memberId)
      const [entry] = listIn(await ask(siteUrl, owner, `${path}/audit?action=member.removed`))
      const keys = { [became]: [keyId], ...(became === 'assigned' && { to: owner.memberId }) }
      assert.deepEqual(Object(entry?.before).keys, keys)
      const letter = async () =>
        (await sandbox.mail(owner.email)).find(({ text }) => text.includes(leaving.email))?.text ?? ''
      await until(async () => (await letter()) !== '', PATIENCE_MS, 'mail of who left')
      assert.match(await letter(), /API keys of theirs that worked: 1/)
    }
  })

  it('leave with their keys revoked, where they may not manage the workspace', async () => {
    const team = await makeTeam(pool, ['owner', 'developer'])
    const leaving = team.of('developer')
    const { keyId } = await makeKey(pool, team.workspaceId, { memberId: leaving.memberId })
    const leave = (query: string) =>
      ask(siteUrl, leaving, `/workspaces/${team.workspaceId}/members/${leaving.memberId}${query}`, { method: 'DELETE' })
    assert.equal((await leave('')).json.code, 'member_has_keys')
    assert.equal((await leave('?keys=keep')).json.code, 'forbidden')
    assert.equal((await leave(`?keys=to:${team.of('owner').memberId}`)).json.code, 'forbidden')
    const fields = { workspace: team.workspaceId, form_token: leaving.headers['x-form-token'] ?? '' }
    const page = (more: object) =>
      fetch(`${siteUrl}/sessions/leave`, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie: leaving.headers.cookie ?? '', 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ ...fields, ...more }),
      })
    const asked = await page({})
    const text = await asked.text()
    assert.equal(asked.status, 409, text)
    assert.ok(text.includes('value="revoke"') && !text.includes('value="keep"'))
    assert.equal((await page({ keys: 'keep' })).status, 403)
    assert.equal((await page({ keys: 'revoke' })).headers.get('location'), '/sessions?note=left')
    const key = await ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}/keys/${keyId}`)
    assert.equal(key.json.state, 'revoked')
  })

  it('see and end linked accounts of their keys', async () => {
    const team = await makeTeam(pool, ['owner'])
    await linkAccount(gateway.url, team.secret)
    const path = `/workspaces/${team.workspaceId}`
    const [link] = listIn(await ask(siteUrl, team.of('owner'), `${path}/links?mode=test`))
    assert.deepEqual([link?.credential_id, link?.state, link?.username], [team.keyId, 'linked', 'alice'])
    const end = () =>
      ask(siteUrl, team.of('owner'), `${path}/keys/${team.keyId}/links/${link?.id}`, { method: 'DELETE', key: 'end' })
    const ended = await end()
    assert.equal(ended.status, 200)
    assert.deepEqual((await end()).json, ended.json, 'sent again, it is told as done')
    const [removed] = listIn(await ask(siteUrl, team.of('owner'), `${path}/audit?action=link.removed`))
    assert.equal(removed?.member_id, team.of('owner').memberId)
    assert.deepEqual(listIn(await ask(siteUrl, team.of('owner'), `${path}/links?mode=test`)), [])
  })
})

describe('LIMIT-6 a quota increase', () => {
  const wanted = {
    requests_per_minute: 6_000,
    tokens_per_minute: 9_000_000,
    targets: ['rerank', 'tag_detail'],
    use_case: 'Search of\nour shop.',
  }

  it('is requested with workspace, expected peak, endpoints and use case, approved by an operator, and seen in the next answer', async () => {
    const team = await makeTeam(pool, ['owner'])
    await said('accounts', 'tier', team.workspaceId, 'earned')
    const asker = await join(pool, team.workspaceId, 'developer')
    const path = `/workspaces/${team.workspaceId}/quota-requests`
    const limit = async () =>
      (await call(gateway.url, team.secret, 'tag_detail')).headers.get('x-ratelimit-limit-requests')
    await until(async () => (await limit()) === '60', PATIENCE_MS, 'the limit of the tier')
    const made = await ask(siteUrl, asker, path, { method: 'POST', body: wanted })
    assert.deepEqual([made.status, made.json.state, made.json.workspace_id], [201, 'open', team.workspaceId])
    const told = await mailTo(SUPPORT)
    assert.match(told.text, /6,000/)
    assert.match(told.text, /Search of our shop/)
    const second = await ask(siteUrl, asker, path, { method: 'POST', body: wanted })
    assert.equal(second.json.code, 'quota_request_open')
    assert.match(await said('quota', 'list'), new RegExp(`${made.json.id}  open  account ${team.workspaceId}`))
    assert.match(
      await said('quota', 'show', String(made.json.id)),
      /Expected peak: 6000 requests per minute, 9000000 tokens/,
    )

    const approved = await said('quota', 'approve', String(made.json.id), '--note', 'For the sale.', '--rpm', '5000')
    assert.match(approved, /Approved. Each key has 5000 requests per minute, 9000000 tokens per minute/)
    // The change log is heard within a second; then every answer has it.
    await until(async () => (await limit()) === '5000', PATIENCE_MS, 'the new limit')
    const after = await ask(siteUrl, asker, `${path}/${made.json.id}`)
    assert.deepEqual([after.json.state, after.json.note], ['approved', 'For the sale.'])
    assert.equal(Object(after.json.granted).requests_per_minute, 5_000)
    assert.equal(
      Object((await ask(siteUrl, asker, `/workspaces/${team.workspaceId}`)).json.limits).requests_per_minute,
      5_000,
    )
    const letter = await mailTo(asker.email)
    assert.match(letter.subject, /was approved/)
    assert.match(letter.text, /The operator says: For the sale/)
    const again = await farebox('quota', 'refuse', String(made.json.id), '--note', 'Too late')
    assert.equal(again.code, 1)
    assert.equal(
      (await ask(siteUrl, asker, `${path}/${made.json.id}`, { method: 'DELETE' })).json.code,
      'quota_request_decided',
    )
  })

  it('lowers no limit that was not asked for, and tells the operator what was before', async () => {
    const team = await makeTeam(pool, ['owner'])
    const path = `/workspaces/${team.workspaceId}/quota-requests`
    const body = { ...wanted, requests_per_minute: 2_000_000, tokens_per_minute: 10 }
    const made = await ask(siteUrl, team.of('owner'), path, { method: 'POST', body })
    const { limits } = (await ask(siteUrl, team.of('owner'), `/workspaces/${team.workspaceId}`)).json
    const approved = await said('quota', 'approve', String(made.json.id), '--note', 'Fine.')
    assert.match(approved, /Before: each key had 1000000 requests per minute/)
    assert.match(approved, /Approved. Each key has 2000000 requests per minute/)
    const after = await ask(siteUrl, team.of('owner'), `${path}/${made.json.id}`)
    assert.deepEqual(after.json.granted, { ...Object(limits), requests_per_minute: 2_000_000 })
  })

  it('trap: an approval freezes nothing: a tier’s numbers give that tier, and payments go on moving it', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const place = `/workspaces/${team.workspaceId}`
    const told = async () => {
      const { tier, limits } = (await ask(siteUrl, owner, place)).json
      return { tier, ...Object(limits) }
    }
    const approve = async (body: object, ...more: string[]) => {
      const made = await ask(siteUrl, owner, `${place}/quota-requests`, {
        method: 'POST',
        body: { ...wanted, ...body },
      })
      return said('quota', 'approve', String(made.json.id), '--note', 'Fine.', ...more)
    }
    const growth = { tier: 'growth', requests_per_minute: 3_000, tokens_per_minute: 3_000_000, concurrency: 50 }
    await said('accounts', 'tier', team.workspaceId, 'earned')
    await approve({ requests_per_minute: 3_000, tokens_per_minute: 3_000_000 })
    assert.deepEqual(await told(), growth)

    await said('accounts', 'tier', team.workspaceId, 'earned')
    await approve({ requests_per_minute: 100, tokens_per_minute: 100_000 })
    const little = { tier: 'enterprise', requests_per_minute: 100, tokens_per_minute: 100_000, concurrency: 5 }
    assert.deepEqual(await told(), little)
    assert.match(await approve({}, '--rpm', '9', '--tpm', '9'), /Each key has 100 requests per minute, 100000 tokens/)
    assert.deepEqual(await told(), little)
    await said('credit', team.workspaceId, '610')
    assert.deepEqual(await told(), growth)
  })

  it('can be refused with a note, or withdrawn, and changes no limit then', async () => {
    const team = await makeTeam(pool, ['owner'])
    const owner = team.of('owner')
    const path = `/workspaces/${team.workspaceId}/quota-requests`
    const made = await ask(siteUrl, owner, path, { method: 'POST', body: wanted })
    await said('quota', 'refuse', String(made.json.id), '--note', 'Use batches.')
    const after = await ask(siteUrl, owner, `${path}/${made.json.id}`)
    assert.deepEqual([after.json.state, after.json.note, after.json.granted], ['refused', 'Use batches.', null])
    assert.match((await mailTo(owner.email)).subject, /was refused/)
    const next = await ask(siteUrl, owner, path, { method: 'POST', body: wanted })
    assert.equal((await ask(siteUrl, owner, `${path}/${next.json.id}`, { method: 'DELETE' })).json.state, 'withdrawn')
    // Each is a mail to the operator: three a day.
    const third = await ask(siteUrl, owner, path, { method: 'POST', body: wanted })
    await ask(siteUrl, owner, `${path}/${third.json.id}`, { method: 'DELETE' })
    const fourth = await ask(siteUrl, owner, path, { method: 'POST', body: wanted })
    assert.deepEqual([fourth.status, fourth.json.code], [429, 'rate_limit_exceeded'])
    assert.ok(Number(fourth.headers.get('retry-after')) > 3_600)
    assert.deepEqual(
      listIn(await ask(siteUrl, owner, path)).map(({ state }) => state),
      ['withdrawn', 'withdrawn', 'refused'],
    )
    assert.equal(
      Object((await ask(siteUrl, owner, `/workspaces/${team.workspaceId}`)).json.limits).requests_per_minute,
      1_000_000,
    )
  })
})
