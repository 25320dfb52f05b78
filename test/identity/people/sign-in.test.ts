import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { anotherAddress, anotherVisitor, CREDIT, connectPeople, countOf, PASSWORD } from './world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, signedIn, tokenFor, letters } = world
after(() => world.close())
const visitor = anotherVisitor

describe('a session', () => {
  it('is known by its token alone, of which only the hash is kept', async () => {
    const email = anotherAddress()
    const personId = await join(email, { name: 'Mira Halloran' })
    const token = await signedIn(email)
    const session = await people.sessionOf(token)
    assert.deepEqual(
      { ...session, id: '', createdAt: '' },
      {
        ...{ id: '', personId, email, name: 'Mira Halloran', isComplete: true, createdAt: '' },
        ...{ hasSecondFactor: false, secondFactorAt: null },
      },
    )
    for (const wrong of ['', 'x', `${token.slice(0, -1)}${token.endsWith('A') ? 'Q' : 'A'}`, `${token}=`])
      assert.equal(await people.sessionOf(wrong), null)
    const { rows } = await pool.query('select to_jsonb(s)::text as row from browser_sessions s')
    assert.ok(!rows.some(({ row }) => row.includes(token)))
  })

  it('ends after 30 days, after a week without use, and when it is ended', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    const tokens = await Promise.all([signedIn(email), signedIn(email), signedIn(email), signedIn(email)])
    const [old = '', idle = '', ended = '', alive = ''] = tokens
    const set = async (token: string, change: string) =>
      pool.query(`update browser_sessions set ${change} where id = $1`, [(await people.sessionOf(token))?.id])
    await set(old, 'expires_at = clock_timestamp()')
    await set(idle, "seen_at = clock_timestamp() - interval '7 days'")
    const { id = '' } = (await people.sessionOf(ended)) ?? {}
    assert.equal(await people.endSession(personId, id, visitor()), true)
    assert.equal(await people.endSession(personId, id, visitor()), false)
    const found = await Promise.all(tokens.map((token) => people.sessionOf(token)))
    assert.deepEqual(
      found.map((session) => session !== null),
      [false, false, false, true],
    )
    assert.equal((await people.listSessions(personId)).length, 1)
    assert.equal(await people.endAllSessions(personId, visitor(), (await people.sessionOf(alive))?.id ?? null), 0)
    assert.equal(await people.endAllSessions(personId, visitor()), 1)
    assert.equal(await people.sessionOf(alive), null)
  })

  it('is kept alive by use', async () => {
    const email = anotherAddress()
    await join(email)
    const token = await signedIn(email)
    await pool.query("update browser_sessions set seen_at = clock_timestamp() - interval '6 days'")
    assert.notEqual(await people.sessionOf(token), null)
    assert.equal(
      await countOf(
        pool,
        "select count(*) from browser_sessions where seen_at > clock_timestamp() - interval '1 hour'",
      ),
      1,
    )
  })

  it('of somebody else can be neither seen nor ended', async () => {
    const [one, other] = [anotherAddress(), anotherAddress()]
    await join(one)
    const otherId = await join(other)
    const token = await signedIn(one)
    const { id = '' } = (await people.sessionOf(token)) ?? {}
    assert.equal(await people.endSession(otherId, id, visitor()), false)
    assert.notEqual(await people.sessionOf(token), null)
    assert.deepEqual(await people.listSessions(otherId), [])
  })

  it('is one of fifty at the most', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    const first = await signedIn(email)
    await pool.query(
      `insert into browser_sessions (id, hash, person_id, expires_at, address, agent, is_complete)
       select gen_random_uuid(), sha256(n::text::bytea), $1, clock_timestamp() + interval '1 day', '', '', true
       from generate_series(1, 60) n`,
      [personId],
    )
    await signedIn(email)
    assert.equal((await people.listSessions(personId)).length, 50)
    assert.equal(await people.sessionOf(first), null)
    const kept = await countOf(pool, 'select count(*) from browser_sessions where person_id = $1', [personId])
    assert.equal(kept, 50, 'who signs in again and again fills no table')
  })

  it('is kept for a day after it has ended, however long it might have lasted', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    const { id = '' } = (await people.sessionOf(await signedIn(email))) ?? {}
    const keptOf = () => countOf(pool, 'select count(*) from browser_sessions where person_id = $1', [personId])
    await people.endSession(personId, id, visitor())
    await people.forgetUnconfirmed()
    assert.equal(await keptOf(), 1)
    await pool.query(
      `update browser_sessions set ended_at = ended_at - interval '25 hours', expires_at = expires_at - interval '25 hours'
       where id = $1`,
      [id],
    )
    await people.forgetUnconfirmed()
    assert.equal(await keptOf(), 0)
  })
})

