import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import type { Operation } from '../../server/src/catalogue/operation.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { switchModel } from '../../server/src/pricing/configure-models.ts'
import { listSwitchedOff, type Switch, switchOff, switchOn } from '../../server/src/pricing/switches.ts'
import {
  ACTOR,
  ask,
  CALLS,
  call,
  chargesOf,
  codeOf,
  makeCustomer,
  startInstallation,
} from '../acceptance/installation.ts'
import { cancel, created, outputOf, untilState } from '../acceptance/tasks/video.ts'
import { makeAgent } from '../mcp/agents.ts'
import { callRaw } from '../mcp/raw-agent.ts'
import { contractAt, operationIdsIn, refusedAsNotSold, STREAM_ALONE, viewsOf } from './views.ts'

const PROOF = 'sold'
const SETS = count({ full: 60, reduced: 4 })
const ROUNDS = count({ full: 60, reduced: 6 })

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { url, gateways, pool } = installation
after(installation.stop)

const mcpUrl = `${gateways[0]?.agentUrl}/mcp`
const agent = await makeAgent(pool)
const everything = catalogue.operations.map(({ id }) => id)
const off = (kind: Switch['kind'], name: string) => switchOff(pool, { kind, name, reason: 'a test', by: ACTOR })
const on = (kind: Switch['kind'], name: string) => switchOn(pool, { kind, name, reason: 'a test', by: ACTOR })

/** Waits until every process sells just these, wherever it says so. */
async function untilSold(wanted: readonly string[]): Promise<void> {
  const views = {
    ...{ site: wanted, llms: wanted, guide: wanted, contract: wanted },
    agents: wanted.filter((id) => id !== STREAM_ALONE),
  }
  const agrees = async () => {
    const seen = await Promise.all(gateways.map((gateway) => viewsOf(gateway, agent.secret)))
    return seen.every((one) => isDeepStrictEqual(one, views))
  }
  await until(agrees, PATIENCE_MS, `that every process sells ${wanted.length} operations`)
}

async function allOn(): Promise<void> {
  for (const { kind, name } of await listSwitchedOff(pool)) await on(kind, name)
  await untilSold(everything)
}

const isOff = (operation: Operation, switches: readonly Switch[]) =>
  switches.some(({ kind, name }) => name === (kind === 'operation' ? operation.id : operation.category))

const categories = [...new Set(catalogue.operations.map(({ category }) => category))]
const switchesOfRun = fc.record({
  operations: fc.subarray(everything, { maxLength: 8 }),
  categories: fc.subarray(categories, { maxLength: 2 }),
})

