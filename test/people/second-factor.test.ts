import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { codeAt } from './authenticator.ts'
import { linkIn, startSite } from './site.ts'
import { createVisitor, freshEmail, hiddenIn, PASSWORD, signIn, signUp, type Visitor } from './visitor.ts'

const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_SITE_NAME: 'Harbour AI' })
const { pool } = site
after(site.stop)

const SETUP = '/account/second-factor'

/** Somebody with an authenticator: its key, and the codes for when it is lost. */
async function withFactor(): Promise<{ email: string; visitor: Visitor; key: string; recovery: readonly string[] }> {
  const email = await signUp(site)
  const visitor = await signIn(site, email)
  const { text } = await visitor.fill(SETUP, {}, `${SETUP}/begin`)
  const hidden = hiddenIn(text, `${SETUP}/confirm`)
  const key = new URL(hidden.uri ?? '').searchParams.get('secret') ?? ''
  const wrong = await visitor.post(`${SETUP}/confirm`, { ...hidden, code: codeAt(key, 100) })
  assert.equal(wrong.status, 400)
  assert.equal(hiddenIn(wrong.text, `${SETUP}/confirm`).uri, hidden.uri)
  const { status, text: told } = await visitor.post(`${SETUP}/confirm`, { ...hidden, code: codeAt(key) })
  assert.equal(status, 200)
  const recovery = [...told.matchAll(/<li><code>([^<]+)<\/code>/g)].map(([, code = '']) => code)
  assert.equal(recovery.length, 10)
  return { email, visitor, key, recovery }
}

async function halfSignedIn(email: string): Promise<Visitor> {
  const visitor = createVisitor(site)
  const { status, location } = await visitor.fill('/sign-in', { email, password: PASSWORD })
  assert.deepEqual([status, location], [303, '/second-factor'])
  return visitor
}

/** As if half a minute had passed. */
async function forgetUsed(email: string): Promise<void> {
  await pool.query('update people set totp_used_step = 0 where email = $1', [email])
}

