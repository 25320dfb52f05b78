import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Secret } from '../kernel/secret.ts'
import { createLog, type LogFields } from './log.ts'

const CANARY = 'canary "quoted" 51/7'

function lines(use: (log: ReturnType<typeof createLog>) => void): string {
  let written = ''
  use(createLog({ level: 'info', secrets: [new Secret(CANARY)], write: (line) => (written += line) }))
  return written
}

describe('the log', () => {
  it('writes one JSON line with the fields that are allowed', () => {
    const { time, ...rest } = JSON.parse(lines((log) => log.info('answered', { request_id: 'r', status: 200 })))
    assert.deepEqual(rest, { level: 'info', request_id: 'r', status: 200, msg: 'answered' })
    assert.ok(!Number.isNaN(Date.parse(time)))
  })

  it('leaves out a field that is not on the list', () => {
    const fields = { authorization: 'Bearer abc', body: { a: 1 }, status: 200 } as LogFields
    assert.ok(!/authorization|body|abc/.test(lines((log) => log.info('answered', fields))))
  })

  it('writes an error with its causes, but none of its other properties', () => {
    const error = Object.assign(new Error('outer', { cause: new Error('inner') }), { code: 'E1', connection: 'leak' })
    const written = lines((log) => log.error('failed', { error }))
    assert.match(written, /outer/)
    assert.match(written, /inner/)
    assert.match(written, /"code":"E1"/)
    assert.ok(!written.includes('leak'))
  })

  it('writes of an error and its causes one stack, that of the last, where it began', () => {
    const inner = new Error('inner')
    const error = new Error('outer', { cause: new Error('between', { cause: inner }) })
    const written = JSON.parse(lines((log) => log.error('failed', { error }))).error
    assert.deepEqual(
      [written.message, written.stack, written.cause.message, written.cause.stack, written.cause.cause.message],
      ['outer', undefined, 'between', undefined, 'inner'],
    )
    assert.equal(written.cause.cause.stack, inner.stack)
  })

  it('says nothing of a thrown value that is not an error', () => {
    assert.ok(!lines((log) => log.error('failed', { error: CANARY })).includes('canary'))
  })

  it('never writes a known secret, in plain text, in JSON or in a URL', () => {
    const written = lines((log) => {
      log.error(`failed with ${CANARY}`, { error: new Error(CANARY), reason: CANARY })
      log.warn('failed', { reason: encodeURIComponent(CANARY) })
    })
    assert.ok(!written.includes('canary'), written)
    assert.match(written, /redacted/)
  })

  it('never writes what looks like a credential', () => {
    const written = lines((log) =>
      log.warn('Authorization: Bearer abc.def-123', { reason: 'fb_live_0a1_secretpart and fb_test_x' }),
    )
    assert.ok(!/abc\.def|secretpart|fb_test_x/.test(written), written)
  })

  for (const [what, between] of Object.entries({
    'a new line': '\n',
    'a tab': '\t',
    'an escaped new line': '\\n',
    'a letter': 'x',
  })) {
    it(`never writes what looks like a credential after ${what}, in a message, a field, an error or its stack`, () => {
      const text = `upstream said:${between}fb_live_secretpart${between}Bearer secretpart`
      const error = new Error(text, { cause: new Error(text) })
      const written = lines((log) => log.warn(text, { reason: text, error }))
      assert.ok(!written.includes('secretpart'), written)
      assert.match(written, /upstream said/)
    })
  }

  it('never writes the front of a known secret or of a credential that the cut goes through', () => {
    for (const secret of [CANARY, 'fb_live_canary', 'Bearer canary-1']) {
      for (let kept = 3; kept < secret.length; kept += 1) {
        const text = 'x'.repeat(8_192 - kept) + secret
        const written = lines((log) => log.warn(text, { reason: text, error: new Error(text) }))
        assert.ok(!written.includes(`x${secret.slice(0, 3)}`), `${kept} of ${secret}`)
      }
    }
  })

  it('leaves texts alone for the sake of a secret of a few letters', () => {
    let written = ''
    const log = createLog({ level: 'info', secrets: [new Secret('serve')], write: (line) => (written += line) })
    log.info('the server')
    assert.match(written, /the server/)
  })

  it('leaves out a value that is neither text nor number', () => {
    const fields = { reason: { key: CANARY }, host: [CANARY], status: 200 } as unknown as LogFields
    const written = lines((log) => log.info('answered', fields))
    assert.ok(!written.includes('canary'), written)
    assert.match(written, /"status":200/)
  })

  it('writes every error under one that stands for several', () => {
    const written = lines((log) =>
      log.error('failed', { error: new AggregateError([new Error('first'), new Error(CANARY)]) }),
    )
    assert.match(written, /first/)
    assert.ok(!written.includes('canary'), written)
  })

  it('cuts long texts', () => {
    assert.ok(lines((log) => log.info('long', { reason: 'x'.repeat(1_000_000) })).length < 20_000)
  })

  it('writes nothing below its level', () => {
    let written = ''
    createLog({ level: 'error', secrets: [], write: (line) => (written += line) }).warn('quiet')
    assert.equal(written, '')
  })
})
