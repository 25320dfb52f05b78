import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { seed } from '../../../harness/proof.ts'
import { PRIVATE_ADDRESSES } from '../../../test/outbound/private-addresses.ts'
import { createRefusedRange } from './refused-ranges.ts'

const refusedRange = createRefusedRange([])

/** On both sides of ranges, and in the midst of what is public. */
const PUBLIC = [
  ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
  ...['168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0'],
  ...['192.0.1.0', '192.0.3.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255'],
  ...['203.0.112.255', '203.0.114.0', '223.255.255.255', '8.8.8.8'],
  ...['2001:200::', '2001:db7:ffff::1', '2001:db9::', '2003::1', '2400::1', '2606:4700::1111', '2a00:1450::1'],
  ...['3ffe:ffff::1', '2620:4f:7fff::1', '2620:4f:8001::1'],
]

/** IANA's registries of special-purpose addresses for IPv4 and IPv6, with the blocks within blocks, and multicast. */
const REGISTERED = [
  ...['0.0.0.0/8', '0.0.0.0/32', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...[
    '192.0.0.0/24',
    '192.0.0.0/29',
    '192.0.0.8/32',
    '192.0.0.9/32',
    '192.0.0.10/32',
    '192.0.0.170/31',
    '192.0.2.0/24',
  ],
  ...['192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '255.255.255.255/32'],
  ...['::/128', '::1/128', '::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48'],
  ...['100::/64', '100:0:0:1::/64', '2001::/23', '2001::/32', '2001:1::1/128', '2001:1::2/128', '2001:1::3/128'],
  ...['2001:2::/48', '2001:3::/32', '2001:4:112::/48', '2001:10::/28', '2001:20::/28', '2001:30::/28', '2001:db8::/32'],
  ...['2002::/16', '2620:4f:8000::/48', '3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
]

describe('an address', () => {
  for (const [what, addresses] of Object.entries(PRIVATE_ADDRESSES)) {
    it(`is refused as ${what}`, () => {
      assert.deepEqual(
        addresses.map((address) => [address, refusedRange(address)]),
        addresses.map((address) => [address, what]),
      )
    })
  }

  it('is taken where it is public, up to the edges of what is refused', () => {
    assert.deepEqual(
      PUBLIC.filter((address) => refusedRange(address) !== undefined),
      [],
    )
  })

  it('is refused where it is none, or names an interface of this machine', () => {
    for (const text of [
      '',
      'localhost',
      '127.1',
      '0x7f000001',
      '2606:4700::1111%eth0',
      'fe80::1%lo',
      '[::1]',
      '1.1.1.1 ',
    ])
      assert.equal(refusedRange(text), 'not an address', text)
  })

  it('is refused where it is in a block of the registries of special-purpose addresses, from the first to the last', () => {
    fc.assert(
      fc.property(fc.constantFrom(...REGISTERED), fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), (block, any) => {
        const [network = '', length] = block.split('/')
        const bits = network.includes(':') ? 128 : 32
        const first = numberOf(network)
        const size = 1n << BigInt(bits - Number(length))
        for (const address of [first, first + size - 1n, first + (any % size)])
          assert.notEqual(refusedRange(addressOf(address, bits)), undefined, `${addressOf(address, bits)} of ${block}`)
      }),
      { seed, numRuns: 2_000 },
    )
  })

  it('of IPv6 is taken within 2000::/3 alone', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 128n - 1n }), (any) => {
        if (any >> 125n !== 1n) assert.notEqual(refusedRange(addressOf(any, 128)), undefined, addressOf(any, 128))
      }),
      { seed, numRuns: 2_000 },
    )
  })

  it('is refused where the operator says that it is of a network inside', () => {
    const own = createRefusedRange(['2d00:64::/96', '8.8.8.8'])
    const what = "the operator's own network"
    const asked = ['2d00:64::10.0.0.1', '2d00:64::', '2d00:64:0:1::', '8.8.8.8', '8.8.4.4', '10.0.0.1']
    assert.deepEqual(asked.map(own), [what, what, undefined, what, undefined, 'private use'])
  })
})

/** By arithmetic of its own, so that a mistake of whoever holds addresses against ranges would be seen. */
function numberOf(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail = ''] = address.split('::')
  const groupsOf = (text: string) => (text === '' ? [] : text.split(':'))
  const [left, right] = [groupsOf(head), groupsOf(tail)]
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => '0')
  return [...left, ...zeros, ...right].reduce((sum, group) => sum * 65_536n + BigInt(`0x${group}`), 0n)
}

function addressOf(number: bigint, bits: number): string {
  const [size, base] = bits === 32 ? [8, 10] : [16, 16]
  const parts = Array.from({ length: bits / size }, (_, at) =>
    ((number >> BigInt(bits - size * (at + 1))) & ((1n << BigInt(size)) - 1n)).toString(base),
  )
  return parts.join(bits === 32 ? '.' : ':')
}
