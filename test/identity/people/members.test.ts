import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { ROLES } from '../../../server/src/kernel/role.ts'
import { addMember, changeRole, removeMember } from '../../../server/src/people/members.ts'
import { createWorkspace } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../customers.ts'
import { anotherAddress, anotherVisitor, CREDIT, connectPeople, joinAs, SITE, workspaceOf } from './world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, tokenFor, letters } = world
after(() => world.close())
const visitor = anotherVisitor
const OPERATOR = { by: ACTOR, personId: null }

/** Somebody with a workspace of their own. */
async function owner() {
  const email = anotherAddress()
  const personId = await join(email)
  const workspaceId = await workspaceOf(people, personId)
  const [member] = await people.membersOf(workspaceId)
  return { personId, workspaceId, memberId: member?.id ?? assert.fail(), email }
}

async function rolesIn(workspaceId: Id): Promise<readonly string[]> {
  return (await people.membersOf(workspaceId)).map(({ role }) => role)
}

type Owner = { readonly personId: Id; readonly memberId: Id }

/** Two owners, each of whom may do it while the other is there. */
const RACES: Readonly<Record<string, (workspaceId: Id, one: Owner, other: Owner) => readonly Promise<unknown>[]>> = {
  leave: (id, one, other) => [people.leave(one.personId, id, visitor()), people.leave(other.personId, id, visitor())],
  'demote each other': (id, one, other) => [
    people.changeRole(one.personId, id, other.memberId, 'viewer', visitor()),
    people.changeRole(other.personId, id, one.memberId, 'viewer', visitor()),
  ],
  'remove each other': (id, one, other) => [
    people.removeMember(one.personId, id, other.memberId, visitor()),
    people.removeMember(other.personId, id, one.memberId, visitor()),
  ],
  'leave and demote themselves': (id, one, other) => [
    people.leave(one.personId, id, visitor()),
    people.changeRole(other.personId, id, other.memberId, 'admin', visitor()),
  ],
}

describe('a member', () => {
  it('has what the role allows, and nothing of it as soon as the role is another', async () => {
    const { personId: by, workspaceId } = await owner()
    for (const role of ROLES) {
      const { personId, memberId } = await joinAs(world, role, { by, workspaceId })
      const mayManage = role === 'owner' || role === 'admin'
      const invite = (given: (typeof ROLES)[number]) =>
        people.invite(personId, workspaceId, { email: anotherAddress(), role: given }, visitor())
      if (mayManage) await invite('viewer')
      else await assert.rejects(invite('viewer'), { code: 'forbidden' }, role)
      if (role === 'owner') await invite('owner')
      else await assert.rejects(invite('owner'), { code: 'forbidden' }, role)
      await people.changeRole(by, workspaceId, memberId, 'viewer', visitor())
      await assert.rejects(invite('viewer'), { code: 'forbidden' }, role)
    }
  })

  it('who is an admin can neither make, change nor remove an owner', async () => {
    const { personId: by, workspaceId, memberId: ownerId } = await owner()
    const admin = await joinAs(world, 'admin', { by, workspaceId })
    const other = await joinAs(world, 'viewer', { by, workspaceId })
    for (const attempt of [
      () => people.changeRole(admin.personId, workspaceId, admin.memberId, 'owner', visitor()),
      () => people.changeRole(admin.personId, workspaceId, other.memberId, 'owner', visitor()),
      () => people.changeRole(admin.personId, workspaceId, ownerId, 'viewer', visitor()),
      () => people.removeMember(admin.personId, workspaceId, ownerId, visitor()),
      () => people.transfer(admin.personId, workspaceId, admin.memberId, visitor()),
    ])
      await assert.rejects(attempt(), { code: 'forbidden' })
    await people.removeMember(admin.personId, workspaceId, other.memberId, visitor())
    assert.deepEqual(await rolesIn(workspaceId), ['owner', 'admin'])
  })

  it('of another workspace finds nothing here', async () => {
    const [here, there] = [await owner(), await owner()]
    for (const attempt of [
      () => people.invite(there.personId, here.workspaceId, { email: anotherAddress(), role: 'viewer' }, visitor()),
      () => people.changeRole(there.personId, here.workspaceId, here.memberId, 'viewer', visitor()),
      () => people.changeRole(there.personId, there.workspaceId, here.memberId, 'viewer', visitor()),
      () => people.removeMember(there.personId, here.workspaceId, here.memberId, visitor()),
      () => people.transfer(there.personId, here.workspaceId, here.memberId, visitor()),
      () => people.leave(there.personId, here.workspaceId, visitor()),
    ])
      await assert.rejects(attempt(), { code: 'resource_not_found' })
    assert.deepEqual(await rolesIn(here.workspaceId), ['owner'])
  })

  it('may go, whatever the role, but for the last owner', async () => {
    const { personId: by, workspaceId } = await owner()
    const viewer = await joinAs(world, 'viewer', { by, workspaceId })
    await people.leave(viewer.personId, workspaceId, visitor())
    await assert.rejects(people.leave(by, workspaceId, visitor()), { code: 'last_owner' })
    const second = await joinAs(world, 'owner', { by, workspaceId })
    await people.leave(by, workspaceId, visitor())
    await assert.rejects(people.leave(second.personId, workspaceId, visitor()), { code: 'last_owner' })
    assert.deepEqual(await rolesIn(workspaceId), ['owner'])
  })
})

