import assert from 'node:assert/strict'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { after, beforeEach, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { DIRECTIVE_NAMES, VIDEO_DIRECTIVE_NAMES } from './directives.ts'
import { ASK, askRaw, framesIn, type Question, reranking, startTestSandbox } from './test-sandbox.ts'
import { tokensOf } from './tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
})

const ask = (...directives: readonly string[]) => sandbox.ask(reranking(...directives))
const raw = (...directives: readonly string[]) => askRaw(sandbox.port, reranking(...directives))
const silence = (...directives: readonly string[]) => askRaw(sandbox.port, reranking(...directives), 300)
const lastEntry = async () => (await sandbox.journal()).at(-1)
const asking = (name: Exclude<keyof typeof ASK, 'rerank'>, ...directives: readonly string[]): Question => ({
  ...ASK[name],
  path: `${ASK[name].path}&other=${encodeURIComponent(directives.map((one) => `sandbox:${one}`).join(' '))}`,
})
/** Tests are named after the directive they prove; the last test counts them. */
const proven = new Set<string>()
function proves(name: string, what: string, prove: () => Promise<void>): void {
  proven.add(name)
  it(`${name}: ${what}`, prove)
}
/** Half of the content that was promised, give or take a byte. */
function assertHalf({ head, content }: { head: string; content: string }): void {
  const promised = Number(/content-length: (\d+)/.exec(head)?.[1])
  assert.ok(promised > 100)
  assert.equal(Buffer.byteLength(content), Math.floor(promised / 2))
}

describe('directives', () => {
  it('stand in any text of the request: a parameter, a query, a document', async () => {
    const { body } = ASK.rerank
    for (const text of [
      'sandbox:status=418',
      'before sandbox:status=418 after',
      'https://a.b/c?sandbox:status=418&d=e',
    ]) {
      const questions: Question[] = [
        { ...ASK.rerank, body: { ...body, query: text } },
        { ...ASK.rerank, body: { ...body, documents: ['a', text] } },
        { ...ASK.financial, path: `/financial/financial-metrics/snapshot?ticker=${encodeURIComponent(text)}` },
        { ...ASK.comments, path: `/comments/v2/social_b/post/comments?url=${encodeURIComponent(text)}` },
      ]
      for (const question of questions) assert.equal((await sandbox.ask(question)).status, 418)
    }
  })

  it('may be several, in several places and in any order; of two with one name the later one counts', async () => {
    const query = 'sandbox:retry-after=3 sandbox:status=500 sandbox:status=429'
    const answer = await sandbox.ask({ ...ASK.rerank, body: { query, documents: ['sandbox:content-type=text/x'] } })
    assert.deepEqual(
      [answer.status, answer.headers['retry-after'], answer.headers['content-type']],
      [429, '3', 'text/x'],
    )
  })

  it('of a conversation are those of all messages, and the later message counts', async () => {
    const messages = ['sandbox:status=500 sandbox:retry-after=3', 'sandbox:status=418', 'and now?'].map((content) => ({
      role: 'user',
      content,
    }))
    const answer = await sandbox.ask({ ...ASK.openai, body: { model: 'm', messages } })
    assert.deepEqual([answer.status, answer.headers['retry-after']], [418, '3'])
  })

  it('are refused aloud when they are not known, have a wrong value or mean nothing here', async () => {
    for (const one of [
      'statsu=500',
      'status',
      'status=abc',
      'status=100',
      'code=400',
      'empty=1',
      'hang=x',
      'delay=-1',
    ]) {
      const answer = await ask(one)
      assert.equal(answer.status, 400)
      assert.match(answer.json().sandbox_error, new RegExp((one.split('=')[0] ?? '').slice(0, 6)))
      assert.equal((await lastEntry())?.outcome, 'refused')
      assert.equal((await lastEntry())?.billed, false)
    }
  })

  it('do nothing without the right credential', async () => {
    assert.equal((await sandbox.ask({ ...reranking('status=500'), headers: {} })).status, 401)
  })
})

