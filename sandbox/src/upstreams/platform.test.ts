import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { ASK, assertMembers, startTestSandbox } from '../test-sandbox.ts'
import { userNamed } from './platform-user.ts'

const START_MS = Date.UTC(2026, 10, 15, 4, 20)
let nowMs = START_MS
const sandbox = await startTestSandbox({ nowMs: () => nowMs })
after(() => sandbox.stop())
beforeEach(async () => {
  nowMs = START_MS
  for (const path of ['/journal', '/control', '/control/platform']) await sandbox.ask({ path, method: 'DELETE' })
})

/** The pair of RFC 7636, appendix B. */
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const CALLBACK = 'http://127.0.0.1:9/callback?from=platform'
const SCOPE = 'tweet.read users.read follows.write offline.access'
const PERMISSION = {
  response_type: 'code',
  client_id: 'sandbox-client',
  redirect_uri: CALLBACK,
  scope: SCOPE,
  state: 'st&te',
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
}
type Fields = Readonly<Record<string, string>>
type Tokens = { readonly access_token: string; readonly refresh_token: string }

const AUTHORIZE = '/platform/i/oauth2/authorize'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
const { headers: client } = ASK.platform
const textOf = (fields: Fields) => String(new URLSearchParams(fields))
const show = (fields: Fields, headers: Fields = {}) => sandbox.ask({ path: `${AUTHORIZE}?${textOf(fields)}`, headers })
const decide = (fields: Fields, headers: Fields = {}) =>
  sandbox.ask({ path: AUTHORIZE, headers: { ...FORM, ...headers }, body: textOf(fields) })
const allow = (fields: Fields = {}) => decide({ ...PERMISSION, ...fields, decision: 'allow' })
const token = (fields: Fields, headers: Fields = client) =>
  sandbox.ask({ path: '/platform/2/oauth2/token', headers, body: textOf(fields) })
const exchange = (code: string, fields: Fields = {}) =>
  token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER, ...fields })
const refresh = (refresh_token: string) => token({ grant_type: 'refresh_token', refresh_token })
const revoke = (text: string) => sandbox.ask({ ...ASK.platform, body: textOf({ token: text, token_type_hint: 'x' }) })
const bearer = (access: string) => ({ authorization: `Bearer ${access}` })
const me = (access: string) => sandbox.ask({ path: '/platform/2/users/me', headers: bearer(access) })
const follow = (access: string, user: string, body: unknown, headers: Fields = {}) =>
  sandbox.ask({ path: `/platform/2/users/${user}/following`, headers: { ...bearer(access), ...headers }, body })
const sessions = async () => (await sandbox.ask({ path: '/control/platform/sessions' })).json().sessions
const counts = async () => (await sandbox.ask({ path: '/control/platform' })).json()

function redirected({ status, headers }: Awaited<ReturnType<typeof decide>>): URLSearchParams {
  assert.equal(status, 302)
  const url = new URL(String(headers.location))
  assert.equal(url.origin + url.pathname, 'http://127.0.0.1:9/callback')
  assert.equal(url.searchParams.get('from'), 'platform')
  return url.searchParams
}
async function code(fields: Fields = {}): Promise<string> {
  return redirected(await allow(fields)).get('code') ?? ''
}
async function link(fields: Fields = {}): Promise<Tokens> {
  const answer = await exchange(await code(fields))
  assert.equal(answer.status, 200, answer.text)
  return answer.json()
}
/** OAuth's errors have these two members and no others. */
function assertRefused(answer: Awaited<ReturnType<typeof token>>, status: number, error: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers['content-type'], 'application/json')
  assertMembers(answer.json(), { error: 'string', error_description: 'string' })
  assert.equal(answer.json().error, error)
}
function assertProblem(answer: Awaited<ReturnType<typeof me>>, status: number, title: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.headers['content-type'], 'application/problem+json')
  const { detail, ...rest } = answer.json()
  assert.equal(typeof detail, 'string')
  assert.deepEqual(rest, { title, type: 'about:blank', status })
}

