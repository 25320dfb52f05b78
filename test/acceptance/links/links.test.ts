import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway, startGateways } from '../../../harness/gateways.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { revokeKey } from '../../../server/src/identity/keys.ts'
import { ACTOR, ask, codeOf, errorOf, ids, makeCustomer, makeKey, startInstallation } from '../installation.ts'
import {
  AUTH,
  CALLBACK,
  confirm,
  decide,
  FOLLOW,
  follow,
  LINKS,
  linkAccount,
  open,
  startLink,
  undoTokenIn,
} from './linking.ts'
import { platformOf } from './sandbox-platform.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
const offlineGateway = await startGateway({
  databaseUrl: database.url,
  env: {
    FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal(),
    FAREBOX_LOG_LEVEL: 'warn',
    FAREBOX_LINKS_OFFLINE_ACCESS: 'true',
  },
})
const offline = { url: offlineGateway.url, sandbox }
after(installation.stop)
after(() => offlineGateway.stop())
const newSecret = async () => (await makeCustomer(pool)).secret
const SEVEN = ['follows.write', 'tweet.read', 'users.read', 'tweet.write', 'like.write', 'dm.read', 'dm.write']

const platform = platformOf(sandbox.url)
const sessionsOf = async (): Promise<number> => (await pool.query('select from link_sessions')).rowCount ?? 0

describe('starting a link', () => {
  it('LINK-1 returns auth_url, state and expires_at; no body or no scopes means the default seven', async () => {
    const secret = await newSecret()
    for (const body of [undefined, {}, { scopes: null }, { scopes: [] }]) {
      const { status, json, text } = await startLink(url, secret, body)
      assert.equal(status, 200, text)
      assert.deepEqual(Object.keys(json).toSorted(), ['auth_url', 'expires_at', 'scopes', 'state'])
      const asked = new URL(String(json.auth_url)).searchParams
      assert.deepEqual(asked.get('scope')?.split(' '), SEVEN)
      assert.deepEqual(json.scopes, SEVEN)
      assert.equal(asked.get('state'), json.state)
      const minutes = (Date.parse(String(json.expires_at)) - Date.now()) / 60_000
      assert.ok(minutes > 9.5 && minutes < 10.5)
    }
    const { json } = await startLink(url, secret, { scopes: ['users.read', 'tweet.read', 'users.read'] })
    assert.deepEqual(json.scopes, ['users.read', 'tweet.read'])
  })

  it('adds offline.access where the operator turned it on, and says so', async () => {
    const { json } = await startLink(offline.url, await newSecret())
    assert.deepEqual(json.scopes, [...SEVEN, 'offline.access'])
  })

  it('refuses offline.access where the operator did not turn it on, however it is written, and begins nothing', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const asked = await startLink(url, secret, { scopes: ['tweet.read', 'offline.access'] })
    assert.deepEqual([asked.status, errorOf(asked).code], [400, 'invalid_request'], asked.text)
    assert.match(String(errorOf(asked).message), /offline\.access is not available.*links\.offline_access/)
    for (const scopes of [
      ['offline.access'],
      ['offline_access'],
      ['Offline.Access'],
      ['OFFLINE.ACCESS', 'tweet.read'],
      ['tweet.read offline.access'],
      ['tweet.read,offline.access'],
      [' offline.access'],
      ['offline.access\n'],
      'tweet.read offline.access',
    ])
      assert.equal((await startLink(url, secret, { scopes })).status, 400, JSON.stringify(scopes))
    const { rowCount } = await pool.query('select from link_attempts where credential_id = $1', [keyId])
    assert.equal(rowCount, 0)
  })

  it('takes offline.access from a caller where the operator turned it on, and asks for it once', async () => {
    const { json } = await startLink(offline.url, await newSecret(), { scopes: ['offline.access', 'users.read'] })
    assert.deepEqual(json.scopes, ['offline.access', 'users.read'])
  })

  it('refuses scopes that are none, and who is not known', async () => {
    const secret = await newSecret()
    for (const body of [
      { scopes: 'tweet.read' },
      { scopes: [''] },
      { scopes: ['a b'] },
      { scopes: [5] },
      [],
      '{"broken"',
    ])
      assert.equal((await startLink(url, secret, body)).status, 400, JSON.stringify(body))
    assert.equal((await ask(url, '', AUTH, { method: 'POST' })).status, 401)
    const { secret: narrow } = await makeKey(pool, (await makeCustomer(pool)).workspaceId, { scopes: ['rerank'] })
    assert.equal((await startLink(url, narrow)).status, 403)
  })

  it('LINK-2 uses PKCE with S256 and the fixed callback', async () => {
    const { json } = await startLink(url, await newSecret())
    const asked = new URL(String(json.auth_url)).searchParams
    assert.equal(asked.get('code_challenge_method'), 'S256')
    assert.match(asked.get('code_challenge') ?? '', /^[A-Za-z0-9_-]{43}$/)
    assert.equal(asked.get('redirect_uri'), url + CALLBACK)
    assert.equal(asked.get('response_type'), 'code')
  })
})

