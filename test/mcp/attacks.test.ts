import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { chargesOf, startInstallation } from '../acceptance/installation.ts'
import { makeAgent, makeAgentKey } from './agents.ts'
import { askRaw, callBody, callHeaders, callRaw, ENVELOPE, MODERN } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { env: { FAREBOX_HTTP_BODY_BYTES: '200000' } })
after(() => installation.stop())
const { pool, sandbox } = installation
const url = `${installation.gateways[0]?.agentUrl}/mcp`
const adminUrl = installation.gateways[0]?.adminUrl ?? ''
const agent = await makeAgent(pool)
const other = await makeAgent(pool)

const TAG = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 1 }

describe('whoever has no credential', () => {
  for (const method of ['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS'])
    it(`AUTH-5 ${method} is 401 with the challenge, before anything else is looked at`, async () => {
      const headers = { 'mcp-protocol-version': '2024-11-05' }
      const { status, headers: told } = await askRaw(url, '', {
        method,
        headers,
        ...(method === 'POST' && { body: '{' }),
      })
      assert.equal(status, 401)
      const place = `${new URL(url).origin}/.well-known/oauth-protected-resource/mcp`
      assert.equal(told['www-authenticate'], `Bearer resource_metadata="${place}", scope="agent"`)
      const published = await askRaw(place, '', { method: 'GET' })
      assert.equal(published.status, 200)
      assert.equal(published.message.resource, url)
      assert.deepEqual(published.message.scopes_supported, ['agent'])
    })

  it('AUTH-5 a wrong one is told so, and a right one may not GET or DELETE', async () => {
    const wrong = await askRaw(url, 'fb_test_nobody', { method: 'GET' })
    assert.equal(wrong.status, 401)
    assert.match(String(wrong.headers['www-authenticate']), /^Bearer error="invalid_token", resource_metadata=/)
    for (const method of ['GET', 'DELETE']) {
      const { status, headers } = await askRaw(url, agent.secret, { method })
      assert.deepEqual([status, headers.allow], [405, 'POST'])
    }
  })
})

describe('pages of somebody else', () => {
  it('trap: DNS rebinding does not reach the tools, neither by Host nor by Origin', async () => {
    const body = callBody('use', TAG)
    const before = (await sandbox.journal()).length
    for (const [name, value, status] of [
      ['host', 'evil.example', 421],
      ['origin', 'https://evil.example', 403],
      ['origin', 'null', 403],
      ['origin', 'http://127.0.0.1:1', 403],
    ] as const) {
      const refused = await askRaw(url, agent.secret, { headers: { ...callHeaders('use'), [name]: value }, body })
      assert.equal(refused.status, status, `${name}: ${value}`)
    }
    assert.equal((await sandbox.journal()).length, before)
    const own = await askRaw(url, agent.secret, {
      headers: { ...callHeaders('search'), origin: new URL(url).origin },
      body: callBody('search', { query: 'comments' }),
    })
    assert.equal(own.status, 200)
  })
})