describe('the last owner', () => {
  it('can be neither demoted nor removed, by nobody', async () => {
    const { personId: by, workspaceId, memberId } = await owner()
    await addMember({ pool, ids, notices: null }, OPERATOR, workspaceId, { email: anotherAddress(), role: 'owner' })
    for (const attempt of [
      () => people.changeRole(by, workspaceId, memberId, 'admin', visitor()),
      () => people.removeMember(by, workspaceId, memberId, visitor()),
      () => changeRole({ pool, notices: null }, OPERATOR, workspaceId, memberId, 'viewer'),
      () => removeMember({ pool, notices: null }, OPERATOR, workspaceId, memberId, null),
    ])
      await assert.rejects(attempt(), { code: 'last_owner' }, 'who has not signed up yet does not count')
    assert.deepEqual(await rolesIn(workspaceId), ['owner', 'owner'])
  })

  for (const [how, race] of Object.entries(RACES))
    it(`stays, of two who ${how} at once`, async () => {
      const { personId, workspaceId, memberId } = await owner()
      const one = { personId, memberId }
      const rounds = count({ full: 100, reduced: 4 })
      for (let round = 0; round < rounds; round += 1) {
        const other = await joinAs(world, 'owner', { by: personId, workspaceId })
        const results = await Promise.allSettled(race(workspaceId, one, other))
        assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'], `round ${round}`)
        const members = await people.membersOf(workspaceId)
        assert.equal(members.filter(({ role }) => role === 'owner').length, 1)
        // As it was before, for the next round.
        await pool.query('delete from members where workspace_id = $1', [workspaceId])
        await pool.query(
          "insert into members (id, workspace_id, email, role, person_id) select $1, $2, email, 'owner', id from people where id = $3",
          [memberId, workspaceId, personId],
        )
        await pool.query('delete from door_attempts')
      }
    })
})

describe('a transfer', () => {
  it('makes another the owner, and the owner an admin', async () => {
    const { personId: by, workspaceId, memberId } = await owner()
    const next = await joinAs(world, 'developer', { by, workspaceId })
    await people.invite(by, workspaceId, { email: anotherAddress(), role: 'owner' }, visitor())
    await people.invite(by, workspaceId, { email: anotherAddress(), role: 'viewer' }, visitor())
    await people.transfer(by, workspaceId, next.memberId, visitor())
    const roles = new Map((await people.membersOf(workspaceId)).map(({ id, role }) => [id, role]))
    assert.deepEqual([roles.get(memberId), roles.get(next.memberId)], ['admin', 'owner'])
    const open = await people.invitationsOf(workspaceId)
    assert.deepEqual(
      open.map(({ role }) => role),
      ['viewer'],
      'what the owner alone could promise is taken back',
    )
    await assert.rejects(people.transfer(by, workspaceId, memberId, visitor()), { code: 'forbidden' })
  })

  it('goes to nobody who has not signed up, and not to oneself', async () => {
    const { personId: by, workspaceId, memberId } = await owner()
    const named = await addMember({ pool, ids, notices: null }, OPERATOR, workspaceId, {
      email: anotherAddress(),
      role: 'admin',
    })
    for (const to of [named, memberId])
      await assert.rejects(people.transfer(by, workspaceId, to, visitor()), { code: 'invalid_request' })
  })

  it('happens once, of several at once', async () => {
    const { personId: by, workspaceId } = await owner()
    const takers = [
      await joinAs(world, 'admin', { by, workspaceId }),
      await joinAs(world, 'viewer', { by, workspaceId }),
      await joinAs(world, 'billing', { by, workspaceId }),
    ]
    const results = await Promise.allSettled(
      takers.map(({ memberId }) => people.transfer(by, workspaceId, memberId, visitor())),
    )
    assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal((await rolesIn(workspaceId)).filter((role) => role === 'owner').length, 1)
  })
})