describe('a forgotten password', () => {
  it('is set anew by a link, once; every session ends and links of before work no longer', async () => {
    const email = anotherAddress()
    await join(email)
    const before = await signedIn(email)
    await people.askReset(visitor(), email)
    const stale = await tokenFor(email, 'reset')
    await people.askReset(visitor(), email)
    const token = await tokenFor(email, 'reset')
    assert.deepEqual(await people.readReset(token, visitor()), { email, sessions: 1 })
    const result = await people.reset(visitor(), token, 'another good password')
    assert.equal(result?.needs, 'nothing')
    assert.notEqual(await people.sessionOf(result?.session.reveal() ?? ''), null)
    assert.equal(await people.sessionOf(before), null)
    for (const used of [token, stale]) assert.equal(await people.reset(visitor(), used, 'a third good password'), null)
    assert.equal(await people.readReset(token, visitor()), null)
    assert.equal(await people.signIn(visitor(), { email, password: PASSWORD }), null)
    assert.notEqual(await people.signIn(visitor(), { email, password: 'another good password' }), null)
    assert.equal((await letters(email)).at(-1)?.what, 'password_changed')
  })

  it('of who has not confirmed, or has no account, is sent nothing', async () => {
    const [unknown, unconfirmed] = [anotherAddress(), anotherAddress()]
    await people.signUp(visitor(), { name: 'A', email: unconfirmed, password: PASSWORD })
    for (const email of [unknown, unconfirmed]) await people.askReset(visitor(), email)
    assert.deepEqual(await letters(unknown), [])
    assert.deepEqual(
      (await letters(unconfirmed)).map(({ what }) => what),
      ['verify'],
    )
  })

  it('is not set by an unsuitable one, and the link still works', async () => {
    const email = anotherAddress()
    await join(email)
    await people.askReset(visitor(), email)
    const token = await tokenFor(email, 'reset')
    await assert.rejects(people.reset(visitor(), token, 'short'), { code: 'invalid_request' })
    assert.notEqual(await people.reset(visitor(), token, 'another good password'), null)
  })

  it('is set by one of many who bring the link at once', async () => {
    const email = anotherAddress()
    await join(email)
    await people.askReset(visitor(), email)
    const token = await tokenFor(email, 'reset')
    const results = await Promise.all(
      Array.from({ length: 8 }, (_, n) => people.reset(visitor(), token, `another password ${n}`)),
    )
    assert.equal(results.filter((result) => result !== null).length, 1)
  })

  it('never leaves a session that was opened with the old one', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    for (let round = 0; round < 5; round += 1) {
      const [old, next] = [round === 0 ? PASSWORD : `password number ${round}`, `password number ${round + 1}`]
      await pool.query('delete from door_attempts')
      await people.askReset(visitor(), email)
      const token = await tokenFor(email, 'reset')
      const [reset, ...signIns] = await Promise.all([
        people.reset(visitor(), token, next),
        ...Array.from({ length: 6 }, () => people.signIn(visitor(), { email, password: old })),
      ])
      const sessions = [reset, ...signIns].map(async (one) => one && people.sessionOf(one.session.reveal()))
      const alive = (await Promise.all(sessions)).filter((session) => session !== null)
      assert.equal(alive.length, 1, 'the one of the reset alone')
      assert.equal((await people.listSessions(personId)).length, 1)
    }
  })
})

