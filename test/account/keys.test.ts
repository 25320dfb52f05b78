import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { RUNNING_OF_PERSON, WAITING_OF_PERSON } from '../../server/src/api/turns.ts'
import { changeKey, setKeyBudget } from '../../server/src/identity/key-changes.ts'
import { makeKey as makeSecret } from '../../server/src/identity/key-format.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { ACTOR, call, codeOf, ids, makeKey } from '../acceptance/installation.ts'
import { created } from '../acceptance/tasks/video.ts'
import { ask, join, listIn, makeTeam, startHouse, type Told } from './house.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway } = house
after(house.stop)

const team = await makeTeam(pool, ['owner'])
const owner = team.of('owner')
const KEYS = `/workspaces/${team.workspaceId}/keys`
const make = (body: object, query = '?mode=test') => ask(siteUrl, owner, KEYS + query, { method: 'POST', body })
/** A secret of the right form, which is not the key's. */
const credentialOf = (id: string) => makeSecret(id, 'test', 0).reveal()
const tags = (secret: unknown) => call(gateway.url, String(secret), 'tag_detail')

describe('keys of the account API', () => {
  it('keep the tags and scopes that an admin fixed: without workspace.manage, a key is only narrowed', async () => {
    const team = await makeTeam(pool, ['owner', 'developer'])
    const developer = team.of('developer')
    const fixed = { scopes: ['rerank', 'tag_detail'], tags: ['team=search'] }
    const keys = `/workspaces/${team.workspaceId}/keys`
    const made = await ask(siteUrl, team.of('owner'), `${keys}?mode=test`, {
      method: 'POST',
      body: { name: 'fixed', member_id: developer.memberId, ...fixed },
    })
    assert.equal(made.status, 201, made.text)
    const change = (body: object) =>
      ask(siteUrl, developer, `${keys}/${made.json.id}`, { method: 'PATCH', body, headers: { 'if-match': '*' } })
    for (const wider of [
      ...[{ tags: null }, { tags: [] }, { tags: ['team=ads'] }],
      ...[{ scopes: null }, { scopes: ['rerank', 'social'] }],
    ]) {
      const told = await change(wider)
      assert.deepEqual([told.status, told.json.code], [403, 'forbidden'], JSON.stringify(wider))
    }
    const narrower = await change({ scopes: ['rerank'], tags: ['team=search', 'stage=beta'] })
    assert.deepEqual([narrower.status, narrower.json.scopes], [200, ['rerank']], narrower.text)
  })

  it('have all that a key can have, from the start', async () => {
    const wanted = {
      name: 'search',
      expires_at: '2099-01-31T00:00:00.000Z',
      budget: { period: 'month', amount_usd: '12.5' },
      member_id: owner.memberId,
      rates: { requests_per_minute: 30, tokens_per_minute: null, concurrency: 2 },
      scopes: ['social', 'rerank'],
      allowed_addresses: ['203.0.113.0/24'],
      tags: ['team=search'],
      on_disconnect: 'finish',
      holding: 'full',
    }
    const { json, status } = await make(wanted)
    assert.equal(status, 201)
    const { id, secret, budget, created_at: _, grant_id: grantId, ...rest } = json
    assert.equal(grantId, null)
    assert.match(String(secret), /^fb_test_/)
    assert.deepEqual(budget, { period: 'month', amount: { usd: '12.500000000', micros_usd: 12_500_000 } })
    const { budget: __, ...said } = wanted
    assert.deepEqual(rest, {
      ...said,
      kind: 'key',
      mode: 'test',
      state: 'active',
      link: null,
      revoked_at: null,
      previous_secret_until: null,
      set_by_operator: [],
    })
    const again = await ask(siteUrl, owner, `${KEYS}/${id}`)
    assert.deepEqual({ ...again.json, secret, link: null }, json, 'the secret is told once')
  })

  it('are used at once, changed within their ETag, rotated with an overlap, and revoked', async () => {
    const made = await make({ name: 'used' })
    const path = `${KEYS}/${made.json.id}`
    assert.equal((await tags(made.json.secret)).status, 200)
    const read = await ask(siteUrl, owner, path)
    const etag = read.headers.get('etag') ?? ''
    const patch = (body: object, headers: Record<string, string>) =>
      ask(siteUrl, owner, path, { method: 'PATCH', body, headers })
    assert.equal((await patch({ scopes: ['rerank'] }, {})).json.code, 'precondition_required')
    assert.equal((await patch({ scopes: ['rerank'] }, { 'if-match': '"another"' })).json.code, 'precondition_failed')
    const changed = await patch(
      { scopes: ['rerank'], budget: { period: 'day', amount_usd: '1' } },
      { 'if-match': etag },
    )
    assert.deepEqual([changed.status, changed.json.scopes], [200, ['rerank']])
    assert.notEqual(changed.headers.get('etag'), etag)
    assert.equal((await patch({ scopes: null }, { 'if-match': etag })).json.code, 'precondition_failed')
    await until(async () => codeOf(await tags(made.json.secret)) === 'forbidden', PATIENCE_MS, 'the scope')
    const open = await patch({ scopes: null }, { 'if-match': changed.headers.get('etag') ?? '' })
    assert.equal(open.status, 200)

    const rotated = await ask(siteUrl, owner, `${path}/rotate`, { method: 'POST', body: { overlap_seconds: 3_600 } })
    assert.match(String(rotated.json.previous_secret_until), /^20/)
    for (const secret of [made.json.secret, rotated.json.secret])
      await until(async () => (await tags(secret)).status === 200, PATIENCE_MS, 'both secrets')
    const revoked = await ask(siteUrl, owner, path, { method: 'DELETE' })
    assert.equal(revoked.json.state, 'revoked')
    for (const secret of [made.json.secret, rotated.json.secret]) assert.notEqual((await tags(secret)).status, 200)
    assert.equal((await ask(siteUrl, owner, `${path}/rotate`, { method: 'POST', body: {} })).status, 404)
  })

  it('are ended by a leaked secret itself, by whoever found it', async () => {
    const made = await make({ name: 'leaked' })
    const { secret } = made.json
    const rotated = await ask(siteUrl, owner, `${KEYS}/${made.json.id}/rotate`, { method: 'POST', body: {} })
    const revoke = (given: unknown) => ask(siteUrl, null, '/revoke-secret', { method: 'POST', body: { secret: given } })
    assert.deepEqual((await revoke(secret)).json, { key_id: made.json.id, ended: 'previous' })
    assert.equal((await ask(siteUrl, owner, `${KEYS}/${made.json.id}`)).json.state, 'active')
    assert.deepEqual((await revoke(rotated.json.secret)).json, { key_id: made.json.id, ended: 'key' })
    assert.equal((await ask(siteUrl, owner, `${KEYS}/${made.json.id}`)).json.state, 'revoked')
    // One that is over, and one that never was.
    const over = await revoke(secret)
    assert.equal(over.status, 404)
    assert.equal((await revoke('fb_live_nothing')).status, 400)
  })

  it('are not locked by who has but the id of one', async () => {
    const forged = credentialOf(team.keyId)
    const revoke = () => ask(siteUrl, null, '/revoke-secret', { method: 'POST', body: { secret: forged } })
    const holder = await pool.connect()
    try {
      await holder.query('begin')
      await holder.query('select from accounts where id = $1 for update', [team.accountId])
      assert.equal((await revoke()).status, 404, 'it waits for no lock')
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    assert.equal((await ask(siteUrl, owner, `${KEYS}/${team.keyId}`)).json.state, 'active')
  })

  it('can be changed with the ETag that making and rotating them told, also one of several', async () => {
    const made = await make({ name: 'tagged' })
    const path = `${KEYS}/${made.json.id}`
    const patch = (etag: string) =>
      ask(siteUrl, owner, path, { method: 'PATCH', body: { tags: ['a=b'] }, headers: { 'if-match': etag } })
    assert.equal((await patch(made.headers.get('etag') ?? '')).status, 200)
    const rotated = await ask(siteUrl, owner, `${path}/rotate`, { method: 'POST', body: {} })
    assert.equal((await patch(`"another", ${rotated.headers.get('etag')}`)).status, 200)
  })

  it('are of the mode that was asked for: the same idempotency key in the other mode is another request', async () => {
    const send = (mode: string) =>
      ask(siteUrl, owner, `${KEYS}?mode=${mode}`, { method: 'POST', body: { name: 'moded' }, key: 'moded' })
    assert.equal((await send('test')).json.mode, 'test')
    assert.equal((await send('live')).json.code, 'idempotency_mismatch')
  })

  it('keep the secret that is in use when the answer to a rotation was lost, and end all of them without an overlap', async () => {
    const made = await make({ name: 'rotated' })
    const path = `${KEYS}/${made.json.id}`
    const rotate = async (overlap: number, key?: string) =>
      (
        await ask(siteUrl, owner, `${path}/rotate`, {
          ...{ method: 'POST', body: { overlap_seconds: overlap }, ...(key !== undefined && { key }) },
        })
      ).json.secret
    const missed = await rotate(3_600, 'lost')
    assert.equal(await rotate(3_600, 'lost'), null)
    const fresh = await rotate(3_600)
    for (const secret of [made.json.secret, missed, fresh]) assert.equal((await tags(secret)).status, 200)
    const revoked = await ask(siteUrl, null, '/revoke-secret', { method: 'POST', body: { secret: made.json.secret } })
    assert.deepEqual(revoked.json, { key_id: made.json.id, ended: 'previous' })
    await until(async () => (await tags(made.json.secret)).status === 401, PATIENCE_MS, 'the oldest')
    assert.equal((await tags(missed)).status, 200)
    const last = await rotate(0)
    for (const secret of [missed, fresh])
      await until(async () => (await tags(secret)).status === 401, PATIENCE_MS, 'no overlap')
    assert.equal((await tags(last)).status, 200)
  })

  it('of a developer are the developer’s own, so that their budget bounds them', async () => {
    const developer = await join(pool, team.workspaceId, 'developer')
    const send = (body: object) => ask(siteUrl, developer, `${KEYS}?mode=test`, { method: 'POST', body })
    const made = await send({ name: 'mine' })
    assert.deepEqual([made.status, made.json.member_id], [201, developer.memberId])
    for (const other of [null, owner.memberId])
      assert.equal((await send({ name: 'not mine', member_id: other })).json.code, 'forbidden')
    const patch = (id: unknown, body: object) =>
      ask(siteUrl, developer, `${KEYS}/${id}`, { method: 'PATCH', body, headers: { 'if-match': '*' } })
    assert.equal((await patch(made.json.id, { member_id: null })).json.code, 'forbidden')
    assert.equal((await patch(made.json.id, { tags: ['a=b'], member_id: developer.memberId })).status, 200)
    // Nor do they get the secret of one that nothing of theirs bounds.
    assert.equal((await patch(team.keyId, { budget: null })).json.code, 'forbidden')
    const rotated = await ask(siteUrl, developer, `${KEYS}/${team.keyId}/rotate`, { method: 'POST', body: {} })
    assert.equal(rotated.json.code, 'forbidden')
  })

  it('are looked up for callers however many changes one member sends at once, of which few run and some are refused', async () => {
    const sent = RUNNING_OF_PERSON + WAITING_OF_PERSON + 5
    const patch = () =>
      ask(siteUrl, owner, `${KEYS}/${team.keyId}`, {
        ...{ method: 'PATCH', body: { tags: ['a=b'] }, headers: { 'if-match': '*' } },
      })
    const unseen = await makeKey(pool, team.workspaceId)
    const holder = await pool.connect()
    const told: Promise<Told>[] = []
    const refused: Told[] = []
    try {
      await holder.query('begin')
      await holder.query('select from workspaces where id = $1 for update', [team.workspaceId])
      for (let at = 0; at < sent; at += 1) {
        const one = patch()
        told.push(one)
        one.then((answer) => answer.status === 429 && refused.push(answer))
      }
      await until(async () => refused.length === 5, PATIENCE_MS, 'those beyond the bound')
      assert.equal((await tags(unseen.secret)).status, 200)
    } finally {
      await holder.query('rollback')
      holder.release()
    }
    const statuses = (await Promise.all(told)).map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 429).length, 5, statuses.join())
    assert.match(String(refused[0]?.json.detail), /Concurrency limit reached: 2 of your requests/)
  })

  it('say what the operator has set, which no owner changes, and are the owner’s again when the operator takes it away', async () => {
    const { id } = (await make({ name: 'bounded', rates: { concurrency: 2 } })).json
    const key = String(id)
    const change = (body: object) =>
      ask(siteUrl, owner, `${KEYS}/${key}`, { method: 'PATCH', body, headers: { 'if-match': '*' } })
    const byOperator = { rates: { requestsPerMinute: 30 }, tags: [{ name: 'team', value: 'search' }] }
    await changeKey({ pool, ids }, ACTOR, key, byOperator)
    await setKeyBudget({ pool, ids }, ACTOR, key, { period: 'day', amount: usd('1') })
    const shown = (await ask(siteUrl, owner, `${KEYS}/${key}`)).json
    assert.deepEqual([shown.set_by_operator, shown.tags], [['requests_per_minute', 'tags', 'budget'], ['team=search']])
    for (const [body, param] of [
      [{ rates: { requests_per_minute: null } }, 'requests_per_minute'],
      [{ rates: { requests_per_minute: 31 } }, 'requests_per_minute'],
      [{ tags: null }, 'tags'],
      [{ budget: null }, 'budget'],
      [{ budget: { period: 'month', amount_usd: '1' } }, 'budget'],
    ] as const) {
      const told = await change(body)
      assert.deepEqual([told.status, told.json.code, told.json.param], [403, 'forbidden', param], told.text)
    }
    const others = { rates: { requests_per_minute: 30, concurrency: 1 }, tags: ['team=search'], scopes: ['rerank'] }
    const changed = await change(others)
    assert.deepEqual([changed.status, Object(changed.json.rates).concurrency], [200, 1], changed.text)
    await setKeyBudget({ pool, ids }, ACTOR, key, null)
    assert.equal((await change({ budget: { period: 'month', amount_usd: '7' } })).status, 200)
    assert.deepEqual((await ask(siteUrl, owner, `${KEYS}/${key}`)).json.set_by_operator, [
      'requests_per_minute',
      'tags',
    ])
  })

  it('that are revoked are not changed', async () => {
    const made = await make({ name: 'over' })
    await ask(siteUrl, owner, `${KEYS}/${made.json.id}`, { method: 'DELETE' })
    const told = await ask(siteUrl, owner, `${KEYS}/${made.json.id}`, {
      ...{ method: 'PATCH', body: { scopes: null }, headers: { 'if-match': '*' } },
    })
    assert.equal(told.status, 404)
  })

  it('are listed page by page, by state and by member, one mode at a time', async () => {
    const other = await makeTeam(pool, ['owner'])
    const path = `/workspaces/${other.workspaceId}/keys`
    const made = [other.keyId]
    for (let at = 0; at < 4; at += 1) made.push((await makeKey(pool, other.workspaceId)).keyId)
    const newest = made.toReversed()
    await ask(siteUrl, other.of('owner'), `${path}/${newest[0]}`, { method: 'DELETE' })
    const list = (query: string) => ask(siteUrl, other.of('owner'), `${path}?${query}`)
    const first = await list('mode=test&limit=3')
    const second = await list(`mode=test&limit=3&cursor=${first.json.next_cursor}`)
    assert.deepEqual(
      [...listIn(first), ...listIn(second)].map(({ id }) => id),
      newest,
    )
    assert.equal(second.json.next_cursor, null)
    assert.deepEqual(
      listIn(await list('mode=test&state=revoked')).map(({ id }) => id),
      newest.slice(0, 1),
    )
    assert.deepEqual(
      listIn(await list('mode=test&state=active')).map(({ id }) => id),
      newest.slice(1),
    )
    assert.deepEqual(listIn(await list(`mode=test&member_id=${owner.memberId}`)), [])
    assert.deepEqual(listIn(await list('mode=live')), [])
  })

  it('refuse what can’t be, and say what to do', async () => {
    for (const [body, words] of [
      [{}, /"name" is required/],
      [{ name: 'x', scopes: ['rerunk'] }, /"rerunk" is not a scope/],
      [{ name: 'x', scopes: ['model:nothing-such-at-all'] }, /GET \/v1\/models/],
      [{ name: 'x', allowed_addresses: ['somewhere'] }, /allowed_addresses/],
      [{ name: 'x', tags: ['team'] }, /name=value/],
      [{ name: 'x', expires_at: '2001-01-01T00:00:00Z' }, /in the future/],
      [{ name: 'x', budget: { period: 'year', amount_usd: '1' } }, /must be "day" or "week"/],
      [{ name: 'x', budget: { period: 'day', amount_usd: '0.0000000001' } }, /decimal amount/],
      [{ name: 'x', colour: 'red' }, /Unknown parameter "colour"/],
      [{ name: 'a\u0000b' }, /control characters/],
    ] as const) {
      const told = await make(body)
      assert.equal(told.status, 400, told.text)
      assert.match(String(told.json.detail), words)
    }
    const keyless = await ask(siteUrl, owner, KEYS, {
      method: 'POST',
      body: { name: 'x' },
      headers: { 'idempotency-key': '' },
    })
    assert.match(String(keyless.json.detail), /Idempotency-Key/)
    assert.equal((await ask(siteUrl, owner, `${KEYS}?cursor=abc`)).status, 400)
    assert.equal((await ask(siteUrl, owner, `/workspaces/${team.workspaceId}/audit?subject=%00`)).status, 400)
  })
})

