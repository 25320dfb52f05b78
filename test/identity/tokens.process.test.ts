import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { revokeAccessToken } from '../../server/src/grants/access-tokens.ts'
import { makeGrant, revokeGrant, setGrantBudget } from '../../server/src/grants/grants.ts'
import { hashOf, makeAccessToken } from '../../server/src/identity/key-format.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { removeMember } from '../../server/src/people/members.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, ask, ids, makeCustomer, PROBE_SERVER, type Told } from './customers.ts'
import { AUDIENCE, FACES_ENV, issueToken, MCP_AUDIENCE, makeGranted, makeMember, PLENTY } from './granted.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const parts = { pool, ids }
const PROOF = 'identity-tokens'
const PROCESSES = 3
/** So soon every process knows of a change. */
const KNOWN = { unit: 'ms', atMost: 1_000 } as const
const MUCH = 1_000_000_000_000n

let gateways: readonly Gateway[] = []
before(async () => {
  const { changes, env } = PROBE_SERVER
  gateways = await startGateways(PROCESSES, { databaseUrl: database.url, changes, env: { ...env, ...FACES_ENV } })
})
after(async () => {
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await pools.close()
})

const first = () => gateways[0]?.url ?? ''

/** Every process knows the token, from memory. */
async function warm(token: string): Promise<void> {
  for (const { url } of gateways) assert.equal((await ask(url, token)).status, 200)
}

/** Until every process answers so; how long that took. */
function everywhere(token: string, isSo: (told: Told) => boolean): Promise<number> {
  const look = async () => {
    await delay(40)
    return (await Promise.all(gateways.map(({ url }) => ask(url, token)))).every(isSo)
  }
  return until(look, PATIENCE_MS, 'the change')
}

const isUnknown = ({ status }: Told) => status === 401
const heldOf = async (credentialId: string) => {
  const { rows } = await pool.query<{ n: number }>(
    `select (select count(*) from holds where credential_id = $1)::integer
       + (select count(*) from charges where credential_id = $1)::integer as n`,
    [credentialId],
  )
  return rows[0]?.n
}

async function customer() {
  const { workspaceId, accountId, workspace } = await makeCustomer(pool, { paid: MUCH })
  return { workspaceId, accountId, testAccountId: workspace.testAccountId }
}

