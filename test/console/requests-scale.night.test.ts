import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { measure } from '../../harness/figures.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { call } from '../acceptance/installation.ts'
import { join, makeTeam, startHouse } from '../account/house.ts'
import { browserOf } from './browser.ts'
import { makeBusy } from './busy.ts'

/** The heaviest pages of the console where there is much: how long the server takes, and how many bytes it sends. */
const PROOF = 'console'
const REQUESTS = count({ full: 100_000, reduced: 2_000 })
const MOST_BYTES = 150_000
const MOST_MS = 100

const database = await freshDatabase()
const house = await startHouse(database.url)
after(house.stop)
const { pool, siteUrl, gateway } = house
const team = await makeTeam(pool)
const member = browserOf(siteUrl, await join(pool, team.workspaceId))
const console_ = `/console/${team.workspaceId}/test`
let id = ''

before(async () => {
  const made = await call(gateway.url, team.secret, 'rerank')
  id = made.id
  await makeBusy(pool, { ...team, callId: id, requests: REQUESTS })
})

const PAGES: readonly (readonly [title: string, path: () => string])[] = [
  ['requests', () => '/requests'],
  ['requests of an operation', () => '/requests?operation=rerank'],
  ['requests of what few match', () => '/requests?model=rare'],
  ['requests not charged', () => '/requests?outcome=voided&within=week'],
  ['one request', () => `/requests/${id}`],
  ['overview', () => ''],
  ['overview by key', () => '?by=key'],
  ['keys', () => '/keys'],
]

describe(`the console of a workspace with ${REQUESTS} requests`, () => {
  it('is of as many as it says', async () => {
    const { rows } = await pool.query<{ requests: number; keys: number }>(
      `select (select count(*)::integer from charges where account_id = $1) as requests,
         (select count(*)::integer from credentials where account_id = $1) as keys`,
      [team.accountId],
    )
    assert.deepEqual(rows, [{ requests: REQUESTS + 1, keys: 41 }])
    recordProof(PROOF, 'made', rows[0] ?? {})
  })

  for (const [title, path] of PAGES)
    it(`shows ${title} in at most ${MOST_BYTES} bytes, and in no time that anybody notices`, async () => {
      const { status, text, headers } = await member.get(`${console_}${path()}`)
      assert.equal(status, 200, text)
      assert.equal(headers['content-encoding'], undefined)
      const bytes = Buffer.byteLength(text)
      assert.ok(bytes <= MOST_BYTES, `${bytes} bytes`)
      const asked = new Set([...text.matchAll(/(?:src|href)="(\/assets\/[^"]+\.(?:css|js))"/g)].map(([, href]) => href))
      assert.ok(asked.size <= 2, [...asked].join(' '))
      recordProof(PROOF, `${title}: bytes`, { bytes, at_most: MOST_BYTES, requests_of_the_page: asked.size + 1 })
      await measure(PROOF, `${title}: server time`, { unit: 'ms', atMost: MOST_MS }, async () => {
        const askedMs = performance.now()
        await member.get(`${console_}${path()}`)
        return performance.now() - askedMs
      })
    })
})
