import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isMembers } from '../../server/src/catalogue/member-table.ts'
import { requestSchemaOf } from '../../server/src/protocols/request-schema.ts'
import {
  ask,
  CALLS,
  codeOf,
  errorOf,
  LINKED,
  makeCustomer,
  startInstallation,
  TASKS,
  type Told,
} from './installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)

const QUOTES = '/apis/v1/social_a/tweet/quotes'
const CHAT = '/v1/chat/completions'
const message = { role: 'user', content: 'a fox' }

type Case = readonly [what: string, path: string, body: unknown, words: string | RegExp, param: string | undefined]

const CASES: readonly Case[] = [
  ['a parameter is missing', QUOTES, undefined, '"tweetId" is required.', 'tweetId'],
  ['a parameter is empty', `${QUOTES}?tweetId=`, undefined, '"tweetId" must not be empty.', 'tweetId'],
  [
    'a parameter comes twice',
    `${QUOTES}?tweetId=1&tweetId=2`,
    undefined,
    '"tweetId" must be one text, not several.',
    'tweetId',
  ],
  ['two members are missing', '/v1/rerank', {}, '"query" is required. "documents" is required.', 'query'],
  ['a required member is null', '/v1/rerank', { query: null, documents: ['a'] }, '"query" is required.', 'query'],
  [
    'a list is empty',
    '/v1/rerank',
    { query: 'a', documents: [] },
    '"documents" must have at least 1 item.',
    'documents',
  ],
  [
    'an item is no text',
    '/v1/rerank',
    { query: 'a', documents: ['b', 7] },
    '"documents[1]" must be a text.',
    'documents[1]',
  ],
  [
    'a number is no whole one',
    '/v1/rerank',
    { query: 'a', documents: ['b'], top_n: 1.5 },
    '"top_n" must be a whole number.',
    'top_n',
  ],
  [
    'a number is too small',
    '/v1/rerank',
    { query: 'a', documents: ['b'], top_n: 0 },
    '"top_n" must be more than 0.',
    'top_n',
  ],
  ['a member is unknown', '/v1/rerank', { query: 'a', documents: ['b'], topn: 1 }, /^"topn" /, undefined],
  ['the body is a list', '/v1/rerank', [], 'The parameters must be a JSON object.', undefined],
  [
    'neither of two is given',
    '/apis/v1/financial/financial-metrics/snapshot',
    undefined,
    'ticker or cik is needed.',
    undefined,
  ],
  ['the model is missing', CHAT, { messages: [message] }, '"model" is required.', 'model'],
  ['the messages are missing', CHAT, { model: 'sandbox/text' }, '"messages" is required.', 'messages'],
  [
    'a limit is no number',
    CHAT,
    { model: 'sandbox/text', messages: [message], max_tokens: 'many' },
    /^"max_tokens" must be a whole number/,
    'max_tokens',
  ],
  [
    'a member is misspelt',
    CHAT,
    { model: 'sandbox/text', messages: [message], temprature: 1 },
    /^Unknown parameter "temprature"/,
    'temprature',
  ],
  [
    'a list of tasks',
    '/apis/v1/services/aigc/video-generation/tasks?limit=many',
    undefined,
    '"limit" must be a whole number.',
    'limit',
  ],
  [
    'a cursor',
    '/v1/requests?cursor=abc',
    undefined,
    '"cursor" is not a valid cursor: use one that this endpoint returned.',
    'cursor',
  ],
  ['a list of requests', '/v1/requests?limit=1000000', undefined, /^"limit" must be at most \d+\.$/, 'limit'],
]

const told = (path: string, body?: unknown) => ask(url, secret, path, body === undefined ? {} : { body })
const wordsOf = (answer: Told) => String(errorOf(answer).message)

describe('ERR-7 what is wrong with a request is told by the parameter', () => {
  for (const [what, path, body, words, param] of CASES)
    it(`where ${what}`, async () => {
      const answer = await told(path, body)
      assert.equal(answer.status, 400, answer.text)
      if (typeof words === 'string') assert.equal(wordsOf(answer), words)
      else assert.match(wordsOf(answer), words)
      const given = errorOf(answer).param
      if (param !== undefined) assert.equal(given, param)
      assert.doesNotMatch(answer.text, /Invalid input|✖|expected \w+, received/)
    })

  it('with the place of the parameter in each protocol', async () => {
    const anthropic = await told('/v1/messages', { model: 'sandbox/text' })
    assert.equal(Object(errorOf(anthropic).details).param, 'messages')
    const gemini = await told('/v1beta/models/sandbox/text:generateContent', {
      contents: [{ parts: [{ text: 'a' }] }],
      generationConfig: { candidateCount: 9 },
    })
    assert.equal(Object(Object(errorOf(gemini).details)[0]).metadata.param, 'candidateCount')
  })

  it('a name that stands twice is named', async () => {
    const answer = await told(CHAT, '{"model":"a","messages":[{"role":"user","content":"b"}],"model":"c"}')
    assert.deepEqual([answer.status, codeOf(answer)], [400, 'invalid_json'])
    assert.match(wordsOf(answer), /Duplicate JSON key "model"\.$/)
  })
})

