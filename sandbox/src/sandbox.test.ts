import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { after, beforeEach, describe, it } from 'node:test'
import { judge } from '../../harness/figures.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Journal } from './journal.ts'
import { ASK, askRaw, reranking, startTestSandbox } from './test-sandbox.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
  await sandbox.ask({ path: '/control', method: 'DELETE' })
})

describe('the journal', () => {
  it('tells of every request what was asked and answered, health and journal apart', async () => {
    assert.equal((await sandbox.ask({ path: '/livez' })).status, 200)
    const body = JSON.stringify({ ...ASK.rerank.body, note: 'sandbox:tokens=12' })
    const headers = {
      ...ASK.rerank.headers,
      'x-request-id': 'r-1',
      'content-type': 'application/json',
      cookie: 'c=secret',
    }
    await sandbox.ask({ ...ASK.rerank, headers, body })
    const beforeMs = Date.now()
    const [entry, ...more] = await sandbox.journal()
    assert.deepEqual(more, [])
    assert.ok(entry)
    const { n, at_ms, took_ms, header_names, ...rest } = entry
    assert.ok(Number.isInteger(n))
    assert.ok(Math.abs(at_ms - beforeMs) < 10_000)
    assert.ok(took_ms !== null && took_ms >= 0)
    assert.ok(header_names.includes('authorization') && header_names.includes('cookie'))
    assert.deepEqual(rest, {
      upstream: 'rerank',
      deviant: [],
      method: 'POST',
      path: '/rerank/v1/rerank',
      query: '',
      request_id: 'r-1',
      credential: 'right',
      headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
      body_bytes: body.length,
      body_sha256: createHash('sha256').update(body).digest('hex'),
      directives: ['tokens=12'],
      status: 200,
      tokens: 12,
      model: null,
      stream: null,
      input_tokens: null,
      usage: null,
      task_id: null,
      billed: true,
      bill: { price_class: 'standard', input: 12 },
      outcome: 'answered',
    })
  })

  it('says whether the credential was right and never what it was', async () => {
    await sandbox.ask(ASK.quotes)
    await sandbox.ask({ ...ASK.quotes, headers: { 'x-api-key': 'another-one' } })
    await sandbox.ask({ path: ASK.quotes.path })
    const text = (await sandbox.ask({ path: '/journal' })).text
    const { entries } = JSON.parse(text)
    assert.deepEqual(
      entries.map((entry: { credential: string }) => entry.credential),
      ['right', 'wrong', 'missing'],
    )
    assert.deepEqual(
      entries.map((entry: { billed: boolean }) => entry.billed),
      [true, false, false],
    )
    assert.doesNotMatch(text, /sandbox-key|another-one/)
  })

  it('keeps the raw query, and paths that lead nowhere', async () => {
    await sandbox.ask({ path: '/nowhere?a=%20b&a=c' })
    const [entry] = await sandbox.journal()
    assert.deepEqual([entry?.path, entry?.query, entry?.upstream, entry?.status], ['/nowhere', 'a=%20b&a=c', null, 404])
  })

  it('goes on from a number, and keeps its numbers when it is emptied', async () => {
    await sandbox.ask(ASK.traffic)
    const first = (await sandbox.ask({ path: '/journal' })).json()
    await sandbox.ask(ASK.financial)
    const second = (await sandbox.ask({ path: `/journal?since=${first.next}` })).json()
    assert.equal(second.entries.length, 1)
    assert.equal(second.entries[0].upstream, 'financial')
    assert.equal(second.entries[0].n, first.next)
    await sandbox.ask({ path: '/journal', method: 'DELETE' })
    const third = (await sandbox.ask({ path: `/journal?since=${first.next}` })).json()
    assert.deepEqual(third, { entries: [], next: second.next, lost: 1 })
    for (const since of ['-1', 'x', '1.5'])
      assert.equal((await sandbox.ask({ path: `/journal?since=${since}` })).status, 400)
  })

  it('forgets the oldest beyond its limit, says how many, and gives pages of 5,000', () => {
    const journal = new Journal(12_000)
    const request = { headers: {}, rawHeaders: [] as string[], method: 'GET' } as IncomingMessage
    for (let at = 0; at < 20_000; at += 1) journal.open(request, `/${at}`, '')
    let page = journal.read(0)
    assert.equal(page.lost, 8000)
    assert.equal(page.entries.length, 5000)
    const seen = []
    while (page.entries.length > 0) {
      seen.push(...page.entries.map(({ n, path }) => [n, path]))
      page = journal.read(page.next)
    }
    assert.deepEqual(
      seen,
      Array.from({ length: 12_000 }, (_, at) => [8000 + at, `/${8000 + at}`]),
    )
  })

  it('sees a client that leaves before the answer', async () => {
    await askRaw(sandbox.port, reranking('delay=60000'), 300)
    await until(async () => (await sandbox.journal())[0]?.outcome === 'left', PATIENCE_MS)
    const [entry] = await sandbox.journal()
    assert.equal(entry?.status, null)
  })
})