describe('what the answer says', () => {
  proves('tokens', 'so many are reported and counted', async () => {
    assert.deepEqual((await ask('tokens=123456')).json().usage, { total_tokens: 123456, prompt_tokens: 123456 })
    assert.equal((await lastEntry())?.tokens, 123456)
  })

  proves('usage', 'is reported as written, and counted truly', async () => {
    for (const [value, said] of [
      ['-5', '-5'],
      ['NaN', 'NaN'],
      ['huge', '1e300'],
      ['9223372036854775808', '9223372036854775808'],
      ['1.5', '1.5'],
      ['null', 'null'],
      ['{}', '{}'],
    ] as const) {
      const { text } = await ask(`usage=${value}`)
      assert.ok(text.includes(`"usage":{"total_tokens":${said},"prompt_tokens":${said}}`), text)
    }
    const { usage } = (await ask('usage=string')).json()
    assert.equal(typeof usage.total_tokens, 'string')
    const { query, documents } = ASK.rerank.body
    assert.equal(Number(usage.total_tokens), tokensOf(`${query} sandbox:usage=string`, ...documents))
    assert.equal((await lastEntry())?.tokens, Number(usage.total_tokens))
    await assert.rejects(async () => (await ask('usage=NaN')).json(), SyntaxError)
  })

  proves('no-usage', 'leaves usage out', async () => {
    const answer = (await ask('no-usage')).json()
    assert.equal('usage' in answer, false)
    assert.equal(answer.results.length, 3)
    assert.ok(Number((await lastEntry())?.tokens) > 0)
  })

  proves('unsorted', 'puts the worst result first', async () => {
    const scores = (await ask('unsorted')).json().results.map((one: { relevance_score: number }) => one.relevance_score)
    assert.ok(scores[0] < scores[2])
  })

  proves('code', 'is the code in the body, whatever the HTTP status', async () => {
    const denied = await sandbox.ask(asking('reseller', 'code=400'))
    assert.deepEqual([denied.status, denied.json().code, denied.json().data], [200, 400, null])
    assert.equal((await lastEntry())?.billed, false)
    const granted = await sandbox.ask(asking('reseller', 'code=200', 'status=400'))
    assert.deepEqual([granted.status, granted.json().code], [400, 200])
    assert.notEqual(granted.json().data, null)
    assert.equal((await lastEntry())?.billed, true)
  })

  proves('code-as-string', 'writes it as a string', async () => {
    assert.equal((await sandbox.ask(asking('reseller', 'code-as-string'))).json().code, '200')
    assert.equal((await sandbox.ask(asking('reseller', 'code-as-string', 'code=404'))).json().code, '404')
  })

  proves('success', 'false is a failure that has status 200', async () => {
    const comments = await sandbox.ask(asking('comments', 'success=false'))
    assert.deepEqual([comments.status, comments.json().success, comments.json().comments], [200, false, []])
    const quotes = await sandbox.ask(asking('quotes', 'success=false'))
    assert.deepEqual([quotes.status, quotes.json().status, quotes.json().tweets], [200, 'error', []])
    assert.equal((await lastEntry())?.billed, false)
    assert.equal((await sandbox.ask(asking('comments', 'success=true'))).json().success, true)
  })
})

/** The completion whose message asks for directives, in one piece or as a stream. */
const completing = (isStreamed: boolean, ...directives: readonly string[]): Question => {
  const content = directives.map((one) => `sandbox:${one}`).join(' ')
  return { ...ASK.openai, body: { model: 'm', stream: isStreamed, messages: [{ role: 'user', content }] } }
}
const complete = async (...directives: readonly string[]) =>
  (await sandbox.ask(completing(false, ...directives))).json()
const stream = (...directives: readonly string[]) => sandbox.ask(completing(true, ...directives))