describe('messages that say two things', () => {
  const cases: Readonly<Record<string, Record<string, string>>> = {
    'another tool': { ...callHeaders('use'), 'mcp-name': 'search' },
    'another method': { ...callHeaders('use'), 'mcp-method': 'tools/list' },
    'another version': { ...callHeaders('use'), 'mcp-protocol-version': '2025-11-25' },
    'no method': { 'mcp-protocol-version': MODERN, 'mcp-name': 'use' },
    'no name': { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call' },
  }
  for (const [title, headers] of Object.entries(cases))
    it(`are refused where headers and body differ: ${title}`, async () => {
      const before = await chargesOf(pool, agent.accountId)
      const { status, message } = await askRaw(url, agent.secret, { headers, body: callBody('use', TAG) })
      assert.equal(status, 400)
      assert.equal(Object(message.error).code, -32_020)
      assert.deepEqual(await chargesOf(pool, agent.accountId), before)
    })

  it('are refused where a name stands twice, where they are too deep, and where there are several', async () => {
    const twice = JSON.stringify(callBody('use', TAG)).replace(
      '"max_price_usd":1',
      '"max_price_usd":0,"max_price_usd":1',
    )
    const deep = JSON.stringify(callBody('use', TAG)).replace('"cats"', `${'['.repeat(500)}${']'.repeat(500)}`)
    for (const body of [twice, deep, JSON.stringify([callBody('use', TAG)]), '{"jsonrpc"', ''])
      assert.equal(
        (await askRaw(url, agent.secret, { headers: callHeaders('use'), body })).status,
        400,
        body.slice(0, 80),
      )
  })

  it('are refused where a number would be passed on as another one: the model is told so, under the id of its call', async () => {
    const asked = (await sandbox.journal()).length
    for (const [number, meta] of [
      ['9007199254740993', {}],
      ['90071992547.40993001', {}],
      // Left to the library.
      ['9007199254740993', { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }],
    ] as const) {
      const body = JSON.stringify(callBody('use', TAG, meta, 'seven')).replace('"cats"', number)
      const { status, message } = await askRaw(url, agent.secret, { headers: callHeaders('use'), body })
      assert.deepEqual([status, message.id], [200, 'seven'])
      const { isError, structuredContent } = Object(message.result)
      assert.equal(isError, true)
      assert.equal(structuredContent.error.code, 'invalid_request')
      assert.match(structuredContent.error.message, new RegExp(`${number} .*string`))
    }
    assert.equal((await sandbox.journal()).length, asked)
    const unknown = JSON.stringify(callBody('use', TAG, {}, 7)).replace('"id":7', '"id":9007199254740993')
    assert.equal((await askRaw(url, agent.secret, { headers: callHeaders('use'), body: unknown })).status, 400)
  })

  it('are refused beyond the size that the operator allows', async () => {
    for (const [bytes, status] of [
      [150_000, 200],
      [250_000, 413],
    ] as const) {
      const body = callBody('search', { query: 'x'.repeat(bytes) })
      assert.equal((await askRaw(url, agent.secret, { headers: callHeaders('search'), body })).status, status)
    }
  })
})

describe('what the protocol itself refuses', () => {
  const counted = async (code: string) => {
    const figures = await (await fetch(`${adminUrl}/metrics`)).text()
    return Number(new RegExp(`^farebox_faults_total\\{code="${code}"\\} (\\d+)$`, 'm').exec(figures)?.[1] ?? 0)
  }
  const message = (method: string, more: object = {}) => ({ jsonrpc: '2.0', id: 1, method, ...more })
  const differs = { headers: { ...callHeaders('use'), 'mcp-name': 'search' }, body: callBody('use', TAG) }
  const old = { 'mcp-protocol-version': '2025-11-25' }
  const CASES: Readonly<Record<string, readonly [ask: Parameters<typeof askRaw>[2], code: string]>> = {
    'a method that nobody knows': [{ headers: old, body: message('nothing/there') }, 'route_not_found'],
    'a tool that nobody knows': [
      { headers: old, body: message('tools/call', { params: { name: 'nothing' } }) },
      'invalid_request',
    ],
    'headers that differ': [differs, 'invalid_request'],
    'another method of HTTP': [{ method: 'GET' }, 'method_not_allowed'],
    'several messages': [{ headers: old, body: [message('ping')] }, 'invalid_request'],
    'a page of somebody else': [
      { headers: { ...old, origin: 'https://evil.example' }, body: message('ping') },
      'forbidden',
    ],
    'a wish to listen': [{ headers: old, body: message('subscriptions/listen') }, 'route_not_found'],
  }
  for (const [title, [asked, code]] of Object.entries(CASES))
    it(`counts as a request and as a refusal: ${title}`, async () => {
      const { secret } = await makeAgent(pool, { rates: { requestsPerMinute: 1 } })
      const before = await counted(code)
      assert.notEqual((await askRaw(url, secret, asked)).status, 429)
      assert.equal(await counted(code), before + 1)
      const second = await askRaw(url, secret, asked)
      assert.equal(second.status, 429, second.text)
      assert.ok(Number(second.headers['retry-after']) > 0)
    })

  it('counts no call of a tool twice', async () => {
    const { secret } = await makeAgent(pool, { rates: { requestsPerMinute: 2 } })
    const meta = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
    for (const isError of [false, false, true])
      assert.equal((await callRaw(url, secret, 'use', TAG, meta)).isError, isError)
  })
})

describe('what belongs to others', () => {
  it('the credential of a caller reaches no upstream', async () => {
    await sandbox.emptyJournal()
    for (const operation_id of ['tag_detail', 'financial_metrics_snapshot', 'rerank', 'chat_completions'])
      await callRaw(url, agent.secret, 'use', { operation_id, arguments: ARGUMENTS[operation_id], max_price_usd: 1 })
    const journal = JSON.stringify(await sandbox.journal())
    assert.ok(journal.length > 100)
    assert.equal(journal.includes(agent.secret), false)
    assert.equal(journal.includes(agent.secret.slice(-20)), false)
  })

  it('AUTH-2 a key in the arguments of a call is refused before anybody is asked, and counts as a request', async () => {
    const asked = (await sandbox.journal()).length
    const { secret } = await makeAgent(pool, { rates: { requestsPerMinute: 3 } })
    for (const given of [{ tag_name: secret }, { [secret]: 'x' }, { tag_name: 'x'.repeat(9_000) }]) {
      const { structured } = await callRaw(url, secret, 'use', { ...TAG, arguments: given })
      assert.match(structured.error?.code, /^(invalid_request|uri_too_long)$/)
    }
    assert.equal((await callRaw(url, secret, 'use', TAG)).structured.error?.code, 'rate_limit_exceeded')
    assert.equal((await sandbox.journal()).length, asked)
  })

  it('an idempotency key is that of its own credential', async () => {
    const meta = { 'farebox/idempotency-key': 'same-key' }
    const second = await makeAgentKey(pool, agent.workspaceId)
    for (const secret of [agent.secret, other.secret, second.secret])
      assert.equal((await callRaw(url, secret, 'use', TAG, meta)).isError, false)
    const again = await callRaw(url, agent.secret, 'use', TAG, meta)
    assert.equal(again.isError, true)
    assert.equal(again.structured.error?.code, 'idempotency_completed')
    assert.equal(again.structured.error.cost_usd, '0.001450000')
    assert.doesNotMatch(JSON.stringify(again.content), /Nothing was charged/)
    assert.match(again.content[0].text, /That call was charged 0\.001450000 USD/)
    const differs = await callRaw(url, agent.secret, 'use', { ...TAG, arguments: { tag_name: 'dogs' } }, meta)
    assert.equal(differs.structured.error?.code, 'idempotency_mismatch')
    const empty = await callRaw(url, agent.secret, 'use', TAG, { 'farebox/idempotency-key': '' })
    assert.equal(empty.structured.error?.code, 'invalid_request')
  })

  it('trap: one client never gets the answer to another, however many ask at once', async () => {
    const secrets = [agent.secret, other.secret]
    const asked = Array.from({ length: 60 }, (_, at) => {
      const given = { ...TAG, arguments: { tag_name: `tag-${at}` } }
      // Every other one by the library, whose servers must not be shared either.
      const meta = at % 2 === 0 ? {} : { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
      // All have the same id, as clients that begin to count at one do.
      return callRaw(url, secrets[at % 2] ?? '', 'use', given, meta).then((told) => ({ told, at }))
    })
    for (const { told, at } of await Promise.all(asked)) {
      assert.equal(told.isError, false, told.text)
      assert.equal(told.structured.result.params.tag_name, `tag-${at}`)
      const whose = at % 2 === 0 ? agent.accountId : other.accountId
      assert.equal((await chargesOf(pool, whose)).get(told.structured.request_id), 1_450_000n)
    }
  })
})

const ARGUMENTS: Readonly<Record<string, object>> = {
  tag_detail: { tag_name: 'cats' },
  financial_metrics_snapshot: { ticker: 'ACME' },
  rerank: { query: 'a', documents: ['b'] },
  chat_completions: { model: 'sandbox/text', messages: [{ role: 'user', content: 'hello' }] },
}

describe('sessions', () => {
  const SESSIONS = count({ full: 10_000, reduced: 300 })
  it('there are none: nobody is given an id of one or told anything unasked, and no memory stays reserved', async () => {
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'many', version: '1' } },
    }
    for (let opened = 0; opened < SESSIONS; opened += 50) {
      const some = Array.from({ length: 50 }, () => askRaw(url, agent.secret, { body: initialize }))
      for (const { status, headers } of await Promise.all(some)) {
        assert.equal(status, 200)
        assert.equal(headers['mcp-session-id'], undefined)
      }
    }
    const listen = {
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: { _meta: ENVELOPE, notifications: {} },
    }
    const headers = { 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' }
    const { status, message } = await askRaw(url, agent.secret, { headers, body: listen })
    assert.deepEqual([status, Object(message.error).code], [404, -32_601])
    const figures = await (await fetch(`${adminUrl}/metrics`)).text()
    const kept = Number(/^farebox_memory_reserved_bytes(?:\{[^}]*\})? (\d+)$/m.exec(figures)?.[1])
    assert.equal(kept, 0)
    recordProof('mcp-sessions', 'sessions opened, and bytes that are reserved after them', {
      sessions: SESSIONS,
      reserved_bytes: kept,
    })
  })
})
