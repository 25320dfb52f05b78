import assert from 'node:assert/strict'
import { type IncomingMessage, request } from 'node:http'
import { after, beforeEach, describe, it } from 'node:test'
import { until } from '../../harness/until.ts'
import { DEVIANT_WORDS } from './deviants.ts'
import { ASK, framesIn, type Question, startTestSandbox } from './test-sandbox.ts'
import { inputTokens } from './upstreams/models/tokens.ts'

const sandbox = await startTestSandbox()
after(() => sandbox.stop())
beforeEach(async () => {
  await sandbox.ask({ path: '/journal', method: 'DELETE' })
})

const DEADLINE_MS = 60_000
const LONG_TOKENS = 2000
const seen = new Set<string>()

type Vendor = keyof typeof ASK

/** The vendor's ordinary question, to one of it that deviates. */
function questionTo(deviant: string, vendor: Vendor, change: object = {}): Question {
  for (const word of deviant.split('+')) seen.add(word.replace(/=.*/, ''))
  const { path, headers, ...asked } = ASK[vendor]
  const body = 'body' in asked && typeof asked.body === 'object' ? { body: { ...asked.body, ...change } } : {}
  return { path: `/deviant/${deviant}${path}`, headers, ...body }
}

async function ask(deviant: string, vendor: Vendor, change: object = {}) {
  const answer = await sandbox.ask(questionTo(deviant, vendor, change))
  assert.equal(answer.status, 200, answer.text.slice(0, 1000))
  return { ...answer, bill: (await sandbox.journal()).at(-1)?.bill }
}

/** A question of data with more in its query. */
async function askData(deviant: string, vendor: 'comments' | 'traffic' | 'reseller' | 'quotes', query: string) {
  const { path, headers } = questionTo(deviant, vendor)
  const answer = await sandbox.ask({ path: path + query, headers: headers ?? {} })
  assert.equal(answer.status, 200, answer.text)
  return { ...answer, bill: (await sandbox.journal()).at(-1)?.bill }
}

const LONG = { model: 'sandbox/long' }
const GEMINI_LONG = { path: ASK.gemini.path.replace('echo', 'long') }

describe('a deviant', () => {
  it('is told in the journal, by its words and by the path as it came', async () => {
    await ask('folds-case+over-reports', 'openai')
    const [entry] = await sandbox.journal()
    assert.deepEqual(entry?.deviant, ['folds-case', 'over-reports'])
    assert.equal(entry?.upstream, 'openai')
    assert.equal(entry?.path, '/deviant/folds-case+over-reports/openai/v1/chat/completions')
  })

  it('is refused with a word that nobody knows, a value that it does not take, or no vendor', async () => {
    for (const path of [
      '/deviant/is-odd/openai/v1/models',
      '/deviant/folds-case=1/openai/v1/models',
      '/deviant/unreadable',
    ])
      assert.equal((await sandbox.ask({ path, headers: ASK.openai.headers })).status, 404, path)
    assert.deepEqual(
      (await sandbox.journal()).map(({ outcome, bill }) => [outcome, bill]),
      Array.from({ length: 3 }, () => ['refused', null]),
    )
  })

  it('wants the key as the vendor itself does', async () => {
    assert.equal((await sandbox.ask({ ...questionTo('folds-case', 'openai'), headers: {} })).status, 401)
  })
})

