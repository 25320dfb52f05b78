import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { Fault } from '../../../server/src/kernel/fault.ts'
import { LIMITS } from '../../../server/src/people/attempts.ts'
import { createPasswords } from '../../../server/src/people/passwords.ts'
import { visitorOf } from '../../../server/src/people/visitor.ts'
import { anotherAddress, anotherVisitor, connectPeople, PASSWORD } from './world.ts'

/** Whatever can be guessed can be tried so often and no more, over however many processes: here, three pools of connections. */
const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, letters, masterKey, tokenFor } = world
const worlds = [world, connectPeople(url, { masterKey }), connectPeople(url, { masterKey })]
after(() => Promise.all(worlds.map(({ close }) => close())))
afterEach(() => pool.query('delete from door_attempts'))
const visitor = anotherVisitor

type Outcome = 'wrong' | 'right' | 'refused'

/** Tries at once in all processes; how many came to be compared, and how many were refused with a time to come back. */
async function tryAll(many: number, attempt: (door: typeof people, n: number) => Promise<unknown>) {
  const outcomes = await Promise.all(
    Array.from({ length: many }, async (_, n): Promise<Outcome> => {
      const door = worlds[n % worlds.length]?.people ?? assert.fail()
      try {
        const result = await attempt(door, n)
        return result === null || result === false ? 'wrong' : 'right'
      } catch (error) {
        assert.ok(error instanceof Fault && error.code === 'rate_limit_exceeded', String(error))
        assert.ok((error.retryAfterSeconds ?? 0) >= 1)
        return 'refused'
      }
    }),
  )
  const tally = { wrong: 0, right: 0, refused: 0 }
  for (const outcome of outcomes) tally[outcome] += 1
  return tally
}

const token = () => randomBytes(32).toString('base64url')

describe('guessing a password', () => {
  it('is tried ten times for a mailbox in a quarter of an hour, from wherever', async () => {
    const email = anotherAddress()
    await join(email)
    const wrong = (door: typeof people) => door.signIn(visitor(), { email, password: 'a wrong password' })
    assert.deepEqual(await tryAll(40, wrong), { wrong: 10, right: 0, refused: 30 })
    await assert.rejects(people.signIn(visitor(), { email, password: PASSWORD }), { code: 'rate_limit_exceeded' })
    await assert.rejects(people.signIn(visitor(), { email: email.replace('@', '+tag@'), password: 'a wrong password' }))
    await pool.query('update door_attempts set ends_at = clock_timestamp()')
    assert.notEqual(await people.signIn(visitor(), { email, password: PASSWORD }), null)
  })

  it('is tried as often where nobody has the address', async () => {
    const email = anotherAddress()
    const wrong = (door: typeof people) => door.signIn(visitor(), { email, password: 'a wrong password' })
    assert.deepEqual(await tryAll(15, wrong), { wrong: 10, right: 0, refused: 5 })
  })

  it('is tried 30 times from an address', async () => {
    const from = (address: (n: number) => string) => (door: typeof people, n: number) =>
      door.signIn(visitorOf(address(n)), { email: anotherAddress(), password: PASSWORD })
    assert.deepEqual(
      await tryAll(
        40,
        from(() => '192.0.2.7'),
      ),
      { wrong: 30, right: 0, refused: 10 },
    )
    // Who has one address of IPv6 has all of its /64.
    const near = from((n) => `2001:db8:0:1::${n.toString(16)}`)
    assert.deepEqual(await tryAll(40, near), { wrong: 30, right: 0, refused: 10 })
  })

  it('is tried so often from a network, which is a /24 or a /48', async () => {
    assert.deepEqual(LIMITS.signInFromNetwork, { kind: 'sign-in from network', most: 200, seconds: 900 })
    const signInFromNetwork = { ...LIMITS.signInFromNetwork, most: 20 }
    const strict = connectPeople(url, { masterKey, limits: { signInFromNetwork } })
    const compared = async (address: (n: number) => string) => {
      const results = await Promise.allSettled(
        Array.from({ length: 30 }, (_, n) =>
          strict.people.signIn(visitorOf(address(n)), { email: anotherAddress(), password: PASSWORD }),
        ),
      )
      return results.filter(({ status }) => status === 'fulfilled').length
    }
    assert.equal(await compared((n) => `198.51.100.${n}`), 20)
    assert.equal(await compared((n) => `2001:db8:5:${n.toString(16)}::1`), 20)
    await strict.close()
  })

  it('is not what somebody does who signs in', async () => {
    const email = anotherAddress()
    await join(email)
    const right = (door: typeof people) => door.signIn(visitor(), { email, password: PASSWORD })
    for (let round = 0; round < 3; round += 1)
      assert.deepEqual(await tryAll(8, right), { wrong: 0, right: 8, refused: 0 })
    const wrong = (door: typeof people) => door.signIn(visitor(), { email, password: 'a wrong password' })
    assert.deepEqual(await tryAll(15, wrong), { wrong: 10, right: 0, refused: 5 })
  })

  it('is bounded where it is right, too, by wider limits: each takes a hash', async () => {
    assert.deepEqual(LIMITS.anySignInOfMailbox, { kind: 'any sign-in of mailbox', most: 60, seconds: 900 })
    assert.deepEqual(LIMITS.anySignInFromAddress, { kind: 'any sign-in from address', most: 300, seconds: 900 })
    const few = connectPeople(url, {
      masterKey,
      limits: { anySignInOfMailbox: { ...LIMITS.anySignInOfMailbox, most: 5 } },
    })
    const email = anotherAddress()
    await join(email)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () => few.people.signIn(visitor(), { email, password: PASSWORD })),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 5)
    await few.close()
  })

  it('is not what is refused because too many passwords are compared at once', async () => {
    const busy = connectPeople(url, { masterKey, passwords: createPasswords({ atOnce: 1, waiting: 0 }) })
    const email = anotherAddress()
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, () => busy.people.signIn(visitor(), { email, password: PASSWORD })),
    )
    const overloaded = results.filter((result) => result.status === 'rejected' && result.reason.code === 'overloaded')
    assert.ok(overloaded.length > 0)
    const compared = results.length - overloaded.length
    const wrong = (door: typeof people) => door.signIn(visitor(), { email, password: PASSWORD })
    assert.deepEqual(await tryAll(15, wrong), { wrong: 10 - compared, right: 0, refused: 5 + compared })
    await busy.close()
  })

  it('is tried ten times with a session that somebody has got hold of', async () => {
    const personId = await join(anotherAddress())
    const change = { old: 'a wrong password', new: 'another good password' }
    const wrong = (door: typeof people) => door.changePassword(personId, change, visitor())
    assert.deepEqual(await tryAll(15, wrong), { wrong: 10, right: 0, refused: 5 })
  })
})