describe('money and records of the account API', () => {
  const PATH = `/workspaces/${team.workspaceId}`

  it('tell balance, statement and usage of all keys, which agree to the nano', async () => {
    const { secret } = await makeKey(pool, team.workspaceId)
    for (let at = 0; at < 3; at += 1) assert.equal((await tags(secret)).status, 200)
    const balance = Object(await ask(siteUrl, owner, `${PATH}/balance?mode=test`)).json
    const statement = await ask(siteUrl, owner, `${PATH}/statement?mode=test`)
    assert.equal(Object(statement.json.opening_balance).usd, '0.000000000')
    const nano = (text: unknown) => BigInt(String(text).replace('.', ''))
    const lines = listIn(statement)
    assert.deepEqual(lines.map(({ kind }) => kind).toSorted(), ['payment', 'usage'])
    const sum = lines.reduce((all, { amount }) => all + nano(Object(amount).usd), 0n)
    assert.equal(sum, nano(Object(statement.json.closing_balance).usd))
    assert.equal(sum, nano(balance.available.usd) + nano(balance.held.usd))
    const usage = Object(
      await ask(siteUrl, owner, `${PATH}/usage?mode=test&start=2026-01-01T00:00:00Z&group_by=key`),
    ).json
    assert.equal(nano(usage.totals.charged.usd), nano(balance.charged.usd))
    const groups: { totals: { charged: { usd: string } } }[] = usage.groups
    assert.equal(
      groups.reduce((all, { totals }) => all + nano(totals.charged.usd), 0n),
      nano(usage.totals.charged.usd),
    )
    // Page by page, and as a table.
    const first = await ask(siteUrl, owner, `${PATH}/statement?mode=test&limit=1`)
    const second = await ask(siteUrl, owner, `${PATH}/statement?mode=test&limit=1&cursor=${first.json.next_cursor}`)
    assert.deepEqual([...listIn(first), ...listIn(second)], lines)
    assert.equal(second.json.next_cursor, null)
    const table = await ask(siteUrl, owner, `${PATH}/statement?mode=test&format=csv`)
    assert.match(table.headers.get('content-type') ?? '', /^text\/csv/)
    assert.equal(table.text.split('\r\n').length, 2 + lines.length)
    // Live money is apart.
    assert.equal(Object(await ask(siteUrl, owner, `${PATH}/balance`)).json.available.usd, '0.000000000')
    assert.deepEqual(listIn(await ask(siteUrl, owner, `${PATH}/statement`)), [])
    const ofDays = async (first: number, last: number) => {
      const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
      const told = await ask(siteUrl, owner, `${PATH}/statement?mode=test&from=${day(first)}&to=${day(last)}`)
      return `${told.status} ${told.json.detail ?? ''}`
    }
    assert.match(await ofDays(1, 5), /^400 "from" is after "to"/)
    assert.match(await ofDays(95, 1), /^400 The window is 95 days; the limit is 92/)
    assert.match(await ofDays(1_102, 1_101), /^400 Usage is kept for 1100 days. "from" can be 20/)
    assert.equal(await ofDays(1_090, 1_000), '200 ')
  })

  it('list calls and tasks of all keys, and find one by its id', async () => {
    const other = await makeKey(pool, team.workspaceId)
    const told = await tags(other.secret)
    const all = await ask(siteUrl, owner, `${PATH}/requests?mode=test&operation=tag_detail&limit=2`)
    assert.equal(listIn(all)[0]?.id, told.id)
    assert.notEqual(all.json.next_cursor, null)
    const own = await ask(siteUrl, owner, `${PATH}/requests?mode=test&key=${other.keyId}`)
    assert.deepEqual(
      listIn(own).map(({ id }) => id),
      [told.id],
    )
    assert.deepEqual(listIn(await ask(siteUrl, owner, `${PATH}/requests?mode=live`)), [])
    const one = await ask(siteUrl, owner, `${PATH}/requests/${told.id}?mode=test`)
    assert.equal(Object(one.json.cost).usd, '0.001450000')
    assert.equal((await ask(siteUrl, owner, `${PATH}/requests/${told.id}?mode=live`)).status, 404)
    const stranger = await makeTeam(pool, [])
    assert.equal((await ask(siteUrl, owner, `${PATH}/requests?mode=test&key=${stranger.keyId}`)).status, 404)
    const task = await created(gateway.url, other.secret, { words: 'sandbox:pending-ms=600000' })
    const tasks = await ask(siteUrl, owner, `${PATH}/tasks?mode=test`)
    assert.deepEqual(
      listIn(tasks).map(({ output }) => Object(output).task_id),
      [task],
    )
  })
})