describe('an access token', () => {
  it('works on every process as soon as it is issued, and spends what its grant may', async () => {
    const { workspaceId, accountId } = await customer()
    const granted = await makeGranted(pool, { workspaceId })
    for (const { url } of gateways) assert.equal((await ask(url, granted.token, { hold: 10 })).status, 200)
    const { rows } = await pool.query('select sum(amount)::bigint as sum from charges where credential_id = $1', [
      granted.id,
    ])
    assert.equal(rows[0]?.sum, 10n * BigInt(PROCESSES))
    const another = await issueToken(pool, granted)
    for (const { url } of gateways) assert.equal((await ask(url, another.token, { hold: 10 })).status, 200)
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
  })

  it('whose grant is revoked starts no paid call once that is acknowledged, and soon no call at all', async () => {
    const timesMs: number[] = []
    for (let round = 0; round < count({ full: 10, reduced: 3 }); round += 1) {
      const { workspaceId } = await customer()
      const granted = await makeGranted(pool, { workspaceId })
      await warm(granted.token)
      let isRevoked = false
      const begunAfter: number[] = []
      const callers = Array.from({ length: 6 }, async (_, at) => {
        const url = gateways[at % gateways.length]?.url ?? ''
        for (let more = 30; more > 0; ) {
          const sentAfter = isRevoked
          const { status } = await ask(url, granted.token, { hold: 5 })
          if (sentAfter) begunAfter.push(status)
          if (isRevoked) more -= 10
        }
      })
      await delay(20)
      await revokeGrant(parts, ACTOR, granted.id)
      isRevoked = true
      await Promise.all(callers)
      assert.deepEqual(new Set(begunAfter), new Set([401]))
      timesMs.push(await everywhere(granted.token, isUnknown))
    }
    judge(PROOF, 'from the revocation of a grant to a refusal everywhere', KNOWN, timesMs)
  })

  it('that is revoked by itself is soon unknown everywhere, and others of its grant go on', async () => {
    const { workspaceId } = await customer()
    const granted = await makeGranted(pool, { workspaceId })
    const other = await issueToken(pool, granted)
    await warm(granted.token)
    await warm(other.token)
    assert.equal(await revokeAccessToken(pool, ACTOR, other.hash), true)
    judge(PROOF, 'from the revocation of a token to a refusal everywhere', KNOWN, [
      await everywhere(other.token, isUnknown),
    ])
    await warm(granted.token)
    assert.equal(await revokeAccessToken(pool, ACTOR, other.hash), false)
  })

  it('ends with the membership of who gave it: no paid call once that is acknowledged', async () => {
    const { workspaceId } = await customer()
    const { personId, memberId } = await makeMember(pool, workspaceId, 'developer')
    const granted = await makeGranted(pool, { workspaceId, personId })
    await warm(granted.token)
    await removeMember({ pool, notices: null }, { by: ACTOR, personId: null }, workspaceId, memberId, null)
    for (const { url } of gateways) assert.equal((await ask(url, granted.token, { hold: 5 })).status, 401)
    await everywhere(granted.token, isUnknown)
  })

  it('that expires is refused on every process, and so are all with their grant', async () => {
    const { workspaceId } = await customer()
    const granted = await makeGranted(pool, { workspaceId })
    const short = await issueToken(pool, granted, { seconds: 8 })
    await warm(short.token)
    await everywhere(short.token, isUnknown)
    await warm(granted.token)
    const expiring = await makeGranted(pool, { workspaceId, expiresAt: new Date(Date.now() + 10_000) })
    await everywhere(expiring.token, isUnknown)
  })

  it('is taken under the address alone that it was issued for, and refused elsewhere as if it were unknown', async () => {
    const { workspaceId } = await customer()
    const both = { workspaceId, audiences: [AUDIENCE, MCP_AUDIENCE], scopes: ['calls', 'agent'] } as const
    const granted = await makeGranted(pool, both)
    const foreign = await issueToken(pool, granted, { audience: MCP_AUDIENCE, scopes: ['calls'] })
    await warm(granted.token)
    const unknown = await ask(first(), makeAccessToken(granted.id, granted.shard).reveal(), { hold: 5 })
    for (const { url } of gateways) {
      const told = await ask(url, foreign.token, { hold: 5 })
      assert.deepEqual([told.status, Object(told.body.error).message], [401, Object(unknown.body.error).message])
    }
    assert.equal(await heldOf(granted.id), 0)
    // With and without a slash it is one resource.
    const slash = await issueToken(pool, granted, { audience: `${AUDIENCE}/` })
    await warm(slash.token)
  })

  it('without the scope of calls can make none, on this resource and for this account', async () => {
    const { workspaceId } = await customer()
    const scopes = ['calls', 'agent', 'account.read'] as const
    const granted = await makeGranted(pool, { workspaceId, scopes })
    for (const lesser of [['agent'], ['account.read'], ['agent', 'account.read']] as const) {
      const { token } = await issueToken(pool, granted, { scopes: lesser })
      const told = await ask(first(), token, { hold: 5 })
      assert.deepEqual([told.status, told.code], [403, 'forbidden'], lesser.join())
      assert.equal((await ask(first(), token)).status, 403)
    }
    assert.equal(await heldOf(granted.id), 0)
    assert.equal((await ask(first(), granted.token, { hold: 5 })).status, 200)
  })

  it('of a grant without an amount pays for nothing: 402 before anything is held, and what is free works', async () => {
    const { workspaceId, accountId } = await customer()
    const granted = await makeGranted(pool, { workspaceId, budget: null })
    for (const { url } of gateways) {
      const told = await ask(url, granted.token, { hold: 1 })
      assert.deepEqual([told.status, told.code], [402, 'budget_required'])
      assert.match(String(Object(told.body.error).message), /has no budget/)
      assert.equal((await ask(url, granted.token)).status, 200)
    }
    assert.equal(await heldOf(granted.id), 0)
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    await setGrantBudget(parts, ACTOR, granted.id, PLENTY)
    await until(async () => (await ask(first(), granted.token, { hold: 1 })).status === 200, PATIENCE_MS)
  })

  it('whose budget is lowered or taken away spends nothing more from that moment', async () => {
    const { workspaceId } = await customer()
    const granted = await makeGranted(pool, { workspaceId })
    const paid = async () =>
      (await Promise.all(gateways.map(({ url }) => ask(url, granted.token, { hold: 5 })))).map(({ status }) => status)
    assert.deepEqual(await paid(), [200, 200, 200])
    await setGrantBudget(parts, ACTOR, granted.id, { period: 'month', amount: nanos(1n) })
    assert.deepEqual(await paid(), [402, 402, 402])
    await setGrantBudget(parts, ACTOR, granted.id, PLENTY)
    assert.deepEqual(await paid(), [200, 200, 200])
    // Another period has another allowance, and the old one is worth nothing to a process that has not heard of it.
    await setGrantBudget(parts, ACTOR, granted.id, { period: 'day', amount: nanos(1n) })
    assert.deepEqual(await paid(), [402, 402, 402])
    await setGrantBudget(parts, ACTOR, granted.id, PLENTY)
    await until(async () => (await paid()).every((status) => status === 200), PATIENCE_MS)
    await setGrantBudget(parts, ACTOR, granted.id, null)
    assert.deepEqual(await paid(), [402, 402, 402])
  })

  it('spends the money of its mode', async () => {
    const { workspaceId, testAccountId } = await customer()
    const granted = await makeGranted(pool, { workspaceId, mode: 'test' })
    const refused = await ask(first(), granted.token, { hold: 5 })
    assert.deepEqual([refused.status, refused.code], [402, 'insufficient_balance'])
    const amount = nanos(100n)
    await creditAccount(pool, { entryId: ids.next(), accountId: testAccountId, kind: 'payment', amount })
    const told = await ask(first(), granted.token, { hold: 5 })
    assert.deepEqual([told.status, told.body.mode], [200, 'test'])
  })

  it('gets in as a whole alone: no part of it, no other id, no form of a key', async () => {
    const { workspaceId } = await customer()
    const [granted, neighbour] = [await makeGranted(pool, { workspaceId }), await makeGranted(pool, { workspaceId })]
    await warm(granted.token)
    await warm(neighbour.token)
    const [, , place = '', secret = ''] = granted.token.split('_')
    const other = neighbour.token.split('_')[2] ?? ''
    const forged = [
      makeAccessToken(granted.id, granted.shard).reveal(),
      granted.token.replace(place, other),
      granted.token.replace('fb_at_', 'fb_live_'),
      granted.token.toLowerCase(),
      `fb_at_${place}_${secret.slice(0, -1)}`,
    ]
    for (const token of forged) assert.equal((await ask(first(), token)).status, 401, token)
    // Even where somebody enters the hash of one grant's token under another.
    const swapped = makeAccessToken(granted.id, granted.shard)
    await pool.query(
      `insert into access_tokens (hash, grant_id, audience, oauth_scopes, expires_at)
       values ($1, $2, $3, '{calls}', clock_timestamp() + interval '1 hour')`,
      [hashOf(new Secret(swapped.reveal())), neighbour.id, AUDIENCE],
    )
    assert.equal((await ask(first(), swapped.reveal())).status, 401)
  })
})