describe('control', () => {
  const set = (body: unknown) => sandbox.ask({ path: '/control', body })

  it('gives the next requests of an upstream directives that they did not ask for', async () => {
    assert.equal(
      (await set({ upstream: 'financial', directives: ['status=503', 'retry-after=9'], times: 2 })).status,
      200,
    )
    const answers = []
    for (const ask of [ASK.quotes, ASK.financial, ASK.financial, ASK.financial]) answers.push(await sandbox.ask(ask))
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['retry-after']]),
      [
        [200, undefined],
        [503, '9'],
        [503, '9'],
        [200, undefined],
      ],
    )
    assert.deepEqual((await sandbox.journal())[1]?.directives, ['status=503', 'retry-after=9'])
  })

  it('is stronger than what the request itself asks for', async () => {
    await set({ upstream: 'financial', directives: ['status=503'] })
    const path = `${ASK.financial.path}%20sandbox:status=418`
    assert.equal((await sandbox.ask({ ...ASK.financial, path })).status, 503)
    assert.equal((await sandbox.ask({ ...ASK.financial, path })).status, 418)
  })

  it('takes faults one after another, shows what waits, and forgets it on DELETE', async () => {
    await set({ upstream: 'traffic', directives: ['status=500'] })
    await set({ upstream: 'traffic', directives: ['status=501'], times: 5 })
    assert.equal((await sandbox.ask(ASK.traffic)).status, 500)
    assert.equal((await sandbox.ask(ASK.traffic)).status, 501)
    assert.deepEqual((await sandbox.ask({ path: '/control' })).json(), {
      faults: [{ upstream: 'traffic', directives: ['status=501'], times: 4 }],
    })
    await sandbox.ask({ path: '/control', method: 'DELETE' })
    assert.equal((await sandbox.ask(ASK.traffic)).status, 200)
  })

  it('waits for a path that has a part in it, and lets others by', async () => {
    await set({ upstream: 'openai', directives: ['status=503'], path: '/embeddings' })
    assert.equal((await sandbox.ask(ASK.openai)).status, 200)
    const embedding = { ...ASK.openai, path: '/openai/v1/embeddings', body: { model: 'm', input: 'a' } }
    assert.equal((await sandbox.ask(embedding)).status, 503)
    assert.equal((await sandbox.ask(embedding)).status, 200)
  })

  for (const [what, fault] of Object.entries({
    'no JSON': 'x',
    'an upstream that is not there': { upstream: 'x', directives: ['empty'] },
    'no directives': { upstream: 'quotes', directives: [] },
    'a directive that is not there': { upstream: 'quotes', directives: ['emty'] },
    'a value out of range': { upstream: 'quotes', directives: ['status=99'] },
    'a directive of another upstream': { upstream: 'quotes', directives: ['tokens=9'] },
    'no times': { upstream: 'quotes', directives: ['empty'], times: 0 },
    'a path that is none': { upstream: 'quotes', directives: ['empty'], path: 7 },
  })) {
    it(`refuses ${what}`, async () => {
      assert.equal((await set(fault)).status, 400)
      assert.deepEqual((await sandbox.ask({ path: '/control' })).json(), { faults: [] })
    })
  }
})

describe('bounds', () => {
  it('reads a body of 33 MiB and refuses a larger one, announced or not', async () => {
    const text = 'x'.repeat(33 * 1024 * 1024 - 40)
    const fits = await sandbox.ask({ ...ASK.rerank, body: { query: 'x', documents: [text] } })
    assert.equal(fits.status, 200)
    assert.equal(fits.json().usage.total_tokens, text.length / 4 + 1)
    const { headers } = ASK.rerank
    const tooLarge = await askRaw(
      sandbox.port,
      { path: ASK.rerank.path, headers, body: `${text}${'x'.repeat(100)}` },
      2000,
    )
    assert.match(tooLarge.head, /^HTTP\/1\.1 413 |^$/)
    async function* unannounced() {
      for (let at = 0; at < 34; at += 1) yield Buffer.alloc(1024 * 1024, 'x')
    }
    await fetch(sandbox.url + ASK.rerank.path, { method: 'POST', headers, body: unannounced(), duplex: 'half' }).then(
      (answer) => assert.equal(answer.status, 413),
      () => {},
    )
    const entries = (await sandbox.journal()).slice(1)
    assert.deepEqual(
      entries.map(({ status, outcome }) => [status, outcome]),
      [
        [413, 'refused'],
        [413, 'refused'],
      ],
    )
  })
})

describe('closing', () => {
  it('lets an answer under way finish, and lets go of one that hangs', async () => {
    const other = await startTestSandbox()
    const slow = askRaw(other.port, reranking('delay=1000'), PATIENCE_MS)
    const hung = askRaw(other.port, reranking('hang=headers'), PATIENCE_MS)
    const outcomes = async () => (await other.journal()).map(({ outcome }) => outcome).toSorted()
    await until(async () => String(await outcomes()) === 'hung,open', PATIENCE_MS)
    const startedMs = performance.now()
    await other.close()
    const tookMs = performance.now() - startedMs
    judge('sandbox', 'closing while an answer takes a second and another hangs', { unit: 'ms', atMost: 1_900 }, [
      tookMs,
    ])
    assert.match((await slow).head, /^HTTP\/1\.1 200 OK/)
    assert.equal((await hung).text, '')
    assert.equal((await hung).end, 'closed')
    await other.stop()
  })
})
