import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { ELSEWHERE } from './elsewhere.ts'
import { BESIDE, linkIn, startSite } from './site.ts'
import { type Answer, createVisitor, freshEmail, hiddenIn, PASSWORD, signIn, signUp, type Visitor } from './visitor.ts'

/** What somebody tries who means no good, over HTTP, against the pages of people. */
const database = await freshDatabase()
const site = await startSite(database.url)
const { pool, people } = site
after(site.stop)

const NOTHING = 'A'.repeat(43)
/** Every page that is shown, by whom it needs. */
const OPEN_PAGES = [
  '/sign-in',
  '/sign-up',
  '/verify',
  `/verify/${NOTHING}`,
  '/reset',
  '/reset/sent',
  `/reset/${NOTHING}`,
  `/invitations/${NOTHING}`,
]
const OWN_PAGES = ['/sessions', '/account/second-factor', '/account/password', '/sign-out']
/** Every form. */
const FORMS = [
  ...['/sign-in', '/sign-up', '/sign-out', '/verify', `/verify/${NOTHING}`, '/reset', `/reset/${NOTHING}`],
  ...['/second-factor', '/recovery', '/account/second-factor/begin', '/account/second-factor/confirm'],
  ...['/account/second-factor/remove', '/account/password', `/invitations/${NOTHING}`],
  ...['/sessions/end', '/sessions/end-all', '/sessions/leave'],
]

/** What an answer tells beside the ids of its request and when it was given. */
function toldBy({ status, headers, text }: Answer, own: string): unknown {
  const { date: _1, 'x-request-id': _2, 'request-id': _3, ...rest } = headers
  const shown = Buffer.from(own).toString('base64url')
  return JSON.parse(
    JSON.stringify({ status, headers: { ...rest, 'content-length': 0 }, text })
      .replaceAll(own, 'OWN')
      .replaceAll(shown, 'OWN'),
  )
}

async function sessionCount(email: string): Promise<number> {
  const { rows } = await pool.query(
    'select count(*)::integer as count from browser_sessions s join people p on p.id = person_id where email = $1 and ended_at is null',
    [email],
  )
  return rows[0].count
}