describe('LIMIT-5 tokens of one grant over three processes', () => {
  it('share its limits exactly, and every number in their headers is told once', async () => {
    const limit = count({ full: 300, reduced: 60 })
    const { workspaceId } = await customer()
    const granted = await makeGranted(pool, { workspaceId, terms: { rates: { requestsPerMinute: limit } } })
    const tokens = [granted.token, (await issueToken(pool, granted)).token, (await issueToken(pool, granted)).token]
    const told = await Promise.all(
      Array.from({ length: 3 * limit }, (_, at) =>
        ask(gateways[at % PROCESSES]?.url ?? '', tokens[(at >> 2) % tokens.length] ?? ''),
      ),
    )
    const admitted = told.filter(({ status }) => status === 200)
    assert.deepEqual(
      admitted.map(({ headers }) => Number(headers.get('x-ratelimit-remaining-requests'))).sort((a, b) => b - a),
      Array.from({ length: limit }, (_, at) => limit - 1 - at),
    )
    assert.ok(told.filter(({ status }) => status === 429).every(({ code }) => code === 'rate_limit_exceeded'))
    assert.equal(told.filter(({ status }) => status === 429).length, 2 * limit)
    recordProof(PROOF, 'limits', { processes: PROCESSES, limit, sent: told.length, admitted: admitted.length })
  })

  it('race for its budget, and never a nano above it is spent', async () => {
    const { workspaceId, accountId } = await customer()
    const budget = { period: 'total', amount: nanos(1_000n) } as const
    const granted = await makeGranted(pool, { workspaceId, budget })
    const tokens = [granted.token, (await issueToken(pool, granted)).token]
    const racers = count({ full: 1_500, reduced: 300 })
    const told = await Promise.all(
      Array.from({ length: racers }, (_, at) =>
        ask(gateways[at % PROCESSES]?.url ?? '', tokens[at % 2] ?? '', { hold: 7 }),
      ),
    )
    const paid = told.filter(({ status }) => status === 200).length
    assert.equal(paid, 142)
    assert.ok(told.filter(({ status }) => status !== 200).every(({ code }) => code === 'budget_exceeded'))
    const { rows } = await pool.query(
      `select sum(amount)::bigint as charged, (select max(charged + held) from allowance_periods
         where allowance_id = (select allowance_id from grants where id = $1)) as spoken_for
       from charges where credential_id = $1`,
      [granted.id],
    )
    assert.deepEqual([rows[0]?.charged, rows[0]?.spoken_for], [994n, 994n])
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    recordProof(PROOF, 'a budget raced for', { processes: PROCESSES, racers, paid, budget: 1_000, charged: 994 })
  })
})