describe('coming back from the platform', () => {
  it('LINK-2 LINK-3 needs no credential, exchanges the code and stores the session against the key', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const page = await linkAccount(url, secret, 'alice')
    assert.match(page.text, /@alice is linked/)
    assert.match(page.text, /<bdi><b>Customer<\/b><\/bdi>/, 'names the workspace that will act')
    const { rows } = await pool.query('select username, scopes from link_sessions where credential_id = $1', [keyId])
    assert.deepEqual(rows, [{ username: 'alice', scopes: SEVEN }])
    const { json } = await ask(url, secret, LINKS)
    const [link] = json.data as Record<string, unknown>[]
    assert.deepEqual([link?.username, link?.status], ['alice', 'active'])
  })

  it('is safe for whoever sees the page', async () => {
    const customer = await makeCustomer(pool)
    await pool.query(`update workspaces set name = '<script>alert(1)</script>"&' where id = $1`, [customer.workspaceId])
    const { headers, text } = await linkAccount(url, customer.secret)
    assert.doesNotMatch(text, /<script/)
    assert.match(text, /&lt;script&gt;alert\(1\)&lt;\/script&gt;&quot;&amp;/)
    assert.match(
      headers.get('content-security-policy') ?? '',
      /^default-src 'none'; style-src 'self'; font-src 'self'; /,
    )
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('set-cookie'), null)
  })

  it('LINK-3 a state that is forged, missing, of an older flow or of a revoked key is refused, and nothing is stored', async () => {
    const customer = await makeCustomer(pool)
    const { secret } = customer
    const older = String((await startLink(url, secret)).json.auth_url)
    const newer = String((await startLink(url, secret)).json.auth_url)
    const before = await sessionsOf()
    const back = new URL(await decide(older))
    const state = back.searchParams.get('state') ?? ''
    for (const [name, change] of [
      ['forged', () => back.searchParams.set('state', `${state.slice(0, -5)}AAAAA`)],
      ['short', () => back.searchParams.set('state', 'x')],
      ['long', () => back.searchParams.set('state', 'x'.repeat(2_000))],
      ['missing', () => back.searchParams.delete('state')],
      ['older of two flows at once', () => back.searchParams.set('state', state)],
    ] as const) {
      change()
      const page = await open(back.href)
      assert.equal(page.status, 400, name)
      assert.match(page.text, /does not work/, name)
    }
    assert.equal(await sessionsOf(), before)
    const page = await confirm(url, await open(await decide(newer)))
    assert.equal(page.status, 200, 'the newer one works')

    const revoked = await makeKey(pool, customer.workspaceId)
    const started = await startLink(url, revoked.secret)
    await revokeKey({ pool, ids }, ACTOR, revoked.keyId)
    assert.equal((await open(await decide(String(started.json.auth_url)))).status, 400)
    assert.equal(await sessionsOf(), before + 1)
  })

  it("LINK-3 a state that was used, or another key's code, links nothing", async () => {
    const [mine, other] = [await newSecret(), await newSecret()]
    const started = await startLink(url, mine)
    const location = await decide(String(started.json.auth_url))
    assert.equal((await open(location)).status, 200)
    const again = await open(location)
    assert.equal(again.status, 400)
    assert.match(again.text, /already used/)
    // A code that was given for one flow does not fit the proof of another.
    const theirs = new URL(await decide(String((await startLink(url, other)).json.auth_url)))
    const ours = new URL(await decide(String((await startLink(url, mine)).json.auth_url)))
    theirs.searchParams.set('code', ours.searchParams.get('code') ?? '')
    const page = await open(theirs.href)
    assert.equal(page.status, 502)
    assert.match(page.text, /Nothing was linked/)
    assert.deepEqual((await ask(url, other, LINKS)).json.data, [])
  })

  it('LINK-3 exchanges a code once, though the callback is opened 20 times at once', async () => {
    const { secret } = await makeCustomer(pool)
    const location = await decide(String((await startLink(url, secret)).json.auth_url))
    const before = (await platform.summary()).code_exchanges
    const pages = await Promise.all(Array.from({ length: 20 }, () => open(location)))
    assert.equal(pages.filter(({ status }) => status === 200).length, 1)
    assert.equal(pages.filter(({ text }) => /already used/.test(text)).length, 19)
    assert.equal((await platform.summary()).code_exchanges, before + 1)
    await confirm(url, pages.find(({ status }) => status === 200) ?? assert.fail())
    assert.equal((await follow(url, secret)).status, 200)
  })

  it('stores nothing before its user has confirmed for which workspace, and once', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const stored = async () =>
      (await pool.query('select from link_sessions where credential_id = $1', [keyId])).rowCount
    const asked = await open(
      await decide(String((await startLink(url, secret)).json.auth_url), { user: 'careful_user' }),
    )
    assert.match(asked.text, /Link @careful_user\?/)
    assert.match(asked.text, /<bdi><b>Customer<\/b><\/bdi> wants to act/)
    assert.match(asked.text, /<span>Follow and unfollow accounts<\/span><code>follows.write/)
    assert.match(asked.text, /<span>Send direct messages for you \(no call that is sold here uses it today\)<\/span>/)
    assert.equal(await stored(), 0)
    assert.equal(codeOf(await follow(url, secret)), 'link_required')
    assert.equal((await confirm(url, { ...asked, text: 'name="offer" value="forged"' })).status, 400)
    const answers = await Promise.all(Array.from({ length: 5 }, () => confirm(url, asked)))
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400, 400, 400, 400])
    assert.match((await confirm(url, asked, 'no')).text, /already used/)
    assert.equal((await follow(url, secret)).status, 200)
  })

  it('LINK-3 is stored by the callback where a program opens it, which has no person to ask', async () => {
    const secret = await newSecret()
    const location = await decide(String((await startLink(url, secret)).json.auth_url), { user: 'users_program' })
    assert.match((await open(location, '*/*')).text, /is linked/)
    assert.equal((await follow(url, secret)).status, 200)
  })

  it('is nothing, here and at the platform, where its user declines, or the key has begun another link', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const askedAs = async (user: string) =>
      open(await decide(String((await startLink(url, secret)).json.auth_url), { user }))
    const declined = await askedAs('declining_user')
    assert.match((await confirm(url, declined, 'no')).text, /Nothing was linked/)
    assert.equal((await confirm(url, declined)).status, 400)
    const older = await askedAs('older_user')
    await startLink(url, secret)
    assert.equal((await confirm(url, older)).status, 400)
    const { rowCount } = await pool.query('select from link_sessions where credential_id = $1', [keyId])
    assert.equal(rowCount, 0)
    for (const { user, revoked } of await platform.sessions())
      if (user === 'declining_user' || user === 'older_user') assert.equal(revoked, true, user)
  })

  it('LINK-3 linking again replaces the session, and ends the old one at the platform', async () => {
    const secret = await newSecret()
    await linkAccount(url, secret, 'first_user')
    await linkAccount(url, secret, 'second_user')
    const { json } = await ask(url, secret, LINKS)
    assert.deepEqual(
      (json.data as { username: string }[]).map(({ username }) => username),
      ['second_user'],
    )
    const sessions = await platform.sessions()
    assert.equal(sessions.find((one) => one.user === 'first_user')?.revoked, true)
  })

  it('LINK-4 a link older than expires_at is refused; a new one works', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    const started = await startLink(url, secret)
    const location = await decide(String(started.json.auth_url))
    await pool.query(
      "update link_attempts set expires_at = expires_at - interval '601 seconds' where credential_id = $1",
      [keyId],
    )
    const page = await open(location)
    assert.equal(page.status, 400)
    assert.match(page.text, /has expired/)
    await linkAccount(url, secret)
  })

  it('says so where the user did not allow it', async () => {
    const secret = await newSecret()
    const page = await open(await decide(String((await startLink(url, secret)).json.auth_url), { decision: 'deny' }))
    assert.equal(page.status, 200)
    assert.match(page.text, /Nothing was linked/)
    assert.deepEqual((await ask(url, secret, LINKS)).json.data, [])
  })

  it('is refused with a page where its user is a person, and with JSON where a program asks for it', async () => {
    const undo = (headers: Record<string, string>) =>
      fetch(`${url}${CALLBACK}/undo`, {
        method: 'POST',
        headers: { 'content-type': 'text/plain', ...headers },
        body: 'x',
      })
    const page = await undo({})
    assert.deepEqual([page.status, page.headers.get('content-type')], [415, 'text/html; charset=utf-8'])
    assert.match(await page.text(), /Send application\/x-www-form-urlencoded\./)
    const json = await undo({ accept: 'application/json' })
    assert.equal(Object(await json.json()).code, 'unsupported_media_type')
  })

  it('lets its user undo it, once, here and at the platform', async () => {
    const secret = await newSecret()
    const page = await linkAccount(url, secret, 'undoing_user')
    const undo = (token: string) =>
      fetch(`${url}${CALLBACK}/undo`, { method: 'POST', body: new URLSearchParams({ token }) })
    assert.equal((await undo('forged')).status, 400)
    const undone = await undo(undoTokenIn(page))
    assert.equal(undone.status, 200)
    assert.match(await undone.text(), /was undone/)
    assert.equal((await undo(undoTokenIn(page))).status, 400)
    assert.equal(codeOf(await follow(url, secret)), 'link_required')
    const sessions = await platform.sessions()
    assert.equal(sessions.find((one) => one.user === 'undoing_user')?.revoked, true)
  })
})

