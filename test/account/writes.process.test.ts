import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { ask as askOnce, makeTeam, signedIn, startHouse, type Told } from './house.ts'

const ROUNDS = count({ full: 100, reduced: 5 })
const AT_ONCE = 12

const database = await freshDatabase()
const house = await startHouse(database.url, { processes: 3 })
const { pool, siteUrl } = house
after(house.stop)

/** Waits where there is a limit, as programs do: full counts have more changes than a person may make in a minute. */
const ask: typeof askOnce = async (...asked) => {
  for (;;) {
    const told = await askOnce(...asked)
    if (told.status !== 429) return told
    await delay(1_000 * Number(told.headers.get('retry-after') ?? 1))
  }
}

/** Where each process is reached: browsers know them all as one site. */
const host = new URL(siteUrl).host
const sites = [siteUrl, ...house.more.map((one) => one.siteUrl)]
const anySite = (at: number) => sites[at % sites.length] ?? siteUrl

const team = await makeTeam(pool, ['owner'])
const owner = { ...team.of('owner'), headers: { ...team.of('owner').headers, host } }
const KEYS = `/workspaces/${team.workspaceId}/keys`

const keysNamed = async (name: string) =>
  (await pool.query<{ id: string }>('select id from api_keys where name = $1', [name])).rows.map(({ id }) => id)
const isReplay = ({ headers }: Told) => headers.get('idempotency-replayed') === 'true'

describe('writes of the account API over 3 processes', () => {
  it('are made once, however often they are sent at the same time, and tell the secret once', async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const name = `raced-${round}`
      const sent = Array.from({ length: AT_ONCE }, (_, at) =>
        ask(anySite(at), owner, `${KEYS}?mode=test`, { method: 'POST', body: { name }, key: name }),
      )
      const told = await Promise.all(sent)
      assert.deepEqual(new Set(told.map(({ status }) => status)), new Set([201]))
      const [id, ...others] = await keysNamed(name)
      assert.deepEqual(others, [])
      assert.deepEqual(new Set(told.map(({ json }) => json.id)), new Set([id]))
      assert.equal(told.filter(({ json }) => json.secret !== null).length, 1)
      assert.deepEqual(
        told.map(isReplay),
        told.map(({ json }) => json.secret === null),
      )
      await ask(siteUrl, owner, `${KEYS}/${id}`, { method: 'DELETE' })
    }
    recordProof('account-writes', 'made once', { rounds: ROUNDS, at_once: AT_ONCE, processes: sites.length, twice: 0 })
  })

  it('never lose an update: of many with one ETag, one is made', async () => {
    const made = await ask(siteUrl, owner, `${KEYS}?mode=test`, { method: 'POST', body: { name: 'contended' } })
    const path = `${KEYS}/${made.json.id}`
    let etag = (await ask(siteUrl, owner, path)).headers.get('etag') ?? ''
    for (let round = 0; round < ROUNDS; round += 1) {
      const rates = Array.from({ length: AT_ONCE }, (_, at) => 1 + round * AT_ONCE + at)
      const told = await Promise.all(
        rates.map((rate, at) =>
          ask(anySite(at), owner, path, {
            ...{ method: 'PATCH', headers: { 'if-match': etag } },
            body: { rates: { requests_per_minute: rate } },
          }),
        ),
      )
      const won = told.filter(({ status }) => status === 200)
      assert.equal(won.length, 1, told.map(({ status }) => status).join())
      assert.ok(told.every(({ status, json }) => status === 200 || json.code === 'precondition_failed'))
      const now = await ask(siteUrl, owner, path)
      assert.deepEqual(now.json.rates, won[0]?.json.rates)
      etag = now.headers.get('etag') ?? ''
      assert.equal(etag, won[0]?.headers.get('etag'))
    }
    recordProof('account-writes', 'no lost update', { rounds: ROUNDS, at_once: AT_ONCE, lost: 0 })
  })

  it('sent again get the first answer, whatever has changed since; another request with the key is refused', async () => {
    const key = 'again'
    const send = (name: string) =>
      ask(siteUrl, owner, `/workspaces/${team.workspaceId}`, {
        ...{ method: 'PATCH', body: { name }, key, headers: { 'if-match': '*' } },
      })
    const first = await send('First')
    await ask(siteUrl, owner, `/workspaces/${team.workspaceId}`, {
      method: 'PATCH',
      body: { name: 'Second' },
      headers: { 'if-match': '*' },
    })
    const again = await send('First')
    assert.deepEqual([again.status, again.json], [200, first.json])
    assert.equal(isReplay(again), true)
    assert.equal((await ask(siteUrl, owner, `/workspaces/${team.workspaceId}`)).json.name, 'Second')
    const other = await send('Third')
    assert.deepEqual([other.status, other.json.code], [422, 'idempotency_mismatch'])
    // Keys are of a person: somebody else may use the same.
    const another = await makeTeam(pool, ['owner'])
    const told = await ask(siteUrl, another.of('owner'), `/workspaces/${another.workspaceId}`, {
      ...{ method: 'PATCH', body: { name: 'Theirs' }, key, headers: { 'if-match': '*' } },
    })
    assert.equal(isReplay(told), false)
  })

  it('that were refused leave nothing, and are judged anew with the same key', async () => {
    const { personId } = await makeTeam(pool, ['owner']).then((one) => one.of('owner'))
    const headers = { ...(await signedIn(pool, personId)), host }
    const send = () =>
      ask(siteUrl, { headers }, KEYS, { method: 'POST', body: { name: 'refused-then-made' }, key: 'judged' })
    assert.equal((await send()).status, 404)
    await pool.query(
      'insert into members (id, workspace_id, email, role, person_id) values (gen_random_uuid(), $1, $2, $3, $4)',
      [...[team.workspaceId, `${personId}@example.com`, 'viewer', personId]],
    )
    assert.equal((await send()).status, 403)
    await pool.query("update members set role = 'admin' where person_id = $1 and workspace_id = $2", [
      personId,
      team.workspaceId,
    ])
    assert.equal((await send()).status, 201)
  })

  it('are made once through the death of the process that made them', async () => {
    const victim = house.more.at(-1) ?? assert.fail()
    const names = Array.from({ length: 30 }, (_, at) => `dying-${at}`)
    const make = (site: string, name: string) =>
      ask(site, owner, `${KEYS}?mode=live`, { method: 'POST', body: { name, rates: { concurrency: 1 } }, key: name })
    const first = names.map((name) => make(victim.siteUrl, name).catch(() => null))
    // In the middle of them: some are done, some are not, of some nobody knows.
    await Promise.race([first[2], first[5]])
    await victim.kill()
    const before = (await Promise.all(first)).filter((told) => told?.status === 201)
    for (const name of names) assert.equal((await make(siteUrl, name)).status, 201, name)
    for (const name of names) assert.equal((await keysNamed(name)).length, 1, name)
    recordProof('account-writes', 'made once through kill -9', {
      writes: names.length,
      told_before: before.length,
      twice: 0,
    })
  })
})