describe('a sign-up', () => {
  it('ends signed in where the address is verified in the browser in which the password was typed, on the way to where it began', async () => {
    const [email, name] = [freshEmail(), 'Mira <b>Halloran</b>']
    const browser = createVisitor(site)
    const way = '/account/password'
    await browser.fill(`/sign-up?return_to=${way}`, { name, email, password: PASSWORD })
    const { pathname } = new URL(linkIn(await site.mailTo(email), /^\/verify\//))
    const { status, location } = await browser.fill(pathname, {})
    assert.deepEqual([status, location], [303, way])
    const { text } = await browser.get('/sessions')
    assert.match(text, /<a class="[^"]+" href="\/grants">/, 'and finds what they allow apps')
    const home = await browser.get('/')
    assert.match(home.text, /Signed in as <\/span><bdi>Mira &lt;b&gt;Halloran&lt;\/b&gt;<\/bdi>/)
    assert.doesNotMatch(home.text, />Sign in</)
    assert.equal(home.headers['cache-control'], 'no-store')
    await browser.fill('/sign-out', {})
    const after = await browser.get('/')
    assert.match(after.text, />Sign in</)
    assert.match(String(after.headers['cache-control']), /^public/)
  })

  it('that is verified elsewhere chooses a password there, and is told how to go on where it began', async () => {
    const email = freshEmail()
    const [browser, phone] = [createVisitor(site), createVisitor(site)]
    const asked = await browser.fill('/sign-up?return_to=/grants', { name: 'Mira', email, password: PASSWORD })
    const { pathname } = new URL(linkIn(await site.mailTo(email), /^\/verify\//))
    const verified = await phone.fill(pathname, {})
    const { pathname: reset } = new URL(verified.location, site.url)
    const { text } = await phone.get(verified.location)
    const chosen = await phone.post(reset, { ...hiddenIn(text, reset), password: 'another few words' })
    assert.equal(chosen.status, 303, chosen.text)
    assert.match((await phone.get(chosen.location)).text, /go back there and sign in with the new password/)
    const waiting = await browser.get(asked.location)
    assert.match(waiting.text, /href="\/sign-in\?return_to=%2Fgrants">Sign in here/)
    const back = await browser.fill('/sign-in?return_to=/grants', { email, password: 'another few words' }, '/sign-in')
    assert.equal(back.location, '/grants')
  })
})

describe('a second factor', () => {
  it('has the name of the installation in the authenticator', async () => {
    const visitor = await signIn(site, await signUp(site))
    const { text } = await visitor.fill(SETUP, {}, `${SETUP}/begin`)
    const uri = new URL(hiddenIn(text, `${SETUP}/confirm`).uri ?? '')
    assert.deepEqual([uri.searchParams.get('issuer'), uri.pathname.split(':')[0]], ['Harbour AI', '/Harbour%20AI'])
    const { email } = await withFactor()
    const asked = await (await halfSignedIn(email)).get('/second-factor')
    assert.match(asked.text, /the six digits that it shows for <b>Harbour AI<\/b>/)
  })

  it('is asked for once it is on: nothing else is shown or done before it', async () => {
    const { email, key } = await withFactor()
    const visitor = await halfSignedIn(email)
    for (const path of ['/sessions', SETUP, '/account/password']) {
      const { status, location } = await visitor.get(path)
      assert.deepEqual([status, location], [303, `/second-factor?${new URLSearchParams({ return_to: path })}`])
    }
    const hidden = hiddenIn((await visitor.get('/second-factor')).text, '/second-factor')
    for (const path of [`${SETUP}/remove`, `${SETUP}/begin`, '/sessions/end-all', '/account/password']) {
      const { status, location } = await visitor.post(path, hidden)
      assert.deepEqual([status, location], [303, '/second-factor'], path)
    }
    const before = visitor.cookies.get('fb_session') ?? ''
    const { location } = await visitor.fill('/second-factor', { code: codeAt(key, 1) })
    assert.equal(location, '/console')
    assert.equal((await visitor.get('/sessions')).status, 200)
    // Whoever knew the session before it was whole has nothing.
    const thief = createVisitor(site)
    thief.cookies.set('fb_session', before)
    assert.equal((await thief.get('/sessions')).location, '/sign-in?return_to=%2Fsessions')
  })

  it('is not begun in a session of long ago: its owner signs in once more first', async () => {
    const email = await signUp(site)
    const visitor = await signIn(site, email)
    await pool.query("update browser_sessions set created_at = created_at - interval '1 hour'")
    const { location } = await visitor.fill(SETUP, {}, `${SETUP}/begin`)
    assert.match(location, /^\/sign-in\?note=change&return_to=/)
    assert.match((await visitor.get(location)).text, /Sign in once more/)
    assert.equal((await visitor.fill(location, { email, password: PASSWORD }, '/sign-in')).location, SETUP)
    assert.equal((await visitor.fill(SETUP, {}, `${SETUP}/begin`)).status, 200)
  })

  it('says how many tries are left', async () => {
    const { email } = await withFactor()
    const visitor = await halfSignedIn(email)
    assert.match((await visitor.fill('/second-factor', { code: '000000' })).text, /4 more tries until /)
    assert.match((await visitor.fill('/recovery', { recovery: 'AAAAA-AAAAA' })).text, /4 more tries until /)
  })

  it('leads to a new password after twenty wrong codes in a row', async () => {
    const { email, key } = await withFactor()
    await pool.query('update people set factor_failures = 20 where email = $1', [email])
    const visitor = await halfSignedIn(email)
    const { status, text } = await visitor.fill('/second-factor', { code: codeAt(key, 1) })
    assert.equal(status, 403)
    assert.match(text, /Choose a new password first/)
    assert.match(text, /<a href="\/reset">/)
  })

  it('is not asked for again in a browser that is remembered, until its owner signs out everywhere', async () => {
    const { email, key } = await withFactor()
    const visitor = await halfSignedIn(email)
    const { setCookies } = await visitor.fill('/second-factor', { code: codeAt(key, 1), remember: 'yes' })
    assert.ok(
      setCookies.some((line) =>
        /^fb_remembered=[A-Za-z0-9_-]{43}; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/.test(line),
      ),
    )
    await visitor.fill('/sign-out', {})
    assert.equal((await visitor.fill('/sign-in', { email, password: PASSWORD })).location, '/console')
    const remembered = visitor.cookies.get('fb_remembered') ?? ''
    await visitor.fill('/sessions', {}, '/sessions/end-all')
    visitor.cookies.set('fb_remembered', remembered)
    assert.equal((await visitor.fill('/sign-in', { email, password: PASSWORD })).location, '/second-factor')
  })

  it('stays on through a reset of the password', async () => {
    const { email, visitor } = await withFactor()
    await createVisitor(site).fill('/reset', { email })
    await site.mailTo(email, 3)
    const links = (await site.sandbox.mail(email)).flatMap((one) => one.links)
    const link = links.find((one) => one.includes('/reset/')) ?? assert.fail()
    const other = createVisitor(site)
    const { location } = await other.fill(new URL(link).pathname, { password: 'another few words' })
    assert.equal(location, '/second-factor')
    assert.equal((await visitor.get('/sessions')).status, 303)
  })

  it('is turned off with a code, which is asked for there too', async () => {
    const { email, visitor, key } = await withFactor()
    assert.equal((await visitor.fill(SETUP, { code: '000000' }, `${SETUP}/remove`)).status, 400)
    await forgetUsed(email)
    assert.equal(
      (await visitor.fill(SETUP, { code: codeAt(key) }, `${SETUP}/remove`)).location,
      '/sessions?note=factor-off',
    )
    assert.equal((await createVisitor(site).fill('/sign-in', { email, password: PASSWORD })).location, '/console')
  })

  it('shows a key of ours alone, whatever comes back with the code', async () => {
    const email = await signUp(site)
    const visitor = await signIn(site, email)
    const { text } = await visitor.fill(SETUP, {}, `${SETUP}/begin`)
    const hidden = hiddenIn(text, `${SETUP}/confirm`)
    for (const uri of [
      '',
      'javascript:alert(1)',
      'otpauth://totp/a"onclick=?secret=AAAAAAAAAAAAAAAA&a=b',
      'https://evil.example',
    ])
      assert.equal((await visitor.post(`${SETUP}/confirm`, { ...hidden, uri, code: '000000' })).status, 400, uri)
    const page = await visitor.post(`${SETUP}/confirm`, { ...hidden, uri: 'javascript:alert(1)', code: '000000' })
    assert.ok(!page.text.includes('javascript:'))
  })
})
