import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { recordProof } from '../../harness/proof.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeGrant } from '../../server/src/grants/grants.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { ACTOR, ids, makeCustomer } from '../identity/customers.ts'
import { makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'
import { createOauthClient, newPkce, REDIRECT, type Reply, registered } from './client.ts'
import { MCP, serverHere } from './server-here.ts'
import { atEveryStatement, openDoors, type Send } from './under-death.ts'

/** What clients send to the authorization server, to a process that is killed within it and to two others. */
const { url } = await freshDatabase()
const masterKey = makeMasterKey()
const { pools } = connect(url)
after(() => pools.close())
const pool = pools.rest
const here = serverHere({ pool, seal: createSeal({ current: masterKey }) })
// A grant takes a place of the tier.
const { workspaceId } = await makeCustomer(pool, { paid: 500_000_000_000n })

const { living, underDeath } = await openDoors({ url, masterKey, pool })

type Given = { readonly grantId: string; readonly clientId: string; readonly value: string; readonly personId: string }
type SendForm = Send<Reply>

/** A grant with a code that nobody has brought yet. */
async function givenCode(): Promise<Given & { readonly send: SendForm }> {
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
  const send: SendForm = (door) =>
    createOauthClient(door).post('/oauth/token', { ...fields, code_verifier: pkce.verifier })
  return { grantId, clientId, value, personId, send }
}

async function givenRefresh(): Promise<Given & { readonly send: SendForm }> {
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
  return { ...given, send: ((door) => createOauthClient(door).post('/oauth/revoke', fields)) satisfies SendForm }
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
