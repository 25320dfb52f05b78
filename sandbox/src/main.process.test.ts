import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { request } from 'undici'
import { judge } from '../../harness/figures.ts'
import { freePort } from '../../harness/free-port.ts'
import { startBareSandbox } from '../../harness/sandbox.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { ASK, askRaw, reranking } from './test-sandbox.ts'

describe('the sandbox as a process', () => {
  it('listens where it is told, answers by its seed, and hands out its journal', async () => {
    const port = await freePort()
    const [one, other] = await Promise.all([startBareSandbox({ port, seed: 7 }), startBareSandbox({ seed: 8 })])
    after(() => Promise.all([one.kill(), other.kill()]))
    assert.equal(one.url, `http://127.0.0.1:${port}`)
    const text = async (url: string) =>
      (await request(url + ASK.quotes.path, { headers: { ...ASK.quotes.headers, 'x-request-id': 'r-9' } })).body.text()
    assert.equal(await text(one.url), await text(one.url))
    assert.notEqual(await text(one.url), await text(other.url))
    const entries = await one.journal()
    assert.deepEqual(
      entries.map((entry) => [entry.upstream, entry.request_id, entry.outcome]),
      Array(3).fill(['quotes', 'r-9', 'answered']),
    )
    assert.equal((await one.journal(entries.length)).length, 0)
    await one.emptyJournal()
    assert.deepEqual(await one.journal(), [])

    const { headers } = ASK.quotes
    const slow = `${one.deviant('quotes', 'slow-first-byte=1', 'folds-case')}/social_a/tweet/quotes?TWEETID=77`
    assert.equal((await request(slow, { headers })).statusCode, 200)
    assert.deepEqual((await one.journal())[0]?.deviant, ['slow-first-byte=1', 'folds-case'])

    await one.fault('quotes', ['status=500'])
    await assert.rejects(one.fault('quotes', ['nonsense']), /there is no directive nonsense/)
    assert.match(await text(one.url), /"error":500/)
    assert.deepEqual(await Promise.all([one.stop(), other.stop()]), Array(2).fill({ code: 0, signal: null }))
  })

  it('stops at once on SIGTERM though a connection hangs and another is idle', async () => {
    const sandbox = await startBareSandbox()
    after(() => sandbox.kill())
    const hung = askRaw(Number(new URL(sandbox.url).port), reranking('hang=body'), PATIENCE_MS)
    await until(async () => (await sandbox.journal())[0]?.outcome === 'hung', PATIENCE_MS)
    const startedMs = performance.now()
    assert.deepEqual(await sandbox.stop(), { code: 0, signal: null })
    const tookMs = performance.now() - startedMs
    judge('sandbox-process', 'stopping while a connection hangs', { unit: 'ms', atMost: 1_900 }, [tookMs])
    assert.notEqual((await hung).end, 'open')
  })

  it('can be paused, as an upstream whose host hangs, and resumed', async () => {
    const sandbox = await startBareSandbox()
    after(() => sandbox.kill())
    sandbox.pause()
    const answer = request(sandbox.url + ASK.traffic.path, { headers: ASK.traffic.headers })
    const first = await Promise.race([
      answer.then(() => 'answered'),
      new Promise((resolve) => setTimeout(resolve, 300, 'silent')),
    ])
    assert.equal(first, 'silent')
    sandbox.resume()
    assert.equal((await answer).statusCode, 200)
    assert.equal((await sandbox.kill()).signal, 'SIGKILL')
  })
})
