import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { count, seed } from '../../../harness/proof.ts'
import { createNetworks } from './networks.ts'

const CASES = count({ full: 100_000, reduced: 5_000 })

describe('a network', () => {
  for (const [text, spelling] of [
    ['203.0.113.7', '203.0.113.7/32'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['::/0', '::/0'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1/128'],
    ['::ffff:192.0.2.1', '192.0.2.1/32'],
    ['::ffff:c000:201', '192.0.2.1/32'],
    ['0:0:0:0:0:FFFF:192.0.2.0/120', '192.0.2.0/24'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201/128'],
  ] as const)
    it(`${text} is ${spelling}`, () => assert.deepEqual(createNetworks([text]).texts, [spelling]))

  it('that is named twice, however it is spelled, is one', () => {
    assert.deepEqual(createNetworks(['10.0.0.1', '::ffff:10.0.0.1', '10.0.0.1/32']).texts, ['10.0.0.1/32'])
  })

  for (const text of [
    ...[
      '',
      ' ',
      '/',
      '/8',
      '10',
      '10.0.0',
      '10.0.0.0.0',
      '10.0.0.0/',
      '10.0.0.0/33',
      '10.0.0.0/-1',
      '10.0.0.0/+8',
      '10.0.0.0/8.0',
    ],
    // Other programs read these as other addresses: octal and hexadecimal numbers, and numbers without dots.
    ...[
      '010.0.0.1',
      '10.0.0.08',
      '0x0a.0.0.1',
      '167772161',
      '10.0.0.0/08',
      '10.0.0.0/0x8',
      '10.0.0.0/8/8',
      '256.0.0.1',
      '1.2.3.1e1',
    ],
    ...[
      ' 10.0.0.1',
      '10.0.0.1 ',
      '10.0.0.1\n',
      '10.0.0.1\0',
      '10.0.0.1,10.0.0.2',
      '10.0.0.0/255.0.0.0',
      '10.0.0.1-10.0.0.9',
      '10.*',
    ],
    ...[
      'example.com',
      'localhost',
      'http://10.0.0.1',
      '[::1]',
      '::1]',
      'fe80::1%eth0',
      'fe80::1%25eth0',
      ':::',
      '1::2::3',
      '::12345',
    ],
    ...[
      '::/129',
      '::ffff:192.0.2.1/129',
      '::ffff:1.2.3',
      '::ffff:256.0.0.1',
      '1:2:3:4:5:6:7:8:9',
      '２０３.0.113.7',
      '10.0.0.1/３２',
    ],
    ...[
      'x'.repeat(100_000),
      `10.0.0.0/${'0'.repeat(100_000)}8`,
      `${'0'.repeat(100_000)}::`,
      '\u202e7.311.0.302',
      "'; drop table api_keys; --",
    ],
  ])
    it(`is not what ${JSON.stringify(text.slice(0, 40))} names`, () => {
      assert.throws(() => createNetworks([text]), /^RangeError: .{1,300}$/s)
      assert.throws(() => createNetworks(['10.0.0.0/8', text]), RangeError)
    })

  for (const [text, meant] of [
    ['10.0.0.1/8', '10.0.0.0/8'],
    ['2001:db8::1/64', '2001:db8::/64'],
    ['::ffff:192.0.2.1/120', '192.0.2.0/24'],
    // A part of IPv6 that all addresses of IPv4 and others stand in is never meant.
    ['::ffff:0:0/90', '::ffc0:0:0/90'],
  ] as const)
    it(`has no bits beyond its length: for ${text} one is told to use ${meant}`, () => {
      assert.throws(() => createNetworks([text]), new RegExp(`use ${meant.replaceAll('.', '\\.')}, or a longer prefix`))
    })
})

describe('an address', () => {
  const { has } = createNetworks(['10.0.0.0/8', '203.0.113.7', '2001:db8::/32', '192.168.4.0/22'])
  for (const address of [
    '10.255.0.1',
    '203.0.113.7',
    '2001:db8:ffff::1',
    '::ffff:10.1.2.3',
    '::FFFF:cb00:7107',
    '192.168.7.255',
    '2001:db8::1%eth0',
  ])
    it(`${address} is in its network`, () => assert.ok(has(address)))
  for (const address of [
    '11.0.0.1',
    '203.0.113.8',
    '2001:db9::1',
    '::10.1.2.3',
    '64:ff9b::10.1.2.3',
    '192.168.8.0',
    '::ffff:11.0.0.1',
    '',
    'unknown',
    '10.1.2.3, 1.1.1.1',
    '010.1.2.3',
  ])
    it(`${JSON.stringify(address)} is in none`, () => assert.ok(!has(address)))

  it('of IPv4 is in no network of IPv6, nor the other way round', () => {
    assert.ok(!createNetworks(['::/0']).has('10.0.0.1'))
    assert.ok(!createNetworks(['::/0']).has('::ffff:10.0.0.1'))
    assert.ok(!createNetworks(['0.0.0.0/0']).has('2001:db8::1'))
  })

  const v4 = fc.ipV4()
  // Its mapped ones are those of IPv4 here, which Node's list knows otherwise.
  const v6 = fc.ipV6().filter((text) => !createNetworks(['::ffff:0:0/96']).has(text))
  for (const [family, address, width] of [
    ['ipv4', v4, 32],
    ['ipv6', v6, 128],
  ] as const)
    it(`of ${family} is in a network where Node's own list says so`, () => {
      const cases = fc.tuple(address, fc.nat(width), fc.oneof(address, fc.constant(null)), fc.nat(width))
      fc.assert(
        fc.property(cases, ([network, bits, other, flipped]) => {
          const base = firstOf(network, bits, width)
          // A random address is hardly ever in a long network: then the network's own with one bit turned is taken.
          const asked = other ?? turned(base, flipped, width)
          const list = new BlockList()
          list.addSubnet(base, bits, family)
          assert.equal(createNetworks([`${base}/${bits}`]).has(asked), list.check(asked, family))
        }),
        { numRuns: CASES, seed },
      )
    })
})

/** The first address of a network, as the refusal of any other says. */
function firstOf(address: string, bits: number, width: number): string {
  try {
    createNetworks([`${address}/${bits}`])
    return address
  } catch (error) {
    const meant = /use ([0-9a-f.:]+)\//.exec(String(error))?.[1] ?? assert.fail(String(error))
    assert.ok(bits < width)
    return meant
  }
}

/** An address with one bit turned, or as it is. */
function turned(address: string, bit: number, width: number): string {
  if (bit === width) return address
  const [text = ''] = createNetworks([address]).texts[0]?.split('/') ?? []
  if (width === 32) return withBit(text.split('.').map(Number), bit, 8).join('.')
  const [before = [], after = []] = text.split('::').map((part) => (part === '' ? [] : part.split(':')))
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after]
  const numbers = groups.map((group) => Number.parseInt(group, 16))
  return withBit(numbers, bit, 16)
    .map((group) => group.toString(16))
    .join(':')
}

function withBit(parts: readonly number[], bit: number, bits: number): number[] {
  return parts.map((part, at) => (at === Math.floor(bit / bits) ? part ^ (1 << (bits - 1 - (bit % bits))) : part))
}