describe('what operators switch off', () => {
  it('is gone from website, llms.txt, contract, agents and calls of all processes alike, for generated sets of switches', async () => {
    const hashes = new Map<string, string>()
    for (const set of fc.sample(switchesOfRun, { seed, numRuns: SETS })) {
      const wanted: readonly Switch[] = [
        ...set.operations.map((name) => ({ kind: 'operation', name }) as const),
        ...set.categories.map((name) => ({ kind: 'category', name }) as const),
      ]
      for (const { kind, name } of await listSwitchedOff(pool)) await on(kind, name)
      for (const { kind, name } of wanted) await off(kind, name)
      const sold = catalogue.operations.filter((one) => !isOff(one, wanted)).map(({ id }) => id)
      await untilSold(sold)
      for (const { url: one, siteUrl } of gateways) {
        assert.deepEqual(
          await refusedAsNotSold(one, agent.secret),
          everything.filter((id) => !sold.includes(id)),
        )
        const { contentHash } = await contractAt(siteUrl)
        const key = sold.join()
        assert.equal(contentHash, hashes.get(key) ?? contentHash, 'the same switches make the same contract')
        hashes.set(key, contentHash)
      }
    }
    await allOn()
    // Every contract of theirs can still be read, from any process.
    for (const [sold, hash] of hashes)
      for (const { siteUrl } of gateways) {
        const response = await fetch(`${siteUrl}/api/contracts/source?hash=${hash}&bundled=1`)
        assert.equal(response.status, 200)
        const own = operationIdsIn(await response.json()).filter((id) => everything.includes(id))
        assert.deepEqual(own.toSorted(), sold === '' ? [] : sold.split(',').toSorted())
      }
    recordProof(PROOF, 'places that say what is sold agree, for generated sets of switches in three processes', {
      sets: SETS,
      disagreements: 0,
    })
  })

  it('is refused in every dialect and for agents, says what to do, and holds nothing', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    for (const category of categories) await off('category', category)
    await untilSold([])
    for (const { url: one } of gateways)
      for (const id of Object.keys(CALLS)) {
        const told = await call(one, secret, id)
        assert.deepEqual([told.status, codeOf(told)], [404, 'not_sold'], `${id}: ${told.text}`)
        assert.match(told.text, new RegExp(`The operation ${id} is not sold here.*ask the operator`))
      }
    const used = await callRaw(mcpUrl, agent.secret, 'use', {
      ...{ operation_id: 'rerank', arguments: { query: 'a', documents: ['b'] }, max_price_usd: 1 },
    })
    assert.equal(Object(used.structured.error).code, 'not_sold')
    const details = await callRaw(mcpUrl, agent.secret, 'get_details', { operation_id: 'rerank' })
    assert.equal(Object(details.structured.error).code, 'not_sold')
    const found = await callRaw(mcpUrl, agent.secret, 'search', { query: 'rerank documents' })
    assert.deepEqual(
      Object(found.structured).operations.filter((one: unknown) => everything.includes(Object(one).operation_id)),
      [],
    )
    const { rows } = await pool.query('select held, charged from accounts where id = $1', [accountId])
    assert.deepEqual(rows, [{ held: 0n, charged: 0n }])
    assert.equal((await chargesOf(pool, accountId)).size, 0)
    assert.deepEqual((await ask(url, secret, '/v1/models')).json.data, [], 'no model can be asked')
    await allOn()
  })

  it('lets a call in the instant of a switch either be made whole, or be refused without a trace', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const seen = { made: 0, refused: 0 }
    const made = new Set<string>()
    for (let round = 0; round < ROUNDS; round += 1) {
      const switching = round % 2 === 0 ? off('operation', 'rerank') : on('operation', 'rerank')
      const [answers] = await Promise.all([
        Promise.all(
          Array.from({ length: 60 }, (_, at) => call(gateways[at % 3]?.url ?? '', secret, 'rerank', `r${round}n${at}`)),
        ),
        switching,
      ])
      for (const told of answers) {
        if (told.status === 200) made.add(told.id)
        else assert.deepEqual([told.status, codeOf(told)], [404, 'not_sold'], told.text)
        seen[told.status === 200 ? 'made' : 'refused'] += 1
      }
    }
    assert.deepEqual([...(await chargesOf(pool, accountId)).keys()].toSorted(), [...made].toSorted())
    const { rows } = await pool.query('select held from accounts where id = $1', [accountId])
    assert.deepEqual(rows, [{ held: 0n }])
    assert.deepEqual(await verifyLedger(pool), [])
    assert.ok(seen.made > 0 && seen.refused > 0, JSON.stringify(seen))
    await allOn()
    recordProof(PROOF, 'calls in the instant of a switch, in three processes', { ...seen, traces_of_refused: 0 })
  })

  it('keeps the promise of a quote that was given before, once', async () => {
    const { secret } = await makeCustomer(pool)
    const quoteOf = async (id: string) =>
      String((await call(url, secret, id, '', { headers: { 'x-farebox-cost-mode': 'quote' } })).json.quote_id)
    const pinned = new Map<string, string>()
    for (const id of ['rerank', 'tweet_quotes', 'chat_completions']) pinned.set(id, await quoteOf(id))
    await off('category', 'models')
    await off('operation', 'tweet_quotes')
    await switchModel({ pool, by: ACTOR }, { id: 'sandbox/text', enabled: false, reason: 'a test' })
    await untilSold(everything.filter((id) => catalogue.find(id)?.category !== 'models' && id !== 'tweet_quotes'))
    for (const [id, quoteId] of pinned) {
      const headers = { 'x-farebox-quote-id': quoteId }
      const told = await call(gateways[1]?.url ?? '', secret, id, '', { headers })
      assert.equal(told.status, 200, `${id}: ${told.text}`)
      assert.equal((await call(url, secret, id, '', { headers })).status, 409, 'a quote is used once')
      assert.equal(codeOf(await call(url, secret, id)), 'not_sold')
      const again = await call(url, secret, id, '', { headers: { 'x-farebox-cost-mode': 'quote' } })
      assert.equal(codeOf(again), 'not_sold', 'and none is given any more')
    }
    await on('category', 'models')
    await untilSold(everything.filter((id) => id !== 'tweet_quotes'))
    const modelIsOff = await call(url, secret, 'chat_completions')
    assert.deepEqual([modelIsOff.status, codeOf(modelIsOff)], [404, 'not_sold'])
    assert.match(modelIsOff.text, /The model \\"sandbox\/text\\" is not sold here/)
    assert.equal(codeOf(await ask(url, secret, '/v1/models/sandbox/text')), 'not_sold')
    await switchModel({ pool, by: ACTOR }, { id: 'sandbox/text', enabled: true, reason: 'a test' })
    await allOn()
  })

  it('tells who repeats a call by its key what became of it', async () => {
    const { secret } = await makeCustomer(pool)
    const headers = { 'idempotency-key': 'once' }
    assert.equal((await call(url, secret, 'rerank', 'x', { headers })).status, 200)
    await off('operation', 'rerank')
    await untilSold(everything.filter((id) => id !== 'rerank'))
    assert.equal(codeOf(await call(url, secret, 'rerank', 'x', { headers })), 'idempotency_completed')
    await allOn()
  })

  it('lets a video that is being made be polled, cancelled, settled and charged', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const first = await created(url, secret, { words: 'sandbox:pending-ms=30 sandbox:running-ms=4000' })
    const second = await created(url, secret, { words: 'sandbox:pending-ms=600000' })
    await off('operation', 'video_synthesis')
    await untilSold(everything.filter((id) => id !== 'video_synthesis'))
    assert.equal(codeOf(await call(url, secret, 'video_synthesis')), 'not_sold')
    const stopped = await cancel(url, secret, second)
    assert.equal(stopped.status, 200, stopped.text)
    const done = await untilState(url, secret, first, 'SUCCEEDED')
    assert.ok(outputOf(done).video_url)
    await until(async () => (await chargesOf(pool, accountId)).has(first), PATIENCE_MS, 'the charge')
    assert.ok(((await chargesOf(pool, accountId)).get(first) ?? 0n) > 0n)
    await allOn()
  })
})
