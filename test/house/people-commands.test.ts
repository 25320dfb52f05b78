import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeGranted } from '../identity/granted.ts'
import { anotherVisitor, connectPeople, joinAs, PASSWORD, SITE, workspaceOf } from '../identity/people/world.ts'
import { startShell } from './command-shell.ts'

const { url } = await freshDatabase()
const masterKey = makeMasterKey()
const world = connectPeople(url, { masterKey })
const { people, join, letters, tokenFor, signedIn } = world
after(() => world.close())
const env = { ...process.env, FAREBOX_DATABASE_URL: url, FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal() }
const { farebox, said } = startShell({ ...env, FAREBOX_HTTP_SITE_URL: SITE, FAREBOX_HTTP_TRUSTED_PROXIES: 'none' })
const withoutSite = startShell(env)

describe('farebox people', () => {
  it('lists people and shows one by id or address', async () => {
    const email = 'mira@example.com'
    const personId = await join(email, { name: 'Mira Halloran' })
    await signedIn(email)
    await people.signUp(anotherVisitor(), { name: 'Not Yet', email: 'later@example.com', password: PASSWORD })
    const listed = await said('people', 'list')
    assert.match(listed, new RegExp(`${personId}  mira@example.com  Mira Halloran  since`))
    assert.match(listed, /later@example\.com {2}Not Yet {2}address not confirmed/)
    for (const who of [personId, email, 'MIRA@Example.com']) {
      const shown = await said('people', 'show', who)
      assert.match(shown, /Sign-in: password/)
      assert.match(shown, /Member of .* {2}Mira Halloran's workspace {2}as owner/)
      assert.match(shown, /Session from 10\./)
      assert.ok(!shown.includes('argon2'))
    }
    const unknown = await farebox('people', 'show', 'nobody@example.com')
    assert.deepEqual([unknown.code, /there is no person/.test(unknown.output)], [1, true])
  })

  it('signs a person out everywhere', async () => {
    const token = await signedIn('mira@example.com')
    assert.match(await said('people', 'end-sessions', 'mira@example.com'), /sessions of .* ended\./)
    assert.equal(await people.sessionOf(token), null)
  })

  it('blocks a person, who is signed out and can’t come back, until they are unblocked', async () => {
    const email = 'blocked@example.com'
    const personId = await join(email)
    const workspaceId = await workspaceOf(people, personId)
    const token = await signedIn(email)
    const grant = () => makeGranted(world.pool, { workspaceId, personId, mode: 'test' })
    await grant()
    const blocked = await said('people', 'block', email, '--reason', 'Stolen mailbox.')
    assert.match(blocked, /is blocked\. Ended: 1 sessions, 1 grants\./)
    assert.equal(await people.sessionOf(token), null)
    await assert.rejects(people.signIn(anotherVisitor(), { email, password: PASSWORD }), { code: 'person_blocked' })
    assert.equal(await people.signIn(anotherVisitor(), { email, password: 'another one, which is wrong' }), null)
    await people.askReset(anotherVisitor(), email)
    await assert.rejects(people.reset(anotherVisitor(), await tokenFor(email, 'reset'), `${PASSWORD} 2`), {
      code: 'person_blocked',
    })
    await assert.rejects(grant(), { code: 'person_blocked' })
    assert.match(await said('people', 'show', email), /blocked since/)
    assert.match(await said('people', 'block', email, '--reason', 'Again.'), /already blocked/)
    assert.match(await said('people', 'unblock', email, '--reason', 'It is theirs again.'), /can sign in again/)
    assert.equal((await people.signIn(anotherVisitor(), { email, password: PASSWORD }))?.needs, 'nothing')
    assert.match(await said('people', 'unblock', email, '--reason', 'Again.'), /not blocked/)
    const audited = await said('audit', '--subject', personId, '--action', 'person')
    assert.match(audited, /person\.blocked .*"reason":"Stolen mailbox\."/)
  })

  it('takes a second factor off, once, and tells its owner', async () => {
    const email = 'factor@example.com'
    const personId = await join(email)
    await people.beginSecondFactor(await world.sessionFor(email))
    await world.pool.query('update people set totp_since = clock_timestamp() where id = $1', [personId])
    assert.match(await said('people', 'factor-off', email), /is off; the person is informed by mail/)
    const told = (await letters(email)).at(-1)
    assert.ok(told?.what === 'factor_changed' && !told.isOn)
    assert.equal((await people.signIn(anotherVisitor(), { email, password: PASSWORD }))?.needs, 'nothing')
    const again = await farebox('people', 'factor-off', email)
    assert.deepEqual([again.code, /has no second factor/.test(again.output)], [1, true])
  })
})

describe('farebox members', () => {
  it('adds, changes, hands over and removes', async () => {
    const personId = await join('owner@example.com')
    const workspaceId = await workspaceOf(people, personId)
    const [first] = await people.membersOf(workspaceId)
    const owner = first?.id ?? assert.fail()
    const { memberId } = await joinAs(world, 'viewer', { by: personId, workspaceId })
    await said('members', 'add', workspaceId, 'Named@Example.com', 'billing')
    const listed = await said('members', 'list', workspaceId)
    assert.match(listed, /billing {2}named@example\.com {2}not signed up yet/)
    const twice = await farebox('members', 'add', workspaceId, 'named@example.com', 'billing')
    assert.deepEqual([twice.code, /is already a member of the workspace/.test(twice.output)], [1, true])
    await said('members', 'role', workspaceId, memberId, 'developer')
    await said('members', 'transfer', workspaceId, owner, memberId)
    const last = await farebox('members', 'remove', workspaceId, memberId)
    assert.deepEqual([last.code, /needs at least one owner/.test(last.output)], [1, true])
    await said('members', 'remove', workspaceId, owner)
    const roles = (await people.membersOf(workspaceId)).map(({ role }) => role)
    assert.deepEqual(roles.toSorted(), ['billing', 'owner'])
    for (const line of [
      ['members', 'role', workspaceId, memberId, 'king'],
      ['members', 'add', workspaceId, 'nobody', 'viewer'],
      ['members', 'remove', workspaceId, personId],
    ])
      assert.equal((await farebox(...line)).code, 1, line.join(' '))
  })

  it('invites by mail, where there is a site to lead to', async () => {
    const personId = await join('another-owner@example.com')
    const workspaceId = await workspaceOf(people, personId)
    const invited = await join('invited@example.com')
    const line = ['members', 'invite', workspaceId, 'invited@example.com', 'admin']
    const refused = await withoutSite.farebox(...line)
    assert.deepEqual([refused.code, /http\.site_url/.test(refused.output)], [1, true])
    await said(...line)
    const token = await tokenFor('invited@example.com', 'invitation')
    assert.notEqual(await people.decideInvitation(invited, token, 'join', anotherVisitor()), null)
    assert.equal((await people.workspacesOf(invited)).find(({ id }) => id === workspaceId)?.role, 'admin')
  })
})
