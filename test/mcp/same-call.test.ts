import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import fc from 'fast-check'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { ask, CALLS, codeOf, LINKED, startInstallation, TASKS } from '../acceptance/installation.ts'
import { linkAccount } from '../acceptance/links/linking.ts'
import { ALL_SCOPES, makeAgent } from './agents.ts'
import { argumentsOf, callRaw } from './raw-agent.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 2 })
after(() => installation.stop())
const { pool, url } = installation
// The tools are those of another process than the one that is asked over HTTP.
const mcpUrl = `${installation.gateways[1]?.agentUrl}/mcp`

const COUNT = count({ full: 1_000, reduced: 120 })
const AT_ONCE = 8
/** Of these a key may make so many a minute, whatever its tier. */
const SCARCE: Readonly<Record<string, number>> = { deep_research: 4, image_generations: 25, generate_content: 25 }
const OPERATIONS = Object.keys(CALLS).filter(
  (id) => !TASKS.has(id) && !LINKED.has(id) && id !== 'stream_generate_content',
)
/** What the sandbox makes of a call. */
const WORDS = [
  '',
  '',
  '',
  '',
  'sandbox:status=500',
  'sandbox:status=404',
  'sandbox:garbage',
  'sandbox:success=false',
  'sandbox:code=400',
  'sandbox:empty',
]
const CAPS = [undefined, undefined, undefined, '0.000000001', '1']

type Case = {
  readonly operation: string
  readonly word: string
  readonly cap: string | undefined
  readonly salt: number
  /** Whether it has an idempotency key, and is sent again with it. */
  readonly isRepeated: boolean
}

const cases = (): readonly Case[] => {
  const one = fc.record({
    operation: fc.constantFrom(...OPERATIONS),
    word: fc.constantFrom(...WORDS),
    cap: fc.constantFrom(...CAPS),
    salt: fc.nat(1_000_000),
    isRepeated: fc.nat(5).map((drawn) => drawn === 0),
  })
  const left = { ...SCARCE }
  return fc.sample(one, { seed, numRuns: COUNT }).map((drawn) => {
    const places = left[drawn.operation]
    if (places === undefined) return drawn
    left[drawn.operation] = places - 1
    return places > 0 ? drawn : { ...drawn, operation: 'tag_detail' }
  })
}

type Outcome = {
  readonly status: number | undefined
  readonly code: unknown
  readonly cost: string | undefined
  readonly id: string
}

const keyOf = ({ salt, isRepeated }: Case) => (isRepeated ? `key-${salt}` : undefined)

