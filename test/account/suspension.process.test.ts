import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { CONVERSATION_SLOTS, EMBEDDING_MODEL, IMAGE_MODEL, SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { call, ask as callerAsks, codeOf, ids } from '../acceptance/installation.ts'
import { startLink } from '../acceptance/links/linking.ts'
import { limited, question, streamed } from '../acceptance/models/streams.ts'
import { created, createTask, poll, untilState } from '../acceptance/tasks/video.ts'
import { startShell } from '../house/command-shell.ts'
import { bareEnvironment } from '../house/run-farebox.ts'
import { AUDIENCE, issueToken, MCP_AUDIENCE, makeGranted } from '../identity/granted.ts'
import { APPROVED, makeAgentKey } from '../mcp/agents.ts'
import { askRaw, callBody, callHeaders } from '../mcp/raw-agent.ts'
import { type Asker, ask, makeTeam, startHouse } from './house.ts'

/** A suspended customer, over three processes: what is refused at once, and what goes on. */
const { url: databaseUrl } = await freshDatabase()
const house = await startHouse(databaseUrl, {
  processes: 3,
  env: { FAREBOX_HTTP_PUBLIC_URL: AUDIENCE, FAREBOX_HTTP_MCP_URL: MCP_AUDIENCE },
})
after(house.stop)
const { pool, siteUrl, gateway, sandbox } = house
const urls = [gateway, ...house.more].map(({ url }) => url)
const [first = '', second = '', third = ''] = urls
const { farebox, said } = startShell({ ...bareEnvironment(), ...house.env, FAREBOX_DATABASE_URL: databaseUrl })

const GROWING = 'grow/seen'
await saveModel({ pool }, { id: GROWING, ...SANDBOX_LIMITS })
await setModelPrice({ pool }, { model: GROWING, ...SANDBOX_PRICE })
await saveRoute(
  { pool, ids },
  {
    ...{ model: GROWING, slot: CONVERSATION_SLOTS.openai, protocol: 'openai', upstreamModel: 'sandbox/text' },
    profile: { abort: 'stops', output: 'seen', tokenBytes: 3 },
  },
)

/** One that holds more and more, and would go on for longer than any machine takes to suspend, or one that holds all at once. */
function slowStream(secret: string, isGrowing: boolean) {
  const words = `sandbox:output-tokens=${isGrowing ? 19_000 : 6_000} sandbox:delta-ms=${isGrowing ? 20 : 2}`
  const { path, body } = streamed('openai', GROWING, words, limited('openai', 20_000))
  return callerAsks(second, secret, path, { body, headers: isGrowing ? {} : { 'x-farebox-hold': 'full' } })
}

async function pageText(at: string, { headers }: Asker): Promise<string> {
  const page = await fetch(siteUrl + at, { headers })
  assert.equal(page.status, 200, at)
  return page.text()
}

const endedBy = ({ text }: { readonly text: string }) => /"ended_by":"(\w+)"/.exec(text)?.[1]

describe('a suspended customer', () => {
  it('is refused within a second in 20 ways to spend, keeps what runs, reads and takes along, and is let in again', async () => {
    const team = await makeTeam(pool, ['owner'])
    const { workspaceId, secret } = team
    const owner = team.of('owner')
    const granted = { workspaceId, mode: 'test' as const }
    const grant = await makeGranted(pool, granted)
    const { token } = grant
    const { budget, ...terms } = APPROVED
    const mandate = { ...granted, audiences: [MCP_AUDIENCE], scopes: ['agent'] as const, budget, terms }
    const agent = await makeGranted(pool, mandate)
    const { secret: agentKey } = await makeAgentKey(pool, workspaceId)
    const made = await ask(siteUrl, owner, `/workspaces/${workspaceId}/keys?mode=test`, {
      method: 'POST',
      body: { name: 'early' },
    })
    const tag = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 1 }
    const chatOf = (url: string, by: string, headers = {}) => {
      const { path, body } = question('openai', 'sandbox/text', 'Hello', limited('openai', 50))
      return callerAsks(url, by, path, { body, headers })
    }
    const asks = (path: string, body: object) => callerAsks(third, secret, path, { body })
    const spoken = (protocol: 'anthropic' | 'gemini' | 'openai_responses') => {
      const { path, body } = question(protocol, 'sandbox/text', 'Hello', limited(protocol, 50))
      return asks(path, body)
    }
    const ways = {
      'a chat': () => chatOf(first, secret),
      'a chat in another process': () => chatOf(second, secret),
      'a chat in a third process': () => chatOf(third, secret),
      'messages of Anthropic': () => spoken('anthropic'),
      'content of Gemini': () => spoken('gemini'),
      'a response': () => spoken('openai_responses'),
      'a stream': () => slowStream(secret, false),
      'a growing stream': () => slowStream(secret, true),
      data: () => call(second, secret, 'tag_detail'),
      embeddings: () => asks('/v1/embeddings', { model: EMBEDDING_MODEL, input: 'Hello' }),
      'a picture': () => asks('/v1/images/generations', { model: IMAGE_MODEL, prompt: 'a fox' }),
      reranking: () => asks('/v1/rerank', { query: 'fox', documents: ['a fox', 'a hen'] }),
      'a task': () => createTask(first, secret),
      'a quote': () => chatOf(first, secret, { 'x-farebox-cost-mode': 'quote' }),
      'a link': () => startLink(second, secret),
      'a token of a mandate': () => chatOf(third, token),
      'a token in another process': () => chatOf(first, token),
      'a token that is issued afterwards': async () => chatOf(second, (await issueToken(pool, grant)).token),
      'a key that a member made': () => chatOf(third, String(made.json.secret)),
    }
    /** What the tool says instead of an answer; null where the agent was answered. */
    const refusalOfAgent = async (by: string, tool: 'use' | 'batch_use' = 'use') => {
      const headers = { ...callHeaders(tool), host: new URL(MCP_AUDIENCE).host }
      const { operation_id, arguments: given } = tag
      const wanted = tool === 'use' ? tag : { calls: [{ operation_id, arguments: given }], max_total_usd: 1 }
      const told = await askRaw(`${gateway.agentUrl}/mcp`, by, { headers, body: callBody(tool, wanted) })
      assert.equal(told.status, 200, told.text)
      const { isError, structuredContent } = Object(told.message.result)
      const text = JSON.stringify(structuredContent)
      return isError === true || (tool === 'batch_use' && text.includes('suspended')) ? text : null
    }
    const agents = [agent.token, agentKey].flatMap((by) =>
      (['use', 'batch_use'] as const).map((tool) => ({ by, tool })),
    )
    for (const [way, spend] of Object.entries(ways)) {
      if (!way.includes('stream')) assert.equal((await spend()).status, 200, way)
    }
    for (const { by, tool } of agents) assert.equal(await refusalOfAgent(by, tool), null, tool)

    const runs = await created(first, secret, { words: 'sandbox:running-ms=1500' })
    const growing = slowStream(secret, true)
    const full = slowStream(secret, false)
    // Calls under way in every process, until one of each is refused.
    const begun: number[] = []
    const batches = urls.map(async (url) => {
      for (;;) {
        const sentMs = performance.now()
        const told = await Promise.all(Array.from({ length: 5 }, () => call(url, secret, 'tag_detail')))
        if (told.some(({ status }) => status === 200)) begun.push(sentMs)
        if (told.every(({ status }) => status !== 200)) return told.map(codeOf)
      }
    })
    const lines = await said('accounts', 'suspend', workspaceId, '--reason', 'Stolen cards.')
    const suspendedMs = performance.now()
    assert.equal(
      lines,
      `Account ${workspaceId} is suspended: calls are refused. To end it: farebox accounts resume ${workspaceId}\n`,
    )
    for (const codes of await Promise.all(batches)) assert.deepEqual(new Set(codes), new Set(['forbidden']))
    assert.ok(Math.max(...begun) < suspendedMs, 'no batch that was sent later began')

    for (const [way, spend] of Object.entries(ways)) {
      const told = await spend()
      assert.deepEqual([told.status, codeOf(told)], [403, 'forbidden'], way)
    }
    for (const { by, tool } of agents)
      assert.match(String(await refusalOfAgent(by, tool)), /is suspended by the operator/, tool)
    const write = (path: string, body: object) =>
      ask(siteUrl, owner, `/workspaces/${workspaceId}${path}`, { method: 'POST', body })
    const writes = [
      ['/keys?mode=test', { name: 'late' }],
      [`/keys/${String(made.json.id)}/rotate`, {}],
      ['/budgets?mode=test', { period: 'day', amount_usd: '5' }],
      ['/invitations', { email: 'late@example.com', role: 'viewer' }],
    ] as const
    for (const [path, body] of writes)
      assert.deepEqual([(await write(path, body)).json.code, path], ['workspace_suspended', path])
    assert.ok(Object.keys(ways).length + agents.length + writes.length >= 20)
    await assert.rejects(makeGranted(pool, granted), { code: 'workspace_suspended' })
    const late = await farebox('keys', 'create', workspaceId)
    assert.deepEqual([late.code, /has suspended the workspace/.test(late.output)], [1, true], late.output)

    assert.equal(endedBy(await growing), 'credential')
    const whole = await full
    assert.deepEqual([whole.status, endedBy(whole)], [200, undefined])
    await untilState(first, secret, runs, 'SUCCEEDED')
    assert.equal((await poll(second, secret, runs)).status, 200)

    const read = (path: string) => ask(siteUrl, owner, `/workspaces/${workspaceId}${path}`)
    const shown = await read('')
    assert.equal(Object(shown.json.suspended).reason, 'Stolen cards.')
    for (const at of [`/console/${workspaceId}/test`, `/console/${workspaceId}/test/keys`, '/sessions'])
      assert.match(await pageText(at, owner), /operator.*suspended this workspace since|Suspended by the operator/, at)
    assert.match(await pageText(`/console/${workspaceId}/test`, owner), /Stolen cards\./)
    for (const path of ['/balance?mode=test', '/keys?mode=test', '/requests?mode=test', '/members'])
      assert.equal((await read(path)).status, 200, path)
    const exported = await ask(siteUrl, owner, `/workspaces/${workspaceId}/exports`, { method: 'POST' })
    assert.equal(exported.status, 201, exported.text)
    assert.match(await said('credit', workspaceId, '5', '--test'), /Added 5\.000000000 USD of test credit/)
    assert.match(await said('accounts', 'show', workspaceId), /^Suspended since \S+: Stolen cards\./m)
    assert.match(await said('accounts', 'suspend', workspaceId, '--reason', 'Stolen cards.'), /Nothing was changed/)

    await said('accounts', 'resume', workspaceId, '--reason', 'It was a mistake.')
    for (const url of urls) assert.equal((await call(url, secret, 'tag_detail')).status, 200)
    assert.equal((await read('')).json.suspended, null)
    assert.deepEqual(await verifyLedger(pool), [])
    const audited = await said('audit', '--workspace', workspaceId, '--action', 'workspace')
    assert.match(audited, /workspace\.resumed .*"reason":"It was a mistake\."/)
    assert.match(audited, /workspace\.suspended .*"reason":"Stolen cards\."/)
    const subjects = async () => (await sandbox.mail(owner.email)).map(({ subject }) => subject).toSorted()
    await until(async () => (await subjects()).length === 2, PATIENCE_MS)
    assert.deepEqual(await subjects(), ['Customer is no longer suspended', 'Customer is suspended'])
  })
})
