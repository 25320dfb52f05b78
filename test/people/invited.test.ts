import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { visitorOf } from '../../server/src/people/visitor.ts'
import { freshAddress, linkIn, startSite } from './site.ts'
import { createVisitor, freshEmail, PASSWORD, signIn } from './visitor.ts'

/** A site where nobody signs up unless they are invited. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_PEOPLE_SIGN_UP: 'closed' })
const { people, pool } = site
after(site.stop)

const visitor = () => visitorOf(freshAddress())

/** The path of an invitation to an address, from somebody who has an account already. */
async function invite(email: string): Promise<string> {
  const owner = freshEmail('owner')
  await people.signUp(visitor(), { name: 'Jo Larsen', email: owner, password: PASSWORD })
  const { pathname } = new URL(linkIn(await site.mailTo(owner), /^\/verify\//))
  const { personId } = (await people.verify(visitor(), pathname.slice('/verify/'.length))) ?? assert.fail()
  const [workspace] = await people.workspacesOf(personId)
  await people.invite(personId, workspace?.id ?? '', { email, role: 'viewer' }, visitor())
  return new URL(linkIn(await site.mailTo(email), /^\/invitations\//)).pathname
}

describe('where sign-up is closed', () => {
  it('is open to who comes from an invitation, and leads back to it', async () => {
    const guest = freshEmail()
    const invitation = await invite(guest)
    const browser = createVisitor(site)
    const { text } = await browser.get(invitation)
    const [, way = ''] = /href="(\/sign-up\?[^"]+)"/.exec(text) ?? []
    assert.notEqual(way, '', 'the invitation shows where to sign up')
    const asked = await browser.fill(way, { name: 'Mira', email: guest, password: PASSWORD })
    assert.equal(asked.status, 303, asked.text)
    const { pathname } = new URL(linkIn(await site.mailTo(guest, 2), /^\/verify\//))
    assert.equal((await browser.fill(pathname, {})).status, 303)
    const member = await signIn(site, guest)
    assert.equal((await member.fill(invitation, { decision: 'join' })).location, '/console')
  })

  it('stays closed to everybody else', async () => {
    const guest = freshEmail()
    const way = `/sign-up?return_to=${encodeURIComponent(await invite(guest))}`
    const other = freshEmail('other')
    const another = await createVisitor(site).fill(way, { name: 'Mira', email: other, password: PASSWORD })
    assert.equal(another.status, 403)
    assert.match(another.text, /for another address, or has expired/)
    const guessed = await createVisitor(site).fill(`/sign-up?return_to=/invitations/${'A'.repeat(43)}`, {
      ...{ name: 'Mira', email: guest, password: PASSWORD },
    })
    assert.equal(guessed.status, 403)
    for (const path of ['/sign-up', '/sign-up?return_to=/invitations/x', '/sign-up?return_to=/sessions'])
      assert.match((await createVisitor(site).get(path)).text, /Sign-up is closed/)
    const { rows } = await pool.query('select from people where email = any ($1)', [[guest, other]])
    assert.equal(rows.length, 0)
  })
})
