import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeGranted } from '../identity/granted.ts'
import { ask, CALLS, codeOf, makeCustomer, startInstallation, type Told } from './installation.ts'

const database = await freshDatabase()
const lines: string[] = []
const installation = await startInstallation(database.url, {
  env: { FAREBOX_LOG_LEVEL: 'info' },
  onLine: (line) => lines.push(line),
})
const { url, pool, sandbox } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)
const { token } = await makeGranted(pool, { workspaceId: (await makeCustomer(pool)).workspaceId })
const { secret: another } = await makeCustomer(pool, { key: { mode: 'live' } })

const FREE_ROUTES = [
  ...['/v1/models', '/v1/usage?start_time=1', '/v1/balance', '/v1/requests', '/v1beta/models', '/v1/nothing'],
  ...['/apis/v1/services/aigc/tasks', '/apis/v1/nothing', '/livez'],
]
const CALLED = [...FREE_ROUTES.map((path) => ({ path })), ...Object.values(CALLS).map((make) => make(''))]

/** Names that mean a key somewhere, names that mean nothing, and spellings that only a loose server reads. */
const WAYS: readonly ((key: string) => string)[] = [
  ...['key', 'api_key', 'access_token', 'token', 'q', 'cursor'].map((name) => (key: string) => `${name}=${key}`),
  (key) => `key=${key.replaceAll('_', '%5F')}`,
  (key) => `key=${key.replaceAll('_', '%255f')}`,
  (key) => `authorization=Bearer%20${key}`,
  (key) => `a=b;key=${key}`,
  (key) => `${key}`,
  // Its last digits were not copied.
  (key) => `q=${key.slice(0, -20)}`,
]

const withQuery = (path: string, more: string) => `${path}${path.includes('?') ? '&' : '?'}${more}`

const HEADER_OF: readonly (readonly [prefix: string, header: string])[] = [
  ['/v1beta', 'x-goog-api-key: <key>'],
  ['/v1/messages', 'x-api-key: <key>'],
  ['', 'Authorization: Bearer <key>'],
]

function saysWhere(path: string, told: Told): void {
  const header = HEADER_OF.find(([prefix]) => path.startsWith(prefix))?.[1] ?? ''
  const { error } = told.json
  const message = String(typeof error === 'string' ? error : Object(error).message)
  assert.ok(message.includes(`Send yours as "${header}"`), `${path}: ${message}`)
}

function tellsNothing(told: Told, key: string): void {
  const all = told.text + JSON.stringify([...told.headers])
  assert.ok(!all.includes(key.slice(8, 60)), 'the key is in the answer')
}

describe('AUTH-2 a key in the query', () => {
  it('is refused on every endpoint, whatever the name of its parameter, and reaches no upstream', async () => {
    const before = (await sandbox.journal()).length
    for (const { path, ...more } of CALLED)
      for (const [at, way] of WAYS.entries()) {
        const key = at % 2 === 0 ? another : token
        const asked = withQuery(path, way(key))
        const told = await ask(url, secret, asked, more)
        assert.equal(told.status, 400, `${asked} ${told.text}`)
        if (!path.startsWith('/v1/usage')) assert.equal(codeOf(told), 'invalid_request')
        saysWhere(path, told)
        tellsNothing(told, key)
      }
    assert.equal((await sandbox.journal()).length, before)
  })

  it('does not stand in for a header: 401, which says where to send it', async () => {
    for (const { path, ...more } of CALLED.filter(({ path }) => path !== '/livez' && !path.includes('traffic'))) {
      const told = await ask(url, '', withQuery(path, `key=${secret}`), more)
      assert.deepEqual([told.status, codeOf(told)], [401, 'missing_credential'], path)
      saysWhere(path, told)
      tellsNothing(told, secret)
    }
  })

  it('is in no log line', () => {
    for (const key of [secret, another]) assert.ok(!lines.some((line) => line.includes(key.slice(8, 60))))
  })

  it('names of credentials are refused with any value; ordinary words pass as they came', async () => {
    const quotes = '/apis/v1/social_a/tweet/quotes?tweetId=1'
    for (const more of ['api_key=x', 'apiKey=x', 'API-KEY[]=x', 'access_token=x', 'x-api-key=x'])
      assert.equal((await ask(url, secret, `${quotes}&${more}`)).status, 400, more)
    const before = (await sandbox.journal()).length
    for (const more of ['key=cats', 'q=fb_live_video', 'keyword=api_key', 'token=next'])
      assert.equal((await ask(url, secret, `${quotes}&${more}`)).status, 200, more)
    const asked = (await sandbox.journal()).slice(before).map(({ query }) => query)
    assert.deepEqual(asked[1], 'tweetId=1&q=fb_live_video')
    assert.equal(asked.length, 4)
  })

  it("the SDKs' own errors name the header; a caller of Gemini with ?key= of any value is told x-goog-api-key", async () => {
    const gemini = await ask(url, secret, '/v1beta/models/sandbox%2Ftext:generateContent?key=AIzaSomething', {
      body: { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
    })
    assert.equal(gemini.status, 400)
    saysWhere('/v1beta', gemini)
    const openai = new OpenAI({
      apiKey: secret,
      baseURL: `${url}/v1`,
      defaultQuery: { api_key: secret },
      maxRetries: 0,
    })
    await assert.rejects(openai.models.list(), (error: unknown) => {
      assert.ok(error instanceof OpenAI.BadRequestError)
      assert.match(error.message, /Authorization: Bearer <key>/)
      return true
    })
    const google = new GoogleGenAI({ apiKey: secret, httpOptions: { baseUrl: url } })
    const { text } = await google.models.generateContent({ model: 'sandbox/text', contents: 'hello' })
    assert.ok(text)
  })
})
