import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { makeMasterKey } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { SECOND_FACTORS } from '../../../server/src/people/second-factor.ts'
import { codeOf, stepAt } from '../../../server/src/people/totp.ts'
import { reseal } from '../../../server/src/storage/reseal.ts'
import { anotherAddress, anotherVisitor, connectPeople, countOf, PASSWORD } from './world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, tokenFor, letters, masterKey } = world
after(() => world.close())
const visitor = anotherVisitor

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
function keyOf(secret: string): Buffer {
  const bits = [...secret].map((letter) => BASE32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)))
}

/** As the app of its owner shows it, so many steps from now. */
const shown = (key: Buffer, away = 0) => codeOf(key, stepAt(Date.now() / 1000) + away)
/** As if no code had been used yet. */
const forgetUsed = (personId: Id) => pool.query('update people set totp_used_step = 0 where id = $1', [personId])
const forgetTries = () => pool.query('delete from door_attempts')

async function withFactor() {
  const email = anotherAddress()
  const personId = await join(email)
  const session = await world.sessionFor(email)
  const { secret } = (await people.beginSecondFactor(session)) ?? assert.fail()
  const key = keyOf(secret.reveal())
  const on = await people.confirmSecondFactor(session, shown(key), visitor())
  await forgetUsed(personId)
  await people.endSession(personId, session.id, visitor())
  return { email, personId, key, codes: on?.recoveryCodes.map((code) => code.reveal()) ?? assert.fail('not on') }
}

async function waiting(email: string, remembered?: string): Promise<string> {
  const result = await people.signIn(visitor(), { email, password: PASSWORD, remembered })
  assert.equal(result?.needs, 'second_factor')
  return result?.session.reveal() ?? assert.fail()
}

