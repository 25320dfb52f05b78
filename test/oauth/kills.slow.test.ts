import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { makeGrant } from '../../server/src/identity/grants.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { ACTOR, ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { createOauthClient, newPkce, REDIRECT, type Reply, registered } from './client.ts'
import type { MortalDoor, Opened } from './mortal-door.ts'
import { MCP, serverHere } from './server-here.ts'

/** One of three processes is killed after each statement of a request, while the others get the same request. */
const MOST_STATEMENTS = count({ full: 60, reduced: 60 })
/** In the gate, every so many statements. */
const EVERY = count({ full: 1, reduced: 7 })

const { url } = await freshDatabase()
const masterKey = makeMasterKey()
const { pools } = connect(url)
after(() => pools.close())
const pool = pools.rest
const here = serverHere({ pool, seal: createSeal({ current: masterKey }) })
const { workspaceId } = await makeCustomer(pool)

async function openDoor(dieAfter: number | null): Promise<{ readonly url: string; readonly process: ChildProcess }> {
  const door = fork(path.join(import.meta.dirname, 'mortal-door.ts'))
  door.send({ url, masterKey: masterKey.reveal(), dieAfter } satisfies MortalDoor)
  const [{ port }]: [Opened] = (await once(door, 'message')) as [Opened]
  after(() => door.kill('SIGKILL'))
  return { url: `http://127.0.0.1:${port}`, process: door }
}

const living = await Promise.all([openDoor(null), openDoor(null)])

type Given = { readonly grantId: string; readonly clientId: string; readonly value: string; readonly personId: string }
type Send = (door: { readonly url: string }) => Promise<Reply>

/** A grant with a code that nobody has brought yet. */
async function givenCode(): Promise<Given & { readonly send: Send }> {
  const clientId = await registered(createOauthClient(living[0]))
  const { personId } = await makeMember(pool, workspaceId)
  const budget = { period: 'total', amount: nanos(1_000_000_000n) } as const
  const grant = { workspaceId, mode: 'live', personId, clientId, clientName: 'A client', budget } as const
  const { id: grantId } = await makeGrant({ pool, ids }, ACTOR, { ...grant, audiences: [MCP], scopes: ['agent'] })
  const provider = await here.provider()
  const client = await provider.Client.find(clientId)
  assert.ok(client !== undefined)
  const pkce = newPkce()
  const value = await new provider.AuthorizationCode({
    ...{ accountId: personId, client, grantId, redirectUri: REDIRECT, scope: 'agent', resource: MCP },
    ...{ codeChallenge: pkce.challenge, codeChallengeMethod: 'S256', authTime: 1 },
  } as never).save()
  const fields = { grant_type: 'authorization_code', client_id: clientId, code: value, redirect_uri: REDIRECT }
  const send: Send = (door) => createOauthClient(door).post('/oauth/token', { ...fields, code_verifier: pkce.verifier })
  return { grantId, clientId, value, personId, send }
}

async function givenRefresh(): Promise<Given & { readonly send: Send }> {
  const given = await givenCode()
  const { json } = await given.send(living[0])
  const value = String(json.refresh_token)
  const fields = { grant_type: 'refresh_token', client_id: given.clientId, refresh_token: value }
  return { ...given, value, send: (door) => createOauthClient(door).post('/oauth/token', fields) }
}

async function givenReused() {
  const given = await givenRefresh()
  await given.send(living[0])
  await pool.query(
    "update oauth_states set consumed_at = consumed_at - interval '1 hour' where grant_id = $1 and consumed_at is not null",
    [given.grantId],
  )
  return given
}

let revocations = 0

/** Of either token, in turn. */
async function givenRevocation() {
  const given = await givenRefresh()
  revocations += 1
  const token = revocations % 2 === 0 ? given.value : String((await given.send(living[1])).json.access_token)
  const fields = { client_id: given.clientId, token }
  return { ...given, send: ((door) => createOauthClient(door).post('/oauth/revoke', fields)) satisfies Send }
}

async function stateOf({ grantId }: Given) {
  const { rows } = await pool.query(
    `select revoked_at is not null as "isRevoked",
       (select count(*)::integer from access_tokens where grant_id = grants.id) as tokens,
       (select count(*)::integer from audit where subject = grants.id::text and action = 'grant.revoked') as revocations
     from grants where id = $1`,
    [grantId],
  )
  return rows[0] as { isRevoked: boolean; tokens: number; revocations: number }
}