describe('a vendor that ignores a limit', () => {
  const outputOf = async (deviant: string, change: object) =>
    (await ask(deviant, 'openai', { ...LONG, ...change })).bill?.output

  it('heeds the other name, and runs on to the natural length with this one alone', async () => {
    assert.equal(await outputOf('ignores-max-tokens', { max_tokens: 10 }), LONG_TOKENS)
    assert.equal(await outputOf('ignores-max-tokens', { max_tokens: 10, max_completion_tokens: 20 }), 20)
    assert.equal(await outputOf('ignores-max-completion-tokens', { max_completion_tokens: 10 }), LONG_TOKENS)
    assert.equal(await outputOf('ignores-max-completion-tokens', { max_completion_tokens: 10, max_tokens: 20 }), 20)
    const both = 'ignores-max-tokens+ignores-max-completion-tokens'
    assert.equal(await outputOf(both, { max_completion_tokens: 10, max_tokens: 20 }), LONG_TOKENS)
  })

  it('reports what it made, in one piece and as a stream, as long as a directive says', async () => {
    const messages = [{ role: 'user', content: 'sandbox:output-tokens=500' }]
    const whole = await ask('ignores-limits', 'openai', { messages, max_tokens: 10, max_completion_tokens: 10 })
    assert.equal(whole.json().usage.completion_tokens, 500)
    const asked = { messages, max_tokens: 10, stream: true, stream_options: { include_usage: true } }
    const { text, bill } = await ask('ignores-limits', 'openai', asked)
    assert.equal(JSON.parse(framesIn(text).at(-2)?.data ?? '').usage.completion_tokens, 500)
    assert.equal(bill?.output, 500)
  })

  it('may be anthropic’s', async () => {
    assert.equal((await ask('ignores-max-tokens', 'anthropic', { ...LONG, max_tokens: 10 })).bill?.output, LONG_TOKENS)
    assert.equal((await ask('ignores-max-output-tokens', 'anthropic', { ...LONG, max_tokens: 10 })).bill?.output, 10)
  })

  it('may be gemini’s, by both of its spellings', async () => {
    for (const generationConfig of [{ maxOutputTokens: 10 }, { max_output_tokens: 10 }]) {
      const question = questionTo('ignores-max-output-tokens', 'gemini', { generationConfig })
      const answer = await sandbox.ask({ ...question, path: question.path.replace('echo', 'long') })
      assert.equal(answer.json().usageMetadata.candidatesTokenCount, LONG_TOKENS)
      const plain = await sandbox.ask({ ...ASK.gemini, ...GEMINI_LONG, body: { ...ASK.gemini.body, generationConfig } })
      assert.equal(plain.json().usageMetadata.candidatesTokenCount, 10)
    }
  })
})

describe('a vendor that folds case', () => {
  it('makes the video that the last spelling asks for', async () => {
    const parameters = { duration: 1, Duration: 15 }
    const { bill } = await ask('folds-case', 'video', { parameters })
    assert.deepEqual(bill, { price_class: 'standard', seconds: 15, sr: 720 })
    await sandbox.ask({ ...ASK.video, body: { ...ASK.video.body, parameters } })
    assert.equal((await sandbox.journal()).at(-1)?.bill?.seconds, 1)
  })

  it('runs and charges a search that hides behind a function', async () => {
    const tools = [{ type: 'function', Type: 'web_search', function: { name: 'a', parameters: {} } }]
    assert.equal((await ask('folds-case', 'openai', { tools })).bill?.web_searches, 1)
    assert.equal((await ask('over-reports', 'openai', { tools })).bill?.web_searches, 0)
    const hidden = [{ type: 'custom', TYPE: 'web_search_20250305', name: 'web_search', input_schema: {} }]
    const { bill, json } = await ask('folds-case', 'anthropic', { tools: hidden })
    assert.deepEqual([bill?.web_searches, json().usage.server_tool_use], [1, { web_search_requests: 1 }])
    const google = [{ GoogleSearch: {} }]
    assert.equal((await ask('folds-case', 'gemini', { tools: google })).bill?.web_searches, 1)
  })

  it('writes a cache for an hour where the last ttl says so', async () => {
    const text = 'Rules. '.repeat(500)
    const system = [{ type: 'text', text, cache_control: { type: 'ephemeral', ttl: '5m', TTL: '1h' } }]
    const { bill, json } = await ask('folds-case', 'anthropic', { system })
    const { cache_creation: created } = json().usage
    assert.deepEqual(created, { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: inputTokens([text]) })
    assert.deepEqual([bill?.cache_write_5m, bill?.cache_write_1h], [0, inputTokens([text])])
  })

  it('reads limits, texts and parameters in any case, and goes on where a spelling is the only one', async () => {
    const { bill } = await ask('folds-case', 'openai', { ...LONG, max_tokens: 10, Max_Tokens: 700 })
    assert.equal(bill?.output, 700)
    const config = { GenerationConfig: { MaxOutputTokens: 2 } }
    assert.equal((await ask('folds-case', 'gemini', config)).bill?.output, 2)
    assert.equal((await ask('folds-case', 'rerank', { Instruction: 'abcd' })).bill?.input, 11 + 3)
    assert.deepEqual((await askData('folds-case', 'comments', '&Include_Replies=true')).bill, {
      price_class: 'standard',
      credits: 15,
    })
    const twice = await askData('folds-case', 'comments', '&include_replies=true&INCLUDE_REPLIES=false')
    assert.equal(twice.bill?.credits, 1)
  })

  it('survives a body that is nested very deep, and names that objects have by nature', async () => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    const { path, headers, body } = questionTo('folds-case', 'openai', { toString: 1, __PROTO__: { model: 1 } })
    const text = JSON.stringify(body).replace(/\}$/, `,"metadata":${deep}}`)
    const answer = await sandbox.ask({ path, headers: headers ?? {}, body: text, method: 'POST' })
    assert.equal(answer.status, 200)
  })
})

