import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import util from 'node:util'
import v8 from 'node:v8'
import { Secret } from './secret.ts'

const CANARY = 'canary-7f3a9c51'
const secret = new Secret(CANARY)

function thrownBy(action: () => unknown): unknown {
  try {
    return action()
  } catch (error) {
    return error
  }
}

const ways: Readonly<Record<string, () => unknown>> = {
  'String()': () => String(secret),
  'a template string': () => `${secret}`,
  concatenation: () => `a${secret}`.concat(secret as unknown as string),
  'the + operator': () => ['a', secret].reduce((text, part) => text + (part as string), ''),
  toLocaleString: () => secret.toLocaleString(),
  valueOf: () => secret.valueOf(),
  'Array.join': () => [secret, secret].join(),
  'JSON.stringify': () => JSON.stringify({ secret, list: [secret] }),
  'JSON.stringify of a map': () => JSON.stringify([...new Map([['secret', secret]])]),
  inspect: () => util.inspect(secret),
  'inspect with everything shown': () =>
    util.inspect({ secret }, { showHidden: true, depth: null, getters: true, showProxy: true, customInspect: true }),
  'inspect without custom inspectors': () =>
    util.inspect({ secret }, { showHidden: true, depth: null, customInspect: false }),
  'format %s %o %O %j': () => util.format('%s %o %O %j %d %i', secret, secret, secret, secret, secret, secret),
  'an error message': () => new Error(`failed with ${secret}`).stack,
  'an error cause': () => util.inspect(new Error('failed', { cause: secret })),
  'an error property': () => util.inspect(Object.assign(new Error('failed'), { secret })),
  'an assertion error': () => thrownBy(() => assert.deepEqual({ secret }, { secret: 1 })),
  'a TypeError from using it wrongly': () => thrownBy(() => (secret as unknown as () => void)()),
  'Object.entries': () => Object.entries(secret),
  'Object.getOwnPropertyNames': () => Reflect.ownKeys(secret).map((key) => Reflect.get(secret, key)),
  spread: () => ({ ...secret }),
  structuredClone: () => structuredClone(secret),
  'v8.serialize': () => v8.serialize(secret).toString('latin1'),
  'a URL': () => new URL(`http://host/?key=${encodeURIComponent(secret as unknown as string)}`).href,
  URLSearchParams: () => new URLSearchParams({ key: secret as unknown as string }).toString(),
  'Buffer.from': () => thrownBy(() => Buffer.from(secret as unknown as string)),
  'a header': () => [...new Headers({ key: secret as unknown as string })],
  'Object.prototype.toString': () => Object.prototype.toString.call(secret),
  'Symbol description': () => Symbol(secret as unknown as string).toString(),
}

describe('a secret', () => {
  for (const [way, print] of Object.entries(ways)) {
    it(`is not printed by ${way}`, () => {
      const printed = print()
      const text = [
        printed,
        printed instanceof Error ? printed.stack : '',
        util.inspect(printed, { depth: null, showHidden: true }),
      ].join()
      assert.ok(!text.includes(CANARY) && !text.includes(Buffer.from(CANARY).toString('hex')), text)
    })
  }

  it('is not printed by console', async () => {
    const { Console } = await import('node:console')
    const { PassThrough } = await import('node:stream')
    const out = new PassThrough()
    const print = new Console({ stdout: out, stderr: out })
    print.log(secret, { secret }, '%s', secret)
    print.dir({ secret }, { depth: null, showHidden: true })
    print.table([{ secret }])
    print.error(new Error('failed', { cause: { secret } }))
    const text = String(out.read())
    assert.match(text, /redacted/)
    assert.ok(!text.includes(CANARY), text)
  })

  it('is revealed when asked for by name', () => {
    assert.equal(secret.reveal(), CANARY)
  })

  it('can not be empty', () => {
    assert.throws(() => new Secret(''), RangeError)
  })
})
