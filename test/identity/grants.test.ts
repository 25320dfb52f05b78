import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import {
  findAccessToken,
  issueAccessToken,
  pruneAccessTokens,
  revokeAccessToken,
} from '../../server/src/grants/access-tokens.ts'
import {
  findGrant,
  type ListedGrant,
  listGrants,
  makeGrant,
  revokeGrant,
  setGrantBudget,
} from '../../server/src/grants/grants.ts'
import { hashOf, makeAccessToken } from '../../server/src/identity/key-format.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Role } from '../../server/src/kernel/role.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { listAudit } from '../../server/src/storage/audit.ts'
import { ACTOR, ids, makeCustomer } from './customers.ts'
import { AUDIENCE, expiredToken, issueToken, MCP_AUDIENCE, makeGranted, makeMember, PLENTY } from './granted.ts'
import { anotherAddress, anotherVisitor, connectPeople, countOf, PASSWORD, workspaceOf } from './people/world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { pool, people } = world
const parts = { pool, ids }
after(() => world.close())

const hashOfText = (token: string) => hashOf(new Secret(token))
const isActive = async (id: Id) => (await findGrant(pool, id))?.isActive
const auditOf = (subject: Id) => listAudit(pool, { subject }, { most: 20 })
const toldOf = (key: string) => countOf(pool, 'select count(*) from change_log where key = $1', [key])

async function workspace() {
  const { workspaceId } = await makeCustomer(pool)
  return { workspaceId, ...(await makeMember(pool, workspaceId)) }
}

describe('each change of a grant', () => {
  it('leaves one row in the audit log and tells every process, in its transaction', async () => {
    const { workspaceId, personId } = await workspace()
    const grant = await makeGrant(parts, ACTOR, {
      ...{ workspaceId, personId, mode: 'live', clientId: 'client', clientName: 'A client' },
      ...{ audiences: [`${AUDIENCE}/`, AUDIENCE], scopes: ['calls', 'account.read'] },
    })
    const { token, hash } = await issueToken(pool, grant)
    await setGrantBudget(parts, ACTOR, grant.id, { period: 'day', amount: nanos(5_000_000_000n) })
    await revokeAccessToken(pool, ACTOR, hash)
    await revokeGrant(parts, ACTOR, grant.id)
    const rows = (await auditOf(grant.id)).toReversed()
    assert.deepEqual(
      rows.map(({ action, workspaceId: of }) => [action, of]),
      ['made', 'token_issued', 'budget_set', 'token_revoked', 'revoked'].map((done) => [`grant.${done}`, workspaceId]),
    )
    assert.deepEqual(rows[0]?.after, {
      ...{ mode: 'live', personId, clientId: 'client', clientName: 'A client', audiences: [AUDIENCE] },
      ...{ scopes: ['calls', 'account.read'], expiresAt: null, budget: null },
    })
    assert.deepEqual(rows[2]?.after, { budget: { period: 'day', usd: '5.000000000' } })
    assert.ok((await toldOf(grant.id)) >= 3)
    assert.equal(await toldOf(hash.toString('hex')), 2)
    assert.ok(!JSON.stringify(rows).includes(hash.toString('hex')) && !JSON.stringify(rows).includes(token))
  })

  it('of one that is not there changes nothing', async () => {
    const before = await countOf(pool, 'select count(*) from audit')
    for (const deed of [
      () => revokeGrant(parts, ACTOR, ids.next()),
      () => setGrantBudget(parts, ACTOR, ids.next(), PLENTY),
      () => issueToken(pool, { id: ids.next(), shard: 1 }),
    ])
      await assert.rejects(deed, { code: 'resource_not_found' })
    assert.equal(await revokeAccessToken(pool, ACTOR, Buffer.alloc(32)), false)
    assert.equal(await countOf(pool, 'select count(*) from audit'), before)
  })
})

describe('who may give a grant', () => {
  for (const [role, scopes, may] of [
    ['owner', ['calls', 'agent', 'account.read'], true],
    ['admin', ['calls', 'agent', 'account.read'], true],
    ['developer', ['calls', 'agent', 'account.read'], true],
    ['billing', ['account.read'], true],
    ['viewer', ['account.read'], true],
    ['billing', ['calls'], false],
    ['viewer', ['agent', 'account.read'], false],
  ] as const)
    it(`${may ? 'is' : 'is not'} a ${role}, for ${scopes.join(' and ')}`, async () => {
      const { workspaceId } = await makeCustomer(pool)
      const { personId } = await makeMember(pool, workspaceId, role)
      const made = makeGranted(pool, { workspaceId, personId, scopes })
      if (may) assert.equal(await isActive((await made).id), true)
      else await assert.rejects(made, { code: 'forbidden' })
    })

  it('is nobody who is no member', async () => {
    const [{ workspaceId }, { personId }] = [await workspace(), await workspace()]
    await assert.rejects(makeGranted(pool, { workspaceId, personId }), { code: 'resource_not_found' })
  })
})

