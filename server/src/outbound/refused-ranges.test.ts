import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { PRIVATE_ADDRESSES } from '../../../test/outbound/private-addresses.ts'
import { refusedRange } from './refused-ranges.ts'

/** On both sides of ranges, and in the midst of what is public. */
const PUBLIC = [
  ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '100.63.255.255', '100.128.0.0', '126.255.255.255', '128.0.0.0'],
  ...['168.63.129.15', '168.63.129.17', '169.253.255.255', '169.255.0.0', '172.15.255.255', '172.32.0.0'],
  ...['192.0.1.0', '192.0.3.0', '192.167.255.255', '192.169.0.0', '198.17.255.255', '198.20.0.0', '198.51.99.255'],
  ...['203.0.112.255', '203.0.114.0', '223.255.255.255', '8.8.8.8'],
  ...['2001:200::', '2001:db7:ffff::1', '2001:db9::', '2003::1', '2400::1', '2606:4700::1111', '2a00:1450::1'],
  ...['3ffe:ffff::1', '2620:4f:7fff::1', '2620:4f:8001::1'],
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
})
