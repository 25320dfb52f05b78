import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { createKey } from '../../../server/src/identity/keys.ts'
import { ZERO } from '../../../server/src/kernel/money.ts'
import { addMember } from '../../../server/src/people/members.ts'
import { createWorkspace } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids } from '../customers.ts'
import {
  anotherAddress,
  anotherVisitor,
  CREDIT,
  connectPeople,
  countOf,
  PASSWORD,
  tokenIn,
  workspaceOf,
} from './world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, letters, tokenFor, join } = world
after(() => world.close())

const visitor = anotherVisitor
const signUp = (email: string, name = 'Mira Halloran', password = PASSWORD) =>
  people.signUp(visitor(), { name, email, password })
const creditedTo = (email: string) =>
  countOf(
    pool,
    `select coalesce(sum(credited / 1000), 0) from accounts join workspaces on live_account_id = accounts.id
     join members on workspace_id = workspaces.id where email = $1 and role = 'owner'`,
    [email],
  )

describe('a sign-up', () => {
  it('gives nothing until the address is confirmed, and then a workspace with credit', async () => {
    const email = anotherAddress()
    await signUp(email)
    assert.equal(await people.signIn(visitor(), { email, password: PASSWORD }), null)
    assert.equal(await countOf(pool, 'select count(*) from members where email = $1', [email]), 0)
    const [letter] = await letters(email)
    assert.ok(letter?.what === 'verify')
    assert.equal(letter.credit, '2.00')

    const token = tokenIn(letter.link)
    assert.deepEqual(await people.readVerification(token, visitor()), { email })
    assert.deepEqual(await people.readVerification(token, visitor()), { email }, 'reading it changes nothing')
    const verified = await people.verify(visitor(), token)
    const [own, ...others] = await people.workspacesOf(verified?.personId ?? assert.fail())
    assert.deepEqual([own?.name, own?.role, others], ["Mira Halloran's workspace", 'owner', []])
    assert.equal(await creditedTo(email), Number(CREDIT) / 1000)
    assert.equal((await people.signIn(visitor(), { email, password: PASSWORD }))?.needs, 'nothing')
  })

  it('is confirmed once', async () => {
    const email = anotherAddress()
    await signUp(email)
    const token = await tokenFor(email, 'verify')
    assert.notEqual(await people.verify(visitor(), token), null)
    assert.equal(await people.verify(visitor(), token), null)
    assert.equal(await people.readVerification(token, visitor()), null)
    assert.equal(await countOf(pool, 'select count(*) from members where email = $1', [email]), 1)
  })

  it('counts with its own link alone: nobody else chooses the password of who confirms', async () => {
    const email = anotherAddress()
    await signUp(email, 'An Attacker', 'password of attacker')
    await signUp(email, 'The Owner', 'password of the owner')
    const [attackers, owners] = (await letters(email)).map((letter) => ('link' in letter ? tokenIn(letter.link) : ''))
    await people.verify(visitor(), owners ?? '')
    assert.equal(await people.verify(visitor(), attackers ?? ''), null, 'the other one is over with it')
    assert.equal(await people.signIn(visitor(), { email, password: 'password of attacker' }), null)
    assert.notEqual(await people.signIn(visitor(), { email, password: 'password of the owner' }), null)
    assert.equal(
      await countOf(pool, 'select count(*) from mailed_links where password is not null and used_at is not null'),
      0,
    )
  })

  it('has a password of its own browser alone: who confirms in another one chooses theirs', async () => {
    const [attackers, owners] = ['a'.repeat(43), 'o'.repeat(43)]
    const email = anotherAddress()
    const typed = { name: 'Mira', email, password: PASSWORD, browser: owners }
    await people.signUp(visitor(), typed)
    await people.signUp(visitor(), { ...typed, password: 'password of attacker', browser: attackers })
    await pool.query("delete from door_attempts where kind = 'verification again'")
    await people.resendVerification(visitor(), email)
    const verified = await people.verify(visitor(), await tokenFor(email, 'verify'), owners)
    assert.equal(await people.signIn(visitor(), { email, password: 'password of attacker' }), null)
    const choose = verified?.choose?.reveal() ?? assert.fail('no password is asked for')
    assert.equal((await people.reset(visitor(), choose, 'password of the owner'))?.needs, 'nothing')
    assert.notEqual(await people.signIn(visitor(), { email, password: 'password of the owner' }), null)

    const same = anotherAddress()
    await people.signUp(visitor(), { ...typed, email: same })
    const own = await people.verify(visitor(), await tokenFor(same, 'verify'), owners)
    assert.equal(own?.choose, null)
    assert.notEqual(await people.signIn(visitor(), { email: same, password: PASSWORD }), null)
  })

  it('with an address that has an account tells its owner, and changes nothing', async () => {
    const email = anotherAddress()
    await join(email)
    await signUp(email, 'Somebody Else', 'password of somebody')
    const letter = (await letters(email)).at(-1)
    assert.equal(letter?.what, 'registered')
    assert.equal(await people.signIn(visitor(), { email, password: 'password of somebody' }), null)
    assert.notEqual(await people.signIn(visitor(), { email, password: PASSWORD }), null)
  })

  it('works no longer than half an hour', async () => {
    const email = anotherAddress()
    await signUp(email)
    const token = await tokenFor(email, 'verify')
    await pool.query(
      `update mailed_links set expires_at = clock_timestamp() where person_id = (select id from people where email = $1)`,
      [email],
    )
    assert.equal(await people.readVerification(token, visitor()), null)
    assert.equal(await people.verify(visitor(), token), null)
  })

  it('can be confirmed by a second letter, a minute after the first', async () => {
    const email = anotherAddress()
    await signUp(email)
    await assert.rejects(people.resendVerification(visitor(), email), { code: 'rate_limit_exceeded' })
    await pool.query("update door_attempts set ends_at = clock_timestamp() where kind = 'verification again'")
    await people.resendVerification(visitor(), email)
    await assert.rejects(people.resendVerification(visitor(), email), { code: 'rate_limit_exceeded' })
    assert.equal((await letters(email)).length, 2)
    assert.notEqual(await people.verify(visitor(), await tokenFor(email, 'verify')), null)
    assert.notEqual(await people.signIn(visitor(), { email, password: PASSWORD }), null)
  })

  it('joins what operators had named the address for', async () => {
    const email = anotherAddress()
    const { id: owned } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Named', ownerEmail: email })
    const { id: other } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Other' })
    const memberId = await addMember({ pool, ids, notices: null }, { by: ACTOR, personId: null }, other, {
      email,
      role: 'billing',
    })
    const key = await createKey({ pool, ids }, ACTOR, { workspaceId: other, mode: 'test', name: 'named', memberId })
    const personId = await join(email)
    const { rows } = await pool.query('select member_person from api_keys where id = $1', [key.id])
    assert.deepEqual(rows, [{ member_person: personId }], 'and the keys of the member are theirs')
    const roles = (await people.workspacesOf(personId)).map(({ id, role }) => [id, role])
    assert.deepEqual(new Map(roles.map(([id, role]) => [id, role])).get(owned), 'owner')
    assert.deepEqual(new Map(roles.map(([id, role]) => [id, role])).get(other), 'billing')
    assert.equal(roles.length, 3, 'and one of their own')
  })

  it('is known to operators who name the address afterwards', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    const { id } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Later', ownerEmail: email })
    assert.ok((await people.workspacesOf(personId)).some((workspace) => workspace.id === id))
  })

  it('gives credit once a mailbox, however the address is written', async () => {
    const addresses = ['m.ira@gmail.com', 'mira+2@gmail.com', 'mira@googlemail.com']
    for (const email of addresses) await join(email)
    const credited = await Promise.all(addresses.map(creditedTo))
    assert.deepEqual(credited, [Number(CREDIT) / 1000, 0, 0])
    const told = await Promise.all(addresses.map(async (email) => (await letters(email))[0]))
    assert.deepEqual(
      told.map((letter) => letter?.what === 'verify' && letter.credit),
      ['2.00', null, null],
    )
  })

  it('gives no credit where none is set', async () => {
    const frugal = connectPeople(url, { credit: ZERO, masterKey: world.masterKey })
    const email = anotherAddress()
    await frugal.join(email)
    assert.equal(await creditedTo(email), 0)
    assert.equal(
      await countOf(
        pool,
        'select count(*) from sign_up_credits join people on people.id = person_id where email = $1',
        [email],
      ),
      0,
    )
    await frugal.close()
  })

  it('is refused where it is closed, or for other domains, whoever it is', async () => {
    const email = anotherAddress()
    await join(email)
    const closed = connectPeople(url, { signUp: 'closed', masterKey: world.masterKey })
    const listed = connectPeople(url, { domains: ['harbour.example'], masterKey: world.masterKey })
    for (const typed of [email, anotherAddress()])
      for (const { people: door } of [closed, listed])
        await assert.rejects(door.signUp(visitor(), { name: 'A', email: typed, password: PASSWORD }), {
          code: 'sign_up_closed',
        })
    await listed.people.signUp(visitor(), { name: 'A', email: 'somebody@harbour.example', password: PASSWORD })
    await Promise.all([closed.close(), listed.close()])
  })

  it('is open to who is invited where it is closed to others, with that very invitation', async () => {
    const by = await join(anotherAddress())
    const workspaceId = await workspaceOf(people, by)
    const [email, other] = [anotherAddress(), anotherAddress()]
    for (const invited of [email, other])
      await people.invite(by, workspaceId, { email: invited, role: 'viewer' }, visitor())
    const invitation = await tokenFor(email, 'invitation')
    const closed = connectPeople(url, { signUp: 'closed', masterKey: world.masterKey })
    const typed = { name: 'A', email, password: PASSWORD }
    for (const wrong of [
      typed,
      { ...typed, invitation: await tokenFor(other, 'invitation') },
      { ...typed, invitation: 'x' },
      { ...typed, email: anotherAddress(), invitation },
    ])
      await assert.rejects(closed.people.signUp(visitor(), wrong), { code: 'sign_up_closed' })
    await closed.people.signUp(visitor(), { ...typed, invitation })
    const verified = await closed.people.verify(visitor(), await tokenFor(email, 'verify'))
    assert.notEqual(await people.decideInvitation(verified?.personId ?? '', invitation, 'join', visitor()), null)
    const claims = {
      issuer: 'https://issuer.example',
      subject: 'invited',
      email: other,
      emailVerified: true,
      name: 'O',
    }
    assert.notEqual(await closed.people.signInByIssuer(visitor(), claims), null)
    // Whoever may invite could otherwise have as much credit as they have mailboxes.
    assert.deepEqual([await creditedTo(email), await creditedTo(other)], [0, 0])
    const promised = (await letters(email)).map((letter) => letter.what === 'verify' && letter.credit)
    assert.deepEqual(promised, [false, null])
    await closed.close()
  })

  it('is refused where something typed is none, and counts for nothing then', async () => {
    const email = anotherAddress()
    const from = visitor()
    for (const typed of [
      { name: '', email, password: PASSWORD },
      { name: 'x'.repeat(101), email, password: PASSWORD },
      { name: 'A', email: 'nobody', password: PASSWORD },
      { name: 'A', email, password: 'too short' },
    ])
      for (let n = 0; n < 6; n += 1) await assert.rejects(people.signUp(from, typed), { code: 'invalid_request' })
    await people.signUp(from, { name: 'A', email, password: PASSWORD })
  })

  it('leaves a record of who, without an address and without a secret', async () => {
    const email = 'very-private-address@example.com'
    const personId = await join(email)
    const { rows } = await pool.query('select * from audit where actor = $1 order by at', [`member ${personId}`])
    assert.deepEqual(
      rows.map(({ action }) => action),
      ['person.verified', 'workspace.created', 'account.credited', 'account.credited'],
    )
    assert.ok(!JSON.stringify(rows).includes('very-private-address'))
    assert.equal(rows[0]?.origin.via, 'http')
  })
})

