import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { ASK, type Question, startTestSandbox } from './test-sandbox.ts'
import { PlatformFollows } from './upstreams/platform-follows.ts'
import { PlatformSessions } from './upstreams/platform-sessions.ts'
import { userNamed } from './upstreams/platform-user.ts'

const START_MS = Date.UTC(2026, 10, 15, 4, 20)
let nowMs = START_MS
const sandbox = await startTestSandbox({ nowMs: () => nowMs })
after(() => sandbox.stop())
beforeEach(async () => {
  nowMs = START_MS
  for (const path of ['/journal', '/control', '/control/platform']) await sandbox.ask({ path, method: 'DELETE' })
})

const CALLBACK = 'http://127.0.0.1:9/callback'
const VERIFIER = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const NO_COUNTS = {
  authorizations: 0,
  denials: 0,
  code_exchanges: 0,
  failed_exchanges: 0,
  code_reuses: 0,
  refreshes: 0,
  failed_refreshes: 0,
  refresh_reuses: 0,
  revocations: 0,
  me: 0,
  follows: 0,
  follows_over: 0,
}
const { headers } = ASK.platform
const order = (body: unknown) => sandbox.ask({ path: '/control/platform', body })
const fault = (path: string, ...directives: readonly string[]) =>
  sandbox.ask({ path: '/control', body: { upstream: 'platform', directives, path } })
const summary = async () => (await sandbox.ask({ path: '/control/platform' })).json()
const sessions = async () => (await sandbox.ask({ path: '/control/platform/sessions' })).json().sessions
const tokenRequest = (fields: Record<string, string>): Question => ({
  path: '/platform/2/oauth2/token',
  headers,
  body: String(new URLSearchParams(fields)),
})
const refreshing = (refresh_token: string) => tokenRequest({ grant_type: 'refresh_token', refresh_token })
const refresh = (text: string) => sandbox.ask(refreshing(text))
const me = (access: string) =>
  sandbox.ask({ path: '/platform/2/users/me', headers: { authorization: `Bearer ${access}` } })

async function authorize(user: string) {
  const answer = await sandbox.ask({
    path: '/platform/i/oauth2/authorize',
    headers,
    body: String(
      new URLSearchParams({
        response_type: 'code',
        client_id: 'sandbox-client',
        redirect_uri: CALLBACK,
        scope: 'tweet.read users.read follows.write offline.access',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
        sandbox_user: user,
        decision: 'allow',
      }),
    ),
  })
  return answer
}
async function exchanging(user: string): Promise<Question> {
  const { location } = (await authorize(user)).headers
  const code = new URL(String(location)).searchParams.get('code') ?? ''
  return tokenRequest({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK, code_verifier: VERIFIER })
}
async function link(user = 'alice') {
  return (await sandbox.ask(await exchanging(user))).json()
}

describe('what tests see of the platform', () => {
  it('is every session, in the order in which users allowed them, without a secret', async () => {
    await link('alice')
    await authorize('bob')
    const [one, other] = await sessions()
    assert.deepEqual(one, {
      n: one.n,
      user: 'alice',
      user_id: userNamed('alice', 1).id,
      scopes: ['tweet.read', 'users.read', 'follows.write', 'offline.access'],
      created_at_ms: START_MS,
      code_expires_at_ms: START_MS + 30_000,
      code_uses: 1,
      access_expires_at_ms: START_MS + 7_200_000,
      refreshes: 0,
      refresh_reuses: 0,
      revoked: false,
      revoked_by: null,
    })
    assert.deepEqual([other.n, other.user, other.code_uses, other.access_expires_at_ms], [one.n + 1, 'bob', 0, null])
    const page = await sandbox.ask({ path: `/control/platform/sessions?since=${other.n}` })
    assert.deepEqual(page.json(), { sessions: [other], next: other.n + 1, lost: 0 })
    assert.doesNotMatch(page.text + JSON.stringify(await summary()), /canary/)
  })

  it('is forgotten on DELETE, with all tokens and knobs, and numbers go on', async () => {
    const { access_token } = await link()
    const [{ n }] = await sessions()
    await order({ code_seconds: 5, user: 'bob' })
    const answer = await sandbox.ask({ path: '/control/platform', method: 'DELETE' })
    assert.deepEqual(answer.json(), {
      ...NO_COUNTS,
      user: 'sandbox_user',
      code_seconds: 30,
      access_token_seconds: 7200,
      token_delay_ms: 0,
      refresh_fails: 0,
      refresh_hangs: 0,
      refresh_cuts: 0,
      follow_limit: 50,
      follow_refusals: 0,
    })
    assert.equal((await me(access_token)).status, 401)
    await authorize('bob')
    assert.equal((await sessions())[0].n, n + 1)
  })

  it('is two lists and a summary, and nothing else', async () => {
    assert.equal((await sandbox.ask({ path: '/control/platform/tokens' })).status, 404)
    assert.equal((await sandbox.ask({ path: '/control/platform/sessions', body: {} })).status, 404)
    assert.equal((await sandbox.ask({ path: '/control/platform/follows?since=x' })).status, 400)
  })
})