describe('a vendor that reads queries loosely', () => {
  it('merges a list and its brackets', async () => {
    const year = '&start_date=2025-01&end_date=2025-12'
    const more = '&metrics=visits&metrics[]=page_views&metrics%5B%5D=bounce_rate,pages_per_visit'
    const { bill, json } = await askData('merges-brackets', 'traffic', year + more)
    assert.equal(bill?.credits, 4 * 12)
    assert.equal(Object.keys(json().data[0]).length, 1 + 4)
    const { path, headers } = ASK.traffic
    await sandbox.ask({ path: path + year + more, headers })
    assert.equal((await sandbox.journal()).at(-1)?.bill?.credits, 12)
  })

  it('splits at semicolons', async () => {
    assert.equal((await askData('splits-at-semicolons', 'comments', '&a=1;include_replies=true')).bill?.credits, 15)
    assert.equal((await askData('dots-are-underscores', 'comments', '&a=1;include_replies=true')).bill?.credits, 1)
  })

  it('takes dots and blanks in names for underscores', async () => {
    for (const name of ['include.replies', 'include%20replies', '+include_replies'])
      assert.equal((await askData('dots-are-underscores', 'comments', `&${name}=true`)).bill?.credits, 15, name)
    assert.equal((await askData('merges-brackets', 'comments', '&include.replies=true')).bill?.credits, 1)
  })

  it('does all of these at once, together with folding case', async () => {
    const query = '&a=1;Include.Replies[]=true'
    assert.equal((await askData('loose-queries+folds-case', 'comments', query)).bill?.credits, 15)
    assert.equal((await askData('loose-queries', 'comments', query)).bill?.credits, 1)
  })
})