describe('people who never confirm', () => {
  it('are forgotten after a day, and can sign up again', async () => {
    const [late, fresh, confirmed] = [anotherAddress(), anotherAddress(), anotherAddress()]
    await join(confirmed)
    await signUp(late)
    await signUp(fresh)
    await pool.query("update people set created_at = created_at - interval '25 hours' where email in ($1, $2)", [
      late,
      confirmed,
    ])
    await pool.query(
      "update mailed_links set expires_at = expires_at - interval '25 hours' where person_id = (select id from people where email = $1)",
      [late],
    )
    const token = await tokenFor(late, 'verify')
    assert.ok((await people.forgetUnconfirmed()) >= 2)
    const { rows } = await pool.query('select email from people where email = any ($1) order by id', [
      [late, fresh, confirmed],
    ])
    assert.deepEqual(rows.map(({ email }) => email).toSorted(), [fresh, confirmed].toSorted())
    assert.equal(await people.verify(visitor(), token), null)
    await join(late)
  })

  it('are looked for by an index in whatever refers to people, so that forgetting them reads no whole table', async () => {
    const { rows } = await pool.query(
      `select conrelid::regclass::text as name from pg_constraint fk where contype = 'f' and confrelid = 'people'::regclass
       and not exists (select from pg_index where indrelid = conrelid and indpred is null and indkey[0] = conkey[1])`,
    )
    assert.deepEqual(rows, [])
    assert.ok((await countOf(pool, "select count(*) from pg_constraint where confrelid = 'people'::regclass")) >= 7)
  })

  it('are kept while a link of theirs works', async () => {
    const email = anotherAddress()
    await signUp(email)
    await pool.query("update people set created_at = created_at - interval '25 hours' where email = $1", [email])
    await people.forgetUnconfirmed()
    assert.notEqual(await people.verify(visitor(), await tokenFor(email, 'verify')), null)
  })
})
