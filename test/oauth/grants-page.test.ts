import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { GRANTS_OF_PERSON, GRANTS_OF_WORKSPACE, listGrants } from '../../server/src/grants/grants.ts'
import { makeKey } from '../acceptance/installation.ts'
import { makeCustomer } from '../identity/customers.ts'
import { makeGranted } from '../identity/granted.ts'
import { startSite } from '../people/site.ts'
import { hiddenIn, signIn, signUp } from '../people/visitor.ts'

/** Where a person sees what they allow. */
const database = await freshDatabase()
const site = await startSite(database.url, { FAREBOX_HTTP_MCP_URL: 'http://127.0.0.1:9/mcp' })
after(site.stop)
const { pool } = site

async function somebody() {
  const email = await signUp(site)
  const { rows } = await pool.query(
    'select person_id as "personId", workspace_id as "workspaceId" from members where email = $1',
    [email],
  )
  const [personId, workspaceId] = [String(rows[0]?.personId), String(rows[0]?.workspaceId)]
  return { visitor: await signIn(site, email), personId, workspaceId }
}

let next = 0

/** Grants that are newer than any other, as one that was made is. */
async function makeMany(count: number, grantId: string, changed: { workspaceId?: string; isRevoked: boolean }) {
  next += 10_000
  await pool.query(
    `with made as (
       insert into credentials (id, account_id, active)
       select ('ffffffff-0000-7000-8000-' || lpad(to_hex($5 + n), 12, '0'))::uuid, account_id, not $4
       from credentials, generate_series(1, $1) n where id = $2 returning id)
     insert into grants (id, workspace_id, person_id, client_id, client_name, audiences, oauth_scopes, revoked_at)
     select made.id, coalesce($3, workspace_id), person_id, client_id, 'Another client', audiences, oauth_scopes,
       case when $4 then clock_timestamp() end
     from grants, made where grants.id = $2`,
    [count, grantId, changed.workspaceId ?? null, changed.isRevoked, next],
  )
}

describe('a grant that is active', () => {
  it('is shown and taken back however many of its person have ended since', async () => {
    const { visitor, personId, workspaceId } = await somebody()
    const { id } = await makeGranted(pool, { workspaceId, personId, clientName: 'The first client' })
    await makeMany(1_001, id, { isRevoked: true })
    const page = await visitor.get('/grants')
    assert.match(page.text, /The first client/)
    assert.match(page.text, new RegExp(`g-${id}`))
    const [active = '', ended = ''] = page.text.split('id="ended"')
    assert.doesNotMatch(active, /Another client/)
    assert.equal(ended.match(/<bdi>Another client</g)?.length, 20, 'the newest of those that ended')
    assert.equal((await listGrants(pool, { workspaceId }))[0]?.id, id)
    await visitor.post('/grants/revoke', { ...hiddenIn(page.text, '/grants/revoke'), grant: id })
    const { rows } = await pool.query('select revoked_at is not null as "isRevoked" from grants where id = $1', [id])
    assert.deepEqual(rows, [{ isRevoked: true }])
  })

  it('that manages the account is told to create keys that spend, and ends with them where the person says so', async () => {
    const { visitor, personId, workspaceId } = await somebody()
    const scopes = ['account.manage'] as const
    const make = () => makeGranted(pool, { workspaceId, personId, scopes, budget: null, mode: 'test' })
    const [first, second] = [await make(), await make()]
    const keys = []
    for (const { id: grantId } of [first, second]) keys.push((await makeKey(pool, workspaceId, { grantId })).keyId)
    const page = await visitor.get('/grants')
    assert.match(page.text, /can create keys that spend your balance/)
    assert.doesNotMatch(page.text, /It can’t pay/)
    assert.match(page.text, /Also revoke the 1 key that it created or rotated/)
    const hidden = hiddenIn(page.text, '/grants/revoke')
    await visitor.post('/grants/revoke', { ...hidden, grant: first.id, keys: 'yes' })
    await visitor.post('/grants/revoke', { ...hidden, grant: second.id })
    const { rows } = await pool.query(
      `select (select revoked_at is not null from grants where id = k.grant_id) as ended, revoked_at is not null as "isRevoked", active
       from api_keys k join credentials using (id) where id = any ($1::uuid[]) order by id`,
      [keys],
    )
    assert.deepEqual(rows, [
      { ended: true, isRevoked: true, active: false },
      { ended: true, isRevoked: false, active: true },
    ])
  })

  it('is taken back by nobody else', async () => {
    const [owner, other] = [await somebody(), await somebody()]
    const { id } = await makeGranted(pool, owner)
    await makeGranted(pool, other)
    const page = await other.visitor.get('/grants')
    await other.visitor.post('/grants/revoke', { ...hiddenIn(page.text, '/grants/revoke'), grant: id })
    const { rows } = await pool.query('select revoked_at from grants where id = $1', [id])
    assert.deepEqual(rows, [{ revoked_at: null }])
  })

  it('is one of so many that a page shows them all', async () => {
    const { personId, workspaceId } = await somebody()
    const { id } = await makeGranted(pool, { workspaceId, personId })
    for (const count of [GRANTS_OF_WORKSPACE, GRANTS_OF_WORKSPACE, GRANTS_OF_PERSON - 2 * GRANTS_OF_WORKSPACE - 1])
      await makeMany(count, id, { workspaceId: (await makeCustomer(pool)).workspaceId, isRevoked: false })
    await assert.rejects(makeGranted(pool, { workspaceId, personId }), /You have 500 active grants; the limit is 500/)
  })
})
