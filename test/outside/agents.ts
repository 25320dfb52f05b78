import assert from 'node:assert/strict'
import { usd } from '../../server/src/kernel/money.ts'
import { askAnybody } from '../acceptance/installation.ts'
import { makeGranted } from '../identity/granted.ts'
import { connectAgent } from '../mcp/clients.ts'
import { argumentsOf, askRaw, callRaw } from '../mcp/raw-agent.ts'
import { ENDPOINTS, SYNCHRONOUS } from './endpoints.ts'
import { type Probe, sendsNothing } from './probe.ts'

/** The tools for agents. */
const TOOLS = ['search', 'get_details', 'list_categories', 'use', 'batch_use']
const TAG = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' } }

export const AGENT_PROBES: readonly Probe[] = [
  [
    'MCP-1 there are exactly the five tools',
    async (stack) => {
      const { secret } = await stack.customer()
      const client = await connectAgent('sdk 1.32', stack.mcpUrl, secret)
      assert.deepEqual(
        (await client.tools()).map(({ name }) => name),
        TOOLS,
      )
      await client.close()
    },
  ],
  ...(
    [
      ['search', { query: 'how often is a hashtag used' }],
      ['get_details', { operation_id: 'tag_detail' }],
      ['list_categories', {}],
    ] as const
  ).map(
    ([tool, given]): Probe => [
      `MCP-1 ${tool} is free, and asks no upstream`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await sendsNothing(stack, () => callRaw(stack.mcpUrl, customer.secret, tool, given))
        assert.equal(told.isError, false, told.text)
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
  ),
  ...SYNCHRONOUS.map(
    (endpoint): Probe => [
      `MCP-3 a call over the tools costs what it costs over HTTP, and leaves the same record: ${endpoint.name}`,
      async (stack) => {
        const [byHttp, byTool] = [await stack.customer(), await stack.customer()]
        const { path, body, operation } = endpoint
        const http = await stack.send(byHttp.secret, { path, ...(body !== undefined && { body }) })
        const told = await callRaw(stack.mcpUrl, byTool.secret, 'use', {
          operation_id: operation,
          arguments: argumentsOf({ path, body }),
          max_price_usd: 1,
        })
        assert.equal(told.isError, false, told.text)
        assert.equal(told.structured.cost_usd, http.costUsd)
        assert.equal(Object(told.meta['farebox/call']).cost_usd, http.costUsd)
        assert.equal(await stack.chargedOf(byTool), await stack.chargedOf(byHttp))
        const record = await stack.send(byTool.secret, { path: `/v1/requests/${told.structured.request_id}` })
        assert.equal(record.json.operation, operation)
      },
    ],
  ),
  ...ENDPOINTS.map(
    ({ operation, path, body, name }): Probe => [
      `MCP-2 a price above max_price_usd is refused before any spend: ${name}`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await sendsNothing(stack, () =>
          callRaw(stack.mcpUrl, customer.secret, 'use', {
            operation_id: operation,
            arguments: argumentsOf({ path, body }),
            max_price_usd: 0.000000001,
          }),
        )
        assert.equal(told.isError, true)
        assert.equal(told.structured.error?.code, 'cost_cap_exceeded')
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
  ),
  ...(
    [
      ['without a cap', { ...TAG }],
      ['with a cap that is no number', { ...TAG, max_price_usd: 'cheap' }],
      ['with a negative cap', { ...TAG, max_price_usd: -1 }],
      ['of an operation that is not there', { operation_id: 'nothing', arguments: {}, max_price_usd: 1 }],
      ['whose arguments are no object', { operation_id: 'tag_detail', arguments: 'cats', max_price_usd: 1 }],
      ['without an operation', { arguments: {}, max_price_usd: 1 }],
    ] as const
  ).map(
    ([wrong, given]): Probe => [
      `MCP-2 a use ${wrong} is refused, and costs nothing`,
      async (stack) => {
        const customer = await stack.customer()
        const told = await sendsNothing(stack, () => callRaw(stack.mcpUrl, customer.secret, 'use', given))
        assert.ok(told.isError || told.message.error !== undefined, told.text)
        assert.equal(await stack.chargedOf(customer), 0n)
      },
    ],
  ),
  [
    'MCP-1 a batch is billed call by call, and never beyond its total',
    async (stack) => {
      const customer = await stack.customer()
      const told = await callRaw(stack.mcpUrl, customer.secret, 'batch_use', {
        calls: [TAG, TAG, TAG],
        max_total_usd: 0.003,
      })
      assert.equal(await stack.chargedOf(customer), usd('0.0029'), told.text)
    },
  ],
  ...(['budget', 'scopes', 'rates'] as const).map(
    (missing): Probe => [
      `AUTH-7 a key without ${missing} pays for nothing through the tools, and finds things for nothing`,
      async (stack) => {
        const customer = await stack.customer({ key: { [missing]: undefined } })
        const told = await callRaw(stack.mcpUrl, customer.secret, 'use', { ...TAG, max_price_usd: 1 })
        assert.equal(told.isError, true, told.text)
        assert.equal(told.structured.error?.code, 'forbidden')
        assert.equal(await stack.chargedOf(customer), 0n)
        assert.equal((await callRaw(stack.mcpUrl, customer.secret, 'search', { query: 'hashtag' })).isError, false)
      },
    ],
  ),
  [
    'AUTH-5 an access token for mcp_url is a credential of the tools',
    async (stack) => {
      const { workspaceId } = await stack.customer()
      const terms = { mode: 'test', audiences: [stack.mcpUrl], scopes: ['agent'] } as const
      const { token } = await makeGranted(stack.pool, { workspaceId, ...terms })
      assert.equal((await callRaw(stack.mcpUrl, token, 'list_categories', {})).isError, false)
    },
  ],
  [
    'AUTH-5 an access token for base_url is none of the tools',
    async (stack) => {
      const { workspaceId } = await stack.customer()
      const { token } = await makeGranted(stack.pool, { workspaceId, mode: 'test', audiences: [stack.url] })
      assert.equal((await callRaw(stack.mcpUrl, token, 'list_categories', {})).status, 401)
    },
  ],
  [
    'AUTH-5 without a credential the tools are 401 and name their metadata of RFC 9728',
    async (stack) => {
      const told = await askRaw(stack.mcpUrl, '', { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } })
      assert.equal(told.status, 401)
      const [, metadata = ''] = /resource_metadata="([^"]+)"/.exec(String(told.headers['www-authenticate'])) ?? []
      const answer = await askAnybody(new URL(stack.mcpUrl).origin, '', new URL(metadata).pathname)
      assert.equal(answer.status, 200)
      assert.equal(answer.json.resource, stack.mcpUrl)
      assert.ok(Array.isArray(answer.json.authorization_servers))
    },
  ],
  [
    'ERR-3 a use with an idempotency key is executed once',
    async (stack) => {
      const customer = await stack.customer()
      const meta = { 'farebox/idempotency-key': 'once' }
      const given = { ...TAG, max_price_usd: 1 }
      await callRaw(stack.mcpUrl, customer.secret, 'use', given, meta)
      const again = await callRaw(stack.mcpUrl, customer.secret, 'use', given, meta)
      assert.equal(again.structured.error?.code, 'idempotency_completed')
      assert.equal(await stack.chargedOf(customer), usd('0.00145'))
    },
  ],
  [
    'MCP-2 a use that was refused says that it cost nothing',
    async (stack) => {
      const { secret } = await stack.customer({ money: 0n })
      const { structured, text } = await callRaw(stack.mcpUrl, secret, 'use', { ...TAG, max_price_usd: 1 })
      assert.equal(structured.error?.code, 'insufficient_balance')
      assert.equal(structured.cost_usd, '0.000000000', text)
    },
  ],
  [
    'MCP-2 a call that an upstream failed says what it cost, as its record does',
    async (stack) => {
      const customer = await stack.customer()
      await stack.sandbox.fault('reseller', ['status=503'])
      const told = await callRaw(stack.mcpUrl, customer.secret, 'use', { ...TAG, max_price_usd: 1 })
      assert.equal(told.structured.cost_usd, '0.000000000', told.text)
      assert.equal(await stack.chargedOf(customer), 0n)
    },
  ],
]
