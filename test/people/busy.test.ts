import assert from 'node:assert/strict'
import { argon2 } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createPasswords } from '../../server/src/people/passwords.ts'
import { startSiteHere } from './site-here.ts'
import { createVisitor, freshEmail, hiddenIn } from './visitor.ts'

const AT_ONCE = 2
const WAITING = 32
const run = promisify(argon2)
let running = 0
let most = 0
let made = 0

const database = await freshDatabase()
const site = await startSiteHere(
  database.url,
  createPasswords({
    derive(derivation) {
      running += 1
      made += 1
      most = Math.max(most, running)
      return run('argon2id', derivation).finally(() => {
        running -= 1
      })
    },
  }),
)
after(site.stop)

describe('passwords', () => {
  it('are hashed by two at a time, and whoever would wait for long is told to come back', async () => {
    const signIns = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const visitor = createVisitor(site)
        const hidden = hiddenIn((await visitor.get('/sign-in')).text, '/sign-in')
        return () => visitor.post('/sign-in', { ...hidden, email: freshEmail('nobody'), password: 'a wrong password' })
      }),
    )
    const answers = await Promise.all(signIns.map((signIn) => signIn()))
    const [wrong, later] = [400, 503].map((status) => answers.filter((answer) => answer.status === status))
    assert.equal((wrong?.length ?? 0) + (later?.length ?? 0), 200)
    assert.ok((wrong?.length ?? 0) >= AT_ONCE + WAITING)
    assert.ok((later?.length ?? 0) > 0)
    assert.equal(made, wrong?.length)
    assert.equal(most, AT_ONCE)
    assert.equal(running, 0)
    for (const { headers, text } of later ?? []) {
      assert.ok(Number(headers['retry-after']) >= 1)
      assert.match(text, /role="alert".*The service is busy/s)
    }
  })

  it('are hashed again once there is room: nobody who was told to come back has used up a try', async () => {
    const visitor = createVisitor(site)
    const email = freshEmail('nobody')
    assert.equal((await visitor.fill('/sign-in', { email, password: 'a wrong password' })).status, 400)
    const { rows } = await site.pool.query('select sum(count)::integer as count from door_attempts where kind = $1', [
      'sign-in of mailbox',
    ])
    assert.equal(rows[0].count, made)
  })
})
