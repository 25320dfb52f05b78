import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createFailuresByAddress, networkOf, tryFrom } from './failures-by-address.ts'

/** Failures on a clock that is moved by hand. */
function createBench(options: { limit?: number; windowMs?: number; maxAddresses?: number } = {}) {
  let nowMs = 5_000
  const failures = createFailuresByAddress({ clock: { monotonicMs: () => nowMs }, ...options })
  return {
    ...failures,
    fail: (address: string, times: number) => {
      for (let n = 0; n < times; n += 1) failures.note(address)
    },
    pass: (durationMs: number) => {
      nowMs += durationMs
    },
  }
}

const HERE = '192.0.2.1'

describe('failed authentications', () => {
  it('are twenty a second for an address, and the next has to wait for the rest of the second', () => {
    const { waitSeconds, fail, pass } = createBench()
    fail(HERE, 19)
    assert.equal(waitSeconds(HERE), 0)
    fail(HERE, 1)
    assert.equal(waitSeconds(HERE), 1)
    pass(999)
    assert.equal(waitSeconds(HERE), 1)
    pass(1)
    assert.equal(waitSeconds(HERE), 0)
  })

  it('of a longer window make the next wait for the rest of it', () => {
    const { waitSeconds, fail, pass } = createBench({ limit: 30, windowMs: 60_000 })
    assert.equal(waitSeconds(HERE), 0)
    fail(HERE, 29)
    assert.equal(waitSeconds(HERE), 0)
    pass(20_500)
    fail(HERE, 1)
    assert.equal(waitSeconds(HERE), 40)
    pass(39_499)
    assert.equal(waitSeconds(HERE), 1)
    pass(1)
    assert.equal(waitSeconds(HERE), 0)
  })

  it('begin a new window after the old one, of which nothing is left', () => {
    const { waitSeconds, fail, pass } = createBench({ limit: 3, windowMs: 1_000 })
    fail(HERE, 3)
    pass(1_000)
    fail(HERE, 2)
    assert.equal(waitSeconds(HERE), 0)
    fail(HERE, 1)
    assert.equal(waitSeconds(HERE), 1)
  })

  it('make the wait no longer when more come during it', () => {
    const { waitSeconds, fail, pass } = createBench({ limit: 3, windowMs: 10_000 })
    fail(HERE, 3)
    pass(9_000)
    fail(HERE, 1_000)
    assert.equal(waitSeconds(HERE), 1)
    pass(1_000)
    assert.equal(waitSeconds(HERE), 0)
  })

  it('count for nobody else', () => {
    const { waitSeconds, fail } = createBench({ limit: 3 })
    fail(HERE, 3)
    for (const other of ['192.0.2.2', '192.0.2.10', '2001:db8::1', '::', '']) assert.equal(waitSeconds(other), 0)
  })

  it('count for all addresses of the IPv6 network that one subscriber has', () => {
    const { waitSeconds, fail } = createBench({ limit: 3 })
    for (const address of ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:DB8:1:2:3:4:5:6']) fail(address, 1)
    assert.ok(waitSeconds('2001:db8:1:2::77') > 0)
    assert.equal(waitSeconds('2001:db8:1:3::1'), 0)
  })

  it('of more addresses than there is room for push out those that were quiet the longest', () => {
    const { waitSeconds, fail } = createBench({ limit: 1, maxAddresses: 100 })
    const addresses = Array.from({ length: 5_000 }, (_, n) => `10.0.${n >> 8}.${n & 255}`)
    for (const address of addresses) {
      fail(address, 1)
      assert.ok(waitSeconds(addresses[0] ?? '') > 0, 'who is asked about stays')
    }
    const stay = addresses.filter((address) => waitSeconds(address) > 0)
    assert.ok(stay.length >= 49 && stay.length <= 100, String(stay.length))
    assert.ok(stay.includes('10.0.19.135'), 'the last')
  })
})

describe('the network of an address', () => {
  const SAME: Readonly<Record<string, readonly string[]>> = {
    '192.0.2.1': ['192.0.2.1'],
    '0:0:0:0': ['::', '::1', '0::', '0:0:0:0:0:0:0:0', '0000:0000:0000:0000::', '::5:6:7:8'],
    '2001:db8:0:0': ['2001:db8::', '2001:db8::1', '2001:0db8:0000:0000::1', '2001:DB8:0:0:ffff:ffff:ffff:ffff'],
    '2001:db8:0:4': ['2001:db8:0:4::', '2001:db8::4:5:6:7:8', '2001:db8:0:4:5:6:7:8'],
    '0:2:3:4': ['::2:3:4:5:6:7:8', '0:2:3:4::'],
    '1:2:3:4': ['1:2:3:4:5:6:7::', '1:2:3:4::8', '1:2:3:4:5:6:192.0.2.1'],
    'fe80:0:0:0': ['fe80::1', 'fe80::1%eth0', 'FE80::2%3'],
    'not an address': ['not an address'],
    '': [''],
  }
  for (const [network, addresses] of Object.entries(SAME)) {
    it(`is ${network === '' ? 'nothing' : network} for ${addresses.join(', ') || 'nothing'}`, () => {
      assert.deepEqual(new Set(addresses.map(networkOf)), new Set([network]))
    })
  }
})

describe('a burst of authentications from one address', () => {
  it('is tried only as far as the limit allows, the rest one after the other', async () => {
    const { enter, leave, note, waitSeconds } = createBench({ limit: 3 })
    let entered = 0
    let most = 0
    let tried = 0
    const one = async () => {
      await enter(HERE)
      entered += 1
      most = Math.max(most, entered)
      await new Promise((resolve) => setImmediate(resolve))
      if (waitSeconds(HERE) === 0) {
        tried += 1
        note(HERE)
      }
      entered -= 1
      leave(HERE)
    }
    await Promise.all(Array.from({ length: 100 }, one))
    assert.equal(tried, 3)
  })

  it('is refused unseen once so many have failed, whatever tries it', async () => {
    const bench = createBench({ limit: 3 })
    let tried = 0
    const one = () =>
      tryFrom(bench, HERE, async () => {
        tried += 1
        await new Promise((resolve) => setImmediate(resolve))
        bench.note(HERE)
      })
    const told = await Promise.allSettled(Array.from({ length: 50 }, one))
    assert.deepEqual([tried, told.filter(({ status }) => status === 'rejected').length], [3, 47])
  })

  it('that is right is not held up for long', async () => {
    const { enter, leave } = createBench({ limit: 3 })
    let done = 0
    const one = async () => {
      await enter(HERE)
      await new Promise((resolve) => setImmediate(resolve))
      done += 1
      leave(HERE)
    }
    await Promise.all(Array.from({ length: 100 }, one))
    assert.equal(done, 100)
  })
})

describe('an address of IPv4 that is written as one of IPv6', () => {
  for (const text of ['::ffff:c000:201', '0:0:0:0:0:ffff:c000:0201', '::FFFF:C000:201'])
    it(`(${text}) is the same`, () => assert.equal(networkOf(text), '192.0.2.1'))
})