describe('the page on which a user decides', () => {
  it('names the app, the scopes and who is signed in, and has a form with everything that was asked', async () => {
    const answer = await show({ ...PERMISSION, sandbox_user: 'alice' })
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
    assert.equal(answer.headers['cache-control'], 'no-store')
    for (const text of ['sandbox-client wants', 'Alice (@alice)', 'Authorize app', 'Cancel', ...SCOPE.split(' ')])
      assert.ok(answer.text.includes(text), text)
    assert.doesNotMatch(answer.text, /<script|src=|href=|url\(/)
    const inputs = [...answer.text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)]
    const sent = Object.fromEntries(inputs.map(([, name, value]) => [name, value?.replaceAll('&amp;', '&')]))
    assert.deepEqual(sent, { sandbox_user: 'alice', ...PERMISSION })
    assert.equal((await counts()).authorizations, 0)
  })

  it('takes whatever it is given for text', async () => {
    const { text } = await show({ ...PERMISSION, state: `"><script>alert('1')</script>&amp;` })
    assert.ok(text.includes('value="&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;amp;"'))
    assert.doesNotMatch(text, /<script/)
  })

  it('signs in whom the address names, else the cookie, else control', async () => {
    const cookie = { cookie: 'other=1; sandbox_user=bob' }
    assert.ok((await show({ ...PERMISSION, sandbox_user: 'alice' }, cookie)).text.includes('(@alice)'))
    assert.ok((await show(PERMISSION, cookie)).text.includes('(@bob)'))
    assert.ok((await show(PERMISSION)).text.includes('Sandbox user (@sandbox_user)'))
    await sandbox.ask({ path: '/control/platform', body: { user: 'carol' } })
    assert.ok((await show(PERMISSION)).text.includes('(@carol)'))
    redirected(await decide({ ...PERMISSION, decision: 'allow' }, cookie))
    redirected(await allow({ sandbox_user: 'alice' }))
    assert.deepEqual(
      (await sessions()).map(({ user }: { user: string }) => user),
      ['bob', 'alice'],
    )
  })

  it('sends the user back with a code, or with access_denied, and with the state as it came', async () => {
    const allowed = redirected(await allow())
    assert.match(allowed.get('code') ?? '', /^code_canary_[a-z0-9]+_[\w-]{32}$/)
    assert.equal(allowed.get('state'), 'st&te')
    const denied = redirected(await decide({ ...PERMISSION, decision: 'deny' }))
    assert.deepEqual(Object.fromEntries(denied), { from: 'platform', error: 'access_denied', state: 'st&te' })
    const { state: _, ...stateless } = PERMISSION
    assert.deepEqual([...redirected(await decide({ ...stateless, decision: 'allow' })).keys()], ['from', 'code'])
    assert.deepEqual([(await counts()).authorizations, (await counts()).denials], [2, 1])
  })

  for (const [what, fields] of Object.entries<Fields>({
    'another response_type': { response_type: 'token' },
    'no response_type': { response_type: '' },
    'an app that it does not know': { client_id: 'somebody' },
    'no redirect_uri': { redirect_uri: '' },
    'a redirect_uri that is no address': { redirect_uri: '/callback' },
    'a redirect_uri that runs something': { redirect_uri: 'javascript:alert(1)' },
    'a redirect_uri with a fragment': { redirect_uri: 'http://127.0.0.1:9/#a' },
    'no challenge': { code_challenge: '' },
    'a challenge that is no hash': { code_challenge: 'x' },
    'a plain challenge': { code_challenge_method: 'plain' },
    'a challenge of no method, which is a plain one': { code_challenge_method: '' },
    'a state beyond 500 characters': { state: 'x'.repeat(501) },
    'no scope': { scope: ' ' },
    'a user who can not be': { sandbox_user: '<b>' },
  })) {
    it(`answers ${what} with a page, and sends nobody anywhere`, async () => {
      for (const answer of [await show({ ...PERMISSION, ...fields }), await allow(fields)]) {
        assert.equal(answer.status, 400)
        assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
        assert.equal(answer.headers.location, undefined)
        assert.ok(answer.text.includes('Something went wrong'))
        assert.doesNotMatch(answer.text, /<form|<b>/)
      }
      assert.deepEqual(await sessions(), [])
    })
  }

  it('takes no decision but those two, only from a form, and no other method', async () => {
    for (const decision of ['', 'maybe']) assert.equal((await decide({ ...PERMISSION, decision })).status, 400)
    const json = { ...PERMISSION, decision: 'allow' }
    assert.equal((await sandbox.ask({ path: AUTHORIZE, body: json })).status, 400)
    assert.equal((await sandbox.ask({ path: AUTHORIZE, method: 'PUT' })).status, 405)
  })
})

