import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { codeOf, stepAt } from '../../../server/src/people/totp.ts'
import { needlesOfTexts, rowsOf, search, textPlace } from '../secrets-nowhere-search.ts'
import { anotherVisitor, connectPeople, joinAs, PASSWORD, workspaceOf } from './world.ts'

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, tokenFor, seal } = world
after(() => world.close())
const visitor = anotherVisitor

describe('what somebody could sign in with', () => {
  it('is in no table, neither as it is nor in another form', async () => {
    const email = 'mira@example.com'
    const personId = await join(email)
    const secrets = [PASSWORD, await tokenFor(email, 'verify')]
    const workspaceId = await workspaceOf(people, personId)
    const member = await joinAs(world, 'viewer', { by: personId, workspaceId })
    secrets.push(await tokenFor(member.email, 'invitation'), await world.signedIn(email))

    const session = await world.sessionFor(email)
    const { secret, uri } = (await people.beginSecondFactor(session)) ?? assert.fail()
    const { rows } = await pool.query('select totp from people where id = $1', [personId])
    const key = seal.open(rows[0]?.totp, `person ${personId} totp`).reveal()
    const shown = codeOf(Buffer.from(key, 'base64'), stepAt(Date.now() / 1000))
    const on = await people.confirmSecondFactor(session, shown, visitor())
    const codes = on?.recoveryCodes.map((code) => code.reveal()) ?? assert.fail('not on')
    secrets.push(secret.reveal(), uri.reveal(), key, ...codes, ...codes.map((code) => code.replace('-', '')))

    const waiting = await people.signIn(visitor(), { email, password: PASSWORD })
    const token = waiting?.session.reveal() ?? assert.fail()
    const passed = await people.passSecondFactor(token, { recovery: codes[0] ?? '' }, visitor())
    secrets.push(
      token,
      passed?.session.reveal() ?? assert.fail(),
      (await passed?.remember())?.reveal() ?? assert.fail(),
    )
    await people.askReset(visitor(), email)
    const link = await tokenFor(email, 'reset')
    const reset = await people.reset(visitor(), link, 'another good password')
    secrets.push(link, 'another good password', reset?.session.reveal() ?? assert.fail())

    const needles = needlesOfTexts(secrets)
    const places = await rowsOf(pool)
    assert.ok(places.some(({ where }) => where === 'table public.browser_sessions'))
    assert.deepEqual(search(needles, places), [])
    assert.equal(
      search(needles, [textPlace('here', `x${secrets.at(-1)}x`)]).length,
      1,
      'or else the above shows nothing',
    )
  })
})
