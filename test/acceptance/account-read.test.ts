import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { checkScopes } from '../../server/src/identity/scopes.ts'
import { ask, call, codeOf, makeCustomer, makeKey, startInstallation } from './installation.ts'
import { cancel, created, LIST, outputOf, poll } from './tasks/video.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

const ACCOUNT_READ = { scopes: ['account.read'] }
const idsIn = (data: unknown) => (Array.isArray(data) ? data.map(({ id, output }) => id ?? output.task_id) : [])

describe('a key with the scope account.read', () => {
  it('reads request records of every key of its account, and of no other', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const stranger = await makeCustomer(pool)
    const reader = await makeKey(pool, workspaceId, ACCOUNT_READ)
    const other = await makeKey(pool, workspaceId)
    const told = await Promise.all([secret, other.secret, stranger.secret].map((one) => call(url, one, 'tag_detail')))
    const [first, second, third] = told.map(({ id }) => id)
    const record = (id: string | undefined, by = reader.secret) => ask(url, by, `/v1/requests/${id}`)
    assert.deepEqual(
      [(await record(first)).status, (await record(second)).status, (await record(third)).status],
      [200, 200, 404],
    )
    assert.equal(Object((await record(first)).json.cost).usd, '0.001450000')
    const listed = idsIn((await ask(url, reader.secret, '/v1/requests')).json.data)
    assert.deepEqual(listed.toSorted(), [first, second].toSorted())
    // Page by page, too.
    const page = (await ask(url, reader.secret, '/v1/requests?limit=1')).json
    const next = (await ask(url, reader.secret, `/v1/requests?limit=1&cursor=${page.next_cursor}`)).json
    assert.deepEqual([...idsIn(page.data), ...idsIn(next.data)].toSorted(), [first, second].toSorted())
    // Whoever lacks the scope reads its own.
    assert.equal((await record(first, other.secret)).status, 404)
    assert.deepEqual(idsIn((await ask(url, other.secret, '/v1/requests')).json.data), [second])
  })

  it('polls and lists tasks of every key of its account, within the pace of each, and ends none', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const reader = await makeKey(pool, workspaceId, ACCOUNT_READ)
    const other = await makeKey(pool, workspaceId)
    const stranger = await makeCustomer(pool)
    const id = await created(url, secret, { words: 'sandbox:pending-ms=600000' })
    assert.equal(outputOf(await poll(url, reader.secret, id)).task_status, 'PENDING')
    assert.deepEqual(idsIn((await ask(url, reader.secret, LIST)).json.data), [id])
    for (const one of [other.secret, stranger.secret]) {
      assert.equal(outputOf(await poll(url, one, id)).task_status, 'UNKNOWN')
      assert.deepEqual(idsIn((await ask(url, one, LIST)).json.data), [])
    }
    assert.equal(outputOf(await cancel(url, reader.secret, id)).task_status, 'UNKNOWN')
    assert.equal(outputOf(await cancel(url, secret, id)).task_id, id)
  })

  it('makes no calls by it, and no key has it because it may use everything', async () => {
    const { workspaceId, secret } = await makeCustomer(pool)
    const reader = await makeKey(pool, workspaceId, ACCOUNT_READ)
    const refused = await call(url, reader.secret, 'tag_detail')
    assert.deepEqual([refused.status, codeOf(refused)], [403, 'forbidden'])
    const both = await makeKey(pool, workspaceId, { scopes: ['account.read', 'social'] })
    const { id, status } = await call(url, both.secret, 'tag_detail')
    assert.equal(status, 200)
    assert.equal((await ask(url, secret, `/v1/requests/${id}`)).status, 404)
    assert.deepEqual(checkScopes(['account.read'], { operations: [], models: [] }), ['account.read'])
  })
})