describe('what a model answers', () => {
  proves('script', 'is what it says, turn by turn', async () => {
    const script = Buffer.from('[{"text":"By a script."}]').toString('base64url')
    assert.equal((await complete(`script=${script}`)).choices[0].message.content, 'By a script.')
  })

  const messaging = (...directives: readonly string[]) =>
    sandbox.ask({
      ...ASK.anthropic,
      body: { ...ASK.anthropic.body, system: directives.map((one) => `sandbox:${one}`).join(' ') },
    })

  proves('images', 'is so many pictures, however many were asked for', async () => {
    const path = '/openai/v1/images/generations'
    for (const count of [0, 4]) {
      const body = { model: 'm', prompt: `sandbox:images=${count}`, n: 2 }
      const { data, usage } = (await sandbox.ask({ ...ASK.openai, path, body })).json()
      assert.deepEqual([data.length, usage.output_tokens], [count, count * 1_056])
    }
    assert.equal((await sandbox.ask(reranking('images=1'))).status, 400)
  })

  proves('output-tokens', 'is so long, however little or much there is to echo', async () => {
    for (const tokens of [1, 7, 100, 5000]) {
      const { usage, choices } = await complete(`output-tokens=${tokens}`)
      assert.deepEqual([usage.completion_tokens, choices[0].finish_reason], [tokens, 'stop'])
      await stream(`output-tokens=${tokens}`)
      assert.equal((await lastEntry())?.tokens, tokens)
    }
    assert.equal((await sandbox.ask(reranking('output-tokens=1'))).status, 400)
  })

  proves('input-tokens', 'is reported as input', async () => {
    const { usage } = await complete('input-tokens=1234')
    assert.deepEqual([usage.prompt_tokens, usage.total_tokens], [1234, 1234 + usage.completion_tokens])
    assert.equal((await lastEntry())?.input_tokens, 1234)
    assert.equal((await messaging('input-tokens=77')).json().usage.input_tokens, 77)
  })

  proves('cache-read', 'is reported as read from the cache', async () => {
    assert.equal((await complete('cache-read=9')).usage.prompt_tokens_details.cached_tokens, 9)
    assert.equal((await messaging('cache-read=9')).json().usage.cache_read_input_tokens, 9)
  })

  proves('cache-write', 'is reported as written to the cache', async () => {
    assert.equal((await complete('cache-write=9')).usage.prompt_tokens_details.cache_write_tokens, 9)
    const { usage } = (await messaging('cache-write=9', 'input-tokens=1', 'cache-read=5')).json()
    assert.deepEqual(usage.cache_creation, { ephemeral_5m_input_tokens: 9, ephemeral_1h_input_tokens: 0 })
    assert.deepEqual([usage.cache_creation_input_tokens, (await lastEntry())?.input_tokens], [9, 15])
  })

  proves('cache-write-1h', 'is reported as written for an hour', async () => {
    const { usage } = (await messaging('cache-write-1h=4', 'cache-write=9')).json()
    assert.deepEqual(usage.cache_creation, { ephemeral_5m_input_tokens: 9, ephemeral_1h_input_tokens: 4 })
    assert.equal(usage.cache_creation_input_tokens, 13)
  })

  proves('audio-tokens', 'is reported as heard', async () => {
    assert.equal((await complete('audio-tokens=9')).usage.prompt_tokens_details.audio_tokens, 9)
    assert.equal((await lastEntry())?.bill?.audio_input, 9)
  })

  proves('image-tokens', 'is reported as seen', async () => {
    assert.equal((await complete('image-tokens=9')).usage.prompt_tokens_details.image_tokens, 9)
  })

  proves('output-audio', 'is reported as spoken', async () => {
    assert.equal((await complete('output-audio=9')).usage.completion_tokens_details.audio_tokens, 9)
  })

  proves('output-image', 'is reported as drawn', async () => {
    assert.equal((await complete('output-image=9')).usage.completion_tokens_details.image_tokens, 9)
  })

  proves(
    'calls',
    'is how often tools of the vendor were called, in the figures or as items of the answer',
    async () => {
      const { usage } = (await messaging('calls=web_search:2+web_fetch:1')).json()
      assert.deepEqual(usage.server_tool_use, { web_search_requests: 2, web_fetch_requests: 1 })
      const path = '/openai/v1/responses'
      const body = { model: 'm', input: 'sandbox:calls=web_search:2+file_search:1' }
      const { output } = (await sandbox.ask({ ...ASK.openai, path, body })).json()
      const types = output.map(({ type }: { type: string }) => type)
      assert.deepEqual(types, ['web_search_call', 'web_search_call', 'file_search_call', 'message'])
      assert.equal((await sandbox.ask(completing(false, 'calls=web_search'))).status, 400)
    },
  )

  proves('service-tier', 'is the tier that is reported, whichever was asked for', async () => {
    assert.equal((await complete('service-tier=flex')).service_tier, 'flex')
    assert.equal((await messaging('service-tier=priority')).json().usage.service_tier, 'priority')
    assert.equal((await complete()).service_tier, 'default')
  })

  proves('delta-bytes', 'is the size of a delta', async () => {
    const { text } = await stream('delta-bytes=100', 'output-tokens=100')
    // The role, three deltas, the reason and [DONE].
    assert.equal(framesIn(text).length, 6)
  })

  proves('delta-ms', 'is the time between deltas', async () => {
    const startedMs = performance.now()
    await stream('delta-ms=40', 'delta-bytes=30', 'output-tokens=50')
    assert.ok(performance.now() - startedMs >= 5 * 39)
  })

  it('usage reports the counts of a model as written, and the journal has the true ones', async () => {
    for (const value of ['-5', '1.5', 'null', '"x"', '9223372036854775808']) {
      const { text } = await sandbox.ask(completing(false, `usage=${value}`, 'output-tokens=9'))
      assert.ok(text.includes(`"prompt_tokens":${value},"completion_tokens":${value},"total_tokens":${value},`), text)
      assert.deepEqual([(await lastEntry())?.tokens, (await lastEntry())?.usage?.completion_tokens], [9, 9])
    }
    const streamed = { ...ASK.anthropic.body, stream: true, system: 'sandbox:usage=NaN' }
    const { text } = await sandbox.ask({ ...ASK.anthropic, body: streamed })
    assert.equal(text.match(/"input_tokens":NaN/g)?.length, 2)
    assert.equal(text.match(/"output_tokens":NaN/g)?.length, 2)
    assert.equal((await complete('usage=string', 'output-tokens=9')).usage.completion_tokens, '9')
  })

  it('no-usage leaves the figures of a model out', async () => {
    assert.equal('usage' in (await complete('no-usage')), false)
  })

  it('the message and its delivery are for a stream too, where they have a meaning', async () => {
    const failed = await stream('status=503', 'retry-after=3')
    assert.deepEqual([failed.status, failed.headers['retry-after']], [503, '3'])
    assert.equal(failed.headers['content-type'], 'application/json')
    assert.equal(failed.json().error.code, 'server_is_overloaded')
    assert.equal((await lastEntry())?.billed, false)
    assert.equal((await stream('redirect=/x')).status, 302)
    assert.equal((await stream('empty')).text, '')
    assert.match(
      (await askRaw(sandbox.port, completing(true, 'delay=10', 'slow-first-byte=10', 'continue=2'))).text,
      /\[DONE\]/,
    )
    for (const [directive, end, outcome] of [
      ['truncate', 'closed', 'cut'],
      ['reset=in-body', 'reset', 'reset'],
      ['hang=body', 'open', 'hung'],
    ] as const) {
      const answer = await askRaw(sandbox.port, completing(true, directive, 'output-tokens=100'))
      assert.equal(answer.end, end)
      assert.doesNotMatch(answer.content, /DONE/)
      const entry = await lastEntry()
      assert.equal(entry?.outcome, outcome)
      assert.ok(Math.abs(Number(entry?.tokens) - 50) <= 3, String(entry?.tokens))
    }
    for (const directive of ['reset=before-headers', 'close-early', 'hang=headers']) {
      assert.equal((await askRaw(sandbox.port, completing(true, directive), 300)).text, '')
      assert.deepEqual([(await lastEntry())?.tokens, (await lastEntry())?.status], [0, null])
    }
    for (const directive of ['big=9', 'gzip-bomb', 'wrong-length', 'drip=1'])
      assert.match((await stream(directive)).json().sandbox_error, /means nothing to a stream/)
  })
})