describe('a second factor', () => {
  it('is on once its first code was shown, and not before', async () => {
    const email = anotherAddress()
    await join(email)
    const session = await world.sessionFor(email)
    const { secret, uri } = (await people.beginSecondFactor(session)) ?? assert.fail()
    assert.ok(uri.reveal().includes(secret.reveal()))
    assert.equal(await people.confirmSecondFactor(session, '000000', visitor()), null)
    assert.equal((await people.signIn(visitor(), { email, password: PASSWORD }))?.needs, 'nothing')
    const key = keyOf(secret.reveal())
    const on = await people.confirmSecondFactor(session, shown(key), visitor())
    assert.equal(new Set(on?.recoveryCodes.map((code) => code.reveal())).size, 10)
    for (const code of on?.recoveryCodes ?? [])
      assert.match(code.reveal(), /^[0-9A-HJKMNP-TV-Z]{5}-[0-9A-HJKMNP-TV-Z]{5}$/)
    assert.equal((await people.signIn(visitor(), { email, password: PASSWORD }))?.needs, 'second_factor')
    await assert.rejects(people.beginSecondFactor(session), { code: 'invalid_request' })
    const told = (await letters(email)).at(-1)
    assert.ok(told?.what === 'factor_changed' && told.isOn)
  })

  it('is turned on by who has just signed in, and every other session ends', async () => {
    const email = anotherAddress()
    await join(email)
    const [other, own] = [await world.signedIn(email), await world.signedIn(email)]
    const session = (await people.sessionOf(own)) ?? assert.fail()
    const setAge = (age: string) =>
      pool.query('update browser_sessions set created_at = clock_timestamp() - $2::interval where id = $1', [
        session.id,
        age,
      ])
    await setAge('11 minutes')
    assert.equal(await people.beginSecondFactor(session), null)
    await setAge('5 minutes')
    const { secret } = (await people.beginSecondFactor(session)) ?? assert.fail()
    assert.notEqual(await people.confirmSecondFactor(session, shown(keyOf(secret.reveal())), visitor()), null)
    assert.equal(await people.sessionOf(other), null)
    assert.notEqual(await people.sessionOf(own), null)
  })

  it('is waited for by a session that can do nothing else, and gets another token for it', async () => {
    const { email, key } = await withFactor()
    const token = await waiting(email)
    assert.equal((await people.sessionOf(token))?.isComplete, false)
    const passed = await people.passSecondFactor(token, { code: shown(key) }, visitor())
    const session = await people.sessionOf(passed?.session.reveal() ?? '')
    assert.equal(session?.isComplete, true)
    assert.ok(session?.secondFactorAt instanceof Date)
    assert.equal(await people.sessionOf(token), null, 'the one from before is worth nothing')
  })

  it('is waited for ten minutes', async () => {
    const { email, key } = await withFactor()
    const token = await waiting(email)
    assert.equal(
      await countOf(
        pool,
        "select count(*) from browser_sessions where not is_complete and expires_at > clock_timestamp() + interval '11 minutes'",
      ),
      0,
    )
    await pool.query('update browser_sessions set expires_at = clock_timestamp() where not is_complete')
    assert.equal(await people.passSecondFactor(token, { code: shown(key) }, visitor()), null)
  })

  it('takes each code once, of many who bring it at once', async () => {
    const { email, key } = await withFactor()
    const tokens = await Promise.all(Array.from({ length: 5 }, () => waiting(email)))
    const code = shown(key)
    const passed = await Promise.all(tokens.map((token) => people.passSecondFactor(token, { code }, visitor())))
    assert.equal(passed.filter((result) => result !== null).length, 1)
  })

  it('takes each recovery code once, in whichever form it is typed', async () => {
    const { email, personId, codes } = await withFactor()
    const [first = '', second = ''] = codes
    const tokens = await Promise.all(Array.from({ length: 5 }, () => waiting(email)))
    const results = await Promise.all(
      tokens.map((token) => people.passSecondFactor(token, { recovery: first }, visitor())),
    )
    assert.equal(results.filter((result) => result !== null).length, 1)
    await forgetTries()
    const typed = ` ${second.toLowerCase().replace('-', ' ').replaceAll('0', 'o').replaceAll('1', 'l')} `
    assert.notEqual(await people.passSecondFactor(await waiting(email), { recovery: typed }, visitor()), null)
    assert.equal(
      await countOf(pool, 'select count(*) from recovery_codes where person_id = $1 and used_at is null', [personId]),
      8,
    )
    const { rows } = await pool.query('select encode(hash, $1) as hash from recovery_codes', ['hex'])
    assert.equal(new Set(rows.map(({ hash }) => hash)).size, rows.length)
  })

  it('is passed by its owner while somebody else guesses: with a recovery code at once, with a code after a reset', async () => {
    const { email, personId, key, codes } = await withFactor()
    const guesses = await Promise.all([waiting(email), waiting(email)])
    for (const guess of guesses)
      for (let n = 0; n < 5; n += 1)
        assert.equal(await people.passSecondFactor(guess, { code: '000000' }, visitor()), null)
    const own = await waiting(email)
    await assert.rejects(people.passSecondFactor(own, { code: shown(key) }, visitor()), { code: 'rate_limit_exceeded' })
    assert.equal(await people.removeSecondFactor(personId, { code: '000000' }, visitor()), false)
    assert.notEqual(await people.passSecondFactor(own, { recovery: codes[0] ?? '' }, visitor()), null)
    assert.equal(await countOf(pool, 'select factor_failures from people where id = $1', [personId]), 0, 'in a row')
    await people.askReset(visitor(), email)
    const reset = await people.reset(visitor(), await tokenFor(email, 'reset'), PASSWORD)
    const passed = await people.passSecondFactor(reset?.session.reveal() ?? '', { code: shown(key) }, visitor())
    assert.notEqual(passed, null)
  })

  it('of somebody else opens nothing', async () => {
    const [one, other] = [await withFactor(), await withFactor()]
    const token = await waiting(one.email)
    assert.equal(await people.passSecondFactor(token, { code: shown(other.key) }, visitor()), null)
    assert.equal(await people.passSecondFactor(token, { recovery: other.codes[0] ?? '' }, visitor()), null)
  })

  it('is not asked for again in a browser that is remembered, until the password is reset', async () => {
    const { email, key } = await withFactor()
    const passed = await people.passSecondFactor(await waiting(email), { code: shown(key) }, visitor())
    const remembered = (await passed?.remember())?.reveal() ?? assert.fail()
    const again = await people.signIn(visitor(), { email, password: PASSWORD, remembered })
    assert.equal(again?.needs, 'nothing')
    const somebody = await withFactor()
    assert.equal(
      (await people.signIn(visitor(), { email: somebody.email, password: PASSWORD, remembered }))?.needs,
      'second_factor',
    )
    await people.askReset(visitor(), email)
    const reset = await people.reset(visitor(), await tokenFor(email, 'reset'), PASSWORD)
    assert.equal(reset?.needs, 'second_factor', 'a mailbox alone is not enough')
    await waiting(email, remembered)
  })

  it('is what keeps who knows the password alone from signing its owner out', async () => {
    const { email, personId, key } = await withFactor()
    const passed = await people.passSecondFactor(await waiting(email), { code: shown(key) }, visitor())
    const own = passed?.session.reveal() ?? assert.fail()
    // Older than those that follow, which are older than any that is opened now.
    await pool.query('update browser_sessions set id = $2 where person_id = $1 and is_complete and ended_at is null', [
      personId,
      '00000000-0000-0000-0000-000000000000',
    ])
    for (const [isComplete, alive] of [
      [false, true],
      [true, false],
    ]) {
      await pool.query(
        `insert into browser_sessions (id, hash, person_id, expires_at, address, agent, is_complete)
         select ('00000000' || right(md5($2 || n), 24))::uuid, sha256(($2 || n)::bytea), $1, clock_timestamp() + interval '1 day', '', '', $2::boolean
         from generate_series(1, 60) n`,
        [personId, String(isComplete)],
      )
      const token = await waiting(email)
      if (isComplete) {
        await forgetUsed(personId)
        assert.notEqual(await people.passSecondFactor(token, { code: shown(key) }, visitor()), null)
      }
      assert.equal((await people.sessionOf(own)) !== null, alive)
    }
  })

  it('is asked for in a browser that was to be remembered when the password was reset', async () => {
    const { email, key } = await withFactor()
    const passed = await people.passSecondFactor(await waiting(email), { code: shown(key) }, visitor())
    await people.askReset(visitor(), email)
    await people.reset(visitor(), await tokenFor(email, 'reset'), PASSWORD)
    await waiting(email, (await passed?.remember())?.reveal())
  })

  it('is taken off with a code of it, and by nobody without', async () => {
    const { email, personId, key } = await withFactor()
    assert.equal(await people.removeSecondFactor(personId, { code: '000000' }, visitor()), false)
    assert.equal(await people.removeSecondFactor(personId, { recovery: 'AAAAA-AAAAA' }, visitor()), false)
    assert.equal(await people.removeSecondFactor(personId, { code: shown(key) }, visitor()), true)
    assert.equal((await people.signIn(visitor(), { email, password: PASSWORD }))?.needs, 'nothing')
    assert.equal(await countOf(pool, 'select count(*) from recovery_codes where person_id = $1', [personId]), 0)
    const told = (await letters(email)).at(-1)
    assert.ok(told?.what === 'factor_changed' && !told.isOn)
  })

  it('is sealed with the master key, and opened after that was replaced', async () => {
    const { email, personId, key } = await withFactor()
    const { rows } = await pool.query('select totp from people where id = $1', [personId])
    assert.ok(!rows[0]?.totp.includes(key) && !rows[0]?.totp.includes(Buffer.from(key.toString('base64'))))
    const nextKey = makeMasterKey()
    const next = createSeal({ current: nextKey, previous: masterKey })
    const { failed } = await reseal(pool, next, SECOND_FACTORS, (text, values = []) => pool.query(text, [...values]))
    assert.deepEqual(failed, [])
    const renewed = connectPeople(url, { masterKey: nextKey })
    const token = (await renewed.people.signIn(visitor(), { email, password: PASSWORD }))?.session.reveal() ?? ''
    assert.notEqual(await renewed.people.passSecondFactor(token, { code: shown(key) }, visitor()), null)
    await renewed.close()
    await reseal(pool, createSeal({ current: masterKey, previous: nextKey }), SECOND_FACTORS, (text, values = []) =>
      pool.query(text, [...values]),
    )
  })
})
