import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { createFindEndUser, endUserOf, otherEndUsers, pruneEndUsers } from '../../server/src/budgets/end-users.ts'
import { endUserNamed } from '../../server/src/protocols/end-user.ts'
import { connect, makeAccount } from '../ledger/world.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

let nowMs = 0
const clock = { monotonicMs: () => nowMs }
const finder = (limit: number) => createFindEndUser({ pool, clock, limit })
const named = (text: string) => endUserNamed(text)
const rowsOf = async (accountId: string) =>
  (
    await pool.query<{ label: string }>('select label from end_users where account_id = $1 order by label', [accountId])
  ).rows.map(({ label }) => label)

describe('end users of an account', () => {
  it('have an id that follows from the account and a hash of the text, and nothing of the text but a short label', async () => {
    const [one, other] = [await makeAccount(pool, 0n), await makeAccount(pool, 0n)]
    const text = `alice@example.com${'x'.repeat(100)}\u0007`
    const { id, label } = endUserOf(one, named(text))
    assert.equal(endUserOf(one, named(text)).id, id)
    assert.notEqual(endUserOf(other, named(text)).id, id)
    assert.notEqual(endUserOf(one, named(`${text}y`)).id, id)
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal(label.length, 40)
    assert.equal(endUserOf(one, { text: 'a', label: '\u0000\u202e' }).label, 'unnamed')
  })

  it('are at most so many, however many come at once; the others are counted as one', async () => {
    const accountId = await makeAccount(pool, 0n)
    const finders = [finder(10), finder(10), finder(10)]
    const found = await Promise.all(
      Array.from({ length: 30 }, (_, at) => finders[at % 3]?.(accountId, named(`user ${at % 15}`))),
    )
    assert.equal((await rowsOf(accountId)).length, 10)
    const others = new Set(found.flatMap((one, at) => (one?.id === otherEndUsers(accountId).id ? [at % 15] : [])))
    assert.equal(others.size, 5)
    const { rows } = await pool.query('select users from end_user_counts where account_id = $1', [accountId])
    assert.deepEqual(rows, [{ users: 10 }])
  })

  it('are found from memory after the first time, and are forgotten when nobody has seen them for long', async () => {
    const accountId = await makeAccount(pool, 0n)
    const find = finder(2)
    await find(accountId, named('old'))
    assert.ok(!(find(accountId, named('old')) instanceof Promise))
    await find(accountId, named('new'))
    assert.equal((await find(accountId, named('third'))).label, 'other')
    await pool.query(
      "update end_users set seen_at = clock_timestamp() - interval '91 days' where account_id = $1 and label = 'old'",
      [accountId],
    )
    assert.equal(await pruneEndUsers(pool), 1)
    assert.deepEqual(await rowsOf(accountId), ['new'])
    assert.equal((await find(accountId, named('third'))).label, 'other', 'as it was a moment ago')
    nowMs += 60_001
    assert.equal((await find(accountId, named('third'))).label, 'third')
    assert.deepEqual(await rowsOf(accountId), ['new', 'third'])
  })
})