describe('a token', () => {
  it('is issued for audiences and scopes of its grant alone, and lives no longer than it', async () => {
    const { workspaceId, personId } = await workspace()
    const expiresAt = new Date(Date.now() + 60_000)
    const granted = await makeGranted(pool, { workspaceId, personId, expiresAt })
    await assert.rejects(issueToken(pool, granted, { audience: MCP_AUDIENCE }), { code: 'forbidden' })
    await assert.rejects(issueToken(pool, granted, { scopes: ['calls', 'account.read'] }), { code: 'forbidden' })
    const found = await findAccessToken(pool, hashOfText(granted.token))
    assert.deepEqual(found?.expiresAt, expiresAt)
    assert.deepEqual(
      [found?.grantId, found?.workspaceId, found?.personId, found?.clientId, found?.audience, found?.scopes],
      [granted.id, workspaceId, personId, 'https://client.example.com/me.json', AUDIENCE, ['calls']],
    )
  })

  it('is issued under no grant that has ended, and found no more once it has', async () => {
    const { workspaceId, personId } = await workspace()
    const revoked = await makeGranted(pool, { workspaceId, personId })
    await revokeGrant(parts, ACTOR, revoked.id)
    assert.equal(await findAccessToken(pool, hashOfText(revoked.token)), null)
    await assert.rejects(issueToken(pool, revoked), { code: 'resource_not_found' })
    const expired = await makeGranted(pool, { workspaceId, personId })
    await pool.query("update grants set expires_at = clock_timestamp() - interval '1 second' where id = $1", [
      expired.id,
    ])
    assert.equal(await findAccessToken(pool, hashOfText(expired.token)), null)
    await assert.rejects(issueToken(pool, expired), { code: 'resource_not_found' })
    const short = await expiredToken(pool, await makeGranted(pool, { workspaceId, personId }))
    assert.equal(await findAccessToken(pool, short.hash), null)
  })

  it('that is issued while its grant is revoked is gone with it, whichever comes first', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { workspaceId, personId } = await workspace()
      const granted = await makeGranted(pool, { workspaceId, personId })
      await Promise.allSettled([
        ...[issueToken(pool, granted), issueToken(pool, granted)],
        ...[revokeGrant(parts, ACTOR, granted.id), issueToken(pool, granted)],
      ])
      assert.equal(await countOf(pool, 'select count(*) from access_tokens where grant_id = $1', [granted.id]), 0)
    }
  })

  it('that has expired is pruned, in portions, and no other is', async () => {
    const { workspaceId, personId } = await workspace()
    const granted = await makeGranted(pool, { workspaceId, personId })
    await pool.query(
      `insert into access_tokens (hash, grant_id, audience, oauth_scopes, expires_at)
       select sha256(n::text::bytea), $1, 'x', '{calls}', clock_timestamp() - interval '1 second' from generate_series(1, 1234) n`,
      [granted.id],
    )
    const live = await countOf(pool, 'select count(*) from access_tokens where expires_at > clock_timestamp()')
    const dead = await countOf(pool, 'select count(*) from access_tokens where expires_at <= clock_timestamp()')
    assert.ok(dead >= 1_234)
    assert.equal(await pruneAccessTokens(pool), dead)
    assert.equal(await countOf(pool, 'select count(*) from access_tokens'), live)
    assert.equal(await pruneAccessTokens(pool), 0)
  })
})