describe('what tests may set', () => {
  it('access_token_seconds: how long tokens live that are given from now on', async () => {
    const old = await link()
    await order({ access_token_seconds: 5 })
    const short = await link()
    assert.equal(short.expires_in, 5)
    nowMs += 4999
    assert.equal((await me(short.access_token)).status, 200)
    nowMs += 1
    assert.equal((await me(short.access_token)).status, 401)
    assert.equal((await me(old.access_token)).status, 200)
    assert.equal((await refresh(short.refresh_token)).status, 200)
  })

  it('code_seconds: how long codes live', async () => {
    await order({ code_seconds: 1 })
    const [early, late] = [await exchanging('alice'), await exchanging('alice')]
    nowMs += 999
    assert.equal((await sandbox.ask(early)).status, 200)
    nowMs += 1
    assert.equal((await sandbox.ask(late)).status, 400)
  })

  it('expire_access_tokens: all that there are end now, and can be refreshed', async () => {
    const [one, other] = [await link('alice'), await link('bob')]
    await order({ expire_access_tokens: true })
    for (const { access_token } of [one, other]) assert.equal((await me(access_token)).status, 401)
    assert.equal((await sessions())[0].access_expires_at_ms, START_MS)
    const { access_token } = (await refresh(one.refresh_token)).json()
    assert.equal((await me(access_token)).status, 200)
  })

  it('revoke_user: all sessions of the user end', async () => {
    const [one, other] = [await link('alice'), await link('bob')]
    await order({ revoke_user: 'alice' })
    assert.equal((await me(one.access_token)).status, 401)
    assert.equal((await refresh(one.refresh_token)).status, 400)
    assert.equal((await me(other.access_token)).status, 200)
    assert.equal((await sessions())[0].revoked_by, 'control')
    assert.equal((await summary()).revocations, 0)
  })

  it('token_delay_ms: what was asked is done at once and answered after so long', async () => {
    const { refresh_token } = await link()
    await order({ token_delay_ms: 400 })
    const startedMs = performance.now()
    const answer = refresh(refresh_token)
    await until(async () => (await sessions())[0].refreshes === 1, PATIENCE_MS)
    assert.equal((await answer).status, 200)
    assert.ok(performance.now() - startedMs >= 390)
    assert.equal((await refresh(refresh_token)).status, 400)
  })

  it('refresh_fails, refresh_hangs, refresh_cuts: in this order, and only the last of them is done', async () => {
    const { refresh_token } = await link()
    await order({ refresh_cuts: 1, refresh_hangs: 1, refresh_fails: 2 })
    assert.deepEqual((await refresh(refresh_token)).json(), {
      error: 'server_error',
      error_description: 'Internal Server Error',
    })
    assert.equal((await refresh(refresh_token)).status, 500)
    // An exchange is none of them.
    const other = await link('bob')
    await assert.rejects(fetchRefresh(refresh_token, 300), { name: 'TimeoutError' })
    assert.equal((await sessions())[0].refreshes, 0)
    await assert.rejects(fetchRefresh(refresh_token, 5000), { name: 'TypeError' })
    assert.equal((await sessions())[0].refreshes, 1)
    assert.equal((await refresh(other.refresh_token)).status, 200)
    assert.equal((await refresh(refresh_token)).status, 400)
    const [{ refresh_reuses, revoked_by }] = await sessions()
    assert.deepEqual([refresh_reuses, revoked_by], [1, 'refresh_reuse'])
    assert.deepEqual(
      (await sandbox.journal()).filter(({ path }) => path.endsWith('/token')).map(({ outcome }) => outcome),
      ['answered', 'answered', 'answered', 'answered', 'hung', 'cut', 'answered', 'answered'],
    )
  })

  const followWith = (access: string) =>
    sandbox.ask({
      path: `/platform/2/users/${userNamed('alice', 1).id}/following`,
      headers: { authorization: `Bearer ${access}` },
      body: { target_user_id: '7' },
    })

  it('follow_refusals: so many follows are refused, with new tokens too, which there are', async () => {
    const { access_token, refresh_token } = await link()
    await order({ follow_refusals: 2 })
    assert.equal((await followWith(access_token)).status, 401)
    const renewed = (await refresh(refresh_token)).json().access_token
    assert.equal((await followWith(renewed)).status, 401)
    const { follows, follow_refusals } = await summary()
    assert.deepEqual([follows, follow_refusals], [0, 0])
    assert.equal((await followWith(renewed)).status, 200)
    const written = (await sandbox.journal()).filter(({ path }) => path.endsWith('/following'))
    assert.deepEqual(
      written.map(({ status, billed }) => [status, billed]),
      [
        [401, false],
        [401, false],
        [200, true],
      ],
    )
  })

  it('follow_limit: so many follows in a quarter of an hour', async () => {
    const { access_token } = await link()
    await order({ follow_limit: 1 })
    const follow = () => followWith(access_token)
    assert.deepEqual([(await follow()).status, (await follow()).status], [200, 429])
    await order({ follow_limit: 1000 })
    const answer = await follow()
    assert.deepEqual([answer.status, answer.headers['x-rate-limit-remaining']], [200, '998'])
  })

  for (const [what, body] of Object.entries({
    'no JSON': '{',
    'no object': [],
    'a knob that is not there': { token_seconds: 5 },
    'a number below nothing': { code_seconds: -1 },
    'a number as a text': { token_delay_ms: '5' },
    'too large a number': { token_delay_ms: 600_001 },
    'a user who can not be': { user: 'a b' },
    'a user to revoke who can not be': { revoke_user: 7 },
    'something else than whether': { expire_access_tokens: 'yes' },
  })) {
    it(`is not ${what}, and then nothing changes`, async () => {
      const before = await summary()
      const answer = await order(Array.isArray(body) || typeof body === 'string' ? body : { follow_limit: 7, ...body })
      assert.equal(answer.status, 400)
      assert.equal(typeof answer.json().error, 'string')
      assert.deepEqual(await summary(), before)
    })
  }
})

