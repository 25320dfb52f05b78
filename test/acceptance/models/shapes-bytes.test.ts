import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { OPENAI_ONLY_MODEL } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { ask, askAnybody, makeCustomer, startInstallation } from '../installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const { secret } = await makeCustomer(pool)

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'
const COUNT = '/v1/messages/count_tokens'
const GEMINI = '/v1beta/models/sandbox/echo'
const ANTHROPIC = { 'anthropic-version': '2023-06-01' }

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  ask(url, secret, path, { body, headers })

/** What the upstream got of a call. */
async function received(id: string) {
  const entries = (await sandbox.journal()).filter(({ request_id }) => request_id === id)
  assert.equal(entries.length, 1)
  return entries[0] ?? assert.fail()
}

/** Written as nobody's library writes it, with members that are free-form, and none that has to change. */
const odd = (limit: string, more = '') =>
  `\n{ "messages" : [ {"role":"user","content":"\\u0047r\\u00fc\\u00dfe, 世界 👋 \\/"} ],\t"metadata":{"user_id":"\\u0061"},\n` +
  `"model":"sandbox\\u002fecho",${more} "${limit}":  1e2 , "service_tier" : null }\n`

/** The same in the protocol that has the model and the stream in its path. */
const oddContents = (limit = '"max_output_tokens":  1e2 ') =>
  `\n{ "contents" : [ {"role":"user","parts":[{"text":"\\u0047r\\u00fc\\u00dfe, 世界 👋 \\/"}]} ],\t"labels":{"a":[1.0,-0],"A":{}},\n` +
  `"generation_config" : { "topK":2e1 , ${limit}}, "store" : null }\n`

describe('what the upstream gets of a body', () => {
  it('is every byte as it came, where nothing must change', async () => {
    const streamed = '"stream":true,'
    for (const [path, body] of [
      [CHAT, odd('max_completion_tokens')],
      [CHAT, odd('max_tokens')],
      [CHAT, odd('max_tokens', `${streamed}"stream_options": { "include_usage" :true, "include_obfuscation":null },`)],
      [MESSAGES, odd('max_tokens')],
      [MESSAGES, odd('max_tokens', streamed)],
      [COUNT, odd('max_tokens')],
      [`${GEMINI}:generateContent`, oddContents()],
      [`${GEMINI}:streamGenerateContent?alt=sse`, oddContents()],
      [`${GEMINI}:countTokens`, oddContents()],
    ] as const) {
      const told = await post(path, body)
      assert.equal(told.status, 200, told.text)
      const { body_sha256, body_bytes } = await received(told.id)
      assert.deepEqual([body_bytes, body_sha256], [Buffer.byteLength(body), sha256(body)], body)
    }
  })

  const turns = '"messages":[ {"role":"user","content":"a \\"}\\" b"} ]'
  const echo = '"model":"sandbox/echo"'
  const other = `"model" : "${OPENAI_ONLY_MODEL}"`
  const CHANGES: readonly (readonly [string, string, string, string])[] = [
    [
      'a limit is added at the end',
      CHAT,
      `{ ${echo}, ${turns} , "metadata": {"b":[]} }`,
      `{ ${echo}, ${turns} , "metadata": {"b":[]},"max_completion_tokens":4096 }`,
    ],
    ['a limit is added at the end', MESSAGES, `{${echo}, ${turns}\n}`, `{${echo}, ${turns},"max_tokens":4096\n}`],
    [
      'a limit that is null gets its value where it stands',
      MESSAGES,
      `{${echo}, "max_tokens" : null, ${turns}}`,
      `{${echo}, "max_tokens" : 4096, ${turns}}`,
    ],
    [
      'the name of the model is replaced where it stands',
      CHAT,
      `{${turns}, ${other} ,"max_tokens":9}`,
      `{${turns}, "model" : "sandbox/text" ,"max_tokens":9}`,
    ],
    [
      'the usage of a stream is asked for',
      CHAT,
      `{${echo},${turns},"max_tokens":9,"stream":true}`,
      `{${echo},${turns},"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`,
    ],
    [
      'the usage of a stream is asked for among the options that there are',
      CHAT,
      `{${echo},"stream_options":{ "include_obfuscation":"}" },${turns},"max_tokens":9,"stream":true}`,
      `{${echo},"stream_options":{ "include_obfuscation":"}","include_usage":true },${turns},"max_tokens":9,"stream":true}`,
    ],
    [
      'the usage of a stream is asked for where the caller said not to',
      CHAT,
      `{${echo},"stream_options":{"include_usage": false},${turns},"max_tokens":9,"stream":true}`,
      `{${echo},"stream_options":{"include_usage": true},${turns},"max_tokens":9,"stream":true}`,
    ],
    [
      'a limit is added to what there is',
      `${GEMINI}:generateContent`,
      oddContents('"seed":null'),
      oddContents('"seed":null,"maxOutputTokens":4096'),
    ],
    [
      'a limit that is null gets its value where it stands',
      `${GEMINI}:streamGenerateContent?alt=sse`,
      oddContents('"max_output_tokens" : null'),
      oddContents('"max_output_tokens" : 4096'),
    ],
    [
      'all of that at once',
      CHAT,
      `{${other},${turns},"stream":true}`,
      `{"model" : "sandbox/text",${turns},"stream":true,"max_completion_tokens":4096,"stream_options":{"include_usage":true}}`,
    ],
  ]

  for (const [name, path, sent, expected] of CHANGES)
    it(`is what came, but for what must change: ${path}, ${name}`, async () => {
      const told = await post(path, sent)
      assert.equal(told.status, 200, told.text)
      const { body_sha256, body_bytes } = await received(told.id)
      assert.deepEqual([body_bytes, body_sha256], [Buffer.byteLength(expected), sha256(expected)])
    })
})

