import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { listRequests } from '../../server/src/ledger/list-requests.ts'
import { ask, call, errorOf, ids, makeCustomer, makeKey, startInstallation } from './installation.ts'
import { nodesOf } from './plan-nodes.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)

type Short = {
  id: string
  operation: string
  outcome: string
  failed: boolean
  cost: { usd: string }
  ended_at: string
}
type Page = { data: Short[]; next_cursor: string | null }

const requests = (secret: string, query = '') => ask(url, secret, `/v1/requests${query}`)

async function page(secret: string, query = ''): Promise<Page> {
  const told = await requests(secret, query)
  assert.equal(told.status, 200, told.text)
  return told.json as unknown as Page
}

async function allPages(secret: string, query: string, between: () => Promise<unknown> = async () => {}) {
  const all: Short[] = []
  for (let cursor = ''; ; ) {
    const { data, next_cursor } = await page(secret, `${query}${cursor}`)
    all.push(...data)
    if (next_cursor === null) return all
    cursor = `&cursor=${encodeURIComponent(next_cursor)}`
    await between()
  }
}

describe('GET /v1/requests', () => {
  it('gives every call once, the latest first, page by page, while new calls arrive', async () => {
    const { secret } = await makeCustomer(pool, { money: 100_000_000_000n })
    const made = new Set<string>()
    const some = async (count: number) => {
      const told = await Promise.all(Array.from({ length: count }, () => call(url, secret, 'tag_detail')))
      return told.map(({ id }) => id)
    }
    for (let round = 0; round < 13; round += 1) for (const id of await some(20)) made.add(id)
    assert.equal(made.size, 260)

    for (const limit of [100, 37]) {
      const late: string[] = []
      const listed = await allPages(secret, `?limit=${limit}`, async () => void late.push(...(await some(2))))
      const listedIds = listed.map(({ id }) => id)
      assert.equal(new Set(listedIds).size, listedIds.length, 'nothing twice')
      assert.deepEqual(new Set(listedIds), made)
      const times = listed.map(({ ended_at }) => ended_at)
      assert.deepEqual(times, times.toSorted().toReversed())
      assert.ok(late.length >= 4)
      for (const id of late) made.add(id)
    }
  })

  it('has 20 on a page unless told, 100 at the most', async () => {
    const { secret } = await makeCustomer(pool)
    await Promise.all(Array.from({ length: 21 }, () => call(url, secret, 'tag_detail')))
    const first = await page(secret)
    assert.equal(first.data.length, 20)
    assert.equal((await page(secret, `?cursor=${first.next_cursor}`)).data.length, 1)
    assert.equal((await page(secret, '?limit=21')).next_cursor, null)
    assert.equal((await page(secret, '?limit=100')).data.length, 21)
    for (const limit of ['101', '999', '1000', '0', '-1', '1.5', '', 'all', '1e1'])
      assert.equal((await requests(secret, `?limit=${limit}`)).status, 400, limit)
  })

  it('BASE-5 each has its operation, outcome, exact cost and times', async () => {
    const { secret } = await makeCustomer(pool)
    const told = await call(url, secret, 'rerank', 'sandbox:tokens=3')
    const { data, next_cursor } = await page(secret)
    assert.equal(next_cursor, null)
    const [{ begun_at, ended_at, ...rest } = assert.fail()] = data as unknown as Record<string, unknown>[]
    assert.deepEqual(rest, {
      id: told.id,
      operation: 'rerank',
      model: null,
      outcome: 'posted',
      failed: false,
      cost: { usd: '0.000000150', micros_usd: 0 },
      end_user: null,
      tags: {},
    })
    assert.ok(new Date(String(begun_at)) <= new Date(String(ended_at)))
  })

  it('can be asked for an operation, an outcome, and a time', async () => {
    const { secret } = await makeCustomer(pool)
    const rerank = await call(url, secret, 'rerank')
    const failed = await call(url, secret, 'rerank', 'sandbox:reset=before-headers')
    const tag = await call(url, secret, 'tag_detail')
    const idsOf = async (query: string) => (await page(secret, query)).data.map(({ id }) => id)
    assert.deepEqual(await idsOf(''), [tag.id, failed.id, rerank.id])
    assert.deepEqual(await idsOf('?operation=rerank'), [failed.id, rerank.id])
    assert.deepEqual(await idsOf('?operation=tag_detail'), [tag.id])
    assert.deepEqual(await idsOf('?operation=nothing_of_ours'), [])
    assert.deepEqual(await idsOf('?outcome=voided'), [failed.id])
    assert.deepEqual(await idsOf('?outcome=posted&operation=rerank'), [rerank.id])
    const now = Math.floor(Date.now() / 1_000)
    assert.equal((await idsOf(`?start_time=${now - 60}`)).length, 3)
    assert.deepEqual(await idsOf(`?end_time=${now - 60}`), [])
    assert.deepEqual(await idsOf(`?start_time=${now + 60}`), [])
    assert.equal((await idsOf(`?start_time=${now - 60}&end_time=${now + 60}`)).length, 3)
    assert.equal((await idsOf('?start_time=0&end_time=999999999999')).length, 3)
  })

  it('trap: a % in a LIKE denies service: %, _ and quotes in filters match nothing and are refused', async () => {
    const { secret } = await makeCustomer(pool)
    await call(url, secret, 'tag_detail')
    const odd = [
      '%',
      '%25',
      '_',
      'tag%',
      'tag_detai_',
      '__________',
      "'",
      '"',
      "' or '1'='1",
      "x'; drop table charges; --",
      '\\',
      '\0',
      'é',
      '*',
      '.*',
      '%'.repeat(500),
      '$1',
    ]
    for (const value of odd) {
      for (const name of ['operation', 'outcome', 'cursor', 'start_time', 'end_time', 'limit']) {
        const told = await requests(secret, `?${new URLSearchParams({ [name]: value })}`)
        // An underscore is a letter of names; it stands for itself.
        if (name === 'operation' && value === 'tag_detai_') assert.deepEqual(told.json.data, [])
        else assert.equal(told.status, 400, `${name} ${value}`)
      }
    }
    assert.equal((await page(secret)).data.length, 1)
  })

  it('is 400 for what it does not know, what is given twice, and cursors of nobody', async () => {
    const { secret } = await makeCustomer(pool)
    const forged = (text: string) => Buffer.from(text).toString('base64url')
    for (const query of [
      'key=1',
      'credential_id=1',
      'limit=5&limit=6',
      'operation=rerank&operation=tag_detail',
      'outcome=running',
      'outcome=POSTED',
      'outcome=',
      'start_time=-1',
      'start_time=1.5',
      'end_time=tomorrow',
      'end_time=9999999999999',
      'cursor=',
      'cursor=nonsense',
      `cursor=${'a'.repeat(300)}`,
      `cursor=${forged('1 2')}`,
      `cursor=${forged(`-1 ${ids.next()}`)}`,
      `cursor=${forged(`${'9'.repeat(30)} ${ids.next()}`)}`,
      `cursor=${forged(`1 ${ids.next()}' or 1=1`)}`,
    ]) {
      const told = await requests(secret, `?${query}`)
      assert.equal(told.status, 400, query)
      assert.equal(errorOf(told).code, 'invalid_request')
    }
    // One that is well formed and of nobody ends the list, and tells nothing.
    assert.deepEqual((await page(secret, `?cursor=${forged(`999999999999999999 ${ids.next()}`)}`)).data, [])
  })

  it('has only calls of the key that asks', async () => {
    const { secret, workspaceId } = await makeCustomer(pool)
    const sibling = await makeKey(pool, workspaceId)
    const stranger = await makeCustomer(pool)
    const { id } = await call(url, secret, 'tag_detail')
    assert.deepEqual(
      (await page(secret)).data.map((one) => one.id),
      [id],
    )
    for (const other of [sibling.secret, stranger.secret]) {
      assert.deepEqual((await page(other)).data, [])
      assert.deepEqual(
        (await page(other, `?cursor=${Buffer.from(`999999999999999999 ${id}`).toString('base64url')}`)).data,
        [],
      )
    }
  })

  it('is 401 without a credential, 200 for a key with any scopes, 429 beyond the requests of a minute', async () => {
    assert.equal((await requests('')).status, 401)
    const { secret } = await makeCustomer(pool, { key: { scopes: ['rerank'] } })
    assert.equal((await requests(secret)).status, 200)
    const slow = await makeCustomer(pool, { requestsPerMinute: 2 })
    assert.equal((await requests(slow.secret)).status, 200)
    assert.equal((await requests(slow.secret, `/${ids.next()}`)).status, 404)
    for (const path of ['', `/${ids.next()}`]) assert.equal((await requests(slow.secret, path)).status, 429)
  })

  it('reads its own rows by an index, whatever others have', async () => {
    const { keyId, secret } = await makeCustomer(pool)
    await call(url, secret, 'tag_detail')
    await pool.query(
      `insert into charges (id, account_id, credential_id, operation, outcome, held, amount, promo, overrun, value, upstream_cost, executed, failed,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, allowances, begun_at, ended_at)
       select (left(first_id_at(clock_timestamp())::text, 14) || '7' || right(gen_random_uuid()::text, 21))::uuid, gen_random_uuid(), gen_random_uuid(),
         'rerank', 'posted', 0, 0, 0, 0, 0, 0, true, false, 0, 0, 0, 0, '{}', clock_timestamp(), clock_timestamp()
       from generate_series(1, 20000)`,
    )
    await pool.query('analyze charges')
    let [text, values]: [string, unknown[]] = ['', []]
    const listener = Object.create(pool, {
      query: {
        value: (query: { text: string; values: unknown[] }) => {
          ;({ text, values } = query)
          return { rows: [] }
        },
      },
    })
    const nowMs = Date.now()
    await listRequests(listener, {
      credentialIds: [keyId],
      sinceMs: nowMs - 86_400_000,
      untilMs: nowMs + 1_000,
      limit: 20,
    })
    const { rows } = await pool.query(`explain (analyze, format json) ${text}`, values)
    const looked = nodesOf(rows[0]['QUERY PLAN'][0].Plan)
    const scans = looked.filter((node) => /^charges/.test(String(node['Relation Name'] ?? '')))
    assert.ok(
      scans.some((node) => /credential_id_ended_at/.test(String(node['Index Name']))),
      JSON.stringify(looked),
    )
    for (const node of scans) {
      const rowsRead = Number(node['Actual Rows']) + Number(node['Rows Removed by Filter'] ?? 0)
      assert.ok(rowsRead <= 1, JSON.stringify(node))
    }
  })
})