describe('a call that acts for a user', () => {
  it('LINK-5 uses the stored session, with no token in its body, and is charged on success', async () => {
    const secret = await newSecret()
    await linkAccount(url, secret, 'follower')
    const told = await follow(url, secret, '4242')
    assert.equal(told.status, 200, told.text)
    assert.deepEqual(told.json.data, { following: true, pending_follow: false })
    assert.equal(told.costUsd, '0.005000000')
    const follows = await platform.follows()
    const made = follows.at(-1)
    assert.deepEqual([made?.user, made?.target_user_id], ['follower', '4242'])
  })

  it('LINK-5 without a session, or without a scope, answers 403 that says how to link; nothing is charged', async () => {
    const secret = await newSecret()
    const none = await follow(url, secret)
    assert.deepEqual([none.status, codeOf(none)], [403, 'link_required'])
    assert.match(String(errorOf(none).message), /POST \/apis\/v1\/social_a\/auth_social_a/)
    await linkAccount(url, secret, 'reader', { scopes: ['tweet.read', 'users.read'] })
    const narrow = await follow(url, secret)
    assert.deepEqual([narrow.status, codeOf(narrow)], [403, 'link_scope_missing'])
    assert.match(String(errorOf(narrow).message), /follows\.write/)
    assert.equal(Object((await ask(url, secret, '/v1/usage?start_time=1')).json.totals).charged_micros_usd, 0)
  })

  it('passes on what the platform refuses, and charges nothing for it', async () => {
    const secret = await newSecret()
    await linkAccount(url, secret)
    const told = await ask(url, secret, FOLLOW, { body: { target_user_id: 'not a number' } })
    assert.equal(told.status, 400)
    assert.equal(told.costUsd, '0.000000000')
  })

  it('is not to be repeated where the platform failed: it may have acted all the same', async () => {
    const secret = await newSecret()
    await linkAccount(url, secret)
    for (const status of [500, 502, 504, 408]) {
      const body = { target_user_id: '4242', note: `sandbox:status=${status}` }
      const told = await ask(url, secret, FOLLOW, { body })
      assert.deepEqual([told.costUsd, told.headers.get('x-should-retry')], ['0.000000000', 'false'], told.text)
    }
    const read = await ask(url, secret, '/apis/v1/social_a/tweet/quotes?tweetId=sandbox:status%3D500')
    assert.deepEqual([read.costUsd, read.headers.get('x-should-retry')], ['0.000000000', null], read.text)
  })

  it('LINK-6 a session that can not be refreshed ends with its token, and says that it needs a new link', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    await linkAccount(url, secret)
    await pool.query('update link_sessions set access_until = clock_timestamp() where credential_id = $1', [keyId])
    const told = await follow(url, secret)
    assert.deepEqual([told.status, codeOf(told)], [403, 'link_required'])
    const [link] = (await ask(url, secret, LINKS)).json.data as Record<string, unknown>[]
    assert.deepEqual([link?.status, link?.reason], ['needs_link', 'expired'])
    await linkAccount(url, secret)
    assert.equal((await follow(url, secret)).status, 200)
  })

  it('LINK-6 one that was revoked at the platform says so, whether its token was to be refreshed or not', async () => {
    for (const at of [installation, offline]) {
      const { secret, keyId } = await makeCustomer(pool)
      await linkAccount(at.url, secret, `revoked_${at === offline ? 'late' : 'soon'}`)
      await platformOf(at.sandbox.url).turn({ revoke_user: `revoked_${at === offline ? 'late' : 'soon'}` })
      if (at === offline)
        await pool.query('update link_sessions set access_until = clock_timestamp() where credential_id = $1', [keyId])
      // A write that is refused may be a mistake of the platform, once. A refresh that is refused is none.
      if (at !== offline) assert.equal(codeOf(await follow(at.url, secret)), 'upstream_transport')
      const told = await follow(at.url, secret)
      assert.deepEqual([told.status, codeOf(told)], [403, 'link_required'])
      const [link] = (await ask(at.url, secret, LINKS)).json.data as Record<string, unknown>[]
      assert.deepEqual([link?.status, link?.reason], ['needs_link', 'revoked'])
    }
  })

  it('LINK-6 is refreshed where it can be, and goes on', async () => {
    const { secret, keyId } = await makeCustomer(pool)
    await linkAccount(offline.url, secret, 'refreshed')
    for (let times = 0; times < 3; times += 1) {
      await pool.query('update link_sessions set access_until = clock_timestamp() where credential_id = $1', [keyId])
      assert.equal((await follow(offline.url, secret)).status, 200)
    }
    const sessions = await platform.sessions()
    const session = sessions.find((one) => one.user === 'refreshed')
    assert.deepEqual([session?.refreshes, session?.refresh_reuses], [3, 0])
  })
})