describe('a vendor whose figures are not what it charges', () => {
  it('counts reasoning in the total alone, though nobody asked for it', async () => {
    const { bill, json } = await ask('reasoning-apart', 'openai')
    const { usage } = json()
    const thought = usage.completion_tokens_details.reasoning_tokens
    assert.equal(thought, 64)
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens + thought)
    assert.equal(bill?.output, usage.completion_tokens + thought)
    const limited = await ask('reasoning-apart', 'openai', { max_completion_tokens: 10 })
    assert.equal(limited.bill?.output, 10)
  })

  for (const [word, told] of [
    ['over-reports', (count: number) => count * 10],
    ['under-reports', (count: number) => Math.max(1, Math.floor(count / 10))],
  ] as const) {
    it(`${word} to whoever asks a model, in one piece and as a stream`, async () => {
      const [openai, anthropic] = [
        await ask(word, 'openai', LONG),
        await ask(word, 'anthropic', { ...LONG, max_tokens: 9_999 }),
      ]
      const { usage } = openai.json()
      assert.deepEqual(
        [usage.prompt_tokens, usage.completion_tokens, openai.bill?.output],
        [told(2), told(LONG_TOKENS), LONG_TOKENS],
      )
      assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
      assert.deepEqual([anthropic.json().usage.output_tokens, anthropic.bill?.input], [told(LONG_TOKENS), 2])
      const path = '/gemini/v1beta/models/sandbox/long:streamGenerateContent?alt=sse'
      const gemini = await sandbox.ask({ ...ASK.gemini, path: `/deviant/${word}${path}` })
      const last = JSON.parse(gemini.text.trim().split('data: ').at(-1) ?? '')
      assert.equal(last.usageMetadata.candidatesTokenCount, told(LONG_TOKENS))
      assert.equal(last.usageMetadata.totalTokenCount, told(LONG_TOKENS) + told(2))
      const [entry] = (await sandbox.journal()).slice(-1)
      assert.deepEqual([entry?.bill?.output, entry?.tokens], [LONG_TOKENS, LONG_TOKENS])
    })

    it(`${word} vectors, pictures, rerankings, credits and videos`, async () => {
      const documents = ['a'.repeat(4000)]
      const rerank = await ask(word, 'rerank', { documents })
      assert.deepEqual([rerank.json().usage.total_tokens, rerank.bill?.input], [told(1003), 1003])
      const { headers } = ASK.openai
      const body = { model: 'm', input: 'a'.repeat(300), prompt: 'a', quality: 'low' }
      const vectors = await sandbox.ask({ path: `/deviant/${word}/openai/v1/embeddings`, headers, body })
      assert.equal(vectors.json().usage.prompt_tokens, told(100))
      const pictures = await sandbox.ask({ path: `/deviant/${word}/openai/v1/images/generations`, headers, body })
      assert.equal(pictures.json().usage.output_tokens, told(272))
      assert.equal((await askData(word, 'comments', '')).json().credits_charged, told(1))
      const prompt = 'sandbox:starts-running sandbox:running-ms=0'
      const made = await ask(word, 'video', { input: { prompt }, parameters: { duration: 20, n: 2 } })
      assert.deepEqual(made.bill, { price_class: 'standard', seconds: 40, sr: 720 })
      const task = `/deviant/${word}/video/tasks/${made.json().output.task_id}`
      const polled = await sandbox.ask({ path: task, headers: ASK.video.headers })
      assert.equal(polled.json().usage.duration, told(20))
      const bills = (await sandbox.journal()).slice(1, 3).map(({ bill }) => bill)
      assert.deepEqual(bills, [
        { price_class: 'standard', input: 100, output: 0 },
        { price_class: 'standard', input: 1, output: 272, images: 1 },
      ])
    })
  }
})

describe('a vendor whose answers are hard to take', () => {
  it('pads an answer in one piece with a member of many mebibytes', async () => {
    const { text, json, bill } = await ask('large-replies', 'openai')
    assert.ok(text.length > 8 * 1024 * 1024)
    assert.equal(json().choices[0].message.content, 'Echo: Hello')
    assert.equal(bill?.output, 4)
    assert.ok((await askData('large-replies=100000', 'quotes', '')).text.length > 100_000)
  })

  it('pads a stream with comments', async () => {
    const { text } = await ask('large-replies', 'openai', { stream: true })
    assert.ok(text.length > 8 * 1024 * 1024)
    const frames = text.split('\n\n').filter((frame) => frame !== '' && !frame.startsWith(': '))
    assert.equal(frames.at(-1), 'data: [DONE]')
    const data = frames.slice(0, -1).map((frame) => JSON.parse(frame.slice('data: '.length)))
    assert.equal(data.map(({ choices }) => choices[0].delta.content ?? '').join(''), 'Echo: Hello')
  })

  it('has the first byte wait, two seconds or as long as it says', async () => {
    for (const [word, ms] of [
      ['slow-first-byte', 2000],
      ['slow-first-byte=150', 150],
    ] as const) {
      const startedMs = performance.now()
      await ask(word, 'rerank')
      // A timer may fire a little before its time by another clock.
      assert.ok(performance.now() - startedMs > ms - 5, word)
    }
  })

  it('answers in XML where a parameter or a member says so, and charges for it', async () => {
    const { text, headers, bill } = await askData('unreadable', 'reseller', '&format=xml')
    assert.match(text, /^<\?xml/)
    assert.equal(headers['content-type'], 'application/xml')
    assert.equal(bill?.credits, 1)
    assert.equal((await askData('unreadable', 'reseller', '&format=json')).json().code, 200)
    for (const stream of [false, true]) {
      const model = await ask('unreadable', 'openai', { format: 'xml', stream, ...LONG })
      assert.match(model.text, /^<\?xml/)
      assert.equal(model.bill?.output, LONG_TOKENS)
    }
  })
})