describe('exchanging a code', () => {
  it('gives tokens to whoever has the verifier', async () => {
    const answer = await exchange(await code())
    assert.equal(answer.status, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const { access_token, refresh_token, ...rest } = answer.json()
    assert.deepEqual(rest, { token_type: 'bearer', expires_in: 7200, scope: SCOPE })
    assert.match(access_token, /^at_canary_[a-z0-9]+_[\w-]{32}$/)
    assert.match(refresh_token, /^rt_canary_[a-z0-9]+_[\w-]{32}$/)
  })

  it('takes the challenge for the SHA-256 hash of the verifier, in base64url without padding', async () => {
    const verifier = `${'~verifier.'.repeat(12)}12345678`
    const digest = Buffer.from(hash('sha256', verifier), 'hex').toString('base64')
    const challenge = digest.replaceAll('+', '-').replaceAll('/', '_').replace('=', '')
    const one = await code({ code_challenge: challenge })
    assertRefused(await exchange(one), 400, 'invalid_grant')
    assertRefused(await exchange(one, { code_verifier: challenge }), 400, 'invalid_grant')
    assert.equal((await exchange(one, { code_verifier: verifier })).status, 200)
    assert.deepEqual([(await sessions())[0].code_uses, (await counts()).failed_exchanges], [3, 2])
  })

  it('gives a refresh token only with the scope offline.access', async () => {
    const answer = await exchange(await code({ scope: 'users.read tweet.read' }))
    assertMembers(answer.json(), {
      token_type: 'string',
      expires_in: 'integer',
      access_token: 'string',
      scope: 'string',
    })
  })

  it('works once: a second time ends the session that it began', async () => {
    const one = await code()
    const { access_token, refresh_token } = (await exchange(one)).json()
    assert.equal((await me(access_token)).status, 200)
    assertRefused(await exchange(one), 400, 'invalid_grant')
    assertProblem(await me(access_token), 401, 'Unauthorized')
    assertRefused(await refresh(refresh_token), 400, 'invalid_grant')
    const [{ code_uses, revoked, revoked_by }] = await sessions()
    assert.deepEqual([code_uses, revoked, revoked_by], [2, true, 'code_reuse'])
    const { code_exchanges, failed_exchanges, code_reuses, refresh_reuses } = await counts()
    assert.deepEqual([code_exchanges, failed_exchanges, code_reuses, refresh_reuses], [1, 1, 1, 0])
  })

  it('is for one of two that come at once', async () => {
    const one = await code()
    const answers = await Promise.all([exchange(one), exchange(one)])
    assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400])
  })

  it('must come within 30 seconds', async () => {
    const [early, late] = [await code(), await code()]
    nowMs += 29_999
    assert.equal((await exchange(early)).status, 200)
    nowMs += 1
    assertRefused(await exchange(late), 400, 'invalid_grant')
  })

  it('needs the very redirect_uri, a code that is one, and all of its parameters', async () => {
    const one = await code()
    assertRefused(await exchange(one, { redirect_uri: `${CALLBACK}&` }), 400, 'invalid_grant')
    assertRefused(await exchange('code_canary_1_x'), 400, 'invalid_grant')
    const { access_token } = await link()
    assertRefused(await exchange(access_token), 400, 'invalid_grant')
    for (const name of ['code', 'redirect_uri', 'code_verifier'])
      assertRefused(await exchange(one, { [name]: '' }), 400, 'invalid_request')
    assertRefused(await token({}), 400, 'invalid_request')
    assertRefused(await token({ grant_type: 'password' }), 400, 'unsupported_grant_type')
    assert.equal((await exchange(one)).status, 200)
  })

  it('is for the app alone, with its secret in the header', async () => {
    const one = await code()
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    for (const authorization of [
      basic('sandbox-client:sandbox-client-secret2'),
      basic('sandbox-client2:sandbox-client-secret'),
      basic('sandbox-client'),
      'Bearer sandbox-client-secret',
    ])
      assertRefused(
        await token({ grant_type: 'authorization_code', code: one }, { ...FORM, authorization }),
        401,
        'invalid_client',
      )
    assertRefused(await token({ code: one, client_id: 'sandbox-client' }, FORM), 401, 'invalid_client')
    assert.equal((await exchange(one)).status, 200)
    assert.deepEqual((await sessions())[0].code_uses, 1)
  })
})

