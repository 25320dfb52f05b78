import assert from 'node:assert/strict'
import { after, beforeEach, describe, it } from 'node:test'
import { startBareSandbox } from '../../../harness/sandbox.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { makeMember } from '../../identity/granted.ts'
import { ask, type Customer, chargesOf, codeOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { evidenceOf } from '../models/streams.ts'
import { FOLLOW, follow, LINKS, linkAccount } from './linking.ts'
import { expire, platformOf } from './sandbox-platform.ts'

const PROCESSES = 2
/** Many enough that whoever goes on as long as it is refused is told from who stops; few enough that it ends. */
const REFUSALS = 20
const AT_ONCE = 12

const database = await freshDatabase()
const post = await startBareSandbox({ smtpPort: 0 })
after(() => post.stop())
const installation = await startInstallation(database.url, {
  processes: PROCESSES,
  env: {
    FAREBOX_LINKS_OFFLINE_ACCESS: 'true',
    FAREBOX_MAIL_URL: post.smtpUrl ?? '',
    FAREBOX_MAIL_FROM: 'no-reply@farebox.example',
  },
})
const { gateways, pool, sandbox, url } = installation
const platform = platformOf(sandbox.url)
after(installation.stop)
beforeEach(() => platform.turn({ follow_limit: 1_000_000, follow_refusals: 0 }))

let users = 0
async function linked(): Promise<Customer & { readonly user: string; readonly owner: string }> {
  const customer = await makeCustomer(pool)
  const { email: owner } = await makeMember(pool, customer.workspaceId)
  const user = `refused_${users++}`
  await linkAccount(url, customer.secret, user)
  return { ...customer, user, owner }
}

async function stateOf(secret: string): Promise<readonly unknown[]> {
  const [link] = (await ask(url, secret, LINKS)).json.data as Record<string, unknown>[]
  return [link?.status, link?.reason, link?.refused_at !== null]
}

const WORKS = ['active', null, false]
const REFUSED_ONCE = ['active', null, true]
const ENDED = ['needs_link', 'revoked', true]

/** How often an owner was written that a platform refuses an account, once it is so often. */
async function toldOwner(owner: string, times: number): Promise<void> {
  const letters = async () =>
    (await post.mail(owner)).filter(({ subject }) => /linked account .* refused/.test(subject))
  await until(async () => (await letters()).length >= times, PATIENCE_MS, `mail to ${owner}`)
  assert.equal((await letters()).length, times)
}

/** What the platform was asked for a call: writes, and refreshes. */
async function askedFor(id: string): Promise<readonly [number, number]> {
  const asked = (await sandbox.journal()).filter(({ request_id }) => request_id === id)
  const refreshes = asked.filter(({ path }) => path.endsWith('/oauth2/token')).length
  return [asked.length - refreshes, refreshes]
}

const writes = async () => (await sandbox.journal()).filter(({ path }) => path.endsWith('/following'))

async function isFree({ accountId }: Customer): Promise<boolean> {
  return [...(await chargesOf(pool, accountId)).values()].every((amount) => amount === 0n)
}

function isRefused(told: Told): void {
  assert.deepEqual([told.status, codeOf(told)], [403, 'link_required'], told.text)
}

function isTriedOnceMore(told: Told): void {
  assert.deepEqual([told.status, codeOf(told)], [502, 'upstream_transport'], told.text)
  assert.match(told.text, /The next call tries once more/)
}

describe('a platform that refuses every token and goes on issuing them', () => {
  it('LINK-6 is asked twice and for one refresh by a call, which marks the link and tells its owner; the next ends it, and nothing more is asked', async () => {
    const customer = await linked()
    await platform.turn({ follow_refusals: REFUSALS })
    const first = await follow(url, customer.secret)
    assert.deepEqual(await askedFor(first.id), [2, 1])
    isTriedOnceMore(first)
    assert.deepEqual(await stateOf(customer.secret), REFUSED_ONCE)
    await toldOwner(customer.owner, 1)
    const second = await follow(gateways[1]?.url ?? '', customer.secret)
    assert.deepEqual(await askedFor(second.id), [2, 1])
    isRefused(second)
    assert.deepEqual(await stateOf(customer.secret), ENDED)

    const before = (await sandbox.journal()).length
    for (const gateway of gateways) isRefused(await follow(gateway.url, customer.secret))
    assert.equal((await sandbox.journal()).length, before, 'the platform was asked nothing')
    assert.ok(await isFree(customer))

    await platform.turn({ follow_refusals: 0 })
    await linkAccount(url, customer.secret, customer.user)
    assert.deepEqual(await stateOf(customer.secret), WORKS)
    assert.equal((await follow(url, customer.secret)).status, 200)
    await toldOwner(customer.owner, 1)
  })

  it('LINK-6 is asked once where the refresh came first: a token that a call has just got is not asked for again', async () => {
    const customer = await linked()
    await expire(pool, sandbox.url, [customer.keyId])
    await platform.turn({ follow_refusals: REFUSALS })
    const told = await follow(url, customer.secret)
    assert.deepEqual(await askedFor(told.id), [1, 1])
    isTriedOnceMore(told)
    assert.deepEqual(await stateOf(customer.secret), REFUSED_ONCE)
    assert.ok(await isFree(customer))
  })

  it('LINK-6 is asked no more when the caller has left', async () => {
    const customer = await linked()
    await platform.turn({ follow_refusals: REFUSALS, token_delay_ms: 300 })
    const before = (await writes()).length
    const leaving = new AbortController()
    const call = fetch(url + FOLLOW, {
      method: 'POST',
      headers: { authorization: `Bearer ${customer.secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ target_user_id: '123' }),
      signal: leaving.signal,
    })
    await until(async () => (await writes()).length > before, PATIENCE_MS, 'its first write')
    leaving.abort()
    await assert.rejects(call, { name: 'AbortError' })
    const id = (await writes())[before]?.request_id ?? ''
    const isOver = async () => (await chargesOf(pool, customer.accountId)).has(id)
    await until(isOver, PATIENCE_MS, 'the end of the call')
    await platform.turn({ token_delay_ms: 0 })
    assert.deepEqual(await askedFor(id), [2, 1])
    assert.deepEqual(await stateOf(customer.secret), REFUSED_ONCE)
  })

  it('LINK-6 is asked no more by many calls at once, through all processes, than by each of them alone', async () => {
    const customer = await linked()
    await platform.turn({ follow_refusals: AT_ONCE * REFUSALS })
    const told = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, at) => follow(gateways[at % PROCESSES]?.url ?? '', customer.secret)),
    )
    for (const one of told) {
      // One whose token was replaced by another call's refresh has no say about the link.
      assert.ok(codeOf(one) === 'link_required' || codeOf(one) === 'upstream_transport', one.text)
      const [asked, refreshes] = await askedFor(one.id)
      assert.ok(asked <= 2 && refreshes <= 1, `${asked} writes and ${refreshes} refreshes`)
    }
    // Some of them may have begun when it was marked, and then the link has ended already.
    isRefused(await follow(url, customer.secret))
    assert.deepEqual(await stateOf(customer.secret), ENDED)
    assert.ok(await isFree(customer))
    await toldOwner(customer.owner, 1)
  })
})

describe('a platform that refuses one token', () => {
  it('LINK-6 is asked again with another; the call succeeds, its record tells both requests, and the link stays', async () => {
    const customer = await linked()
    await platform.turn({ follow_refusals: 1 })
    const told = await follow(url, customer.secret)
    assert.equal(told.status, 200, told.text)
    assert.deepEqual(await askedFor(told.id), [2, 1])
    assert.deepEqual(await stateOf(customer.secret), WORKS)
    const { upstream } = await evidenceOf(url, customer.secret, told.id)
    assert.deepEqual(Array.isArray(upstream) && upstream.map(({ slot, outcome, status }) => [slot, outcome, status]), [
      ['social_a_account', 'answered', 401],
      ['social_a_account', 'answered', 200],
    ])
  })

  it('LINK-6 for a whole call is asked by the next, which takes the mark away; a later refusal is a first one again', async () => {
    const customer = await linked()
    for (const times of [1, 2]) {
      await platform.turn({ follow_refusals: 2 })
      isTriedOnceMore(await follow(url, customer.secret))
      assert.deepEqual(await stateOf(customer.secret), REFUSED_ONCE)
      await toldOwner(customer.owner, times)
      assert.equal((await follow(url, customer.secret)).status, 200)
      assert.deepEqual(await stateOf(customer.secret), WORKS)
    }
  })
})
