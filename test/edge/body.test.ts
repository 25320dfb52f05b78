import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { KEY, type Probe, startProbeEdge } from './probe-edge.ts'

let probe: Probe
before(async () => {
  probe = await startProbeEdge()
})
after(() => probe.edge.drain({ idleGraceMs: 0 }))

const JSON_TYPE = { 'content-type': 'application/json' }
const KNOWN = { authorization: `Bearer ${KEY}` }

async function send(body: string | Uint8Array<ArrayBuffer> | undefined, headers: Record<string, string> = JSON_TYPE) {
  const response = await fetch(`${probe.url}/apis/v1/probe/echo`, {
    method: 'POST',
    headers: { ...KNOWN, ...headers },
    ...(body !== undefined && { body }),
  })
  const answer = Object(await response.json())
  return { status: response.status, code: answer.error?.code, ...answer }
}

describe('a body', () => {
  it('reaches the route as a value, and beside it as the very bytes that came', async () => {
    const text = ' {"b" : 1.10, "a":"\\u00e9\\/é", "n": 12345678901234567890 }\n'
    const { status, body, bytes, sha256 } = await send(text)
    assert.equal(status, 200)
    assert.deepEqual(body, JSON.parse(text))
    assert.equal(bytes, Buffer.byteLength(text))
    assert.equal(sha256, createHash('sha256').update(text).digest('hex'))
  })

  it('may have a character set in its type', async () => {
    assert.equal((await send('{}', { 'content-type': 'application/json; charset=utf-8' })).status, 200)
  })

  it('may be missing or empty: whether there has to be one is for the route to say', async () => {
    assert.deepEqual(await send(undefined, {}), { status: 200, code: undefined, sha256: null })
    const empty = await send('')
    assert.deepEqual([empty.status, empty.body, empty.bytes], [200, undefined, 0])
  })

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'application/jsonx',
    'x',
  ]) {
    it(`of type ${type} is refused with 415`, async () => {
      const { status, code } = await send('{}', { 'content-type': type })
      assert.deepEqual([status, code], [415, 'unsupported_media_type'])
    })
  }

  for (const encoding of ['gzip', 'br', 'identity, gzip']) {
    it(`with the content encoding ${encoding} is refused with 415`, async () => {
      const { status, code } = await send(new Uint8Array(gzipSync('{}')), {
        ...JSON_TYPE,
        'content-encoding': encoding,
      })
      assert.deepEqual([status, code], [415, 'unsupported_media_type'])
    })
  }

  it('with the encoding identity is one without', async () => {
    assert.equal((await send('{}', { ...JSON_TYPE, 'content-encoding': 'identity' })).status, 200)
  })

  for (const [body, code] of [
    ['{"a":', 'invalid_json'],
    ['{"a":1,"a":2}', 'invalid_json'],
    ['{"__proto__":1}', 'invalid_request'],
    ['['.repeat(100) + ']'.repeat(100), 'body_too_deep'],
  ] as const) {
    it(`${body.slice(0, 20)} is refused with 400 ${code}`, async () => {
      const answer = await send(body)
      assert.deepEqual([answer.status, answer.code], [400, code])
    })
  }

  it('of a megabyte is taken, and one byte more is refused, while the connection goes on', async () => {
    const largest = `"${'a'.repeat(1024 * 1024 - 2)}"`
    assert.equal((await send(largest)).status, 200)
    for (let times = 0; times < 20; times += 1) {
      const { status, code } = await send(`${largest} `)
      assert.deepEqual([status, code], [413, 'body_too_large'])
    }
    assert.equal((await send('{}')).status, 200)
  })
})