describe('what the upstream gets of the headers', () => {
  const version = (path: string) => (path === CHAT ? {} : { 'anthropic-version': '2026-10-21' })
  const beta = (path: string) =>
    path === CHAT ? {} : { 'anthropic-beta': 'interleaved-thinking-2025-05-14,effort-2025-11-24' }

  for (const path of [CHAT, MESSAGES, COUNT])
    it(`${path}: the protocol's own as they came, our credential, and nothing that is between the caller and us`, async () => {
      const between = {
        'openai-organization': 'org',
        cookie: 'a=b',
        'idempotency-key': `k${path}`,
        'x-farebox-max-cost-usd': '1',
      }
      const told = await post(path, odd('max_tokens'), { ...version(path), ...beta(path), ...between })
      assert.equal(told.status, 200, told.text)
      const { headers, header_names, credential } = await received(told.id)
      assert.equal(credential, 'right')
      const { 'anthropic-version': shownVersion, 'anthropic-beta': shownBeta } = headers
      assert.deepEqual(
        {
          ...(shownVersion && { 'anthropic-version': shownVersion }),
          ...(shownBeta && { 'anthropic-beta': shownBeta }),
        },
        { ...version(path), ...beta(path) },
      )
      for (const name of Object.keys(between)) assert.equal(header_names.includes(name), false, name)
      assert.equal(header_names.includes(path === CHAT ? 'x-api-key' : 'authorization'), false)
    })

  it('the oldest version of the protocol, where the caller names none', async () => {
    const told = await post(MESSAGES, odd('max_tokens'))
    assert.equal((await received(told.id)).headers['anthropic-version'], '2023-06-01')
  })
})

describe('what the caller gets of an answer', () => {
  const COST = /,"cost_usd":"(0\.\d{9})"/

  for (const [path, prefix, form, body] of [
    [CHAT, '/openai', 'whole', odd('max_tokens')],
    [CHAT, '/openai', 'streamed', odd('max_tokens', '"stream":true,"stream_options":{"include_usage":true},')],
    [MESSAGES, '/anthropic', 'whole', odd('max_tokens')],
    [MESSAGES, '/anthropic', 'streamed', odd('max_tokens', '"stream":true,')],
    [COUNT, '/anthropic', 'whole', odd('max_tokens')],
    [`${GEMINI}:generateContent`, '/gemini', 'whole', oddContents()],
    [`${GEMINI}:streamGenerateContent?alt=sse`, '/gemini', 'streamed', oddContents()],
    [`${GEMINI}:countTokens`, '/gemini', 'whole', oddContents()],
  ] as const)
    it(`${path}, ${form}: every byte of the upstream's, and what it cost`, async () => {
      const direct = await askAnybody(sandbox.url + prefix, 'sandbox-key', path, { body, headers: ANTHROPIC })
      assert.equal(direct.status, 200)
      const told = await post(path, body, ANTHROPIC)
      assert.equal(told.headers.get('content-type'), direct.headers.get('content-type'))
      const [written, cost] = COST.exec(told.text) ?? ['', undefined]
      assert.equal(told.text.replace(written, ''), direct.text)
      const { json } = await ask(url, secret, `/v1/requests/${told.id}`)
      // What is free has no usage.
      assert.equal(cost ?? told.costUsd, Object(json.cost).usd)
      if (form === 'whole' && cost !== undefined) assert.equal(cost, told.costUsd)
    })

  it(`${CHAT}, streamed: nothing of the usage, where the caller has not asked for it, and what it cost`, async () => {
    const body = odd('max_tokens', '"stream":true,')
    const direct = await askAnybody(`${sandbox.url}/openai`, 'sandbox-key', CHAT, { body })
    const told = await post(CHAT, body)
    const withoutIds = (text: string) =>
      text.replaceAll(/"(id|system_fingerprint)":"[^"]*"/g, '').replaceAll(/"created":\d+/g, '')
    const [written = '', cost] = COST.exec(told.text) ?? []
    assert.equal(withoutIds(told.text.replace(written, '')), withoutIds(direct.text))
    const { json } = await ask(url, secret, `/v1/requests/${told.id}`)
    assert.equal(cost, Object(json.cost).usd)
  })
})
