import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { createSeal, isMasterKey, SealError } from './seal.ts'
import { Secret } from './secret.ts'

const newKey = () => new Secret(randomBytes(32).toString('base64'))
const PLAIN = 'sk-canary-7d1f'

function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    assert.ok(error instanceof SealError)
    assert.ok(!inspect(error, { depth: null, showHidden: true }).includes('canary'), 'no secret in an error')
    return error.message
  }
  throw new Error('was not refused')
}

describe('the seal', () => {
  const keys = { current: newKey(), previous: newKey() }
  const seal = createSeal(keys)

  it('gives back what it sealed, for the same thing', () => {
    for (const plain of [PLAIN, 'x', 'ünïcode ✓', 'y'.repeat(10_000)])
      assert.equal(seal.open(seal.seal(new Secret(plain), 'upstream 1'), 'upstream 1').reveal(), plain)
  })

  it('leaves nothing of the secret to be read, and never writes the same twice', () => {
    const sealed = seal.seal(new Secret(PLAIN), 'upstream 1')
    assert.ok(!sealed.includes(PLAIN))
    assert.notDeepEqual(sealed, seal.seal(new Secret(PLAIN), 'upstream 1'))
    assert.equal(sealed.length, 1 + 8 + 12 + PLAIN.length + 16)
  })

  it('refuses to open it for anything else', () => {
    const sealed = seal.seal(new Secret(PLAIN), 'upstream 1')
    for (const other of ['upstream 2', 'upstream 1 ', ''])
      assert.match(
        refusal(() => seal.open(sealed, other)),
        /changed since it was sealed, or was sealed for something else/,
      )
  })

  it('refuses what was changed by a single bit, wherever', () => {
    const sealed = seal.seal(new Secret(PLAIN), 'upstream 1')
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Buffer.from(sealed)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      refusal(() => seal.open(changed, 'upstream 1'))
    }
  })

  it('refuses what is cut short or nothing of ours, saying so', () => {
    const sealed = seal.seal(new Secret('x'), 'upstream 1')
    for (let length = 0; length < sealed.length; length += 1)
      refusal(() => seal.open(sealed.subarray(0, length), 'upstream 1'))
    assert.match(
      refusal(() => seal.open(Buffer.from(PLAIN), 'upstream 1')),
      /not a sealed secret/,
    )
  })

  it('opens with the previous key what was sealed before a rotation, and seals with the current one', () => {
    const rotated = createSeal({ current: newKey(), previous: keys.current })
    assert.equal(rotated.open(seal.seal(new Secret(PLAIN), 'a'), 'a').reveal(), PLAIN)
    assert.match(
      refusal(() => seal.open(rotated.seal(new Secret(PLAIN), 'a'), 'a')),
      /master key [0-9a-f]{16}, which is neither the current nor the previous/,
    )
  })

  it('takes 32 bytes in base64 for a key and nothing else, and says how to make one', () => {
    for (const wrong of [
      'canary',
      randomBytes(31).toString('base64'),
      randomBytes(32).toString('hex'),
      `${'A'.repeat(43)}`,
    ]) {
      assert.equal(isMasterKey(new Secret(wrong)), false)
      assert.match(
        refusal(() => createSeal({ current: new Secret(wrong) })),
        /openssl rand -base64 32/,
      )
    }
    assert.equal(isMasterKey(newKey()), true)
  })
})