describe('the message', () => {
  proves('status', 'comes with the vendor’s error body, and is not billed', async () => {
    const answer = await ask('status=503')
    assert.deepEqual([answer.status, answer.json()], [503, { detail: 'Service Unavailable' }])
    const entry = await lastEntry()
    assert.deepEqual([entry?.status, entry?.tokens, entry?.billed], [503, 0, false])
    assert.equal((await sandbox.ask(asking('reseller', 'status=402'))).json().code, 402)
    assert.equal((await sandbox.ask(asking('traffic', 'status=409'))).json().meta.error_code, 409)
    assert.equal((await ask('status=201')).json().results.length, 3)
    assert.equal((await ask('status=204')).text, '')
  })

  proves('retry-after', 'is a header', async () => {
    const answer = await ask('status=429', 'retry-after=120')
    assert.deepEqual([answer.status, answer.headers['retry-after']], [429, '120'])
  })

  proves('redirect', 'is a 302 to there, or another 3xx', async () => {
    const answer = await ask('redirect=http://169.254.169.254/latest')
    assert.deepEqual([answer.status, answer.headers.location], [302, 'http://169.254.169.254/latest'])
    assert.equal((await ask('redirect=/x', 'status=307')).status, 307)
  })

  proves('garbage', 'is no JSON but says that it is', async () => {
    const answer = await ask('garbage')
    assert.equal(answer.headers['content-type'], 'application/json')
    assert.throws(() => answer.json())
  })

  proves('html', 'is a page', async () => {
    const answer = await ask('html', 'status=502')
    assert.deepEqual([answer.status, answer.headers['content-type']], [502, 'text/html'])
    assert.match(answer.text, /^<!doctype html>/)
  })

  proves('empty', 'has no body', async () => {
    const answer = await ask('empty')
    assert.deepEqual([answer.status, answer.headers['content-length'], answer.text], [200, '0', ''])
  })

  proves('big', 'is valid JSON of so many bytes', async () => {
    const answer = await ask('big=3000001')
    assert.equal(Buffer.byteLength(answer.text), 3_000_001)
    assert.equal(answer.json().results.length, 3)
    assert.equal(answer.headers['content-length'], '3000001')
  })

  proves('gzip-bomb', 'unpacks from about 1 MiB to 1 GiB of blanks, and then the answer', async () => {
    const answer = await plainRequest(reranking('gzip-bomb'))
    assert.equal(answer.headers['content-encoding'], 'gzip')
    const packed = Buffer.concat(await answer.toArray())
    assert.ok(packed.length < 2 * 1024 * 1024)
    const start = packed.subarray(0, 4)
    const [member, last] = [packed.subarray(0, packed.indexOf(start, 4)), packed.subarray(packed.lastIndexOf(start))]
    assert.deepEqual(gunzipSync(member), Buffer.alloc(1024 * 1024, ' '))
    assert.equal(JSON.parse(gunzipSync(last).toString()).results.length, 3)
    assert.ok(packed.equals(Buffer.concat([...Array(1024).fill(member), last])))
  })

  proves('content-type', 'is what it says', async () => {
    const answer = await ask('content-type=text/plain;charset=latin1', 'html')
    assert.equal(answer.headers['content-type'], 'text/plain;charset=latin1')
  })

  proves('dup-headers', 'come twice, with different values', async () => {
    const { head } = await raw('dup-headers')
    for (const name of ['content-type', 'retry-after', 'x-request-id', 'set-cookie'])
      assert.equal(head.match(new RegExp(`^${name}: `, 'gim'))?.length, 2, name)
    const lengths = (await raw('dup-headers=content-length')).head.match(/^content-length: .*$/gm)
    assert.equal(new Set(lengths).size, 2)
  })
})

