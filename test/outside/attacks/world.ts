import assert from 'node:assert/strict'
import { freePort } from '../../../harness/free-port.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { ask, type House, listIn, startHouse, type Told } from '../../account/house.ts'
import { authorized, createOauthClient, exchange, newPkce, registered } from '../../oauth/client.ts'
import { codeAt } from '../../people/authenticator.ts'
import { createMailbox, type Site } from '../../people/site.ts'
import { hiddenIn, signIn, signUp, type Visitor } from '../../people/visitor.ts'

/** An installation as strangers meet it: pages, mail, an authorization server, and calls. What they attack it with is HTTP and SMTP alone. */
export type World = House & Pick<Site, 'url' | 'mailTo'> & { readonly callsUrl: string; readonly mcpUrl: string }

/** A way in that somebody found, and how it is tried again. */
export type Attack = readonly [refusal: string, attempt: (world: World) => Promise<void>]

const local = (port: number) => `http://127.0.0.1:${port}`

export async function startWorld(): Promise<World> {
  const [calls, agent] = await Promise.all([freePort(), freePort()])
  const [callsUrl, mcpUrl] = [local(calls), `${local(agent)}/mcp`]
  const house = await startHouse((await freshDatabase()).url, {
    env: {
      FAREBOX_LISTEN_GATEWAY: `127.0.0.1:${calls}`,
      FAREBOX_LISTEN_AGENT: `127.0.0.1:${agent}`,
      FAREBOX_HTTP_PUBLIC_URL: callsUrl,
      FAREBOX_HTTP_MCP_URL: mcpUrl,
      FAREBOX_PEOPLE_TEST_CREDIT: '5',
    },
  })
  return { ...house, url: house.siteUrl, callsUrl, mcpUrl, mailTo: createMailbox(house.sandbox) }
}

/** Somebody who signed up by themselves, and is signed in. */
export type Person = {
  readonly email: string
  readonly browser: Visitor
  readonly workspaceId: Id
  /** Asks the account API as the pages do. */
  readonly ask: (path: string, sent?: Sent) => Promise<Told>
  /** The same below their own workspace. */
  readonly own: (path: string, sent?: Sent) => Promise<Told>
}

export type Sent = Parameters<typeof ask>[3]

export async function newcomer(world: World, wanted: { email?: string; name?: string } = {}): Promise<Person> {
  const email = await signUp(world, wanted)
  return personIn(world, email, await signIn(world, email))
}

/** The same person in another browser. */
export async function personIn(world: World, email: string, browser: Visitor): Promise<Person> {
  const headers = () => ({
    cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
    'sec-fetch-site': 'same-origin',
  })
  const { json } = await ask(world.url, { headers: headers() }, '/me')
  const formToken = String(json.form_token)
  const send = (path: string, sent: Sent = {}) =>
    ask(world.url, { headers: { ...headers(), 'x-form-token': formToken } }, path, sent)
  const [workspace] = listIn(await send('/workspaces'))
  const workspaceId = String(workspace?.id)
  return {
    email,
    browser,
    workspaceId,
    ask: send,
    own: (path, sent) => send(`/workspaces/${workspaceId}${path}`, sent),
  }
}

/** Somebody else joins a workspace as its owner invites them. */
export async function joins(world: World, owner: Person, guest: Person, role: string): Promise<string> {
  const invited = await owner.own('/invitations', { method: 'POST', body: { email: guest.email, role } })
  assert.equal(invited.status, 201, invited.text)
  const { pathname } = new URL(await linkTo(world, guest.email, '/invitations/'))
  const joined = await guest.browser.fill(pathname, { decision: 'join' })
  assert.equal(joined.status, 303, joined.text)
  return memberOf(owner, guest.email)
}

/** The newest link below a path in the mail of somebody, once there is one. */
export async function linkTo({ sandbox }: Pick<World, 'sandbox'>, email: string, path: string): Promise<string> {
  let found: string | undefined
  await until(
    async () => {
      const letters = await sandbox.mail(email)
      found = letters.flatMap(({ links }) => links).find((one) => new URL(one).pathname.startsWith(path))
      return found !== undefined
    },
    PATIENCE_MS,
    `a link to ${path}`,
  )
  return found ?? assert.fail()
}

export async function memberOf(owner: Person, email: string): Promise<string> {
  const found = listIn(await owner.own('/members?limit=100')).find((one) => one.email === email)
  return String(found?.id)
}

export async function newKey(
  person: Person,
  mode: 'live' | 'test',
  body: object = {},
): Promise<{ id: string; secret: string }> {
  const made = await person.own(`/keys?mode=${mode}`, { method: 'POST', body: { name: 'key', ...body } })
  assert.equal(made.status, 201, made.text)
  return { id: String(made.json.id), secret: String(made.json.secret) }
}

/** What a client that a person lets in gets for the account API. */
export async function accountToken(world: World, person: Person, mode: 'live' | 'test', scope = 'account.manage') {
  const client = createOauthClient(world)
  const [clientId, pkce] = [await registered(client), newPkce()]
  const changed = { resource: `${world.url}/account/v1`, scope }
  const code = await authorized(person.browser, { clientId, pkce, changed }, { mode })
  const { status, json, text } = await exchange(client, { clientId, code, pkce })
  assert.equal(status, 200, text)
  const headers = { authorization: `Bearer ${json.access_token}` }
  return (path: string, sent: Sent = {}) => ask(world.url, { headers }, path, sent)
}

const SETUP = '/account/second-factor'

/** Turns the second factor on; its key and the codes for when it is lost. */
export async function turnsFactorOn({ browser }: Pick<Person, 'browser'>) {
  const { text } = await browser.fill(SETUP, {}, `${SETUP}/begin`)
  const hidden = hiddenIn(text, `${SETUP}/confirm`)
  const key = new URL(hidden.uri ?? '').searchParams.get('secret') ?? ''
  const told = await browser.post(`${SETUP}/confirm`, { ...hidden, code: codeAt(key) })
  const recovery = [...told.text.matchAll(/<li><code>([^<]+)<\/code>/g)].map(([, code = '']) => code)
  return { status: told.status, text: told.text, key, recovery }
}

export function turnsFactorOff({ browser }: Pick<Person, 'browser'>, code: string) {
  return browser.fill(SETUP, { code }, `${SETUP}/remove`)
}

/** As if so much time had passed for what is counted of attempts. */
export async function later({ pool }: Pick<World, 'pool'>, interval: string): Promise<void> {
  await pool.query('update door_attempts set ends_at = ends_at - $1::interval', [interval])
}
