import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { request } from 'undici'
import { freePort } from '../../harness/free-port.ts'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { startBareSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'

const sandbox = await startBareSandbox({ smtpPort: 0 })
after(() => sandbox.stop())
const database = await freshDatabase()
const pool = new pg.Pool({ connectionString: database.url, max: 2 })
// Its database is dropped before it is closed.
pool.on('error', () => {})
after(() => pool.end())
const masterKey = makeMasterKey()

/** The website, with an issuer of the sandbox. */
async function startSite(issuer = 'openid'): Promise<Gateway> {
  const listen = `127.0.0.1:${await freePort()}`
  const site = await startGateway({
    databaseUrl: database.url,
    env: {
      FAREBOX_ROLES: 'site',
      FAREBOX_LOG_LEVEL: 'silent',
      FAREBOX_LISTEN_SITE: listen,
      FAREBOX_HTTP_SITE_URL: `http://${listen}`,
      FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      FAREBOX_MAIL_URL: sandbox.smtpUrl ?? '',
      FAREBOX_MAIL_FROM: 'no-reply@farebox.example',
      FAREBOX_PEOPLE_ISSUER_URL: `${sandbox.url}/${issuer}`,
      FAREBOX_PEOPLE_ISSUER_CLIENT_ID: 'sandbox-client',
      FAREBOX_PEOPLE_ISSUER_CLIENT_SECRET: 'sandbox-client-secret',
      FAREBOX_PEOPLE_ISSUER_NAME: 'Example Login',
    },
  })
  after(() => site.stop())
  return site
}

type Answer = { readonly status: number; readonly location: string; readonly text: string }

/** Keeps cookies as a browser would, and follows nothing by itself. */
function createBrowser() {
  const jar = new Map<string, string>()
  async function visit(url: string): Promise<Answer> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
    const { statusCode, headers, body } = await request(url, { headers: cookie === '' ? {} : { cookie } })
    for (const line of [headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/Max-Age=0/.test(line)) jar.delete(name)
      else jar.set(name, value)
    }
    return { status: statusCode, location: String(headers.location ?? ''), text: await body.text() }
  }
  return { jar, visit }
}

/** What the issuer leads back to, once somebody has said who they are. */
async function decide(authorizeUrl: string, email: string, decision = 'allow'): Promise<string> {
  const url = new URL(authorizeUrl)
  const body = new URLSearchParams([...url.searchParams, ['email', email], ['name', 'Mira'], ['decision', decision]])
  const { headers } = await request(url.origin + url.pathname, { method: 'POST', body: body.toString() })
  return String(headers.location)
}

const site = await startSite()

describe('sign-in by an issuer', () => {
  it('is offered, makes a person of who is new, and knows them again', async () => {
    const browser = createBrowser()
    assert.match(
      (await browser.visit(`${site.siteUrl}/sign-in`)).text,
      /href="\/sign-in\/issuer".*Continue with Example Login/,
    )
    const begun = await browser.visit(`${site.siteUrl}/sign-in/issuer?return_to=/sessions`)
    assert.equal(begun.status, 303)
    assert.ok(begun.location.startsWith(`${sandbox.url}/openid/authorize?`))
    const back = await decide(begun.location, 'mira@harbour.example')
    const done = await browser.visit(back)
    assert.deepEqual([done.status, done.location], [303, '/sessions'])
    assert.deepEqual([...browser.jar.keys()], ['fb_session', 'fb_viewer'])
    assert.match((await browser.visit(`${site.siteUrl}/sessions`)).text, /mira@harbour\.example/)

    const other = createBrowser()
    const again = await decide((await other.visit(`${site.siteUrl}/sign-in/issuer`)).location, 'Mira@harbour.example')
    assert.equal((await other.visit(again)).status, 303)
    const { rows } = await pool.query('select count(*)::integer as people from people')
    assert.equal(rows[0].people, 1)
  })

  it('can be finished by the browser that began it alone, and once', async () => {
    const browser = createBrowser()
    const back = await decide((await browser.visit(`${site.siteUrl}/sign-in/issuer`)).location, 'jo@harbour.example')
    const thief = createBrowser()
    assert.equal((await thief.visit(back)).status, 400)
    await thief.visit(`${site.siteUrl}/sign-in/issuer`)
    assert.equal((await thief.visit(back)).status, 403)
    assert.ok(!thief.jar.has('fb_session'))
    const { status } = await browser.visit(back)
    assert.equal(status, 303)
    assert.equal((await browser.visit(back)).status, 400, 'what it was begun with is gone')
  })

  it('says so where somebody has said no', async () => {
    const browser = createBrowser()
    const back = await decide(
      (await browser.visit(`${site.siteUrl}/sign-in/issuer`)).location,
      'jo@harbour.example',
      'deny',
    )
    const { status, text } = await browser.visit(back)
    assert.deepEqual([status, /You were not signed in/.test(text), browser.jar.has('fb_session')], [403, true, false])
  })

  it('leads nowhere but to this site', async () => {
    const browser = createBrowser()
    const { location } = await browser.visit(
      `${site.siteUrl}/sign-in/issuer?return_to=${encodeURIComponent('//evil.example')}`,
    )
    assert.equal((await browser.visit(await decide(location, 'jo@harbour.example'))).location, '/console')
  })
})

describe('an issuer that is not to be believed', () => {
  for (const [deviant, status] of [
    ['wrong-nonce', 403],
    ['wrong-audience', 403],
    ['wrong-issuer', 403],
    ['unverified-address', 403],
  ] as const)
    it(`lets nobody in with ${deviant}`, async () => {
      const own = await startSite(`openid/${deviant}`)
      const browser = createBrowser()
      const back = await decide((await browser.visit(`${own.siteUrl}/sign-in/issuer`)).location, 'mira@harbour.example')
      const answer = await browser.visit(back)
      assert.deepEqual([answer.status, browser.jar.has('fb_session')], [status, false])
      await own.stop()
    })
})
