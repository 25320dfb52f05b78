import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { EMBEDDING_MODEL, IMAGE_MODEL, VIDEO_MODEL } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { ask, chargesOf, errorOf, makeCustomer, startInstallation } from '../installation.ts'

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)

const CHAT = '/v1/chat/completions'
const RESPONSES = '/v1/responses'
const MESSAGES = '/v1/messages'
const VECTORS = `/v1beta/models/${EMBEDDING_MODEL}:embedContent`
const GEMINI = '/v1beta/models/sandbox/text:generateContent'
const VIDEO = '/apis/v1/services/aigc/video-generation/video-synthesis'
const turns = { model: 'sandbox/text', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] }
const said = { model: 'sandbox/text', input: 'Hello' }
const contents = { contents: [{ parts: [{ text: 'Hello' }] }] }
const video = { model: VIDEO_MODEL, input: { prompt: 'a fox' } }
const tool = { type: 'function', function: { name: 'f' } }

type Case = readonly [path: string, body: object, expected: RegExp, headers?: Record<string, string>]

/** What an upstream might act on, and nobody here would have read. */
const REFUSED: readonly Case[] = [
  [CHAT, { ...turns, something: 1 }, /Unknown parameter "something"\. Remove it/],
  [
    CHAT,
    { ...turns, messages: [{ role: 'user', content: 'a', weight: 9 }] },
    /Unknown parameter "messages\[0\]\.weight"/,
  ],
  ...['provider', 'preset', 'extra_body', 'api_base', 'num_retries', 'n_predict', 'max_output_tokens'].map(
    (name): Case => [CHAT, { ...turns, [name]: 1 }, new RegExp(`"${name}" is not supported`)],
  ),
  [CHAT, { ...turns, tools: [{ ...tool, Type: 'web_search' }] }, /"tools\[0\]\.Type"/],
  [CHAT, turns, /Unknown parameter "openai-beta: fast=v1"/, { 'openai-beta': 'fast=v1' }],
  [CHAT, { ...turns, messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, /"input_audio"/],
  [RESPONSES, { ...said, something: 1 }, /Unknown parameter "something"\. Remove it/],
  [RESPONSES, { ...said, Max_Output_Tokens: 9_000 }, /"Max_Output_Tokens" is not supported in this spelling/],
  [RESPONSES, { ...said, tools: [{ type: 'function', name: 'f', Type: 'web_search' }] }, /"tools\[0\]\.Type"/],
  [RESPONSES, { ...said, input: [{ id: 'msg_1' }] }, /"input\[0\]" has no role/],
  [RESPONSES, said, /Unknown parameter "openai-beta: fast=v1"/, { 'openai-beta': 'fast=v1' }],
  [MESSAGES, { ...turns, cache_control: { type: 'ephemeral', ttl: '5m', TTL: '1h' } }, /"cache_control\.TTL"/],
  [MESSAGES, { ...turns, thinking: { type: 'adaptive', depth: 9 } }, /Unknown parameter "thinking\.depth"/],
  [MESSAGES, turns, /anthropic-version must be one of/, { 'anthropic-version': '2024-01-01' }],
  [MESSAGES, turns, /"anthropic-beta: of-tomorrow-2027-01-01"/, { 'anthropic-beta': 'of-tomorrow-2027-01-01' }],
  [
    GEMINI,
    { ...contents, generationConfig: { thinkingConfig: { Depth: 1 } } },
    /"generationConfig\.thinkingConfig\.Depth"/,
  ],
  [GEMINI, { contents: [{ parts: [{ inlineData: { mimeType: 'audio/wav', data: 'AA' } }] }] }, /audio/],
  ['/v1/embeddings', { model: EMBEDDING_MODEL, input: 'a', something: 1 }, /Unknown parameter "something"/],
  [VECTORS, { content: { parts: [{ text: 'a' }] }, something: 1 }, /Unknown parameter "something"/],
  [VECTORS, { content: { parts: [{ inlineData: { mimeType: 'image/png', data: 'AA' } }] } }, /only texts are embedded/],
  [VECTORS, { content: { parts: [{ text: 'a' }] }, Title: 'b' }, /"Title" is not supported in this spelling/],
  ['/v1/images/generations', { model: IMAGE_MODEL, prompt: 'a', num_images: 9 }, /"num_images" is not supported/],
  [
    VIDEO,
    { ...video, parameters: { duration: 1, Duration: 15 } },
    /"parameters\.Duration"/,
    { 'x-farebox-async': 'enable' },
  ],
]

describe('what nobody here has read or priced', () => {
  it('is refused by its name before anybody is asked or charged', async () => {
    const { secret, accountId } = await makeCustomer(pool)
    const before = (await sandbox.journal()).length
    for (const [path, body, expected, headers = {}] of REFUSED) {
      const told = await ask(url, secret, path, { body, headers })
      assert.equal(told.status, 400, told.text)
      const { message = told.json.message } = Object(errorOf(told))
      assert.match(String(message), expected)
    }
    assert.equal((await sandbox.journal()).length, before)
    assert.equal((await chargesOf(pool, accountId)).size, 0)
  })

  it('is not what stands in free-form parts, which pass as they are', async () => {
    const { secret } = await makeCustomer(pool)
    const parameters = { type: 'object', properties: { Type: {}, type: {}, unknown: {} } }
    const body = {
      ...turns,
      metadata: { a: '1', A: '2' },
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
    }
    const told = await ask(url, secret, CHAT, { body })
    assert.equal(told.status, 200, told.text)
  })

  it('is not what Claude Code sends', async () => {
    const { secret } = await makeCustomer(pool)
    const body = {
      ...turns,
      max_tokens: 100,
      system: [{ type: 'text', text: 'You help.', cache_control: { type: 'ephemeral' } }],
      thinking: { type: 'adaptive' },
      output_config: { effort: 'high' },
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      metadata: { user_id: '{"device_id":"d"}' },
      tools: [{ name: 'Bash', description: 'Runs.', input_schema: { type: 'object' }, defer_loading: true }],
    }
    const headers = {
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
    }
    const told = await ask(url, secret, `${MESSAGES}?beta=true`, { body, headers })
    assert.equal(told.status, 200, told.text)
  })
})
