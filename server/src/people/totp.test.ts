import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base32, codeOf, keyUri, matchingStep, stepAt } from './totp.ts'

/** The keys and values of RFC 6238, appendix B. */
const KEYS = {
  sha1: Buffer.from('12345678901234567890'),
  sha256: Buffer.from('12345678901234567890123456789012'),
  sha512: Buffer.from('1234567890123456789012345678901234567890123456789012345678901234'),
}
const VALUES = [
  [59, '94287082', '46119246', '90693936'],
  [1_111_111_109, '07081804', '68084774', '25091201'],
  [1_111_111_111, '14050471', '67062674', '99943326'],
  [1_234_567_890, '89005924', '91819424', '93441116'],
  [2_000_000_000, '69279037', '90698825', '38618901'],
  [20_000_000_000, '65353130', '77737706', '47863826'],
] as const

describe('a time-based code', () => {
  it('is the one of RFC 6238', () => {
    for (const [seconds, sha1, sha256, sha512] of VALUES)
      for (const [algorithm, code] of Object.entries({ sha1, sha256, sha512 }) as [keyof typeof KEYS, string][])
        assert.equal(
          codeOf(KEYS[algorithm], stepAt(seconds), { algorithm, digits: 8 }),
          code,
          `${algorithm} ${seconds}`,
        )
  })

  it('has six digits as apps show them, with their spaces', () => {
    const code = codeOf(KEYS.sha1, stepAt(59))
    assert.equal(code, '287082')
    assert.equal(matchingStep(KEYS.sha1, ' 287 082 ', { seconds: 59, usedStep: 0 }), stepAt(59))
  })

  it('is taken a step before and after its own, and no further away', () => {
    const seconds = 1_111_111_111
    const taken = [-2, -1, 0, 1, 2].map((away) => {
      const step = stepAt(seconds) + away
      return matchingStep(KEYS.sha1, codeOf(KEYS.sha1, step), { seconds, usedStep: 0 }) === step
    })
    assert.deepEqual(taken, [false, true, true, true, false])
  })

  it('works once, and none works that is older than one that was used', () => {
    const seconds = 1_111_111_111
    const step = stepAt(seconds)
    const matching = (used: number, code: string) => matchingStep(KEYS.sha1, code, { seconds, usedStep: used })
    assert.equal(matching(step - 1, codeOf(KEYS.sha1, step)), step)
    assert.equal(matching(step, codeOf(KEYS.sha1, step)), null)
    assert.equal(matching(step, codeOf(KEYS.sha1, step - 1)), null)
    assert.equal(matching(step, codeOf(KEYS.sha1, step + 1)), step + 1)
  })

  it('is nothing else', () => {
    for (const typed of ['', '28708', '2870820', '28708a', '٢٨٧٠٨٢', '-28708'])
      assert.equal(matchingStep(KEYS.sha1, typed, { seconds: 59, usedStep: 0 }), null, typed)
  })
})

describe('a key', () => {
  it('is shown in base32', () => {
    // RFC 4648, section 10.
    const vectors = { f: 'MY', fo: 'MZXQ', foo: 'MZXW6', foob: 'MZXW6YQ', fooba: 'MZXW6YTB', foobar: 'MZXW6YTBOI' }
    for (const [plain, text] of Object.entries(vectors)) assert.equal(base32(Buffer.from(plain)), text)
  })

  it('is a URI that apps read', () => {
    const uri = new URL(keyUri(KEYS.sha1, { issuer: 'site.example:8443', account: 'a b+c@example.com' }))
    assert.equal(uri.protocol, 'otpauth:')
    assert.equal(decodeURIComponent(uri.pathname), '/site.example:8443:a b+c@example.com')
    assert.deepEqual(Object.fromEntries(uri.searchParams), {
      ...{ secret: base32(KEYS.sha1), issuer: 'site.example:8443', algorithm: 'SHA1', digits: '6', period: '30' },
    })
  })
})