describe('faults of the platform', () => {
  it('come by control for a part of its path, in the form of errors that is there', async () => {
    const { access_token, refresh_token } = await link()
    await fault('/2/oauth2/token', 'status=503', 'retry-after=2')
    await fault('/2/users/me', 'status=500')
    const token = await refresh(refresh_token)
    assert.deepEqual([token.status, token.headers['retry-after']], [503, '2'])
    assert.deepEqual(token.json(), { error: 'temporarily_unavailable', error_description: 'Service Unavailable' })
    const user = await me(access_token)
    assert.deepEqual([user.status, user.headers['content-type']], [500, 'application/problem+json'])
    assert.equal(user.json().title, 'Internal Server Error')
    assert.equal((await me(access_token)).status, 200)
    assert.equal((await refresh(refresh_token)).status, 200)
    assert.equal((await summary()).refreshes, 1)
  })

  it('leave undone what fails, unless it is done anyway, and done what is lost on the way', async () => {
    const { refresh_token } = await link()
    await fault('/token', 'status=500')
    await fault('/token', 'status=500', 'done-anyway')
    assert.equal((await refresh(refresh_token)).status, 500)
    assert.equal((await summary()).refreshes, 0)
    assert.equal((await refresh(refresh_token)).status, 500)
    assert.equal((await summary()).refreshes, 1)
    const other = await link('bob')
    await fault('/token', 'reset=before-headers')
    await assert.rejects(fetchRefresh(other.refresh_token, 5000))
    assert.equal((await sessions())[1].refreshes, 1)
  })

  it('reach the page too: a decision that fails is none', async () => {
    await fault('/authorize', 'status=503')
    assert.equal((await authorize('alice')).status, 503)
    assert.deepEqual(await sessions(), [])
    await fault('/authorize', 'delay=1')
    assert.equal((await authorize('alice')).status, 302)
    assert.equal((await sessions()).length, 1)
  })

  it('do nothing without the right credential', async () => {
    await fault('/me', 'status=500')
    assert.equal((await me('at_canary_1_x')).status, 401)
  })
})