describe('refreshing', () => {
  it('gives another pair, and leaves the old access token as it was', async () => {
    const first = await link()
    nowMs += 7_199_999
    const second = (await refresh(first.refresh_token)).json()
    assertMembers(second, {
      token_type: 'string',
      expires_in: 'integer',
      access_token: 'string',
      scope: 'string',
      refresh_token: 'string',
    })
    assert.equal(second.scope, SCOPE)
    for (const one of [first, second]) assert.equal((await me(one.access_token)).status, 200)
    nowMs += 1
    assertProblem(await me(first.access_token), 401, 'Unauthorized')
    assert.equal((await me(second.access_token)).status, 200)
    const [{ refreshes, access_expires_at_ms, revoked }] = await sessions()
    assert.deepEqual([refreshes, access_expires_at_ms, revoked], [1, START_MS + 7_199_999 + 7_200_000, false])
  })

  it('with a token that is spent is refused, counted, and ends the session', async () => {
    const first = await link()
    const second = (await refresh(first.refresh_token)).json()
    assertRefused(await refresh(first.refresh_token), 400, 'invalid_grant')
    assertRefused(await refresh(second.refresh_token), 400, 'invalid_grant')
    assertProblem(await me(second.access_token), 401, 'Unauthorized')
    const [{ refreshes, refresh_reuses, revoked_by }] = await sessions()
    assert.deepEqual([refreshes, refresh_reuses, revoked_by], [1, 1, 'refresh_reuse'])
    const { refreshes: all, failed_refreshes, refresh_reuses: reuses } = await counts()
    assert.deepEqual([all, failed_refreshes, reuses], [1, 2, 1])
  })

  it('needs a token, and one that is for that', async () => {
    const { access_token } = await link()
    for (const wrong of ['rt_canary_1_x', access_token]) assertRefused(await refresh(wrong), 400, 'invalid_grant')
    assertRefused(await refresh(''), 400, 'invalid_request')
    assert.equal((await sessions())[0].revoked, false)
  })
})

describe('revoking', () => {
  for (const which of ['access_token', 'refresh_token'] as const) {
    it(`the ${which.replace('_', ' ')} ends the session, and only that one`, async () => {
      const [one, other] = [await link({ sandbox_user: 'alice' }), await link({ sandbox_user: 'alice' })]
      const answer = await revoke(one[which])
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.json(), { revoked: true })
      assertProblem(await me(one.access_token), 401, 'Unauthorized')
      assertRefused(await refresh(one.refresh_token), 400, 'invalid_grant')
      assert.equal((await me(other.access_token)).status, 200)
      assert.deepEqual(
        (await sessions()).map(({ revoked_by }: { revoked_by: string }) => revoked_by),
        ['client', null],
      )
    })
  }

  it('what nobody has is no error, and nothing is', async () => {
    assert.deepEqual((await revoke('nobody-s')).json(), { revoked: true })
    assertRefused(await revoke(''), 400, 'invalid_request')
    assert.equal((await counts()).revocations, 1)
  })
})

describe('a user of the platform', () => {
  it('is told by the token, and has the same id each time', async () => {
    const { access_token } = await link({ sandbox_user: 'alice_b' })
    const { status, headers, json } = await me(access_token)
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'application/json')
    const { id, ...rest } = json().data
    assert.deepEqual(rest, { name: 'Alice b', username: 'alice_b' })
    assert.match(id, /^[0-9]{19}$/)
    assert.equal((await sessions())[0].user_id, id)
    assert.equal((await me((await link({ sandbox_user: 'alice_b' })).access_token)).json().data.id, id)
    assert.notEqual((await me((await link()).access_token)).json().data.id, id)
    assert.notEqual(userNamed('alice_b', 2).id, id)
  })

  it('is told to nobody without a token that is good', async () => {
    for (const headers of [{}, bearer('at_canary_1_x'), bearer((await link()).refresh_token), ASK.platform.headers]) {
      const answer = await sandbox.ask({ path: '/platform/2/users/me', headers })
      assert.equal(answer.status, 401)
      assert.equal(answer.headers['content-type'], 'application/problem+json')
      assert.deepEqual(answer.json(), {
        title: 'Unauthorized',
        type: 'about:blank',
        status: 401,
        detail: 'Unauthorized',
      })
    }
  })

  it('is told only with tweet.read and users.read', async () => {
    for (const scope of ['users.read', 'tweet.read', 'follows.write offline.access'])
      assertProblem(await me((await link({ scope })).access_token), 403, 'Forbidden')
    assert.equal((await counts()).me, 0)
  })
})

