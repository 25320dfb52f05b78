import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { inspect } from 'node:util'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { createScrubber } from '../telemetry/scrubber.ts'
import { hashOf, holdsKey, makeAccessToken, makeKey, parseCredential } from './key-format.ts'

const ids = createIds({ clock: systemClock })
const parse = (text: string) => parseCredential(new Secret(text))

const MODES = ['live', 'test'] as const
const SHARDS = 4_096
const LENGTH = 93
/** What can stand in a header without being a space. */
const VISIBLE = Array.from({ length: 0x7e - 0x20 }, (_, at) => String.fromCharCode(0x21 + at))

const anyKey = fc
  .tuple(fc.constantFrom(...MODES), fc.nat(SHARDS - 1))
  .map(([mode, shard]) => makeKey(ids.next(), mode, shard).reveal())

const anyCredential = fc.oneof(
  anyKey,
  fc.nat(SHARDS - 1).map((shard) => makeAccessToken(ids.next(), shard).reveal()),
)

/** As whoever knows how keys end would end one. */
function withChecksum(text: string): string {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  const places = [62 ** 5, 62 ** 4, 62 ** 3, 62 ** 2, 62, 1]
  return text + places.map((place) => digits.charAt(Math.floor(crc32(text) / place) % 62)).join('')
}

const put = (text: string, at: number, character: string) => text.slice(0, at) + character + text.slice(at + 1)

describe('a key', () => {
  it('says its id and mode again, in every mode and shard', () => {
    for (const mode of MODES) {
      for (let shard = 0; shard < SHARDS; shard += 1) {
        const id = ids.next()
        const key = makeKey(id, mode, shard)
        const place = shard.toString(16).padStart(3, '0') + id.replaceAll('-', '')
        assert.ok(key.reveal().startsWith(`fb_${mode}_${place}_`))
        const parsed = parseCredential(key)
        assert.ok(parsed !== undefined && parsed.id === id && parsed.kind === mode)
      }
    }
  })

  it('that was issued once is read the same for ever', () => {
    // In two pieces, so that nobody's scanner takes it for one that leaked.
    const issued = ['fb_live_02f01932b1c5a7e7abc8def0123456789ab', 'R9RRiUKNmMX8A8N6KMVSlmc1vUZRUoygYoFB1z9ZD8011Hp9c']
    const { id, kind, hash } = parse(issued.join('_')) ?? {}
    assert.deepEqual([id, kind], ['01932b1c-5a7e-7abc-8def-0123456789ab', 'live'])
    assert.equal(hash?.toString('hex'), '05ea97d8aaa0b0cfd85874e286c81b313cb2024c8ee8d6317f56dd8a5908ee1e')
  })

  it('with any one character changed is refused without a look-up', () => {
    const key = makeKey(ids.next(), 'live', 0xabc).reveal()
    assert.equal(key.length, LENGTH)
    const changed = Array.from(key, (own, at) => VISIBLE.filter((one) => one !== own).map((one) => put(key, at, one)))
    assert.equal(changed.flat().length, LENGTH * (VISIBLE.length - 1))
    assert.deepEqual(
      changed.flat().filter((text) => parse(text) !== undefined),
      [],
    )
    const change = fc.tuple(
      anyKey,
      fc.nat(LENGTH - 1),
      fc.nat(0xffff).map((code) => String.fromCharCode(code)),
    )
    fc.assert(
      fc.property(change, ([other, at, character]) => {
        fc.pre(other[at] !== character)
        assert.equal(parse(put(other, at, character)), undefined)
      }),
      { numRuns: 500, seed },
    )
  })

  it('with two characters that changed places is refused without a look-up', () => {
    const swap = fc.tuple(anyKey, fc.nat(LENGTH - 2), fc.nat(LENGTH - 1))
    fc.assert(
      fc.property(swap, ([key, one, other]) => {
        const [first = '', second = ''] = [key[one], key[other]]
        fc.pre(first !== second)
        assert.equal(parse(put(put(key, one, second), other, first)), undefined)
      }),
      { numRuns: 500, seed },
    )
  })

  it('that is cut short, is longer, or has something around it is refused without a look-up', () => {
    const key = makeKey(ids.next(), 'test', 7).reveal()
    for (let length = 1; length < LENGTH; length += 1) {
      assert.equal(parse(key.slice(0, length)), undefined)
      assert.equal(parse(key.slice(-length)), undefined)
    }
    for (const more of ['0', ' ', '\n', '\r\n', '\0', '_', key]) {
      assert.equal(parse(key + more), undefined)
      assert.equal(parse(more + key), undefined)
    }
  })

  it('of another form is refused without a look-up, however right its checksum', () => {
    const [place, secret] = [`0ab${'0'.repeat(32)}`, 'x'.repeat(43)]
    assert.ok(parse(withChecksum(`fb_live_${place}_${secret}`)) !== undefined)
    for (const text of [
      `fb_live_0AB${'0'.repeat(32)}_${secret}`,
      `fb_live_0ab${'A'.repeat(32)}_${secret}`,
      `fb_live_0ab${'0'.repeat(31)}'_${secret}`,
      `fb_live_0ab${"'or true--".padEnd(32)}_${secret}`,
      `fb_live_0ab00000000-0000-7000-8000-0000000_${secret}`,
      `fb_live_${place}0_${secret}`,
      `fb_live_${place}_${secret}0`,
      `fb_live_${place}_${secret.slice(1)}-`,
      `fb_live_${place}_${secret.slice(1)}é`,
      `fb_prod_${place}_${secret}`,
      `fb__${place}_${secret}`,
      `FB_live_${place}_${secret}`,
      `xfb_live_${place}_${secret}`,
    ]) {
      assert.equal(parse(withChecksum(text)), undefined, text)
    }
  })

  it('is written in one way: another case is another text', () => {
    const key = makeKey(ids.next(), 'live', 0xabc).reveal()
    assert.equal(parse(key.toUpperCase()), undefined)
    assert.equal(parse(key.toLowerCase()), undefined)
    assert.equal(parse(key.replace('fb_live', 'FB_LIVE')), undefined)
    assert.equal(parse(key.replace('abc', 'ABC')), undefined)
  })

  it('has a secret that no other has, also of the same id', () => {
    const id = ids.next()
    const secrets = Array.from({ length: 2_000 }, () => makeKey(id, 'live', 1).reveal().slice(44, 87))
    assert.equal(new Set(secrets).size, secrets.length)
    // A digit that is the same in all of them would be one that does not count.
    for (let at = 1; at < 43; at += 1) assert.ok(new Set(secrets.map((secret) => secret[at])).size > 50, `digit ${at}`)
  })

  it('is not printed by accident, nor is any part of it', () => {
    const key = makeKey(ids.next(), 'live', 1)
    const printed = `${key} ${JSON.stringify({ key })} ${inspect({ key }, { showHidden: true, depth: 9 })} ${[key]}`
    assert.ok(!printed.includes(key.reveal().slice(44, 60)), printed)
    assert.ok(!printed.includes('fb_live'), printed)
  })

  it('is stored as its SHA-256, in which every character counts', () => {
    const key = makeKey(ids.next(), 'live', 1)
    assert.ok(hashOf(key).equals(createHash('sha256').update(key.reveal()).digest()))
    assert.ok(!hashOf(key).equals(hashOf(new Secret(key.reveal().replace('fb_live', 'fb_test')))))
  })
})