describe('guessing a code', () => {
  async function withFactor() {
    const email = anotherAddress()
    const personId = await join(email)
    await people.beginSecondFactor(await world.sessionFor(email))
    await pool.query('update people set totp_since = clock_timestamp() where id = $1', [personId])
    const waiting = async () =>
      (await people.signIn(visitor(), { email, password: PASSWORD }))?.session.reveal() ?? assert.fail()
    return { email, personId, waiting }
  }

  const wrongCode = { code: '000000' }
  const wrongRecovery = { recovery: 'AAAAA-AAAAA' }

  it('is tried five times in a session and ten times by a person, and recovery codes apart', async () => {
    const { waiting } = await withFactor()
    const sessions = [await waiting(), await waiting(), await waiting()]
    const [first = '', second = '', third = ''] = sessions
    for (const proof of [wrongCode, wrongRecovery]) {
      const guess = (session: string) => (door: typeof people) => door.passSecondFactor(session, proof, visitor())
      assert.deepEqual(await people.codesLeftToTry(first, proof), { left: 5, until: null })
      assert.deepEqual(await tryAll(12, guess(first)), { wrong: 5, right: 0, refused: 7 })
      assert.equal((await people.codesLeftToTry(first, proof)).left, 0)
      if (proof === wrongRecovery) return
      assert.deepEqual(await tryAll(12, guess(second)), { wrong: 5, right: 0, refused: 7 })
      assert.deepEqual(await tryAll(12, guess(third)), { wrong: 0, right: 0, refused: 12 })
    }
  })

  it('tells its owner after ten wrong ones in a row, and takes none after twenty until the password is another', async () => {
    const { email, personId, waiting } = await withFactor()
    const told = async () =>
      (await letters(email)).flatMap((letter) =>
        letter.what === 'factor_guessed' ? [[letter.failures, letter.isOver]] : [],
      )
    const sessions = await Promise.all(Array.from({ length: 4 }, waiting))
    const guessIn = (session = '') => people.passSecondFactor(session, wrongCode, visitor())
    for (const session of sessions.slice(0, 2))
      for (let n = 0; n < 5; n += 1) assert.equal(await guessIn(session), null)
    assert.deepEqual(await told(), [[10, false]])
    await assert.rejects(guessIn(sessions[2]), { code: 'rate_limit_exceeded' })
    await pool.query('delete from door_attempts')
    // Many at once are counted one by one.
    const outcomes = await Promise.allSettled(
      sessions.flatMap((session) => Array.from({ length: 4 }, () => guessIn(session))),
    )
    assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 10)
    assert.deepEqual((await told()).at(-1), [20, true])
    for (const proof of [wrongCode, wrongRecovery])
      await assert.rejects(people.passSecondFactor(await waiting(), proof, visitor()), {
        code: 'password_reset_required',
      })
    await assert.rejects(people.removeSecondFactor(personId, wrongCode, visitor()), { code: 'password_reset_required' })
    const audited = await pool.query(
      "select after from audit where action = 'person.second_factor_guessed' and subject = $1 order by (after->>'failures')::integer",
      [personId],
    )
    assert.deepEqual(
      audited.rows.map(({ after }) => after),
      [
        { failures: 10, mustResetPassword: false },
        { failures: 20, mustResetPassword: true },
      ],
    )
    await people.askReset(visitor(), email)
    const reset = await people.reset(visitor(), await tokenFor(email, 'reset'), PASSWORD)
    assert.equal(await people.passSecondFactor(reset?.session.reveal() ?? '', wrongCode, visitor()), null)
  })

  it('is tried ten times by who would take it off', async () => {
    const { personId } = await withFactor()
    const guess = (door: typeof people) => door.removeSecondFactor(personId, { code: '000000' }, visitor())
    assert.deepEqual(await tryAll(15, guess), { wrong: 10, right: 0, refused: 5 })
  })
})

