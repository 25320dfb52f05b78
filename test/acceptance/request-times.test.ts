import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { VIDEO_MODEL } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { callLines, readCall } from '../../server/src/operate/call-view.ts'
import { DEFAULT_RERANK_MODEL } from '../../server/src/upstreams/adapters/rerank.ts'
import { ask, makeCustomer, startInstallation } from './installation.ts'
import { ALL_PROTOCOLS, chargeOf, evidenceOf, hear, question, streamed } from './models/streams.ts'
import { attemptsIn } from './recorded-attempts.ts'
import { created, untilState } from './tasks/video.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)

const MODEL = 'sandbox/text'
const ANSWERED = { outcome: 'answered', status: 200, reason: null }

async function modelOf(id: string): Promise<unknown> {
  return (await ask(url, secret, `/v1/requests/${id}`)).json.model
}

describe('the record of a request', () => {
  for (const protocol of ALL_PROTOCOLS) {
    it(`tells model, attempt and times of an answer in one piece, whose first byte goes out when it is settled: ${protocol}`, async () => {
      const { id, status } = await hear(url, secret, question(protocol, MODEL))
      assert.equal(status, 200)
      const detail = await evidenceOf(url, secret, id)
      assert.deepEqual(
        attemptsIn(detail).map(({ slot, ...rest }) => rest),
        [ANSWERED],
      )
      assert.equal(detail.first_byte_ms, Object(detail.timeline).settled)
      assert.equal(await modelOf(id), MODEL)
    })

    it(`tells of a stream when its first frame went out, and that it was not after its end: ${protocol}`, async () => {
      const { id, status } = await hear(url, secret, streamed(protocol, MODEL))
      assert.equal(status, 200)
      const detail = await evidenceOf(url, secret, id)
      assert.equal(attemptsIn(detail).length, 1)
      const { first_byte_ms: firstByte, timeline } = Object(detail)
      assert.ok(firstByte <= timeline.settled, JSON.stringify(detail))
      assert.equal(await modelOf(id), MODEL)
    })
  }

  it('tells of no first byte where the caller had left before it', async () => {
    const { path, body } = streamed('openai', MODEL, 'sandbox:delay=3000')
    const leaving = new AbortController()
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
    const request = { method: 'POST', headers, body: JSON.stringify(body), signal: leaving.signal }
    const heard = assert.rejects(fetch(url + path, request), { name: 'AbortError' })
    const find = async () =>
      (await pool.query("select id from holds where operation = 'chat_completions' order by begun_at desc limit 1"))
        .rows
    await until(async () => (await find()).length > 0, PATIENCE_MS, 'the call')
    const [{ id }] = await find()
    leaving.abort()
    await heard
    await chargeOf(pool, id)
    const detail = await evidenceOf(url, secret, id)
    attemptsIn(detail)
    assert.equal(detail.first_byte_ms, null)
  })

  it('tells the model of what is no conversation where the caller names one, also in lists', async () => {
    const documents = ['a snail', 'a fox']
    const named = await ask(url, secret, '/v1/rerank', {
      body: { model: DEFAULT_RERANK_MODEL, query: 'quick', documents },
    })
    const unnamed = await ask(url, secret, '/v1/rerank', { body: { query: 'quick', documents } })
    for (const { id } of [named, unnamed]) await evidenceOf(url, secret, id)
    const { data } = (await ask(url, secret, '/v1/requests?operation=rerank')).json
    assert.ok(Array.isArray(data))
    const models = new Map(data.map(({ id, model }) => [id, model]))
    assert.deepEqual([models.get(named.id), models.get(unnamed.id)], [DEFAULT_RERANK_MODEL, null])
  })

  it('tells of a video how it was asked for, by the process that asked, and what it cost, by whoever ended it', async () => {
    const id = await created(url, secret)
    await untilState(url, secret, id, 'SUCCEEDED')
    let detail: Record<string, unknown> = {}
    await until(
      async () => {
        detail = await evidenceOf(url, secret, id)
        return detail.formula !== null
      },
      PATIENCE_MS,
      'what it cost',
    )
    assert.deepEqual(attemptsIn(detail), [{ slot: 'video', ...ANSWERED }])
    assert.match(String(detail.formula), / × /)
    assert.deepEqual(Object.keys(Object(detail.timeline)).sort(), ['answered', 'begun'])
    assert.equal(await modelOf(id), VIDEO_MODEL)
  })

  it('tells operators alone which upstream was asked', async () => {
    const { id } = await hear(url, secret, question('openai', MODEL))
    await evidenceOf(url, secret, id)
    const { rows } = await pool.query("select id from upstreams where slot like '%openai%' and mode = 'test'")
    const call = await readCall(pool, id)
    const told = callLines(call ?? assert.fail()).join('\n')
    assert.match(
      told,
      new RegExp(`^Call \\S+ \\(chat_completions, ${MODEL}\\) (.*\\n)*.*first byte after [\\d.]+ ms\\n`),
    )
    assert.match(told, /Attempt 1: \S+, upstream [0-9a-f-]{36}, from [\d.]+ to [\d.]+ ms: answered 200/)
    const upstream = rows.find((row) => told.includes(row.id))
    assert.ok(upstream !== undefined, told)
    assert.ok(!(await ask(url, secret, `/v1/requests/${id}`)).text.includes(upstream.id))
  })
})