describe('following', () => {
  const alice = userNamed('alice', 1).id

  it('is done in the name of the user, and waits for those who are protected', async () => {
    const { access_token } = await link({ sandbox_user: 'alice' })
    for (const [target, pending_follow] of [
      ['7', false],
      ['1234567890123456789', true],
    ] as const) {
      const answer = await follow(access_token, alice, { target_user_id: target }, { 'x-request-id': `r-${target}` })
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.json(), { data: { following: true, pending_follow } })
    }
    await follow(access_token, alice, { target_user_id: '7' })
    const { follows, next, lost } = (await sandbox.ask({ path: '/control/platform/follows' })).json()
    const of = { user: 'alice', user_id: alice, at_ms: START_MS }
    const [{ n }] = follows
    assert.deepEqual(follows, [
      { n, ...of, target_user_id: '7', pending_follow: false, request_id: 'r-7' },
      {
        n: n + 1,
        ...of,
        target_user_id: '1234567890123456789',
        pending_follow: true,
        request_id: 'r-1234567890123456789',
      },
      { n: n + 2, ...of, target_user_id: '7', pending_follow: false, request_id: null },
    ])
    assert.deepEqual([next, lost], [n + 3, n])
    assert.equal((await counts()).follows, 3)
  })

  it('is refused for another user, without a scope, and without a token', async () => {
    const { access_token } = await link({ sandbox_user: 'alice' })
    const body = { target_user_id: '7' }
    assertProblem(await follow(access_token, userNamed('bob', 1).id, body), 403, 'Forbidden')
    for (const scope of ['tweet.read users.read', 'follows.write tweet.read', 'follows.write users.read']) {
      const other = await link({ sandbox_user: 'alice', scope })
      assertProblem(await follow(other.access_token, alice, body), 403, 'Forbidden')
    }
    assertProblem(await follow('at_canary_1_x', alice, body), 401, 'Unauthorized')
    assert.equal((await counts()).follows, 0)
  })

  it('takes a target of 1 to 19 digits and nothing else', async () => {
    const { access_token } = await link({ sandbox_user: 'alice' })
    for (const body of [
      '{',
      {},
      [],
      { target_user_id: 7 },
      { target_user_id: '' },
      { target_user_id: '12345678901234567890' },
      { target_user_id: '7a' },
      { target_user_id: '7', note: 'x' },
    ])
      assertProblem(await follow(access_token, alice, body), 400, 'Invalid Request')
    assert.equal((await counts()).follows, 0)
  })

  it('is for 50 requests of a user in 15 minutes, whatever session they come from', async () => {
    const tokens = [await link({ sandbox_user: 'alice' }), await link({ sandbox_user: 'alice' })]
    const bob = await link({ sandbox_user: 'bob' })
    const ask = (at: number) => follow(tokens[at % 2]?.access_token ?? '', alice, { target_user_id: String(at) })
    const limitsIn = ({ headers }: Awaited<ReturnType<typeof ask>>) =>
      ['limit', 'remaining', 'reset'].map((name) => Number(headers[`x-rate-limit-${name}`]))
    const reset = START_MS / 1000 + 900
    for (let at = 0; at < 50; at += 1) {
      const answer = await ask(at)
      assert.equal(answer.status, 200)
      assert.deepEqual(limitsIn(answer), [50, 49 - at, reset])
      nowMs += 1000
    }
    const over = await ask(50)
    assertProblem(over, 429, 'Too Many Requests')
    assert.deepEqual(limitsIn(over), [50, 0, reset])
    assert.equal((await follow(bob.access_token, userNamed('bob', 1).id, { target_user_id: '7' })).status, 200)
    nowMs = START_MS + 900_000
    assert.deepEqual(limitsIn(await ask(51)), [50, 49, reset + 900])
    const { follows, follows_over } = await counts()
    assert.deepEqual([follows, follows_over], [52, 1])
  })
})
