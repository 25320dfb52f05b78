import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { startGateway } from '../../harness/gateways.ts'
import { count, seed } from '../../harness/proof.ts'
import { contractHere, defaultNames } from '../../harness/recorded-contract.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey, seedModel } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createContract } from '../../server/src/contracts/contract.ts'
import { draftOf } from '../../server/src/contracts/make-draft.ts'
import { contractWithout } from '../../server/src/contracts/sold-contract.ts'
import { contractInputOf } from '../../server/src/http/routes/contract-input.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { ask, call, codeOf, ids, makeCustomer } from '../acceptance/installation.ts'
import { connect } from '../ledger/world.ts'
import { makeAgent } from '../mcp/agents.ts'
import { callRaw } from '../mcp/raw-agent.ts'
import { contractAt, operationIdsIn, refusedAsNotSold, viewsOf } from './views.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const masterKey = makeMasterKey()
const sandbox = await startSandbox()
const gateway = await startGateway({
  databaseUrl: database.url,
  env: { FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(), FAREBOX_LOG_LEVEL: 'warn' },
})
after(async () => {
  await gateway.stop()
  await sandbox.stop()
  await pools.close()
})

const MODELS = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => `maker/${name}`)
const bindOpenai = (mode: 'live' | 'test') =>
  saveUpstream(
    { pool, ids, seal: createSeal({ current: masterKey }) },
    { slot: 'openai', mode, baseUrl: `${sandbox.url}/openai`, kind: 'native', credential: null },
  )
const everything = catalogue.operations.map(({ id }) => id)

describe('a contract without some operations', () => {
  it('has the bytes that would have been made without them, and all of them where none is gone', () => {
    const whole = contractHere()
    assert.equal(contractWithout(whole, []), whole)
    fc.assert(
      fc.property(fc.subarray(everything), (gone) => {
        const operations = catalogue.operations.filter(({ id }) => !gone.includes(id))
        const made = createContract(draftOf(contractInputOf({ operations })), {
          names: defaultNames(),
          serverUrl: undefined,
        })
        const cut = contractWithout(whole, gone)
        assert.equal(cut.bytes.toString(), made.bytes.toString())
        assert.equal(cut.contentHash, made.contentHash)
      }),
      { seed, numRuns: count({ full: 300, reduced: 25 }) },
    )
  })
})

describe('an installation', () => {
  it('shows all that it can sell while nothing is set up', async () => {
    const { contentHash, document } = await contractAt(gateway.siteUrl)
    assert.equal(contentHash, contractHere().contentHash, 'the bytes of the whole contract')
    assert.ok(everything.every((id) => operationIdsIn(document).includes(id)))
  })

  it('with six models offers just what it can do, in the mode in which it can', async () => {
    const [live, test] = [await makeAgent(pool, { mode: 'live' }), await makeAgent(pool)]
    for (const id of MODELS) await seedModel(pool, { id, upstreamModel: 'sandbox/text', protocols: ['openai'] })
    await bindOpenai('live')
    const chat = ['chat_completions']
    const views = { site: chat, llms: chat, guide: chat, contract: chat, agents: chat }
    const agrees = async () => isDeepStrictEqual(await viewsOf(gateway, live.secret), views)
    await until(agrees, PATIENCE_MS, 'that the chat of its models is all that is offered')
    const { agents } = await viewsOf(gateway, test.secret)
    assert.deepEqual(agents, [], 'nothing has an upstream in test mode')
    const listed = async (secret: string) =>
      (await ask(gateway.url, secret, '/v1/models')).json.data as readonly { id: string; protocols: string[] }[]
    assert.deepEqual((await listed(live.secret)).map(({ id }) => id).toSorted(), MODELS.toSorted())
    assert.deepEqual(await listed(test.secret), [])

    const agentUrl = `${gateway.agentUrl}/mcp`
    const details = await callRaw(agentUrl, live.secret, 'get_details', { operation_id: 'tweet_quotes' })
    assert.equal(Object(details.structured.error).code, 'not_configured')
    const found = await callRaw(agentUrl, live.secret, 'search', { query: 'posts that quote a tweet' })
    assert.ok(!JSON.stringify(found.structured).includes('tweet_quotes'))
    const one = await callRaw(agentUrl, live.secret, 'get_details', { operation_id: 'model:maker/one' })
    assert.deepEqual(one.structured.operations, chat)

    for (const at of ['/catalogue/tweet_quotes', '/reference/tweet_quotes', '/catalogue/video_synthesis'])
      assert.equal((await fetch(gateway.siteUrl + at, { headers: { accept: 'text/html' } })).status, 404, at)
    for (const at of ['/catalogue/chat_completions', '/reference/chat_completions', '/models/maker/one'])
      assert.equal((await fetch(gateway.siteUrl + at)).status, 200, at)
    const home = await (await fetch(`${gateway.siteUrl}/`)).text()
    assert.ok(!home.includes('/catalogue/tweet_quotes'), 'nothing is shown on the home page that is not sold')
    const search = await (await fetch(`${gateway.siteUrl}/search?q=tweet_quotes`)).text()
    assert.ok(!search.includes('href="/catalogue/tweet_quotes"'))
    // Nobody has switched them off: they are not set up.
    assert.deepEqual(await refusedAsNotSold(gateway.url, live.secret), [])
    assert.equal(codeOf(await call(gateway.url, live.secret, 'rerank')), 'not_configured')
  })

  it('offers more as soon as there is an upstream for it', async () => {
    const { secret } = await makeCustomer(pool)
    await seedModel(pool, {
      id: 'maker/seven',
      upstreamModel: 'sandbox/text',
      protocols: ['openai', 'openai_responses'],
    })
    const wanted = ['chat_completions', 'responses']
    const ofSite = async () => (await viewsOf(gateway, secret)).site
    await until(async () => isDeepStrictEqual(await ofSite(), wanted), PATIENCE_MS, 'the other protocol')
  })
})