describe('an invitation', () => {
  it('is for one address, and makes it a member once', async () => {
    const { personId: by, workspaceId, email: inviter } = await owner()
    const email = anotherAddress()
    await people.invite(by, workspaceId, { email, role: 'developer' }, visitor())
    const token = await tokenFor(email, 'invitation')
    const shown = await people.readInvitation(token, visitor())
    assert.deepEqual(
      { ...shown, until: '' },
      {
        ...{ workspace: "Some One's workspace", by: { name: 'Some One', email: inviter }, email, role: 'developer' },
        ...{ until: '', hasAccount: false },
      },
    )
    const stranger = await join(anotherAddress())
    await assert.rejects(people.decideInvitation(stranger, token, 'join', visitor()), {
      code: 'invitation_for_another',
    })
    const personId = await join(email)
    const asked = (await letters(email)).findLast(({ what }) => what === 'verify')
    assert.equal(asked?.what === 'verify' && asked.credit, null, 'nobody is promised what they are not given')
    assert.deepEqual(await people.workspacesOf(personId), [], 'who is invited gets no second workspace')
    const results = await Promise.all(
      Array.from({ length: 6 }, () => people.decideInvitation(personId, token, 'join', visitor())),
    )
    assert.equal(results.filter((result) => result !== null).length, 1)
    assert.deepEqual(await rolesIn(workspaceId), ['owner', 'developer'])
    assert.equal(await people.readInvitation(token, visitor()), null)
    await assert.rejects(people.invite(by, workspaceId, { email, role: 'admin' }, visitor()), {
      code: 'already_member',
    })
  })

  it('tells the owners by mail once somebody joins as an admin, and of nobody below', async () => {
    const { personId: by, workspaceId, email: inviter } = await owner()
    const told = async () => (await letters(inviter)).filter(({ what }) => what === 'admin_added')
    for (const role of ['developer', 'admin'] as const) {
      const email = anotherAddress()
      const personId = await join(email)
      await people.invite(by, workspaceId, { email, role }, visitor())
      await people.decideInvitation(personId, await tokenFor(email, 'invitation'), 'join', visitor())
      const facts = { what: 'admin_added', to: inviter, workspace: "Some One's workspace", siteUrl: SITE }
      assert.deepEqual(await told(), role === 'admin' ? [{ ...facts, member: email, role, by: 'Some One' }] : [])
    }
  })

  it('can be declined, revoked and replaced, and is over then', async () => {
    const { personId: by, workspaceId } = await owner()
    const email = anotherAddress()
    const personId = await join(email)
    const invite = async () => {
      const id = await people.invite(by, workspaceId, { email, role: 'viewer' }, visitor())
      return { id, token: await tokenFor(email, 'invitation') }
    }
    const declined = await invite()
    assert.notEqual(await people.decideInvitation(personId, declined.token, 'decline', visitor()), null)
    const revoked = await invite()
    assert.equal(await people.revokeInvitation(by, workspaceId, revoked.id, visitor()), true)
    assert.equal(await people.revokeInvitation(by, workspaceId, revoked.id, visitor()), false)
    const replaced = await invite()
    const last = await invite()
    for (const { token } of [declined, revoked, replaced])
      assert.equal(await people.decideInvitation(personId, token, 'join', visitor()), null)
    assert.notEqual(await people.decideInvitation(personId, last.token, 'join', visitor()), null)
  })

  it('is over after a week', async () => {
    const { personId: by, workspaceId } = await owner()
    const email = anotherAddress()
    const personId = await join(email)
    await people.invite(by, workspaceId, { email, role: 'viewer' }, visitor())
    const [letter] = (await letters(email)).slice(-1)
    assert.ok(letter?.what === 'invitation')
    const days = (Date.parse(letter.until) - Date.now()) / 86_400_000
    assert.ok(days > 6.9 && days <= 7)
    await pool.query('update invitations set expires_at = clock_timestamp() where email = $1', [email])
    const token = await tokenFor(email, 'invitation')
    assert.equal(await people.readInvitation(token, visitor()), null)
    assert.equal(await people.decideInvitation(personId, token, 'join', visitor()), null)
  })

  it('is void once who made it may make it no longer', async () => {
    const { personId: by, workspaceId } = await owner()
    const admin = await joinAs(world, 'admin', { by, workspaceId })
    const emails = [anotherAddress(), anotherAddress()]
    const [first = '', second = ''] = emails
    const personId = await join(first)
    for (const email of emails) await people.invite(admin.personId, workspaceId, { email, role: 'admin' }, visitor())
    const token = await tokenFor(first, 'invitation')
    await people.changeRole(by, workspaceId, admin.memberId, 'developer', visitor())
    assert.equal(await people.decideInvitation(personId, token, 'join', visitor()), null)
    assert.equal(await people.readInvitation(await tokenFor(second, 'invitation'), visitor()), null)
  })
})

