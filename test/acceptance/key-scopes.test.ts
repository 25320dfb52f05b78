import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { EMBEDDING_MODEL, VIDEO_MODEL } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import {
  ask,
  CALLS,
  type Customer,
  call,
  codeOf,
  errorOf,
  LINKED,
  makeCustomer,
  makeKey,
  startInstallation,
  type Told,
} from './installation.ts'
import { traceOf } from './refusals-trace.ts'

/** What a key may use, over every interface of the service and every process: what is outside its scopes is refused before anything is spent. */
const PROCESSES = 3
const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: PROCESSES })
const { pool, sandbox, gateways } = installation
after(installation.stop)

const OPERATIONS = Object.keys(CALLS)
const QUOTE = { 'x-farebox-cost-mode': 'quote' }
const LINK = '/apis/v1/social_a/auth_social_a'
let turn = 0
const anyUrl = () => gateways[turn++ % PROCESSES]?.url ?? ''

let owner: Customer
before(async () => {
  owner = await makeCustomer(pool)
})
const withScopes = async (...scopes: readonly string[]) => (await makeKey(pool, owner.workspaceId, { scopes })).secret

function isForbidden(told: Told, names: string): void {
  assert.deepEqual([told.status, codeOf(told)], [403, 'forbidden'], told.text)
  const { message } = errorOf(told)
  assert.ok(String(message).includes(`scopes do not include ${names}`), told.text)
  assert.equal(told.costUsd, null)
}

/** That it is let through as far as its scopes go: a call that acts for a user still needs one. */
function isLetIn(told: Told, operation: string): void {
  assert.equal(codeOf(told), LINKED.has(operation) ? 'link_required' : undefined, told.text)
}

/** Nothing is begun, charged or sent by what is done. */
async function leavingNothing(work: () => Promise<void>): Promise<void> {
  // Videos that were asked for before end when they are done.
  const isQuiet = async () => (await pool.query('select from holds')).rowCount === 0
  await until(isQuiet, PATIENCE_MS, 'the end of what was begun')
  const before = await traceOf({ pool, sandbox })
  await work()
  assert.deepEqual(await traceOf({ pool, sandbox }), before)
}

const CATEGORIES = [...new Set(catalogue.operations.map(({ category }) => category))]
const categoryOf = (id: string) => catalogue.find(id)?.category

describe('a key with scopes', () => {
  it('of a category may use what is in it, and nothing else, called or quoted', async () => {
    for (const category of CATEGORIES) {
      const secret = await withScopes(category)
      const others = OPERATIONS.filter((id) => categoryOf(id) !== category)
      await leavingNothing(async () => {
        for (const id of others) isForbidden(await call(anyUrl(), secret, id), id)
        for (const id of others) isForbidden(await call(anyUrl(), secret, id, '', { headers: QUOTE }), id)
      })
      for (const id of OPERATIONS.filter((one) => categoryOf(one) === category))
        isLetIn(await call(anyUrl(), secret, id), id)
    }
  })

  it('of an operation may use that one with every model, and nothing else', async () => {
    const secret = await withScopes('messages', 'tag_detail')
    for (const id of ['messages', 'tag_detail']) isLetIn(await call(anyUrl(), secret, id), id)
    const echo = { model: 'sandbox/echo', messages: [{ role: 'user', content: 'a fox' }] }
    assert.equal((await ask(anyUrl(), secret, '/v1/messages', { body: echo })).status, 200)
    await leavingNothing(async () => {
      for (const id of OPERATIONS.filter((one) => one !== 'messages' && one !== 'tag_detail'))
        isForbidden(await call(anyUrl(), secret, id), id)
    })
  })

  it('may look after what is its own: balance, usage, requests, models, tasks and links', async () => {
    const secret = await withScopes('tag_detail')
    const window = `start_time=${Math.floor(Date.now() / 1_000) - 3_600}&end_time=${Math.floor(Date.now() / 1_000)}`
    for (const path of [
      '/v1/balance',
      '/v1/requests',
      '/v1/models',
      '/v1beta/models',
      '/apis/v1/social_a/links',
      `/v1/usage?${window}`,
    ])
      assert.equal((await ask(anyUrl(), secret, path)).status, 200, path)
    const tasks = '/apis/v1/services/aigc/video-generation/tasks'
    assert.equal((await ask(anyUrl(), secret, tasks)).status, 200)
  })

  it('may begin to link an account with auth_link or with social alone', async () => {
    for (const scope of ['auth_link', 'social'])
      assert.equal((await ask(anyUrl(), await withScopes(scope), LINK, { method: 'POST' })).status, 200, scope)
    for (const scope of ['follow_user', 'models', 'model:sandbox/text'])
      isForbidden(await ask(anyUrl(), await withScopes(scope), LINK, { method: 'POST' }), 'auth_link')
  })
})