describe('guessing a link', () => {
  it('is tried 200 times from a network', async () => {
    const guess = (door: typeof people, n: number) => door.verify(visitorOf(`203.0.113.${n % 250}`), token())
    assert.deepEqual(await tryAll(230, guess), { wrong: 200, right: 0, refused: 30 })
  })

  for (const [what, guess] of Object.entries<(door: typeof people) => Promise<unknown>>({
    'a verification': (door) => door.verify(visitorOf('192.0.2.9'), token()),
    'a verification, to read it': (door) => door.readVerification(token(), visitorOf('192.0.2.9')),
    'a reset': (door) => door.reset(visitorOf('192.0.2.9'), token(), PASSWORD),
    'a reset, to read it': (door) => door.readReset(token(), visitorOf('192.0.2.9')),
    'an invitation, to read it': (door) => door.readInvitation(token(), visitorOf('192.0.2.9')),
    'what is no token': (door) => door.verify(visitorOf('192.0.2.9'), 'x'),
  }))
    it(`is tried 30 times from an address in a quarter of an hour: ${what}`, async () => {
      assert.deepEqual(await tryAll(45, guess), { wrong: 30, right: 0, refused: 15 })
    })
})

describe('writing to strangers', () => {
  it('is done five times a day for an address and twenty for a mailbox, by signing up', async () => {
    const email = anotherAddress()
    const signUp = (label: (n: number) => string) => (door: typeof people, n: number) =>
      door.signUp(visitor(), { name: 'A', email: email.replace('@', `${label(n)}@`), password: PASSWORD })
    assert.deepEqual(
      await tryAll(
        12,
        signUp(() => ''),
      ),
      { wrong: 0, right: 5, refused: 7 },
    )
    assert.deepEqual(
      await tryAll(
        20,
        signUp((n) => `+${n}`),
      ),
      { wrong: 0, right: 15, refused: 5 },
    )
  })

  it('is not kept from the owner of an account by asking for resets of labels that nobody has, and never for longer than an hour', async () => {
    const email = anotherAddress()
    await join(email)
    const askReset = (door: typeof people) => door.askReset(visitor(), email)
    await tryAll(20, (door, n) => door.askReset(visitor(), email.replace('@', `+${n}@`)))
    assert.deepEqual(await tryAll(10, askReset), { wrong: 0, right: 6, refused: 4 })
    await pool.query("update door_attempts set ends_at = clock_timestamp() where kind = 'hourly reset of address'")
    assert.deepEqual(await tryAll(3, askReset), { wrong: 0, right: 1, refused: 2 })
    assert.equal((await letters(email)).filter(({ what }) => what === 'reset').length, 7)
  })

  it('is done for five sign-ups an hour from an address, and for twenty from a network', async () => {
    const from = (address: string) => (door: typeof people) =>
      door.signUp(visitorOf(address), { name: 'A', email: anotherAddress(), password: PASSWORD })
    assert.deepEqual(await tryAll(9, from('192.0.2.1')), { wrong: 0, right: 5, refused: 4 })
    for (const last of [2, 3, 4]) assert.equal((await tryAll(5, from(`192.0.2.${last}`))).right, 5)
    assert.deepEqual(await tryAll(3, from('192.0.2.5')), { wrong: 0, right: 0, refused: 3 })
  })
})