describe('a vendor that knows members of no protocol', () => {
  const billOf = async (change: object) => (await ask('knows-extras', 'openai', { max_tokens: 5, ...change })).bill

  for (const member of ['n_predict', 'max_output_tokens', 'min_tokens'])
    it(`answers at the length of ${member}, beyond the limit`, async () => {
      assert.equal((await billOf({ [member]: 300 }))?.output, 300)
      const { bill } = await ask('knows-extras', 'anthropic', { max_tokens: 5, [member]: 300 })
      assert.equal(bill?.output, 300)
      assert.equal((await ask('knows-extras', 'gemini', { [member]: 300 })).bill?.output, 300)
      assert.equal((await ask('over-reports', 'openai', { max_tokens: 5, [member]: 300 })).bill?.output, 4)
    })

  it('thinks for thinking_budget, beyond the limit', async () => {
    const { json, bill } = await ask('knows-extras', 'openai', { max_tokens: 5, thinking_budget: 300 })
    assert.deepEqual([bill?.output, json().usage.completion_tokens_details.reasoning_tokens], [304, 300])
  })

  it('reads extra_body as its own members', async () => {
    assert.equal((await billOf({ ...LONG, extra_body: { max_tokens: 700 } }))?.output, 700)
  })

  it('reads a preset with the prompt, and counts for a provider and for each retry', async () => {
    assert.equal((await billOf({ preset: 'careful' }))?.input, 1002)
    const { json, bill } = await ask('knows-extras', 'openai', { provider: { order: ['dear'] } })
    assert.deepEqual([bill?.input, bill?.output, json().usage.completion_tokens], [4, 8, 8])
    const retried = await billOf({ num_retries: 3 })
    assert.deepEqual([retried?.input, retried?.output], [8, 16])
  })
})

describe('what a vendor charges when its caller leaves', () => {
  /** Leaves as soon as the answer has begun, or once the question has been read. */
  async function leave(deviant: string, change: object, when: 'begun' | 'read' = 'begun') {
    const { path, headers, body } = questionTo(deviant, 'openai', { ...LONG, ...change })
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage | undefined>()
    const asking = request(sandbox.url + path, { method: 'POST', headers: { ...headers }, agent: false }, resolve)
    asking.on('error', (error) => (when === 'begun' ? reject(error) : resolve(undefined)))
    asking.end(JSON.stringify(body))
    if (when === 'begun') await promise
    else await until(async () => (await sandbox.journal()).at(-1)?.body_sha256 != null, DEADLINE_MS)
    asking.destroy()
    const last = async () => (await sandbox.journal()).at(-1)
    await until(async () => (await last())?.outcome !== 'open', DEADLINE_MS)
    const entry = await last()
    assert.equal(entry?.outcome, 'left')
    return entry
  }
  const slowly = { stream: true, messages: [{ role: 'user', content: 'sandbox:delta-ms=20' }] }

  it('is what it had made of a stream', async () => {
    for (const word of ['stops-on-abort', 'folds-case']) {
      const entry = await leave(word, slowly)
      assert.ok(Number(entry?.bill?.output) < LONG_TOKENS)
      assert.equal(entry?.bill?.output, entry?.tokens)
      assert.ok(Number(entry?.bill?.input) > 0)
    }
  })

  it('is all of it where it goes on', async () => {
    const entry = await leave('keeps-running-on-abort', slowly)
    assert.equal(entry?.bill?.output, LONG_TOKENS)
    assert.ok(Number(entry?.tokens) < LONG_TOKENS)
  })

  it('is the input of an answer that had not begun, or all of it where it goes on', async () => {
    const slow = 'slow-first-byte=600000'
    for (const stream of [false, true]) {
      const stopped = await leave(`stops-on-abort+${slow}`, { stream }, 'read')
      assert.deepEqual([stopped?.bill?.input, stopped?.bill?.output, stopped?.status], [2, 0, null])
      const gone = await leave(`keeps-running-on-abort+${slow}`, { stream }, 'read')
      assert.deepEqual([gone?.bill?.input, gone?.bill?.output], [2, LONG_TOKENS])
    }
  })
})

