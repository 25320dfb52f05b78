import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import {
  Farebox,
  FareboxError,
  ForbiddenError,
  InvalidRequestError,
  UnexpectedAnswerError,
} from '../../client/src/index.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { join, letIn, makeTeam, startHouse } from '../account/house.ts'

const database = await freshDatabase()
const house = await startHouse(database.url)
const { pool, siteUrl, gateway } = house
after(house.stop)

const team = await makeTeam(pool, ['owner'])
const { token } = await letIn(house, team.workspaceId, { personId: team.of('owner').personId })
const workspace = { workspace_id: team.workspaceId }

/** One that loses the answers to changes, so often. */
function clientLosing(answers: number): { farebox: Farebox; lost: () => number } {
  let lost = 0
  const farebox = new Farebox({
    ...{ apiKey: team.secret, baseUrl: gateway.url, account: { siteUrl, token }, random: () => 0 },
    async fetch(url, init) {
      const answer = await fetch(url, init)
      if (init?.method === 'GET' || lost >= answers) return answer
      lost += 1
      throw new TypeError('the connection was cut')
    },
  })
  return { farebox, lost: () => lost }
}

const { farebox } = clientLosing(0)

describe('client.account', () => {
  it('reads and changes by types of the document: a key is made, changed within its ETag, and used', async () => {
    const made = await farebox.account.call('create_key', { ...workspace, mode: 'test', name: 'of the client' })
    assert.match(made.data.secret ?? '', /^fb_test_/)
    const at = { ...workspace, key_id: made.data.id }
    const read = await farebox.account.call('get_key', at)
    const changed = await farebox.account.call(
      'update_key',
      { ...at, scopes: ['rerank'] },
      { ifMatch: read.etag ?? '' },
    )
    assert.deepEqual(changed.data.scopes, ['rerank'])
    await assert.rejects(
      farebox.account.call('update_key', { ...at, scopes: null }, { ifMatch: read.etag ?? '' }),
      (error: unknown) =>
        error instanceof InvalidRequestError && error.code === 'precondition_failed' && /ETag/.test(error.message),
    )
    const balance = await farebox.account.call('get_balance', { ...workspace, mode: 'test' })
    assert.equal(balance.data.available.usd, '10.000000000')
    assert.equal((await farebox.account.call('revoke_key', at)).data.state, 'revoked')
  })

  it('walks lists page by page', async () => {
    for (let at = 0; at < 3; at += 1)
      await farebox.account.call('create_key', { ...workspace, mode: 'test', name: `listed ${at}` })
    const names: string[] = []
    for await (const { name } of farebox.account.list('list_keys', {
      ...workspace,
      mode: 'test',
      limit: 2,
      state: 'active',
    }))
      names.push(name)
    assert.deepEqual(names.slice(0, 3), ['listed 2', 'listed 1', 'listed 0'])
  })

  it('makes a change once, though its answers are lost, and says that the secret was missed', async () => {
    const client = clientLosing(2)
    const made = await client.farebox.account.call('create_key', { ...workspace, mode: 'test', name: 'lost' })
    assert.deepEqual([client.lost(), made.isReplay, made.data.secret], [2, true, null])
    const { rows } = await pool.query("select from api_keys where name = 'lost'")
    assert.equal(rows.length, 1)
  })

  it('tells refusals as errors with their code, and needs to be told where the website is', async () => {
    const reader = await join(pool, team.workspaceId, 'viewer')
    const { token: weak } = await letIn(house, team.workspaceId, {
      scopes: ['account.read'],
      personId: reader.personId,
    })
    const other = new Farebox({ apiKey: team.secret, baseUrl: gateway.url, account: { siteUrl, token: weak } })
    await assert.rejects(other.account.call('create_key', { ...workspace, name: 'x' }), ForbiddenError)
    await assert.rejects(
      farebox.account.call('get_workspace', { workspace_id: 'nothing' }),
      (error: unknown) =>
        error instanceof FareboxError && error.code === 'resource_not_found' && error.requestId !== null,
    )
    const none = new Farebox({ apiKey: team.secret, baseUrl: gateway.url })
    await assert.rejects(none.account.call('get_me', {}), TypeError)
  })

  it('reads an export line by line, and tells a part of one from the whole', async () => {
    const made = await farebox.account.call('create_export', workspace)
    const place = { ...workspace, export_id: made.data.id }
    const isReady = async () => (await farebox.account.call('get_export', place)).data.state === 'ready'
    await until(isReady, PATIENCE_MS, 'the export')
    const types: string[] = []
    for await (const { type } of farebox.account.exportLines(place)) types.push(type)
    assert.deepEqual([types[0], types.at(-1)], ['export', 'end'])
    // A key for test money is given no log of what is live.
    assert.deepEqual([types.includes('key'), types.includes('audit')], [true, false])
    // One that is cut where it looks whole, and one whose last line is missing.
    for (const cut of [
      (text: string) => text.slice(0, text.lastIndexOf('{"type":"end"')),
      (text: string) => text.slice(0, 700),
    ]) {
      const cutting = new Farebox({
        ...{ apiKey: team.secret, baseUrl: gateway.url, account: { siteUrl, token } },
        async fetch(url, init) {
          const answer = await fetch(url, init)
          return new Response(cut(await answer.text()), { headers: answer.headers })
        },
      })
      await assert.rejects(
        async () => {
          for await (const _ of cutting.account.exportLines(place));
        },
        (error: unknown) => error instanceof UnexpectedAnswerError && /Read it again/.test(error.message),
      )
    }
    const absent = farebox.account.exportLines({ ...place, export_id: team.workspaceId })
    await assert.rejects(
      absent.next(),
      (error: unknown) => error instanceof InvalidRequestError && error.status === 404,
    )
  })
})