describe('what a platform does meanwhile', () => {
  it('LINK-6 a token that it does not take any more is replaced, and the call goes on', async () => {
    const { secret } = await makeCustomer(pool)
    await linkAccount(offline.url, secret, 'early_end')
    await platform.turn({ expire_access_tokens: true })
    const told = await follow(offline.url, secret)
    assert.equal(told.status, 200, told.text)
    assert.equal(told.costUsd, '0.005000000')
  })

  it('one that does not say who the user is links nothing, here or there', async () => {
    const secret = await newSecret()
    const location = await decide(String((await startLink(url, secret)).json.auth_url), { user: 'nameless' })
    await fetch(`${sandbox.url}/control`, {
      method: 'POST',
      body: JSON.stringify({ upstream: 'platform', path: '/users/me', directives: ['status=500'], times: 1 }),
    })
    assert.equal((await open(location)).status, 502)
    assert.deepEqual((await ask(url, secret, LINKS)).json.data, [])
    const sessions = await platform.sessions()
    assert.equal(sessions.find((one) => one.user === 'nameless')?.revoked, true)
  })
})

describe('the links of a key', () => {
  it('end with it, also at the platform', async () => {
    const { workspaceId } = await makeCustomer(pool)
    const { secret, keyId } = await makeKey(pool, workspaceId)
    await linkAccount(url, secret, 'of_a_lost_key')
    await revokeKey({ pool, ids }, ACTOR, keyId)
    // A process sweeps when it starts.
    const [another] = await startGateways(1, {
      databaseUrl: database.url,
      env: { FAREBOX_SECRETS_MASTER_KEY: installation.masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn' },
    })
    const isRevoked = async () => {
      const sessions = await platform.sessions()
      return sessions.find((one) => one.user === 'of_a_lost_key')?.revoked === true
    }
    await until(isRevoked, PATIENCE_MS, 'that the platform is told')
    await another?.stop()
    const { rows } = await pool.query('select from link_sessions where credential_id = $1', [keyId])
    assert.deepEqual(rows, [])
  })

  it('are its own, and end here and at the platform when it says so', async () => {
    const [mine, other] = [await newSecret(), await newSecret()]
    await linkAccount(url, mine, 'leaving_user')
    const [link] = (await ask(url, mine, LINKS)).json.data as { id: string }[]
    assert.deepEqual((await ask(url, other, LINKS)).json.data, [])
    const remove = (secret: string) => ask(url, secret, `${LINKS}/${link?.id}`, { method: 'DELETE' })
    assert.equal((await remove(other)).status, 404)
    assert.equal((await remove(mine)).status, 204)
    assert.equal((await remove(mine)).status, 404)
    const sessions = await platform.sessions()
    assert.equal(sessions.find((one) => one.user === 'leaving_user')?.revoked, true)
  })
})
