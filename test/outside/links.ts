import assert from 'node:assert/strict'
import type { Customer } from '../acceptance/installation.ts'
import { decide, open } from '../acceptance/links/linking.ts'
import { type Probe, requireError, sendsNothing } from './probe.ts'
import type { Stack } from './stack.ts'

/** Accounts of a platform that are linked to a key. */
const AUTH_PATH = '/apis/v1/social_a/auth_social_a'
const FOLLOW = { path: '/apis/v1/social_a/follow_social_a', body: { target_user_id: '123' } }
const DEFAULTS = [
  ...['follows.write', 'tweet.read', 'users.read', 'tweet.write', 'like.write', 'dm.read', 'dm.write'],
].toSorted()
const start = (stack: Stack, { secret }: Customer, body?: object) =>
  stack.send(secret, { path: AUTH_PATH, method: 'POST', ...(body !== undefined && { body }) })

/** As a program that has no person to ask. */
const callback = (address: string) => open(address, '*/*')

async function linked(stack: Stack, customer: Customer, scopes?: readonly string[]): Promise<void> {
  const { json } = await start(stack, customer, scopes && { scopes })
  const page = await callback(await decide(String(json.auth_url)))
  assert.equal(page.status, 200, page.text)
}

export const LINK_PROBES: readonly Probe[] = [
  [
    'LINK-1 starting a link returns auth_url, state and expires_at in about ten minutes',
    async (stack) => {
      const { status, json } = await start(stack, await stack.customer())
      assert.equal(status, 200)
      assert.match(String(json.auth_url), /^https?:\/\//)
      assert.ok(String(json.state).length >= 16)
      const minutes = (Date.parse(String(json.expires_at)) - Date.now()) / 60_000
      assert.ok(minutes > 9 && minutes < 11, String(minutes))
    },
  ],
  ...[undefined, {}, { scopes: null }].map(
    (body): Probe => [
      `LINK-1 no scopes mean the default seven: ${JSON.stringify(body)}`,
      async (stack) => {
        const { json } = await start(stack, await stack.customer(), body)
        const asked = new URL(String(json.auth_url)).searchParams.get('scope') ?? ''
        assert.deepEqual(asked.split(' ').toSorted(), DEFAULTS)
      },
    ],
  ),
  [
    'LINK-1 other scopes are asked for as they were wanted',
    async (stack) => {
      const { json } = await start(stack, await stack.customer(), { scopes: ['tweet.read', 'users.read'] })
      assert.equal(new URL(String(json.auth_url)).searchParams.get('scope'), 'tweet.read users.read')
    },
  ],
  [
    'LINK-2 the flow is a code with PKCE S256 and the fixed callback',
    async (stack) => {
      const { json } = await start(stack, await stack.customer())
      const { searchParams } = new URL(String(json.auth_url))
      assert.equal(searchParams.get('response_type'), 'code')
      assert.equal(searchParams.get('code_challenge_method'), 'S256')
      assert.match(searchParams.get('code_challenge') ?? '', /^[\w-]{43}$/)
      assert.equal(searchParams.get('redirect_uri'), `${stack.url}/apis/v1/social_a/oauth_callback`)
      assert.equal(searchParams.get('state'), json.state)
    },
  ],
  [
    'LINK-3 LINK-5 a linked key follows without any token in its body',
    async (stack) => {
      const customer = await stack.customer()
      await linked(stack, customer)
      const told = await stack.send(customer.secret, FOLLOW)
      assert.equal(told.status, 200, told.text)
      assert.notEqual(told.costUsd, null)
    },
  ],
  [
    'LINK-5 a key without a link is 403, which says how to link',
    async (stack) => {
      const { secret } = await stack.customer()
      const told = await sendsNothing(stack, () => stack.send(secret, FOLLOW))
      requireError(told, 'data', 403, 'link_required')
      assert.match(told.text, /auth_social_a/)
    },
  ],
  [
    'LINK-5 a session without the scope is 403, and costs nothing',
    async (stack) => {
      const customer = await stack.customer()
      await linked(stack, customer, ['tweet.read', 'users.read'])
      requireError(await stack.send(customer.secret, FOLLOW), 'data', 403, 'link_scope_missing')
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
  [
    'LINK-3 a state works once',
    async (stack) => {
      const customer = await stack.customer()
      const back = await decide(String((await start(stack, customer)).json.auth_url))
      assert.equal((await callback(back)).status, 200)
      assert.ok((await callback(back)).status >= 400)
    },
  ],
  [
    'LINK-3 a state that nobody has is refused',
    async (stack) => {
      const page = await callback(`${stack.url}/apis/v1/social_a/oauth_callback?code=x&state=${'a'.repeat(43)}`)
      assert.ok(page.status >= 400 && page.status < 500, String(page.status))
    },
  ],
  [
    'LINK-2 the callback needs no credential, and stores nothing without a state',
    async (stack) => {
      const page = await callback(`${stack.url}/apis/v1/social_a/oauth_callback`)
      assert.ok(page.status >= 400 && page.status !== 401)
    },
  ],
  [
    'LINK-3 a user who declines links nothing',
    async (stack) => {
      const customer = await stack.customer()
      const { json } = await start(stack, customer)
      await callback(await decide(String(json.auth_url), { decision: 'deny' }))
      requireError(await stack.send(customer.secret, FOLLOW), 'data', 403, 'link_required')
    },
  ],
  [
    'LINK-3 a session belongs to the key that started it',
    async (stack) => {
      const [one, other] = [await stack.customer(), await stack.customer()]
      await linked(stack, one)
      requireError(await stack.send(other.secret, FOLLOW), 'data', 403, 'link_required')
    },
  ],
  [
    'LINK-7 no answer shows a token of the platform',
    async (stack) => {
      const customer = await stack.customer()
      await linked(stack, customer)
      const told = [
        await stack.send(customer.secret, FOLLOW),
        await stack.send(customer.secret, { path: '/apis/v1/social_a/links' }),
      ]
      for (const { text } of told) assert.doesNotMatch(text, /_canary_/)
    },
  ],
  [
    'AUTH-1 starting a link without a credential is 401',
    async (stack) => {
      requireError(await stack.send('', { path: AUTH_PATH, method: 'POST' }), 'data', 401)
    },
  ],
  ...[{ scopes: 'tweet.read' }, { scopes: ['not a scope'] }, { scopes: [5] }].map(
    (body): Probe => [
      `ERR-7 scopes that are none are 400: ${JSON.stringify(body)}`,
      async (stack) => {
        requireError(await start(stack, await stack.customer(), body), 'data', 400)
      },
    ],
  ),
]