describe('a password that is known', () => {
  it('is changed with the old one, and every other session ends', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    const [own, other] = [await signedIn(email), await signedIn(email)]
    const { id: sessionId = '' } = (await people.sessionOf(own)) ?? {}
    const change = { old: PASSWORD, new: 'another good password', sessionId }
    assert.equal(await people.changePassword(personId, { ...change, old: 'a wrong password' }, visitor()), false)
    assert.equal(await people.changePassword(personId, change, visitor()), true)
    assert.equal(await people.changePassword(personId, change, visitor()), false)
    assert.notEqual(await people.sessionOf(own), null)
    assert.equal(await people.sessionOf(other), null)
  })
})

describe('a sign-in by an issuer', () => {
  const claims = (email: string, subject = email, emailVerified = true) => ({
    ...{ issuer: 'https://issuer.example', subject, email, emailVerified, name: 'From Issuer' },
  })

  it('makes a person with a workspace and credit, once', async () => {
    const email = anotherAddress()
    const results = await Promise.all(Array.from({ length: 6 }, () => people.signInByIssuer(visitor(), claims(email))))
    const sessions = await Promise.all(results.map((result) => people.sessionOf(result?.session.reveal() ?? '')))
    assert.equal(new Set(sessions.map((session) => session?.personId)).size, 1)
    const personId = sessions[0]?.personId ?? assert.fail()
    assert.equal((await people.workspacesOf(personId)).length, 1)
    assert.equal(
      await countOf(
        pool,
        `select sum(credited) / 1000 from accounts join workspaces on live_account_id = accounts.id
         join members on workspace_id = workspaces.id where person_id = $1`,
        [personId],
      ),
      Number(CREDIT) / 1000,
    )
  })

  it('joins the person with the address where the issuer has verified it, and never otherwise', async () => {
    const email = anotherAddress()
    const personId = await join(email)
    assert.equal(await people.signInByIssuer(visitor(), claims(email, 'stranger', false)), null)
    assert.equal(await people.signInByIssuer(visitor(), claims(anotherAddress(), 'other', false)), null)
    const joined = await people.signInByIssuer(visitor(), claims(email, 'owner'))
    assert.equal((await people.sessionOf(joined?.session.reveal() ?? ''))?.personId, personId)
    assert.equal(await people.signInByIssuer(visitor(), claims(email, 'stranger', false)), null)
  })

  it('knows who joined by the subject, whatever the address is by now', async () => {
    const email = anotherAddress()
    const first = await people.signInByIssuer(visitor(), claims(email, 'subject-1'))
    const again = await people.signInByIssuer(visitor(), claims(anotherAddress(), 'subject-1', false))
    const ids = await Promise.all([first, again].map((one) => people.sessionOf(one?.session.reveal() ?? '')))
    assert.equal(ids[0]?.personId, ids[1]?.personId)
  })

  it('lets in who has a name that can’t be kept as it is, or none', async () => {
    for (const [name, kept] of [
      [`${'ñ'.repeat(150)}`, 'ñ'.repeat(100)],
      ['\u0000\u0007', /^person-\d+$/],
      ['Mira \u202Earim\u2066\u2028', 'Mira  arim'],
      ['', /^person-\d+$/],
    ] as const) {
      const email = anotherAddress()
      const signedIn = await people.signInByIssuer(visitor(), { ...claims(email, `named ${email}`), name })
      const called = (await people.sessionOf(signedIn?.session.reveal() ?? ''))?.name ?? ''
      if (typeof kept === 'string') assert.equal(called, kept)
      else assert.match(called, kept)
    }
  })

  it('makes void what somebody typed with the address before', async () => {
    const email = anotherAddress()
    await people.signUp(visitor(), { name: 'An Attacker', email, password: 'password of attacker' })
    const token = await tokenFor(email, 'verify')
    assert.notEqual(await people.signInByIssuer(visitor(), claims(email)), null)
    assert.equal(await people.verify(visitor(), token), null)
    assert.equal(await people.signIn(visitor(), { email, password: 'password of attacker' }), null)
  })

  it('makes nobody where sign-up is closed', async () => {
    const closed = connectPeople(url, { signUp: 'closed', masterKey: world.masterKey })
    const [email, unknown] = [anotherAddress(), anotherAddress()]
    await join(email)
    assert.notEqual(await closed.people.signInByIssuer(visitor(), claims(email)), null)
    await assert.rejects(closed.people.signInByIssuer(visitor(), claims(unknown)), { code: 'sign_up_closed' })
    await closed.close()
  })
})