describe('whether an address has an account', () => {
  /** One browser, so that what differs is the address alone. */
  async function compare(
    path: string,
    fields: (email: string) => Record<string, string>,
    known: string,
  ): Promise<void> {
    const visitor = createVisitor(site)
    const { text } = await visitor.get(path)
    const hidden = hiddenIn(text, path)
    const kept = new Map(visitor.cookies)
    const told: unknown[] = []
    for (const email of [known, freshEmail('nobody')]) {
      visitor.cookies.clear()
      for (const [name, value] of kept) visitor.cookies.set(name, value)
      told.push(toldBy(await visitor.post(path, { ...hidden, ...fields(email) }), email))
    }
    assert.deepEqual(told[0], told[1], path)
  }

  it('is not told by signing in, signing up, a reset or another link', async () => {
    const known = await signUp(site)
    await compare('/sign-in', (email) => ({ email, password: 'not my password' }), known)
    await compare('/sign-up', (email) => ({ name: 'Mira', email, password: PASSWORD }), known)
    await compare('/reset', (email) => ({ email }), known)
    const again = await signUp(site)
    // A letter was written to it less than a minute ago, whoever has it: that is told to anybody.
    await pool.query("delete from door_attempts where kind = 'verification again'")
    await compare('/verify', (email) => ({ email }), again)
  })

  it('is not told to who has signed up with it and not opened the link', async () => {
    const waiting = freshEmail('waiting')
    await createVisitor(site).fill('/sign-up', { name: 'Mira', email: waiting, password: PASSWORD })
    await compare('/sign-in', (email) => ({ email, password: PASSWORD }), waiting)
  })

  it('is told in the mailbox alone, where nothing is to be opened that changes it', async () => {
    const known = await signUp(site)
    await createVisitor(site).fill('/sign-up', { name: 'Somebody', email: known, password: 'another password' })
    const mail = await site.mailTo(known, 2)
    assert.deepEqual(
      mail.links.filter((link) => /\/verify\//.test(link)),
      [],
    )
    await signIn(site, known)
  })
})

describe('a form of somebody else', () => {
  const REFUSED = 'form_refused'

  it('is refused everywhere without a token, with one of another browser, and from any other origin', async () => {
    const email = await signUp(site)
    const visitor = await signIn(site, email)
    const stranger = await signIn(site, await signUp(site))
    const own = hiddenIn((await visitor.get('/sign-out')).text, '/sign-out')
    const foreign = hiddenIn((await stranger.get('/sign-out')).text, '/sign-out')
    const before = hiddenIn((await createVisitor(site).get('/sign-in')).text, '/sign-in')
    const host = new URL(site.url).host
    for (const path of FORMS)
      for (const [what, fields, headers] of [
        ['no token', {}, {}],
        ['a token of another session', foreign, {}],
        ['a token from before signing in', before, {}],
        ['another origin', own, { origin: 'https://evil.example' }],
        ['an origin that begins with ours', own, { origin: `${site.url}.evil.example` }],
        ['the origin with TLS', own, { origin: `https://${host}` }],
        ['no origin', own, { origin: 'null' }],
        ['another site', own, { 'sec-fetch-site': 'cross-site' }],
        ['a host beside ours', own, { 'sec-fetch-site': 'same-site' }],
        ['nothing that says from where', own, { origin: undefined, 'sec-fetch-site': undefined }],
      ] as const) {
        const { status, text } = await visitor.post(path, fields, headers)
        assert.equal(status, 403, `${path}: ${what}`)
        assert.ok(text.includes(REFUSED), `${path}: ${what}`)
      }
    assert.equal(await sessionCount(email), 1)
    assert.equal((await visitor.get('/sessions')).status, 200)
  })

  it('is not a form where it is something else, or has what we did not ask for', async () => {
    const visitor = createVisitor(site)
    const hidden = hiddenIn((await visitor.get('/sign-in')).text, '/sign-in')
    const fields = { ...hidden, email: 'a@b.example', password: 'x' }
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=x'])
      assert.equal((await visitor.post('/sign-in', fields, { 'content-type': type })).status, 415, type)
    assert.equal((await visitor.post('/sign-in', { ...fields, isAdmin: 'true' })).status, 400)
    assert.equal((await visitor.post('/sign-in', { ...fields, password: 'x'.repeat(20_000) })).status, 413)
    assert.equal((await visitor.get('/sign-in?a=%ff')).status, 400)
  })
})

describe('a page', () => {
  it('is in no frame, in no cache, and tells nobody where it is', async () => {
    const visitor = await signIn(site, await signUp(site))
    const pages = [
      ...OPEN_PAGES.map((path) => [createVisitor(site), path] as const),
      ...OWN_PAGES.map((path) => [visitor, path] as const),
    ]
    for (const [who, path] of pages) {
      const { headers, text } = await who.get(path)
      assert.equal(headers['x-frame-options'], 'DENY', path)
      const policy = String(headers['content-security-policy'])
      for (const word of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"])
        assert.ok(policy.includes(word), `${path}: ${word}`)
      assert.equal(headers['cache-control'], 'no-store', path)
      assert.equal(headers['x-content-type-options'], 'nosniff', path)
      assert.equal(headers['referrer-policy'], 'strict-origin', path)
      assert.equal(headers['cross-origin-opener-policy'], 'same-origin', path)
      assert.doesNotMatch(text, /<script|<style| style=| on[a-z]+=/i, path)
    }
  })

  it('is kept from a cache also where it leads elsewhere', async () => {
    const { headers, status, location } = await createVisitor(site).get('/sessions')
    assert.deepEqual([status, location, headers['cache-control']], [303, '/sign-in?return_to=%2Fsessions', 'no-store'])
  })

  it('shows what people call themselves as it is, and runs nothing of it', async () => {
    const name = '<img src=x onerror=alert(1)>"\'&'
    const visitor = await signIn(site, await signUp(site, { name }))
    const { text } = await visitor.get('/sessions')
    assert.ok(text.includes('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;'))
    assert.doesNotMatch(text, /<img/)
  })
})

describe('a session', () => {
  it('is another one after signing in, whatever cookie was there before', async () => {
    const [victim, attacker] = [await signUp(site), await signUp(site)]
    const planted = await signIn(site, attacker)
    for (const before of [NOTHING, planted.cookies.get('fb_session') ?? '']) {
      const visitor = createVisitor(site)
      visitor.cookies.set('fb_session', before)
      const { text } = await visitor.get('/reset')
      const hidden = hiddenIn(text, '/reset')
      const { status } = await visitor.post('/sign-in', { ...hidden, email: victim, password: PASSWORD })
      assert.equal(status, 303)
      assert.notEqual(visitor.cookies.get('fb_session'), before)
      const thief = createVisitor(site)
      thief.cookies.set('fb_session', before)
      assert.equal((await thief.get('/sessions')).status, 303)
    }
  })

  it('has a cookie that no script reads, that no other site sends along, and that ends with it', async () => {
    const email = await signUp(site)
    const visitor = createVisitor(site)
    const { setCookies } = await visitor.fill('/sign-in', { email, password: PASSWORD })
    const [session = ''] = setCookies.filter((line) => line.startsWith('fb_session='))
    assert.match(session, /^fb_session=[A-Za-z0-9_-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
    const token = visitor.cookies.get('fb_session') ?? ''
    const out = await visitor.fill('/sign-out', {})
    assert.ok(out.setCookies.some((line) => line.startsWith('fb_session=; Max-Age=0; Path=/')))
    visitor.cookies.set('fb_session', token)
    assert.equal((await visitor.get('/sessions')).status, 303)
  })

  it('is in PostgreSQL as a hash alone, and in no log', async () => {
    const email = await signUp(site)
    const visitor = await signIn(site, email)
    const token = visitor.cookies.get('fb_session') ?? assert.fail()
    const { rows } = await pool.query(
      "select count(*)::integer as count from browser_sessions s where s::text like '%' || $1 || '%'",
      [token],
    )
    assert.equal(rows[0].count, 0)
    assert.ok(!site.gateway.output().includes(token))
    assert.ok(!site.gateway.output().includes(email))
  })

  it('is not signed out by an address that somebody is led to', async () => {
    const visitor = await signIn(site, await signUp(site))
    for (const path of ['/sign-out', '/sessions/end-all', '/sessions/end']) await visitor.get(path)
    assert.equal((await visitor.get('/sessions')).status, 200)
  })

  it('of somebody else is neither seen nor ended', async () => {
    const [mine, theirs] = [await signUp(site), await signUp(site)]
    const [visitor] = [await signIn(site, mine), await signIn(site, theirs)]
    const { rows } = await pool.query(
      'select s.id from browser_sessions s join people p on p.id = person_id where email = $1',
      [theirs],
    )
    const page = (await visitor.get('/sessions')).text
    assert.ok(!page.includes(rows[0].id))
    const hidden = hiddenIn(page, '/sessions/end-all')
    await visitor.post('/sessions/end', { ...hidden, session: rows[0].id })
    assert.equal(await sessionCount(theirs), 1)
  })
})

describe('where to go afterwards', () => {
  it(`is never elsewhere, by any of ${ELSEWHERE.length} ways to say so`, async () => {
    const email = await signUp(site)
    const visitor = await signIn(site, email)
    for (const elsewhere of ELSEWHERE) {
      const { status, location } = await visitor.get(`/sign-in?${new URLSearchParams({ return_to: elsewhere })}`)
      assert.deepEqual([status, location], [303, '/console'], JSON.stringify(elsewhere))
    }
    for (const elsewhere of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/a\r\nLocation: //evil.example',
    ]) {
      const { location, headers } = await createVisitor(site).fill('/sign-in', {
        email,
        password: PASSWORD,
        return_to: elsewhere,
      })
      assert.equal(location, '/console', JSON.stringify(elsewhere))
      assert.equal(Array.isArray(headers.location), false)
    }
  })

  it('is where somebody wanted to go', async () => {
    const email = await signUp(site)
    const { location } = await createVisitor(site).fill('/sign-in?return_to=%2Faccount%2Fpassword', {
      email,
      password: PASSWORD,
    })
    assert.equal(location, '/account/password')
  })
})

describe('mail', () => {
  it('goes to one address, whatever is typed as one', async () => {
    const isDelivered = async () => (await pool.query('select from outbox where due_at is not null')).rowCount === 0
    await until(isDelivered, PATIENCE_MS, 'letters of before')
    const { length: before } = await site.sandbox.mail()
    const visitor = createVisitor(site)
    for (const email of [
      'a@b.example\r\nBcc: x@evil.example',
      'a@b.example\nTo: x@evil.example',
      'a@b.example, x@evil.example',
      'a@b.example;x@evil.example',
      '<a@b.example>',
      '"a@b.example,"@evil.example',
      'a b@c.example',
      'a@b.example\0',
      'a@[127.0.0.1]',
      '@b.example',
      'a@b',
      'a@b.example>',
    ])
      for (const [path, fields] of [
        ['/sign-up', { name: 'Mira', password: PASSWORD, email }],
        ['/reset', { email }],
      ] as const) {
        const { status, text } = await visitor.fill(path, fields)
        assert.equal(status, 400, JSON.stringify(email))
        assert.match(text, /role="alert"/)
      }
    await signUp(site)
    assert.equal((await site.sandbox.mail()).length, before + 1)
  })

  it('has no header of what somebody calls themselves', async () => {
    for (const name of ['Mira\r\nBcc: x@evil.example', 'Mira\nSubject: x', 'Mira\u2028x', '\u202Earim']) {
      const { status } = await createVisitor(site).fill('/sign-up', { name, email: freshEmail(), password: PASSWORD })
      assert.equal(status, 400, JSON.stringify(name))
    }
    const name = 'Mira "<x@evil.example>", Bcc: y@evil.example =?utf-8?q?=0d=0ABcc:?='
    const owner = await signUp(site, { name })
    const guest = freshEmail('guest')
    await invite(owner, guest)
    const { envelope, headers } = await site.mailTo(guest)
    assert.deepEqual(envelope.to, [guest])
    assert.equal(headers.filter(([header]) => /^(bcc|cc)$/i.test(header)).length, 0)
    assert.equal(headers.filter(([header]) => /^to$/i.test(header)).length, 1)
  })
})

/** Somebody invites an address into their first workspace. */
async function invite(owner: string, guest: string): Promise<void> {
  const { rows } = await pool.query(
    'select p.id, workspace_id from people p join members m on m.person_id = p.id where p.email = $1',
    [owner],
  )
  const here = { address: '203.0.113.1', network: '203.0.113', agent: '' }
  await people.invite(rows[0].id, rows[0].workspace_id, { email: guest, role: 'developer' }, here)
}

describe('a link in a mail', () => {
  async function opened(visitor: Visitor, path: string): Promise<string> {
    const { status, text } = await visitor.get(path)
    return `${status} ${/<h1>(.*?)<\/h1>/.exec(text)?.[1]}`
  }
  const OVER = '400 This link no longer works'

  it('verifies an address once, and only where its button is pressed', async () => {
    const email = freshEmail()
    const visitor = createVisitor(site)
    await visitor.fill('/sign-up', { name: 'Mira', email, password: PASSWORD })
    const { pathname } = new URL(linkIn(await site.mailTo(email), /^\/verify\//))
    for (let look = 0; look < 3; look += 1)
      assert.equal(await opened(createVisitor(site), pathname), '200 Verify your address')
    const hidden = hiddenIn((await visitor.get(pathname)).text, pathname)
    const answers = await Promise.all([1, 2, 3].map(() => visitor.post(pathname, hidden)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 400, 400])
    assert.equal(await opened(createVisitor(site), pathname), OVER)
    const { rows } = await pool.query(
      'select count(*)::integer as count from members m join people p on p.id = person_id where p.email = $1',
      [email],
    )
    assert.equal(rows[0].count, 1)
  })

  it('has whoever verifies an address in another browser than that of the sign-up choose the password', async () => {
    const email = freshEmail('victim')
    const known = 'password of attacker'
    await createVisitor(site).fill('/sign-up', { name: 'Mira', email, password: known })
    const { pathname } = new URL(linkIn(await site.mailTo(email), /^\/verify\//))
    const victim = createVisitor(site)
    const { status, location } = await victim.fill(pathname, {})
    assert.equal(status, 303)
    assert.match(location, /^\/reset\/[A-Za-z0-9_-]{43}\?return_to=/)
    assert.equal((await createVisitor(site).fill('/sign-in', { email, password: known })).status, 400)
    assert.equal((await victim.fill(location, { password: PASSWORD })).location, '/sessions?note=elsewhere')
    await signIn(site, email)
    assert.equal((await createVisitor(site).fill('/sign-in', { email, password: known })).status, 400)
  })

  it('resets a password once, ends what was open, and another one is over with it', async () => {
    const email = await signUp(site)
    const elsewhere = await signIn(site, email)
    const visitor = createVisitor(site)
    await visitor.fill('/reset', { email })
    const { pathname } = new URL(linkIn(await site.mailTo(email, 2), /^\/reset\//))
    await visitor.fill('/reset', { email })
    const { pathname: second } = new URL(linkIn(await site.mailTo(email, 3), /^\/reset\//))
    assert.match((await visitor.get(pathname)).text, /1 session ends/)
    const done = await visitor.fill(pathname, { password: 'another few words' })
    assert.deepEqual([done.status, done.location], [303, '/console'])
    assert.equal((await elsewhere.get('/sessions')).status, 303)
    for (const path of [pathname, second]) assert.equal(await opened(createVisitor(site), path), OVER)
    const { status } = await createVisitor(site).fill('/sign-in', { email, password: PASSWORD })
    assert.equal(status, 400)
    await signIn(site, email, 'another few words')
  })

  it('is answered once where it invites, and by the address alone that it is for', async () => {
    const [owner, guest, other] = [await signUp(site), await signUp(site), await signUp(site)]
    await invite(owner, guest)
    const { pathname } = new URL(linkIn(await site.mailTo(guest, 2), /^\/invitations\//))
    assert.match((await createVisitor(site).get(pathname)).text, /Sign in to answer/)
    const stranger = await signIn(site, other)
    const { text } = await stranger.get(pathname)
    assert.match(text, /This invitation is for another address/)
    const hidden = hiddenIn((await stranger.get('/sign-out')).text, '/sign-out')
    assert.equal((await stranger.post(pathname, { ...hidden, decision: 'join' })).status, 403)
    const visitor = await signIn(site, guest)
    const form = hiddenIn((await visitor.get(pathname)).text, pathname)
    assert.equal((await visitor.post(pathname, { ...form, decision: 'own' })).status, 400)
    const answers = await Promise.all(
      ['join', 'join', 'decline'].map((decision) => visitor.post(pathname, { ...form, decision })),
    )
    assert.equal(answers.filter(({ status }) => status === 400).length, 2)
    assert.equal(await opened(visitor, pathname), OVER)
  })

  it('is not found by guessing', async () => {
    const visitor = createVisitor(site)
    const statuses: number[] = []
    for (let guess = 0; guess < 31; guess += 1) {
      const path = `/reset/${String(guess).padStart(43, 'x')}`
      const { status, headers } = await visitor.get(path)
      statuses.push(status)
      if (status === 429) assert.ok(Number(headers['retry-after']) > 0)
    }
    assert.deepEqual(statuses, [...Array(30).fill(400), 429])
  })
})

describe('guessing', () => {
  it('a password is over after ten, from wherever it is tried, also for the right one', async () => {
    const email = await signUp(site)
    const statuses: number[] = []
    for (let guess = 0; guess < 10; guess += 1) {
      const { status } = await createVisitor(site).fill('/sign-in', { email, password: `wrong ${guess}` })
      statuses.push(status)
    }
    assert.deepEqual(statuses, Array(10).fill(400))
    const { status, headers, text } = await createVisitor(site).fill('/sign-in', { email, password: PASSWORD })
    assert.equal(status, 429)
    assert.ok(Number(headers['retry-after']) > 0)
    assert.match(text, /Too many attempts/)
    assert.match(text, /value="[^"]*@harbour\.example"/)
  })
})

describe('over TLS', () => {
  it('cookies are for this host alone, and a form without TLS is refused', async () => {
    const origin = 'https://www.farebox.example'
    const own = await startSite(database.url, { ...BESIDE, FAREBOX_HTTP_SITE_URL: origin })
    try {
      const visitor = createVisitor(own, { origin })
      const { setCookies, text } = await visitor.get('/sign-in')
      assert.equal(setCookies.length, 1)
      assert.match(setCookies[0] ?? '', /^__Host-fb_visit=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure$/)
      const fields = { ...hiddenIn(text, '/sign-in'), email: freshEmail('nobody'), password: 'wrong' }
      assert.equal((await visitor.post('/sign-in', fields)).status, 400)
      assert.equal((await visitor.post('/sign-in', fields, { origin: 'http://www.farebox.example' })).status, 403)
      assert.equal((await visitor.get('/sign-in', { host: 'evil.example' })).status, 421)
    } finally {
      await own.stop()
    }
  })
})

describe('closed sign-up', () => {
  it('says so, makes nobody, and leaves signing in open', async () => {
    const own = await startSite(database.url, { ...BESIDE, FAREBOX_PEOPLE_SIGN_UP: 'closed' })
    try {
      const email = await signUp(site)
      const visitor = createVisitor(own)
      const { status, text } = await visitor.get('/sign-up')
      assert.equal(status, 403)
      assert.match(text, /Sign-up is closed/)
      assert.doesNotMatch((await visitor.get('/sign-in')).text, /Create an account/)
      const hidden = hiddenIn((await visitor.get('/sign-in')).text, '/sign-in')
      const asked = await visitor.post('/sign-up', {
        ...hidden,
        name: 'Mira',
        email: freshEmail('closed'),
        password: PASSWORD,
      })
      assert.equal(asked.status, 403)
      const { rows } = await pool.query("select from people where email like 'closed%'")
      assert.equal(rows.length, 0)
      await signIn(own, email)
    } finally {
      await own.stop()
    }
  })

  it('is what an installation has that sends no mail, and tells its operator why', async () => {
    const own = await startSite(database.url, { ...BESIDE, FAREBOX_MAIL_URL: '' })
    try {
      for (const path of ['/sign-up', '/reset']) {
        const { status, text } = await createVisitor(own).get(path)
        assert.equal(status, 403)
        assert.match(text, /<code>mail\.url<\/code>/)
      }
    } finally {
      await own.stop()
    }
  })

  it('holds for all but some domains, where the operator says so', async () => {
    const own = await startSite(database.url, { ...BESIDE, FAREBOX_PEOPLE_DOMAINS: 'farebox.example' })
    try {
      const fields = { name: 'Mira', password: PASSWORD }
      const { status, text } = await createVisitor(own).fill('/sign-up', { ...fields, email: freshEmail() })
      assert.equal(status, 403)
      assert.match(text, /certain e-mail domains/)
      const ours = await createVisitor(own).fill('/sign-up', { ...fields, email: 'mira@farebox.example' })
      assert.equal(ours.status, 303)
    } finally {
      await own.stop()
    }
  })
})