describe('a key with scopes of models', () => {
  const chat = (model: string) => ({ model, messages: [{ role: 'user', content: 'a fox' }], max_tokens: 20 })
  const contents = { contents: [{ role: 'user', parts: [{ text: 'a fox' }] }] }

  it('may use these in every protocol, called, streamed, quoted or counted', async () => {
    const secret = await withScopes('model:sandbox/text')
    for (const id of [
      'chat_completions',
      'messages',
      'messages_count_tokens',
      'generate_content',
      'stream_generate_content',
    ])
      assert.equal((await call(anyUrl(), secret, id)).status, 200, id)
    assert.equal((await call(anyUrl(), secret, 'chat_completions', '', { headers: QUOTE })).status, 200)
  })

  it('may use no other, in no protocol, and is refused before anything is spent', async () => {
    const secret = await withScopes('model:sandbox/text')
    const named = [
      ['/v1/chat/completions', chat('sandbox/echo')],
      ['/v1/chat/completions', { ...chat('sandbox/echo'), stream: true }],
      ['/v1/messages', chat('sandbox/echo')],
      ['/v1/messages/count_tokens', chat('sandbox/echo')],
      ['/v1beta/models/sandbox/echo:generateContent', contents],
      ['/v1beta/models/sandbox/echo:streamGenerateContent?alt=sse', contents],
    ] as const
    await leavingNothing(async () => {
      for (const [path, body] of named) {
        const told = await ask(anyUrl(), secret, path, { body })
        isForbidden(told, 'the model')
        // It had to be read to be refused: it counts as a request.
        assert.ok(told.headers.has('x-ratelimit-remaining-requests'))
        // Counting of tokens is free, and has no quotes.
        if (!path.endsWith('count_tokens'))
          isForbidden(await ask(anyUrl(), secret, path, { body, headers: QUOTE }), 'the model')
      }
      for (const [id, model] of [
        ['embeddings', EMBEDDING_MODEL],
        ['video_synthesis', VIDEO_MODEL],
      ] as const)
        isForbidden(await call(anyUrl(), secret, id), `the model "${model}"`)
      isForbidden(await call(anyUrl(), secret, 'deep_research'), 'deep_research without a model')
      isForbidden(await call(anyUrl(), secret, 'rerank'), 'rerank without a model')
      for (const id of ['tag_detail', 'follow_user', 'financial_metrics_snapshot'])
        isForbidden(await call(anyUrl(), secret, id), id)
    })
  })

  it('may rerank with a model that they name', async () => {
    const body = { model: 'rerank', query: 'a quick animal', documents: ['a snail', 'a fox'] }
    assert.equal((await ask(anyUrl(), await withScopes('model:rerank'), '/v1/rerank', { body })).status, 200)
    isForbidden(
      await ask(anyUrl(), await withScopes('model:sandbox/text'), '/v1/rerank', { body }),
      'the model "rerank"',
    )
  })

  it('is not let in by a spelling that only resembles one', async () => {
    const secret = await withScopes('model:sandbox/text')
    for (const model of [
      'sandbox/TEXT',
      'sandbox/text ',
      ' sandbox/text',
      'sandbox//text',
      'sandbox/text\0',
      'model:sandbox/text',
      '',
    ]) {
      const told = await ask(anyUrl(), secret, '/v1/chat/completions', { body: chat(model) })
      assert.ok([400, 403, 404].includes(told.status), `${JSON.stringify(model)}: ${told.text}`)
      assert.equal(told.costUsd, null)
    }
  })

  it('is told what is wrong with a request for one of them', async () => {
    const secret = await withScopes('model:sandbox/text')
    const told = await ask(anyUrl(), secret, '/v1/chat/completions', { body: { model: 'sandbox/text' } })
    assert.equal(told.status, 400, told.text)
  })

  it('may also use what other scopes of it name', async () => {
    const secret = await withScopes('model:sandbox/text', 'finance', 'embeddings')
    for (const id of ['chat_completions', 'embeddings', 'financial_metrics_snapshot'])
      isLetIn(await call(anyUrl(), secret, id), id)
    await leavingNothing(async () => isForbidden(await call(anyUrl(), secret, 'tag_detail'), 'tag_detail'))
  })
})