describe('an access token', () => {
  it('says its grant again, in every shard, and is no key', () => {
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const id = ids.next()
      const token = makeAccessToken(id, shard)
      assert.ok(token.reveal().startsWith(`fb_at_${shard.toString(16).padStart(3, '0')}${id.replaceAll('-', '')}_`))
      const parsed = parseCredential(token)
      assert.ok(parsed !== undefined && parsed.id === id && parsed.kind === 'at')
      assert.deepEqual(parsed.hash, createHash('sha256').update(token.reveal()).digest())
    }
  })

  it('with any one character changed, or with the beginning of a key, is refused without a look-up', () => {
    const token = makeAccessToken(ids.next(), 0xabc).reveal()
    for (let at = 0; at < token.length; at += 1)
      for (const character of ['0', 'a', 'Z', '_']) {
        const changed = put(token, at, character)
        if (changed !== token) assert.equal(parse(changed), undefined, changed)
      }
    for (const kind of ['live', 'test', 'AT', 'rt', '']) assert.equal(parse(token.replace('at', kind)), undefined)
  })

  it('is found in a text, whole or most of it', () => {
    const token = makeAccessToken(ids.next(), 1).reveal()
    for (const text of [token, `/v1/${token}?`, token.slice(0, -20), token.toUpperCase()])
      assert.ok(holdsKey(text), text)
    assert.ok(!holdsKey('fb_at_rest'))
  })
})

describe('the scrubber', () => {
  it('takes keys out of any text, and access tokens, whatever stands around them', () => {
    const scrub = createScrubber([])
    const around = fc.string({ unit: 'binary', maxLength: 20 })
    fc.assert(
      fc.property(around, anyCredential, around, anyCredential, around, (before, key, between, other, after) => {
        const clean = scrub(before + key + between + other + after)
        for (const text of [key, other])
          assert.ok(!clean.includes(text.slice(8, 20)) && !clean.includes(text.slice(44)))
      }),
      { numRuns: 500, seed },
    )
  })
})