describe('grants of a person', () => {
  async function member(role: Role) {
    const { workspaceId, personId: ownerId } = await workspace()
    const { personId, memberId } = await makeMember(pool, workspaceId, role)
    const calls = await makeGranted(pool, { workspaceId, personId })
    const reads = await makeGranted(pool, { workspaceId, personId, scopes: ['account.read'] })
    const owners = await makeGranted(pool, { workspaceId, personId: ownerId })
    return { workspaceId, personId, ownerId, memberId, calls, reads, owners }
  }
  const statesOf = async (...grants: readonly { readonly id: Id }[]) =>
    Promise.all(grants.map(({ id }) => isActive(id)))
  const visitor = visitorOf('192.0.2.1', 'a browser')

  it('end when they are removed or leave, with the one row of that', async () => {
    const removed = await member('developer')
    await people.removeMember(removed.ownerId, removed.workspaceId, removed.memberId, visitor)
    assert.deepEqual(await statesOf(removed.calls, removed.reads, removed.owners), [false, false, true])
    const [row, ...rest] = await auditOf(removed.memberId)
    assert.deepEqual(rest, [])
    assert.deepEqual(row?.before, {
      ...{ personId: removed.personId, role: 'developer', grants: [removed.calls.id, removed.reads.id] },
    })
    const left = await member('developer')
    await people.leave(left.personId, left.workspaceId, visitor)
    assert.deepEqual(await statesOf(left.calls, left.reads, left.owners), [false, false, true])
  })

  it('end with a role that allowed them, and those that the new one allows stay', async () => {
    const { workspaceId, memberId, ownerId, calls, reads } = await member('developer')
    await people.changeRole(ownerId, workspaceId, memberId, 'admin', visitor)
    assert.deepEqual(await statesOf(calls, reads), [true, true])
    await people.changeRole(ownerId, workspaceId, memberId, 'viewer', visitor)
    assert.deepEqual(await statesOf(calls, reads), [false, true])
  })

  it('end with another password, and go on when somebody signs out everywhere', async () => {
    const email = anotherAddress()
    const personId = await world.join(email)
    const workspaceId = await workspaceOf(people, personId)
    const granted = await makeGranted(pool, { workspaceId, personId })
    await world.signedIn(email)
    await people.endAllSessions(personId, anotherVisitor())
    assert.equal(await isActive(granted.id), true)
    const change = { old: PASSWORD, new: 'another good password' }
    assert.equal(await people.changePassword(personId, change, anotherVisitor()), true)
    assert.equal(await isActive(granted.id), false)
    const again = await makeGranted(pool, { workspaceId, personId })
    await people.askReset(anotherVisitor(), email)
    await people.reset(anotherVisitor(), await world.tokenFor(email, 'reset'), PASSWORD)
    assert.equal(await isActive(again.id), false)
  })

  it('are none in a workspace that they have left, however the two race', async () => {
    for (let round = 0; round < 20; round += 1) {
      const { workspaceId, personId, ownerId, memberId } = await member('developer')
      const deeds = [
        () => makeGranted(pool, { workspaceId, personId }),
        () => people.removeMember(ownerId, workspaceId, memberId, visitor),
        () => makeGranted(pool, { workspaceId, personId }),
      ]
      await Promise.allSettled(deeds.map((deed) => deed()))
      const active = (await listGrants(pool, { personId, workspaceId })).filter((grant) => grant.isActive)
      assert.deepEqual(active, [])
    }
  })

  it('are none after another password, however the two race', async () => {
    const email = anotherAddress()
    const personId = await world.join(email)
    const workspaceId = await workspaceOf(people, personId)
    await pool.query("update workspaces set tier_granted = 'growth' where id = $1", [workspaceId])
    let [old, next] = [PASSWORD, 'another good password']
    await makeGranted(pool, { workspaceId, personId })
    for (let round = 0; round < 4; round += 1) {
      let isChanging = true
      const changing = people.changePassword(personId, { old, new: next }, anotherVisitor()).finally(() => {
        isChanging = false
      })
      while (isChanging) await makeGranted(pool, { workspaceId, personId })
      assert.equal(await changing, true)
      ;[old, next] = [next, old]
      const [change] = await listAudit(pool, { subject: personId, action: 'person.password_changed' }, { most: 1 })
      const isFromBefore = ({ createdAt }: ListedGrant) => createdAt.getTime() < (change?.at.getTime() ?? 0)
      const grants = await listGrants(pool, { personId })
      assert.ok(grants.some(isFromBefore))
      assert.deepEqual(
        grants.filter((grant) => grant.isActive && isFromBefore(grant)),
        [],
      )
    }
  })

  it('are listed by person and by workspace, the newest first', async () => {
    const { workspaceId, personId, ownerId, calls, reads, owners } = await member('developer')
    const idsOf = async (whose: Parameters<typeof listGrants>[1]) => (await listGrants(pool, whose)).map(({ id }) => id)
    assert.deepEqual(await idsOf({ workspaceId }), [owners.id, reads.id, calls.id])
    assert.deepEqual(await idsOf({ personId }), [reads.id, calls.id])
    assert.deepEqual(await idsOf({ personId: ownerId, workspaceId }), [owners.id])
    assert.deepEqual((await findGrant(pool, calls.id))?.budget, PLENTY)
  })

  it('have tokens of the form that scanners know, and hashes of the length of SHA-256', async () => {
    const { workspaceId, personId } = await workspace()
    const granted = await makeGranted(pool, { workspaceId, personId })
    const expiresAt = new Date(Date.now() + 60_000)
    const short = { grantId: granted.id, hash: Buffer.alloc(8), audience: AUDIENCE, scopes: [], expiresAt }
    await assert.rejects(issueAccessToken(pool, ACTOR, short), /access_tokens_hash_check/)
    assert.match(makeAccessToken(granted.id, granted.shard).reveal(), /^fb_at_[0-9a-f]{35}_[0-9A-Za-z]{49}$/)
  })
})
