import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createAddresses, plainAddress } from './address.ts'

describe("a caller's address", () => {
  const trusting = createAddresses(['10.0.0.0/8', '192.168.1.7', 'fd00::/8'])

  it('is the other end of the connection when no proxy is trusted, whatever a header says', () => {
    const { callerAddress, isTrusted } = createAddresses([])
    assert.equal(callerAddress('10.0.0.1', '1.1.1.1'), '10.0.0.1')
    assert.equal(isTrusted('127.0.0.1'), false)
  })

  it('tells of a peer that is not listed and says for whom it asks, and of no other', () => {
    const told: string[] = []
    const { callerAddress } = createAddresses(['10.0.0.0/8'], (peer) => told.push(peer))
    callerAddress('10.0.0.1', '1.1.1.1')
    callerAddress('8.8.8.8', undefined)
    assert.deepEqual(told, [])
    callerAddress('8.8.8.8', '1.1.1.1')
    assert.deepEqual(told, ['8.8.8.8'])
  })

  for (const [what, peer, header, expected] of [
    ['no header', '10.0.0.1', undefined, '10.0.0.1'],
    ['an untrusted peer that brings a header', '8.8.8.8', '1.1.1.1', '8.8.8.8'],
    ['one trusted proxy', '10.0.0.1', '1.1.1.1', '1.1.1.1'],
    ['two trusted proxies', '10.0.0.1', '1.1.1.1, 10.9.9.9', '1.1.1.1'],
    ['a header that the caller began', '10.0.0.1', '6.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['a trusted address that the caller made up', '10.0.0.1', '10.6.6.6, 1.1.1.1', '1.1.1.1'],
    ['only trusted addresses', '10.0.0.1', '10.2.2.2, 10.3.3.3', '10.2.2.2'],
    ['rubbish', '10.0.0.1', 'rubbish', '10.0.0.1'],
    ['rubbish before a proxy', '10.0.0.1', 'rubbish, 10.2.2.2', '10.2.2.2'],
    ['an empty header', '10.0.0.1', '', '10.0.0.1'],
    ['a port', '10.0.0.1', '1.1.1.1:80', '1.1.1.1'],
    ['a port of IPv6', '10.0.0.1', '6.6.6.6, [2001:db8::1]:65535', '2001:db8::1'],
    ['brackets', '10.0.0.1', '[2001:db8::1]', '2001:db8::1'],
    ['a port behind a proxy with one', '10.0.0.1', '6.6.6.6, 1.1.1.1:80, 10.2.2.2:443', '1.1.1.1'],
    ['a port that is none', '10.0.0.1', '1.1.1.1:x', '10.0.0.1'],
    ['a single address that is trusted', '192.168.1.7', '1.1.1.1', '1.1.1.1'],
    ['its neighbour, which is not', '192.168.1.8', '1.1.1.1', '192.168.1.8'],
    ['IPv6', 'fd00::1', '2001:db8::1', '2001:db8::1'],
    ['IPv4 in IPv6', '10.0.0.1', '::ffff:1.1.1.1', '1.1.1.1'],
  ] as const) {
    it(`with ${what} is ${expected}`, () => assert.equal(trusting.callerAddress(peer, header), expected))
  }

  it('is looked for in the last sixteen hops only', () => {
    const hops = ['1.1.1.1', ...Array.from({ length: 40 }, () => '10.0.0.2')].join(', ')
    assert.equal(trusting.callerAddress('10.0.0.1', hops), '10.0.0.2')
  })

  it('is the same for IPv4 however the socket was opened', () => {
    assert.equal(plainAddress('::ffff:127.0.0.1'), '127.0.0.1')
    assert.equal(plainAddress('::FFFF:127.0.0.1'), '127.0.0.1')
    assert.equal(plainAddress('::ffff:7f00:1'), '::ffff:7f00:1')
    assert.equal(plainAddress('2001:db8::1'), '2001:db8::1')
  })

  for (const network of [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/x',
    '::/129',
    '10.0.0/8',
    '10.0.0.0/-1',
  ]) {
    it(`${JSON.stringify(network)} is not taken for a network`, () => {
      assert.throws(() => createAddresses([network]), RangeError)
    })
  }
})