describe('a grant', () => {
  it('is one of 200 at the most that are active in a workspace, however many are made at once', async () => {
    const { workspaceId } = await customer()
    const { personId } = await makeMember(pool, workspaceId)
    const another = () =>
      makeGrant(parts, ACTOR, {
        ...{ workspaceId, personId, mode: 'live', clientId: 'one', clientName: 'One' },
        ...{ audiences: [AUDIENCE], scopes: ['calls'] },
      })
    const made = await Promise.allSettled(Array.from({ length: 205 }, another))
    const done = made.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    assert.equal(done.length, 200)
    assert.ok(made.every((one) => one.status === 'fulfilled' || one.reason.code === 'quota_exceeded'))
    await revokeGrant(parts, ACTOR, done[0]?.id ?? '')
    await another()
  })

  it('has 20 live tokens at the most: with one more the oldest falls', async () => {
    const { workspaceId } = await customer()
    const granted = await makeGranted(pool, { workspaceId })
    await warm(granted.token)
    const second = await issueToken(pool, granted)
    for (let more = 0; more < 19; more += 1) await issueToken(pool, granted)
    await everywhere(granted.token, isUnknown)
    await warm(second.token)
    const { rows } = await pool.query('select count(*)::integer as n from access_tokens where grant_id = $1', [
      granted.id,
    ])
    assert.equal(rows[0]?.n, 20)
  })
})