describe('the journal of the platform', () => {
  it('tells who was let in, and never a code, a token or a secret', async () => {
    const { access_token, refresh_token } = await link()
    await sandbox.ask({
      path: '/platform/2/users/me',
      headers: { authorization: `Bearer ${access_token}`, 'x-request-id': 'r-1' },
    })
    await me('at_canary_1_x')
    await refresh(refresh_token)
    await refresh(refresh_token)
    await sandbox.ask({ ...ASK.platform, body: `token=${refresh_token}` })
    await sandbox.ask({ ...ASK.platform, headers: {} })
    const entries = await sandbox.journal()
    assert.deepEqual(
      entries.map(({ method, path, credential, status, request_id }) => [method, path, credential, status, request_id]),
      [
        ['POST', '/platform/i/oauth2/authorize', 'missing', 302, null],
        ['POST', '/platform/2/oauth2/token', 'right', 200, null],
        ['GET', '/platform/2/users/me', 'right', 200, 'r-1'],
        ['GET', '/platform/2/users/me', 'wrong', 401, null],
        ['POST', '/platform/2/oauth2/token', 'right', 200, null],
        ['POST', '/platform/2/oauth2/token', 'right', 400, null],
        ['POST', '/platform/2/oauth2/revoke', 'right', 200, null],
        ['POST', '/platform/2/oauth2/revoke', 'missing', 401, null],
      ],
    )
    assert.ok(
      entries.every(({ upstream, billed, outcome }) => upstream === 'platform' && !billed && outcome === 'answered'),
    )
    assert.doesNotMatch(JSON.stringify(entries), /canary|sandbox-client|c2FuZGJveC1jbGllbnQ/)
  })
})

describe('what the platform keeps', () => {
  it('is the newest sessions, codes and tokens', () => {
    const kept = new PlatformSessions(3, 4)
    const permission = { user: userNamed('alice', 1), scopes: [], redirectUri: CALLBACK, challenge: '' }
    const codes = Array.from({ length: 6 }, () => kept.draw('code'))
    for (const code of codes) kept.begin(permission, code, 0, 1000)
    assert.equal(new Set(codes).size, 6)
    assert.deepEqual(
      codes.map((code) => kept.find('code', code) !== undefined),
      [false, false, true, true, true, true],
    )
    const { items, next, lost } = kept.list(0)
    assert.deepEqual([items.map(({ n }) => n), next, lost], [[3, 4, 5], 6, 3])
  })

  it('is the newest follows, and the quotas of those users who asked last', () => {
    const kept = new PlatformFollows(2, 2)
    for (const name of ['alice', 'bob', 'alice', 'carol']) {
      kept.useQuota(name, 0)
      kept.add(userNamed(name, 1), { at_ms: 0, target_user_id: '7', pending_follow: false, request_id: null })
    }
    assert.deepEqual(
      ['alice', 'bob', 'carol'].map((name) => kept.quarterOf(name, 0).used),
      [2, 0, 1],
    )
    assert.deepEqual(
      kept.list(0).items.map(({ user }) => user),
      ['alice', 'carol'],
    )
  })
})

function fetchRefresh(text: string, withinMs: number): Promise<Response> {
  const { path, body } = refreshing(text)
  return fetch(sandbox.url + path, {
    method: 'POST',
    headers,
    body: String(body),
    signal: AbortSignal.timeout(withinMs),
  })
}
