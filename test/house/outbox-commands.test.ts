import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { notesTo, statesIn, write } from '../outbox/notes.ts'
import { startShell } from './command-shell.ts'

const database = await freshDatabase()
const pool = new pg.Pool({ connectionString: database.url, max: 2 })
// Its database is dropped before it is closed.
pool.on('error', () => {})
after(() => pool.end())
const { farebox, said } = startShell({ ...process.env, FAREBOX_DATABASE_URL: database.url })

async function die(ids: readonly string[]): Promise<void> {
  await pool.query(
    `update outbox set died_at = clock_timestamp(), due_at = null, attempts = 18, failure = 'answered with 503' where id = any ($1::uuid[])`,
    [ids],
  )
}

describe('farebox outbox', () => {
  it('says that there is nothing', async () => {
    assert.equal(await said('outbox'), 'No messages are waiting, and there are no dead letters.\n')
  })

  it('lists what waits and dead letters with what went wrong, and never what they say', async () => {
    const [first = '', second = '', third = ''] = await write(pool, notesTo('https://a.example', 4))
    await die([first, second, third])
    const output = await said('outbox')
    assert.match(output, /^test\.note {2}1 waiting, the oldest for \d+ seconds {2}3 dead letters$/m)
    assert.match(
      output,
      new RegExp(`^${first}  test\\.note  https://a\\.example  .*  18 attempts  answered with 503$`, 'm'),
    )
    assert.ok(!output.includes('note 0'))

    assert.equal(await said('outbox', 'retry', first), `Message ${first} will be delivered again.\n`)
    assert.equal((await farebox('outbox', 'retry', first)).code, 1)
    assert.equal(await said('outbox', 'drop', second), `Message ${second} is deleted and will not be delivered.\n`)
    assert.equal((await farebox('outbox', 'drop', second)).code, 1)
    assert.equal((await farebox('outbox', 'drop', first)).code, 1, 'what waits is no dead letter')
    assert.deepEqual(await statesIn(pool), { waiting: 2, dead: 1 })
    assert.match(await said('outbox', 'retry', '--kind', 'test.note'), /^1 dead letters of test\.note/)
    assert.deepEqual(await statesIn(pool), { waiting: 3 })
    for (const args of [[], [first, '--kind', 'test.note'], ['x']])
      assert.equal((await farebox('outbox', 'retry', ...args)).code, 1)
  })
})