describe('the delivery', () => {
  proves('chunked', 'has no length', async () => {
    const answer = await ask('chunked')
    assert.equal(answer.headers['content-length'], undefined)
    assert.equal(answer.json().results.length, 3)
  })

  proves('wrong-length', 'promises fewer bytes than come, or more', async () => {
    for (const [directive, off] of [
      ['wrong-length', -7],
      ['wrong-length=12', 12],
    ] as const) {
      const { head, content, end } = await raw(directive)
      assert.equal(Number(/content-length: (\d+)/.exec(head)?.[1]), Buffer.byteLength(content) + off)
      assert.equal(JSON.parse(content).results.length, 3)
      assert.equal(end, 'open')
    }
  })

  proves('delay', 'comes before the first byte', async () => {
    const startedMs = performance.now()
    assert.equal((await ask('delay=200')).status, 200)
    assert.ok(performance.now() - startedMs >= 199)
    assert.ok(Number((await lastEntry())?.took_ms) >= 199)
    assert.equal((await silence('delay=5000')).text, '')
  })

  proves('continue', 'sends 100 and 103 in turn before the answer', async () => {
    const { text } = await raw('continue=5')
    assert.deepEqual(
      [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status),
      ['100', '103', '100', '103', '100', '200'],
    )
  })

  proves('slow-first-byte', 'sends the headers at once and the body later', async () => {
    const { head, content } = await raw('slow-first-byte=5000')
    assert.match(head, /^HTTP\/1\.1 200/)
    assert.equal(content, '')
    assert.equal((await ask('slow-first-byte=50')).json().results.length, 3)
  })

  proves('drip', 'sends byte after byte', async () => {
    const { content, pieces } = await askRaw(sandbox.port, asking('comments', 'drip=3', 'status=500'))
    assert.equal(JSON.parse(content).success, false)
    // A busy reader finds several bytes at once, but never all of them.
    assert.ok(pieces > 1, String(pieces))
    await until(async () => (await lastEntry())?.outcome !== 'open', PATIENCE_MS)
    assert.ok(Number((await lastEntry())?.took_ms) >= 2 * content.length)
  })

  proves('truncate', 'closes after half of what was promised', async () => {
    const answer = await raw('truncate')
    assertHalf(answer)
    assert.equal(answer.end, 'closed')
    assert.equal((await lastEntry())?.outcome, 'cut')
    const chunked = await raw('truncate', 'chunked')
    assert.doesNotMatch(chunked.content, /0\r\n\r\n$/)
  })

  proves('close-early', 'closes without a byte', async () => {
    const { text, end } = await raw('close-early')
    assert.deepEqual([text, end], ['', 'closed'])
    const entry = await lastEntry()
    assert.deepEqual([entry?.outcome, entry?.status], ['cut', null])
  })

  proves('reset', 'resets before the headers or in the body', async () => {
    const early = await raw('reset=before-headers')
    assert.deepEqual([early.text, early.end], ['', 'reset'])
    assert.deepEqual([(await lastEntry())?.outcome, (await lastEntry())?.status], ['reset', null])
    const late = await raw('reset=in-body')
    assertHalf(late)
    assert.equal(late.end, 'reset')
    assert.deepEqual([(await lastEntry())?.outcome, (await lastEntry())?.status], ['reset', 200])
  })

  proves('hang', 'stays silent from a stage on, until the client leaves', async () => {
    for (const stage of ['accept', 'headers']) {
      const { text, end } = await silence(`hang=${stage}`)
      assert.deepEqual([text, end], ['', 'open'])
      assert.equal((await lastEntry())?.outcome, 'hung')
    }
    const { end, ...answer } = await raw('hang=body')
    assertHalf(answer)
    assert.equal(end, 'open')
    assert.equal((await lastEntry())?.outcome, 'hung')
  })

  it('hang=accept set by control reads none of the body', async () => {
    await sandbox.ask({ path: '/control', body: { upstream: 'rerank', directives: ['hang=accept'] } })
    assert.equal((await silence()).text, '')
    const entry = await lastEntry()
    assert.deepEqual([entry?.outcome, entry?.body_bytes, entry?.body_sha256], ['hung', 0, null])
  })

  it('lets go of what the client has left, and serves the others meanwhile', async () => {
    const hanging = Array.from({ length: 50 }, () => raw('hang=body'))
    assert.equal((await ask()).status, 200)
    await Promise.all(hanging)
    await plainRequest(reranking('big=4000000000')).then((answer) => answer.destroy())
    await until(async () => (await lastEntry())?.outcome === 'left', PATIENCE_MS)
    assert.equal((await ask()).status, 200)
  })
})

it('every directive of the table is proven here, but for those of videos', () => {
  const others = DIRECTIVE_NAMES.filter((name) => !VIDEO_DIRECTIVE_NAMES.includes(name))
  assert.deepEqual(others.toSorted(), [...proven].toSorted())
})

/** Through Node's own client, which hands over the bytes as they are. */
function plainRequest({ path, headers = {}, body }: Question): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest(sandbox.url + path, { method: 'POST', headers, agent: false }, resolve)
      .on('error', reject)
      .end(JSON.stringify(body))
  })
}