describe('a workspace', () => {
  it('has so many members and invitations, and a person owns so many', async () => {
    const { personId: by, workspaceId } = await owner()
    await pool.query(
      `insert into members (id, workspace_id, email, role)
       select gen_random_uuid(), $1, 'm' || n || '@example.com', 'viewer' from generate_series(1, 499) n`,
      [workspaceId],
    )
    const one = { email: anotherAddress(), role: 'viewer' as const }
    await assert.rejects(people.invite(by, workspaceId, one, visitor()), { code: 'members_full' })
    for (let owned = 1; owned < 20; owned += 1) await people.createWorkspace(by, `Number ${owned}`, visitor())
    await assert.rejects(people.createWorkspace(by, 'One more', visitor()), { code: 'quota_exceeded' })
  })

  it('comes with test money, and with credit where it is the first of somebody whose invitation led to none', async () => {
    const { personId: by, workspaceId } = await owner()
    const moneyOf = async (personId: string) => {
      const { rows } = await pool.query(
        `select live.credited as live, test.credited as test, test.paid from members join workspaces on workspaces.id = workspace_id
         join accounts live on live.id = live_account_id join accounts test on test.id = test_account_id where person_id = $1 order by members.id`,
        [personId],
      )
      return rows
    }
    const [own, none] = [
      { live: CREDIT, test: CREDIT, paid: 0n },
      { live: 0n, test: CREDIT, paid: 0n },
    ]
    assert.deepEqual(await moneyOf(by), [own])
    await people.createWorkspace(by, 'Another', visitor())
    assert.deepEqual(await moneyOf(by), [own, none])
    const email = anotherAddress()
    await people.invite(by, workspaceId, { email, role: 'viewer' }, visitor())
    const guest = await join(email)
    await people.decideInvitation(guest, await tokenFor(email, 'invitation'), 'decline', visitor())
    await people.createWorkspace(guest, 'Mine', visitor())
    await people.createWorkspace(guest, 'Another', visitor())
    assert.deepEqual(await moneyOf(guest), [own, none])
  })

  it('that an operator made has no owner, or one who has yet to sign up', async () => {
    const { id } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Empty' })
    assert.deepEqual(await people.membersOf(id), [])
    const email = anotherAddress()
    const { id: named } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Named', ownerEmail: email })
    const [member] = await people.membersOf(named)
    assert.deepEqual([member?.personId, member?.name, member?.role], [null, null, 'owner'])
    await assert.rejects(removeMember({ pool, notices: null }, OPERATOR, named, member?.id ?? '', null), {
      code: 'last_owner',
    })
  })
})