describe('what every vendor charges, whatever it reports', () => {
  it('is told by class of tokens, without those of an answer that reports none', async () => {
    await sandbox.ask({ ...ASK.openai, body: { ...ASK.openai.body, model: 'sandbox/zero-usage' } })
    assert.deepEqual((await sandbox.journal()).at(-1)?.bill, {
      price_class: 'standard',
      input: 2,
      audio_input: 0,
      cache_read: 0,
      cache_write_5m: 0,
      cache_write_1h: 0,
      output: 4,
      web_searches: 0,
    })
  })

  it('is nothing for an error, a list of models or a count', async () => {
    await sandbox.ask({ ...ASK.openai, body: { ...ASK.openai.body, model: 'sandbox/429' } })
    await sandbox.ask({ path: '/openai/v1/models', headers: ASK.openai.headers })
    await sandbox.ask({ ...ASK.anthropic, path: '/anthropic/v1/messages/count_tokens' })
    assert.deepEqual(
      (await sandbox.journal()).map(({ bill }) => bill),
      [null, null, null],
    )
  })

  it('is ten times as dear for a large model', async () => {
    await sandbox.ask({ ...ASK.rerank, body: { ...ASK.rerank.body, model: 'reranker-large' } })
    await sandbox.ask({ ...ASK.openai, body: { ...ASK.openai.body, model: 'm-large-2' } })
    assert.deepEqual(
      (await sandbox.journal()).map(({ bill }) => bill?.price_class),
      ['large', 'large'],
    )
  })

  it('has an instruction with each document of a reranking', async () => {
    for (const member of ['instruction', 'instruct', 'query_instruction']) {
      const answer = await sandbox.ask({ ...ASK.rerank, body: { ...ASK.rerank.body, [member]: 'a'.repeat(400) } })
      // The query has 3 tokens, the documents have 2, 4 and 2.
      assert.equal(answer.json().usage.total_tokens, 11 + 300, member)
      assert.equal((await sandbox.journal()).at(-1)?.bill?.input, 311)
    }
  })

  it('has sound apart from other input', async () => {
    const part = { type: 'input_audio', input_audio: { data: 'A'.repeat(3000), format: 'wav' } }
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'What is said?' }, part] }]
    const { usage } = (await sandbox.ask({ ...ASK.openai, body: { model: 'm', messages } })).json()
    const [entry] = await sandbox.journal()
    const sound = Math.floor(JSON.stringify(part).length / 3)
    assert.deepEqual([usage.prompt_tokens_details.audio_tokens, entry?.bill?.audio_input], [sound, sound])
    assert.equal(Number(entry?.bill?.input) + sound, usage.prompt_tokens)
  })
})

it('every word of a deviant has been tried here', () => {
  assert.deepEqual(
    DEVIANT_WORDS.filter((word) => !seen.has(word)),
    [],
  )
})
