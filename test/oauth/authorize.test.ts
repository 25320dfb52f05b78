import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { createWorkspace } from '../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../identity/customers.ts'
import { startSite } from '../people/site.ts'
import { createVisitor, filledIn, freshEmail, signIn, signUp } from '../people/visitor.ts'
import { authorizePath, createOauthClient, decide, newPkce, REDIRECT, registered, toConsent } from './client.ts'

/** What a client, or somebody in its place, can do with the pages that a person sees. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const email = await signUp(site)
const person = await signIn(site, email)
const client = createOauthClient(site)
const clientId = await registered(client)
const pkce = newPkce()
/** Of no workspace. */
const NOBODYS = '01900000-0000-7000-8000-000000000000'

describe('a request that is not right', () => {
  it('is a page, and sends nobody anywhere, where the client or the address is unknown', async () => {
    const wrong = [
      { client_id: 'nobody' },
      { client_id: '' },
      { client_id: 'https://127.0.0.1/client.json' },
      { redirect_uri: 'https://evil.example/callback' },
      { redirect_uri: '' },
      { redirect_uri: 'javascript:alert(1)' },
      { client_id: 'nobody', redirect_uri: 'https://evil.example/' },
      { response_mode: 'form_post' },
      { response_mode: 'fragment' },
    ]
    for (const changed of wrong) {
      const { status, location, text } = await person.get(authorizePath({ clientId, pkce, changed }))
      assert.equal(location, '', JSON.stringify(changed))
      assert.equal(status, 400, JSON.stringify(changed))
      assert.match(text, /<h1>/)
      assert.doesNotMatch(text, /evil\.example/)
    }
  })

  it('takes no address for the registered one that only looks like it', async () => {
    const tricks = [
      ...['http://127.0.0.1:9876/callback/', 'http://127.0.0.1:9876/callback?x=1', 'http://127.0.0.1:9876/callbac'],
      ...[
        'http://127.0.0.1:9876/callback#x',
        'http://127.0.0.1:9876/callback/../evil',
        'http://127.0.0.1:9876//callback',
      ],
      ...[
        'https://127.0.0.1:9876/callback',
        'http://127.0.0.1.evil.example:9876/callback',
        'http://127.0.0.2:9876/callback',
      ],
      ...['http://evil.example@127.0.0.1:9876/callback', 'http://127.0.0.1:9876@evil.example/callback'],
      ...['http://127.0.0.1\\@evil.example/callback', 'http://localhost:9876/callback', 'http://[::1]:9876/callback'],
      ...['http://127.0.0.1:9876/%63allback', 'http://127.0.0.1:9876/callback%00', 'HTTP://127.0.0.1:9876/CALLBACK'],
      ...['http://2130706433:9876/callback', 'http://127.1:9876/callback', '//127.0.0.1:9876/callback', '/callback'],
    ]
    for (const redirect_uri of tricks) {
      const { status, location } = await person.get(authorizePath({ clientId, pkce, changed: { redirect_uri } }))
      assert.deepEqual([status, location], [400, ''], redirect_uri)
    }
  })

  it('takes any port of this machine, for a program that is given another each time', async () => {
    const changed = { redirect_uri: 'http://127.0.0.1:51234/callback' }
    const back = await decide(person, await toConsent(person, { clientId, pkce, changed }))
    assert.equal(back.origin + back.pathname, 'http://127.0.0.1:51234/callback')
  })

  it('goes back to the client with what is wrong, and who says so', async () => {
    const wrong = [
      [{ code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
      [{ code_challenge_method: 'plain' }, 'invalid_request'],
      [{ code_challenge_method: '' }, 'invalid_request'],
      [{ code_challenge: 'short' }, 'invalid_request'],
      [{ response_type: 'token' }, 'invalid_request'],
      [{ response_type: 'code id_token' }, 'invalid_request'],
      [{ response_type: 'none' }, 'unsupported_response_type'],
      [{ resource: 'https://elsewhere.example/mcp' }, 'invalid_target'],
      [{ resource: 'http://127.0.0.1:9/mcp#x' }, 'invalid_target'],
      [{ resource: 'not a url' }, 'invalid_target'],
      [{ scope: 'openid' }, 'invalid_scope'],
      [{ scope: 'offline_access' }, 'invalid_scope'],
      [{ scope: 'calls' }, 'invalid_scope'],
      [{ prompt: 'none' }, 'login_required'],
      [{ request: 'eyJhbGciOiJub25lIn0.e30.' }, 'request_not_supported'],
      [{ request_uri: 'https://evil.example/request' }, 'request_uri_not_supported'],
    ] as const
    // Only a client that the person has allowed is sent back to.
    await decide(person, await toConsent(person, { clientId, pkce }))
    for (const [changed, error] of wrong) {
      const { status, location, text } = await person.get(authorizePath({ clientId, pkce, changed }))
      assert.equal(status, 303, `${JSON.stringify(changed)}: ${text}`)
      assert.match(location, /^http:/, JSON.stringify(changed))
      const back = new URL(location)
      assert.equal(back.origin + back.pathname, REDIRECT, location)
      // Who asks for a token in a fragment is told of its error there.
      const told = new URLSearchParams(back.search === '' ? back.hash.slice(1) : back.search)
      assert.equal(told.get('error'), error, location)
      assert.equal(told.get('iss'), site.url, location)
      assert.equal(told.get('state'), 'a state of its own')
      assert.equal(told.get('code'), null)
    }
  })
})

describe('a request without a resource', () => {
  it('is answered before the person is asked, where there is none to be meant', async () => {
    const bare = await startSite((await freshDatabase()).url)
    try {
      const visitor = createVisitor(bare)
      const other = await registered(createOauthClient(bare))
      const { status, location } = await visitor.get(
        authorizePath({ clientId: other, pkce, changed: { scope: 'agent' } }),
      )
      assert.deepEqual([status, location], [400, ''])
    } finally {
      await bare.stop()
    }
  })
})

describe('a client that the person has not allowed', () => {
  it('sends nobody anywhere with a wrong request: it is a page that names where it leads', async () => {
    const stranger = createVisitor(site)
    const other = await signIn(site, await signUp(site))
    const wrong = [
      { prompt: 'none' },
      { code_challenge: '', code_challenge_method: '' },
      { response_type: 'token' },
      { resource: 'https://elsewhere.example/mcp' },
      { request: 'eyJhbGciOiJub25lIn0.e30.' },
    ]
    for (const redirect_uri of ['https://evil.example/x', 'com.example.evil:/x']) {
      const newcomer = await registered(createOauthClient(site), { redirect_uris: [redirect_uri] })
      const ask = (changed: Record<string, string>, visitor = stranger) =>
        visitor.get(authorizePath({ clientId: newcomer, pkce, changed: { redirect_uri, ...changed } }))
      for (const changed of wrong) {
        const { status, location, text } = await ask(changed)
        assert.deepEqual([status, location], [400, ''], JSON.stringify(changed))
        assert.match(text, /It asked to send you to <b>(evil\.example|com\.example\.evil:\/\/)<\/b>/)
        assert.doesNotMatch(text, /href="(https:\/\/evil|com\.example\.evil)/)
      }
      await decide(person, await toConsent(person, { clientId: newcomer, pkce, changed: { redirect_uri } }))
      // Only whoever has allowed it themselves is led there.
      for (const visitor of [stranger, other]) {
        const { status, location } = await ask({ prompt: 'none' }, visitor)
        assert.deepEqual([status, location], [400, ''])
      }
      const { location } = await ask({ prompt: 'none' }, person)
      assert.equal(new URL(location).searchParams.get('error'), 'login_required')
    }
  })

  it('is told where a person did not allow it', async () => {
    const newcomer = await registered(createOauthClient(site))
    const path = await toConsent(person, { clientId: newcomer, pkce })
    assert.equal((await decide(person, path, { decision: 'deny' })).searchParams.get('error'), 'access_denied')
  })
})

describe('the consent page', () => {
  it('leads through sign-in and back, and tells the client who answered', async () => {
    const visitor = createVisitor(site)
    const path = await toConsent(visitor, { clientId, pkce })
    const led = await visitor.get(path)
    assert.equal(led.status, 303)
    assert.equal(led.location, `/sign-in?return_to=${encodeURIComponent(path)}`)
    const signedIn = await visitor.fill(led.location, { email, password: 'a few words of mine' }, '/sign-in')
    assert.equal(signedIn.location, path)
    const back = await decide(visitor, path)
    assert.equal(back.searchParams.get('iss'), site.url)
    assert.equal(back.searchParams.get('state'), 'a state of its own')
  })

  it('says what is claimed and what is known, and warns of this machine', async () => {
    const path = await toConsent(person, { clientId, pkce })
    const { text, headers } = await person.get(path)
    assert.match(text, /calls itself <bdi><b>Tram Planner<\/b><\/bdi>/)
    assert.match(text, /None: anybody can use this name/)
    assert.match(text, /<b>127\.0\.0\.1:9876<\/b>/)
    assert.match(text, /It is a program on your computer/)
    assert.match(text, /wants to use the tools for agents/)
    assert.match(text, /value="1\.00"/)
    assert.equal(headers['x-frame-options'], 'DENY')
    const policy = String(headers['content-security-policy'])
    assert.match(policy, /frame-ancestors 'none'/)
    assert.match(policy, /default-src 'none'/)
    assert.match(policy, /form-action 'self' http:\/\/127\.0\.0\.1:9876;/)
  })

  it('says of one that manages the account that it can create keys, and that those spend and outlive it', async () => {
    const changed = { resource: `${site.url}/account/v1`, scope: 'account.manage' }
    const { text } = await person.get(await toConsent(person, { clientId, pkce, changed }))
    assert.match(text, /wants to see and change keys[^<]*create API keys that spend your balance/)
    assert.match(text, /It can create API keys that spend all of <bdi>[^<]+<\/bdi>’s live balance/)
    assert.match(text, /Those keys work until they are revoked, also after you end this/)
    assert.doesNotMatch(text, /can’t pay/)
  })

  it('tells the client where it was not allowed, and makes no grant', async () => {
    const before = await grants()
    const back = await decide(person, await toConsent(person, { clientId, pkce }), { decision: 'deny' })
    assert.equal(back.searchParams.get('error'), 'access_denied')
    assert.equal(back.searchParams.get('iss'), site.url)
    assert.equal(await grants(), before)
  })

  it('takes no form that is not ours, and none for somebody else', async () => {
    const path = await toConsent(person, { clientId, pkce })
    const { text } = await person.get(path)
    const hidden = filledIn(text, path)
    const choice = { ...hidden, decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    const before = await grants()
    const without = Object.fromEntries(Object.entries(choice).filter(([name]) => name !== 'form_token'))
    const forged = [
      await person.post(path, without),
      await person.post(path, { ...choice, form_token: 'A'.repeat(43) }),
      await person.post(path, choice, { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' }),
      await person.post(path, choice, { origin: 'null', 'sec-fetch-site': 'cross-site' }),
    ]
    assert.deepEqual(
      forged.map(({ status }) => status),
      [403, 403, 403, 403],
    )
    const another = await signIn(site, await signUp(site))
    // A link to somebody's request opens nothing in another browser, whoever is signed in there.
    assert.equal((await another.get(path)).status, 400)
    assert.equal((await another.post(path, choice)).status, 403)
    assert.equal(await grants(), before)
    assert.equal((await person.get(`${path}?amount=9999&decision=allow`)).text.includes('9999'), false)
  })

  it('is answered once', async () => {
    const path = await toConsent(person, { clientId, pkce })
    const { text } = await person.get(path)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    const before = await grants()
    const answers = await Promise.all([person.post(path, choice), person.post(path, choice), person.post(path, choice)])
    assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 400, 400])
    assert.equal(await grants(), before + 1)
  })

  it('is not shown to whoever has its cookies planted by another host, and gives the code to no browser but the one that decided', async () => {
    const attacker = createVisitor(site)
    const path = await toConsent(attacker, { clientId, pkce })
    const uid = path.slice(path.lastIndexOf('/') + 1)
    const victim = await signIn(site, email)
    for (const name of ['fb_consent', 'fb_resume']) victim.cookies.set(name, uid)
    const planted = await victim.get(path)
    assert.equal(planted.status, 400, planted.text)
    const before = await grants()
    // Even with the cookie by which it was begun, which no other host can plant.
    victim.cookies.set('fb_asked', attacker.cookies.get('fb_asked') ?? assert.fail('no cookie'))
    const { text } = await victim.get(path)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    const { location } = await victim.post(path, choice)
    assert.equal(await grants(), before + 1)
    const other = await signIn(site, await signUp(site))
    for (const [name, value] of attacker.cookies) other.cookies.set(name, value)
    for (const one of [attacker, other]) {
      const stolen = await one.get(location)
      assert.deepEqual([stolen.status, stolen.location], [400, ''], stolen.text)
    }
    assert.match((await victim.get(location)).location, /code=/)
  })

  it('gives one code, however often the browser goes on at once', async () => {
    const path = await toConsent(person, { clientId, pkce })
    const { text } = await person.get(path)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    const { location } = await person.post(path, choice)
    const ends = await Promise.all(Array.from({ length: 6 }, () => person.get(location)))
    assert.deepEqual(ends.map(({ status }) => status).sort(), [303, 400, 400, 400, 400, 400])
    assert.deepEqual(ends.filter(({ location: to }) => to.includes('code=')).length, 1)
  })

  it('holds the amount as an allowance, and makes a grant without one where it is nothing', async () => {
    for (const [typed, amount] of [
      ['2.50', '2500000000'],
      ['0', null],
    ] as const) {
      await decide(person, await toConsent(person, { clientId, pkce }), { amount: typed })
      const { rows } = await site.pool.query(
        `select amount::text, period from grants left join allowances on allowances.id = allowance_id
         order by grants.id desc limit 1`,
      )
      assert.deepEqual(rows, [{ amount, period: amount === null ? null : 'total' }])
    }
    const path = await toConsent(person, { clientId, pkce })
    const { text } = await person.get(path)
    for (const amount of ['-1', '1e9', 'ten', '', '99999', '0.0000001']) {
      const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount, days: '30' }
      assert.equal((await person.post(path, choice)).status, 400, amount)
    }
  })

  it('confirms a client with its first grant, and not where none was made', async () => {
    const fresh = await registered(createOauthClient(site))
    const isConfirmed = async () => {
      const { rows } = await site.pool.query('select confirmed_at from oauth_clients where id = $1', [fresh])
      return rows[0]?.confirmed_at !== null
    }
    const path = await toConsent(person, { clientId: fresh, pkce })
    const { text } = await person.get(path)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    assert.equal((await person.post(path, { ...choice, workspace: NOBODYS })).status, 404)
    assert.equal(await isConfirmed(), false)
    assert.equal((await person.post(path, choice)).status, 303)
    assert.equal(await isConfirmed(), true)
  })

  it('shows both balances, proposes the money that there is, and says where an amount is more than that', async () => {
    const own = freshEmail()
    const named = await createWorkspace({ pool: site.pool, ids }, ACTOR, { name: 'Harbour Labs', ownerEmail: own })
    const gift = { entryId: ids.next(), accountId: named.testAccountId, kind: 'promotion', amount: usd('5') } as const
    await creditAccount(site.pool, gift)
    const owner = await signIn(site, await signUp(site, { email: own }))
    const path = await toConsent(owner, { clientId, pkce })
    const { text } = await owner.get(path)
    assert.match(text, /Of \$0\.00 live and \$5\.00 test money that the workspace has\./)
    assert.match(text, /<option value="test" selected>/)
    assert.doesNotMatch(text, /It is more than there is/)
    const asked = { ...filledIn(text, path), decision: 'allow', amount: '6.00' }
    const { text: more } = await owner.post(path, asked)
    assert.match(more, /<bdi>Harbour Labs<\/bdi> has \$5\.00 of test money now\./)
  })

  it('adds what a client asks for at another resource, and takes away nothing that the page does not offer to', async () => {
    const other = await registered(createOauthClient(site))
    const at = (resource: string, scope: string) =>
      toConsent(person, { clientId: other, pkce, changed: { resource, scope } })
    const tools = await at('http://127.0.0.1:9/mcp', 'agent')
    await decide(person, tools, { amount: '1.00' })
    const account = await at(`${site.url}/account/v1`, 'account.manage')
    const { text } = await person.get(account)
    assert.match(text, /It is for <code>http:\/\/127\.0\.0\.1:9\/mcp<\/code>, and stays: what you allow now is added/)
    assert.doesNotMatch(text, /name="replace"/)
    await decide(person, account)
    await decide(person, await at('http://127.0.0.1:9/mcp', 'agent'), { amount: '2.00', replace: 'yes' })
    const { rows } = await site.pool.query(
      'select audiences from grants where client_id = $1 and revoked_at is null order by id',
      [other],
    )
    assert.deepEqual(
      rows.map(({ audiences }) => audiences),
      [[`${site.url}/account/v1`], ['http://127.0.0.1:9/mcp']],
      'only what counts at the same resource is replaced',
    )
  })

  it('shows what the client has already and what is left of it, and replaces it where the box stays ticked', async () => {
    const other = await registered(createOauthClient(site))
    const active = async () => {
      const { rows } = await site.pool.query(
        `select amount::text from grants join allowances on allowances.id = allowance_id join credentials c on c.id = grants.id
         where client_id = $1 and revoked_at is null and c.active order by grants.id`,
        [other],
      )
      return rows.map(({ amount }) => String(amount))
    }
    const asked = { clientId: other, pkce }
    const first = await toConsent(person, asked)
    assert.doesNotMatch((await person.get(first)).text, /name="replace"/, 'it has nothing yet')
    await decide(person, first, { amount: '2.50' })
    const second = await toConsent(person, asked)
    const { text } = await person.get(second)
    assert.match(text, /What it already has/)
    assert.match(text, /<b>\$2\.50<\/b> left/)
    assert.match(text, /<input type="checkbox" name="replace" value="yes" checked/)
    await decide(person, second, { amount: '3.00', replace: '' })
    assert.deepEqual(await active(), ['2500000000', '3000000000'], 'who takes the tick away keeps both')
    const stranger = await signIn(site, await signUp(site))
    await decide(stranger, await toConsent(stranger, asked), { amount: '9.00' })
    assert.deepEqual(await active(), ['2500000000', '3000000000', '9000000000'], 'those of others stay')
    const third = await toConsent(person, asked)
    const wrong = { ...filledIn((await person.get(third)).text, third), mode: 'live', amount: '1.00', days: '30' }
    const refused = { ...wrong, decision: 'allow', replace: 'yes', workspace: NOBODYS }
    assert.equal((await person.post(third, refused)).status, 404)
    assert.equal((await active()).length, 3, 'nothing ends for a grant that is not made')
    await decide(person, third, { amount: '1.00', replace: 'yes' })
    assert.deepEqual(await active(), ['9000000000', '1000000000'])
    const { rows } = await site.pool.query(
      `select count(*)::integer as count from audit where action = 'grant.revoked'
       and subject in (select id::text from grants where client_id = $1)`,
      [other],
    )
    assert.deepEqual(rows, [{ count: 2 }])
  })

  it('leads to a list of what is allowed, which closes every part that it opens', async () => {
    await decide(person, await toConsent(person, { clientId, pkce }))
    const { text } = await person.get('/grants')
    assert.match(text, /<article/)
    for (const part of ['article', 'section', 'dl', 'form'])
      assert.equal(text.split(`<${part}`).length, text.split(`</${part}>`).length, part)
  })

  it('allows nothing in a workspace where the person may not', async () => {
    const other = await signUp(site)
    const foreign = await site.pool.query('select workspace_id as id from members where email = $1', [other])
    const path = await toConsent(person, { clientId, pkce })
    const { text } = await person.get(path)
    const choice = { ...filledIn(text, path), decision: 'allow', mode: 'live', amount: '1.00', days: '30' }
    const before = await grants()
    const { status } = await person.post(path, { ...choice, workspace: String(foreign.rows[0]?.id) })
    assert.equal(status, 404)
    await site.pool.query("update members set role = 'viewer' where email = $1", [other])
    const viewer = await signIn(site, other)
    const page = await viewer.get(await toConsent(viewer, { clientId, pkce }))
    assert.match(page.text, /You can’t allow this/)
    assert.equal(await grants(), before)
  })
})

async function grants(): Promise<number> {
  const { rows } = await site.pool.query('select count(*)::integer as count from grants')
  return Number(rows[0]?.count)
}
