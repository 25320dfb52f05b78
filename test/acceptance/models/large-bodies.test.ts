import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { ask, codeOf, errorOf, makeCustomer, startInstallation, type Told } from '../installation.ts'
import { question } from './streams.ts'

const MIB = 1_048_576
const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool, sandbox } = installation
after(installation.stop)
const gateway = installation.gateways[0] ?? assert.fail('a gateway')
const { secret } = await makeCustomer(pool)

async function reserved(): Promise<number> {
  const exposed = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  return Number(/^farebox_memory_reserved_bytes (\S+)$/m.exec(exposed)?.[1])
}
const untilReserved = (isSo: (bytes: number) => boolean, what: string) =>
  until(async () => isSo(await reserved()), PATIENCE_MS, what)

const picture = (bytes: number) => `data:image/png;base64,${'A'.repeat(bytes)}`

/** Of each protocol a request with a picture of so many bytes. */
const WITH_PICTURE: Readonly<Record<string, (bytes: number) => { path: string; body: unknown }>> = {
  openai: (bytes) => ({
    path: '/v1/chat/completions',
    body: {
      model: 'sandbox/text',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: picture(bytes) } }] }],
    },
  }),
  anthropic: (bytes) => ({
    path: '/v1/messages',
    body: {
      model: 'sandbox/text',
      max_tokens: 100,
      messages: [
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(bytes) } }],
        },
      ],
    },
  }),
  gemini: (bytes) => ({
    path: '/v1beta/models/sandbox/text:generateContent',
    body: { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'A'.repeat(bytes) } }] }] },
  }),
}

/** Sends a head that announces so many bytes, and none of them. */
function announce(path: string, bytes: number) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  let told = ''
  socket
    .on('error', () => {})
    .on('data', (piece) => {
      told += piece.toString('latin1')
    })
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`,
  )
  return { socket, told: () => told }
}

const wordsOf = (told: Told) => String(errorOf(told).message)

describe('the body of a call of a model', () => {
  for (const [protocol, make] of Object.entries(WITH_PICTURE))
    it(`may have a photo of 20 MiB, which reaches the upstream whole: ${protocol}`, async () => {
      const { path, body } = make(20 * MIB)
      const told = await ask(url, secret, path, { body })
      assert.equal(told.status, 200, told.text.slice(0, 500))
      const entry = (await sandbox.journal()).find(({ request_id }) => request_id === told.id)
      assert.ok((entry?.body_bytes ?? 0) > 20 * MIB)
      assert.notEqual(told.costUsd, '0.000000000')
    })

  it('has its room taken from the memory of the process before a byte of it is read, and gives it back', async () => {
    await untilReserved((bytes) => bytes === 0, 'that nothing is reserved')
    const { socket } = announce('/v1/chat/completions', 30 * MIB)
    await untilReserved((bytes) => bytes >= 90 * MIB, 'that three times the body is reserved')
    socket.destroy()
    await untilReserved((bytes) => bytes === 0, 'that all of it is given back')
  })

  it('beyond 32 MiB is refused unread, with its size and the limit', async () => {
    const { socket, told } = announce('/v1/messages', 33 * MIB)
    await until(async () => told().includes('request_id'), PATIENCE_MS, 'the refusal')
    assert.match(told(), /^HTTP\/1\.1 413 /)
    assert.match(told(), /The body is 33 MiB; the limit here is 32 MiB\./)
    socket.destroy()
  })

  it('may come without a length, up to the same limit', async () => {
    const { path, body } = WITH_PICTURE.openai?.(5 * MIB) ?? assert.fail()
    const bytes = new TextEncoder().encode(JSON.stringify(body))
    const response = await fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: new Blob([bytes]).stream(),
      duplex: 'half',
    })
    assert.equal(response.status, 200, await response.text())
  })
})

describe('every other body', () => {
  for (const path of [
    '/v1/rerank',
    '/v1/deep-research/search',
    '/apis/v1/social_a/auth_social_a',
    '/apis/v1/social_a/follow_social_a',
    '/apis/v1/services/aigc/video-generation/video-synthesis',
  ])
    it(`has 1 MiB at the most: ${path}`, async () => {
      const told = await ask(url, secret, path, { body: `{"a":"${'a'.repeat(1.5 * MIB)}"}` })
      assert.deepEqual([told.status, codeOf(told), errorOf(told).limit_bytes], [413, 'body_too_large', MIB])
      assert.match(wordsOf(told), /^The body is 1\.51 MiB; the limit here is 1 MiB\.$/)
    })
})

it('small calls are served beside large ones', async () => {
  const large = WITH_PICTURE.openai?.(20 * MIB) ?? assert.fail()
  const running = ask(url, secret, large.path, { body: large.body })
  const { path, body } = question('openai', 'sandbox/echo', 'a fox')
  for (let at = 0; at < 10; at += 1) assert.equal((await ask(url, secret, path, { body })).status, 200)
  assert.equal((await running).status, 200)
})