async function letters(): Promise<number> {
  const { rows } = await pool.query('select count(*)::integer as count from outbox')
  return Number(rows[0]?.count)
}

/**
 * Sends a request to a process that dies within it, and to the others, at once or when it is dead; what those answered, or null once
 * it no longer dies.
 */
async function underDeath(send: Send, { dieAfter, isAlone }: Death): Promise<readonly Reply[] | null> {
  const victim = await openDoor(dieAfter)
  const dying = send(victim).catch(() => null)
  if (isAlone) await dying
  const [first, ...others] = await Promise.all([dying, ...living.map(send)])
  const hasDied = first === null || first === undefined
  if (hasDied && victim.process.exitCode === null && victim.process.signalCode === null)
    await once(victim.process, 'exit')
  victim.process.kill('SIGKILL')
  const quiet = async () => {
    const { rows } = await pool.query(
      "select count(*)::integer as count from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'",
    )
    return rows[0]?.count === 0
  }
  await until(quiet, PATIENCE_MS, 'that PostgreSQL has noticed')
  return hasDied ? others : null
}

type Death = { readonly dieAfter: number; readonly isAlone: boolean }

/** Runs a scenario with a death after each of its statements, before the others begin and while they are at it. How many those were. */
async function atEveryStatement(check: (death: Death) => Promise<boolean>): Promise<number> {
  return (
    (await atEvery((dieAfter) => check({ dieAfter, isAlone: true }))) +
    (await atEvery((dieAfter) => check({ dieAfter, isAlone: false })))
  )
}

async function atEvery(check: (dieAfter: number) => Promise<boolean>): Promise<number> {
  let deaths = 0
  for (let dieAfter = 1; dieAfter <= MOST_STATEMENTS; dieAfter += EVERY) {
    if (!(await check(dieAfter))) {
      assert.ok(deaths > 0, 'nobody died')
      return deaths
    }
    deaths += 1
  }
  return assert.fail('it never came to an end')
}

describe('a process that is killed', () => {
  it('within an exchange leaves a code that is taken by one at the most', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenCode()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      assert.ok(answers.filter(({ status }) => status === 200).length <= 1)
      const again = await given.send(living[0])
      assert.equal(again.status, 400)
      // Somebody brought it twice, so that whatever came of it is over.
      const { isRevoked, tokens, revocations } = await stateOf(given)
      assert.deepEqual({ isRevoked, tokens, revocations }, { isRevoked: true, tokens: 0, revocations: 1 })
      return true
    })
    recordProof('authorization-server-kills', 'exchanges of a code', { deaths, codesTakenTwice: 0 })
  })

  it('within a refresh logs nobody out', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenRefresh()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      assert.equal((await given.send(living[1])).status, 200, 'whoever lost the answer asks again')
      assert.equal((await stateOf(given)).isRevoked, false)
      return true
    })
    recordProof('authorization-server-kills', 'refreshes', { deaths, loggedOut: 0 })
  })

  it('within what a reused token is answered with leaves the grant ended, one row and one letter', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenReused()
      const before = await letters()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      assert.deepEqual(
        answers.map(({ status }) => status),
        [400, 400],
      )
      const { isRevoked, tokens, revocations } = await stateOf(given)
      assert.deepEqual({ isRevoked, tokens, revocations }, { isRevoked: true, tokens: 0, revocations: 1 })
      assert.equal((await letters()) - before, 1)
      return true
    })
    recordProof('authorization-server-kills', 'reused refresh tokens', { deaths, grantsLeft: 0 })
  })

  it('within a revocation leaves it to whoever asks again, and one row', async () => {
    const deaths = await atEveryStatement(async (death) => {
      const given = await givenRevocation()
      const answers = await underDeath(given.send, death)
      if (answers === null) return false
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
      const { isRevoked, tokens, revocations } = await stateOf(given)
      assert.deepEqual({ isRevoked, tokens, revocations }, { isRevoked: true, tokens: 0, revocations: 1 })
      return true
    })
    recordProof('authorization-server-kills', 'revocations', { deaths, grantsLeft: 0 })
  })
})