describe('what does not exist', () => {
  it('is model_not_found for a model that nobody has, with its parameter', async () => {
    const answer = await told(CHAT, { model: 'sandbox/nobody', messages: [message] })
    const { code, param, type } = errorOf(answer)
    assert.deepEqual([answer.status, code, param, type], [404, 'model_not_found', 'model', 'invalid_request_error'])
    assert.equal(wordsOf(answer), 'There is no model "sandbox/nobody". Use one that GET /v1/models lists.')
    for (const model of ['sandbox/ech', 'echo']) {
      const near = await told(CHAT, { model, messages: [message] })
      assert.equal(wordsOf(near), `There is no model "${model}". Did you mean "sandbox/echo"?`)
    }
  })

  for (const [method, wrong, right] of [
    ['POST', '/chat/completions', 'POST /v1/chat/completions'],
    ['POST', '/v1/v1/chat/completions', 'POST /v1/chat/completions'],
    ['POST', '/v1/chat/completion', 'POST /v1/chat/completions'],
    ['GET', '/v1/model', 'GET /v1/models'],
    ['POST', '/v1/message', 'POST /v1/messages'],
    ['GET', '/apis/v1/social_a/tweets/quotes', 'GET /apis/v1/social_a/tweet/quotes'],
    ['GET', '/v1/usages', 'GET /v1/usage'],
  ] as const)
    it(`names the likely path: ${method} ${wrong}`, async () => {
      const answer = await ask(url, secret, wrong, { method, ...(method === 'POST' && { body: {} }) })
      assert.deepEqual([answer.status, codeOf(answer)], [404, 'route_not_found'])
      assert.match(wordsOf(answer), new RegExp(`Did you mean ${right.replaceAll('/', '\\/')}\\?$`))
    })

  it('is told no path where none is near, and nothing at all without a credential', async () => {
    assert.doesNotMatch(wordsOf(await told('/favicon.ico')), /Did you mean/)
    const stranger = await ask(url, '', '/v1/model')
    assert.equal(stranger.status, 401)
    assert.doesNotMatch(stranger.text, /Did you mean/)
  })
})

describe('a time in milliseconds', () => {
  it('USAGE-3 is recognised where a report or a list starts', async () => {
    const { status, json } = await told('/v1/usage?start_time=1893456000000')
    assert.equal(status, 400)
    assert.deepEqual(json, {
      error: 'start_time 1893456000000 looks like milliseconds; give Unix seconds: 1893456000.',
    })
    const list = await told('/v1/requests?start_time=1893456000000')
    assert.deepEqual([list.status, errorOf(list).param], [400, 'start_time'])
    assert.match(wordsOf(list), /looks like milliseconds; give Unix seconds: 1893456000\.$/)
    assert.deepEqual((await told('/v1/usage?start_time=99999999999')).json, { error: 'start_time is after now.' })
  })
})

describe('a cost cap that is refused', () => {
  for (const [cap, rule] of [
    ['0.0099999999', 'must have at most 9 decimals; 0.0099999999 has more.'],
    ['1000000001', 'must be at most 1000000000 USD.'],
    ['10000000000000000000', 'must be at most 1000000000 USD.'],
    ['-1', 'must be a decimal amount of USD, such as 0.01.'],
  ] as const)
    it(`is told what is wrong with it: ${cap}`, async () => {
      const told = await ask(url, secret, `${QUOTES}?tweetId=1`, { headers: { 'x-farebox-max-cost-usd': cap } })
      assert.deepEqual([told.status, wordsOf(told)], [400, `The cost cap ${rule}`])
    })
})

/** Those that a request may leave out, by what is published of it. */
function optionalMembers(id: string): readonly string[] {
  const operation = catalogue.find(id)
  assert.ok(operation !== undefined)
  const { properties, required } = Object(requestSchemaOf(operation))
  const needed: readonly string[] = Array.isArray(required) ? required : []
  return Object.keys(Object(properties)).filter((name) => !needed.includes(name))
}

describe('null', () => {
  for (const { id, method, quotable } of catalogue.operations) {
    if (method === 'GET' || !quotable || TASKS.has(id) || LINKED.has(id)) continue
    it(`is taken for every optional member as if it were left out: ${id}`, async () => {
      const { path, body, headers } = CALLS[id]?.('') ?? assert.fail(id)
      assert.ok(isMembers(body))
      const names = optionalMembers(id).filter((name) => !(name in body))
      // Some have two spellings, of which a request has one.
      for (const some of [names.filter((name) => name.includes('_')), names.filter((name) => !name.includes('_'))]) {
        const nulls = Object.fromEntries(some.map((name) => [name, null]))
        const { status, text } = await ask(url, secret, path, {
          body: { ...body, ...nulls },
          headers: { ...headers, 'x-farebox-cost-mode': 'quote' },
        })
        assert.equal(status, 200, text)
      }
    })
  }
})