async function overHttp(secret: string, one: Case): Promise<Outcome> {
  const { operation, word, cap, salt } = one
  const { path, body, headers } = made(operation, word, salt)
  const key = keyOf(one)
  const told = await ask(url, secret, path, {
    headers: {
      ...headers,
      ...(cap !== undefined && { 'x-farebox-max-cost-usd': cap }),
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    ...(body !== undefined && { body }),
  })
  const isOurs = told.headers.get('x-should-retry') !== null || codeOf(told) !== undefined
  return { status: told.status, code: isOurs ? codeOf(told) : undefined, cost: told.costUsd ?? undefined, id: told.id }
}

async function overMcp(secret: string, one: Case): Promise<Outcome> {
  const { operation, word, cap, salt } = one
  const key = keyOf(one)
  const given = {
    operation_id: operation,
    arguments: argumentsOf(made(operation, word, salt)),
    max_price_usd: Number(cap ?? 4),
  }
  const { structured } = await callRaw(
    mcpUrl,
    secret,
    'use',
    given,
    key === undefined ? {} : { 'farebox/idempotency-key': key },
  )
  const { status, error, cost_usd: cost, request_id: id } = structured
  return { status, code: error?.code, cost, id }
}

function made(operation: string, word: string, salt: number) {
  const make = CALLS[operation]
  if (make === undefined) throw new Error(`nobody has written a call of ${operation}`)
  return make(`${salt} ${word}`)
}

/** What is kept of a call, without what is its own: its id and its times. How it went is written a moment after its end. */
async function recordOf(secret: string, id: string): Promise<unknown> {
  const read = async () => (await ask(url, secret, `/v1/requests/${id}`)).json
  await until(async () => Object((await read()).detail).status !== undefined, 60_000, 'that the record is written')
  const { operation, model, outcome, failed, cost, executed, published_value, tokens, detail } = await read()
  const { status, price } = Object(detail)
  return { operation, model, outcome, failed, cost, executed, published_value, tokens, status, price }
}

describe('the same call over MCP and over HTTP', () => {
  it('MCP-3 leaves the same charge and the same record, whatever comes of it', async () => {
    const key = { scopes: ALL_SCOPES }
    const [caller, agent] = [await makeAgent(pool, key), await makeAgent(pool, key)]
    const outcomes = new Map<string, number>()
    const note = (kind: string) => outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
    const all = cases()
    async function compare(one: Case): Promise<void> {
      const [http, mcp] = await Promise.all([overHttp(caller.secret, one), overMcp(agent.secret, one)])
      const shown = JSON.stringify({ one, http, mcp })
      // Over HTTP a refusal says nothing of its cost.
      assert.equal(usd(mcp.cost ?? '0'), usd(http.cost ?? '0'), shown)
      if (mcp.status === undefined) {
        assert.ok(typeof mcp.code === 'string', shown)
        assert.equal(mcp.code, http.code, shown)
        if (mcp.code === 'idempotency_completed') note('repeated')
      } else assert.equal(mcp.status, http.status, shown)
      assert.equal(mcp.status === 200, http.status === 200, shown)
      if (http.cost !== undefined) {
        const [ofMcp, ofHttp] = [await recordOf(agent.secret, mcp.id), await recordOf(caller.secret, http.id)]
        assert.deepEqual(ofMcp, ofHttp, shown)
      }
      note(mcp.status === 200 ? 'answered' : mcp.status === undefined ? 'refused' : 'failed upstream')
    }
    for (let at = 0; at < all.length; at += AT_ONCE)
      await Promise.all(
        all.slice(at, at + AT_ONCE).map(async (one) => {
          await compare(one)
          if (one.isRepeated) await compare(one)
        }),
      )
    const [ofCaller, ofAgent] = await Promise.all(
      [caller, agent].map(({ secret }) => ask(url, secret, '/v1/usage?start_time=1')),
    )
    assert.deepEqual(Object(ofAgent?.json.totals), Object(ofCaller?.json.totals))
    assert.ok(Number(Object(ofAgent?.json.totals).charged_micros_usd) > 0)
    assert.deepEqual(await sums(agent.accountId), await sums(caller.accountId))
    assert.deepEqual(await verifyLedger(pool), [])
    for (const kind of ['answered', 'refused', 'failed upstream']) assert.ok((outcomes.get(kind) ?? 0) > 0, kind)
    sometimes(outcomes.has('repeated'), 'a call that is repeated')
    recordProof('mcp-same-call', 'calls made over HTTP and over MCP', {
      calls: COUNT,
      ...Object.fromEntries([...outcomes].map(([kind, times]) => [kind.replace(' ', '_'), times])),
      differences: 0,
    })
  })

  const ONCE = { word: '', cap: undefined, isRepeated: false }

  it('MCP-3 leaves the same for a call that acts for a linked account', async () => {
    const [caller, agent] = [await makeAgent(pool), await makeAgent(pool)]
    for (const { secret } of [caller, agent]) await linkAccount(url, secret)
    const one = { ...ONCE, operation: 'follow_user', salt: 1 }
    const [http, mcp] = [await overHttp(caller.secret, one), await overMcp(agent.secret, one)]
    assert.deepEqual([mcp.status, mcp.cost], [200, http.cost])
    assert.ok(usd(mcp.cost ?? '0') > 0n)
    assert.deepEqual(await recordOf(agent.secret, mcp.id), await recordOf(caller.secret, http.id))
    assert.deepEqual(await sums(agent.accountId), await sums(caller.accountId))
  })

  it('MCP-3 leaves the same for a video, when it has ended', async () => {
    const [caller, agent] = [await makeAgent(pool), await makeAgent(pool)]
    const one = { ...ONCE, operation: 'video_synthesis', salt: 2 }
    const [http, mcp] = [await overHttp(caller.secret, one), await overMcp(agent.secret, one)]
    assert.deepEqual([mcp.status, http.status], [200, 200])
    const charged = async () => [await sums(agent.accountId), await sums(caller.accountId)]
    await until(async () => (await charged()).every((rows) => rows.length === 1), 120_000, 'that both are charged')
    const [ofAgent, ofCaller] = await charged()
    assert.deepEqual(ofAgent, ofCaller)
    assert.deepEqual(await recordOf(agent.secret, mcp.id), await recordOf(caller.secret, http.id))
    assert.deepEqual(await verifyLedger(pool), [])
  })
})

async function sums(accountId: string): Promise<readonly unknown[]> {
  const { rows } = await pool.query(
    `select operation, count(*)::integer as count, sum(amount)::text as amount from charges where account_id = $1
     group by operation order by operation`,
    [accountId],
  )
  return rows
}
