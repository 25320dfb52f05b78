import assert from 'node:assert/strict'
import { argon2 } from 'node:crypto'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { Fault } from '../kernel/fault.ts'
import { createPasswords } from './passwords.ts'

const PASSWORD = 'correct horse battery'
const run = promisify(argon2)

/** The real one, with a count of those at once. */
function counted() {
  const seen = { now: 0, most: 0, all: 0 }
  const derive = async (derivation: Parameters<typeof run>[1] & { message: Buffer; nonce: Buffer }) => {
    seen.now += 1
    seen.all += 1
    seen.most = Math.max(seen.most, seen.now)
    try {
      return await run('argon2id', derivation)
    } finally {
      seen.now -= 1
    }
  }
  return { seen, derive }
}

describe('a password', () => {
  const passwords = createPasswords()

  it('is kept as Argon2id with 19 MiB and two passes, and another salt each time', async () => {
    const [one, other] = [await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)]
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
    assert.notEqual(one, other)
    assert.deepEqual(await Promise.all([passwords.verify(PASSWORD, one), passwords.verify(PASSWORD, other)]), [
      true,
      true,
    ])
    assert.equal(await passwords.verify(`${PASSWORD}.`, one), false)
  })

  it('is known in whichever form a keyboard makes it', async () => {
    const stored = await passwords.hash('caf\u00e9 \uff41bc number one')
    assert.equal(await passwords.verify('cafe\u0301 abc number one', stored), true)
  })

  it('is compared by the parameters that it was kept with', async () => {
    const cheap = { memory: 256, passes: 2, parallelism: 1 }
    const nonce = Buffer.from('saltsaltsalt')
    const tag = await run('argon2id', { ...cheap, message: PASSWORD, nonce, tagLength: 32 })
    const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')
    const stored = `$argon2id$v=19$m=256,t=2,p=1$${base64(nonce)}$${base64(tag)}`
    assert.equal(await passwords.verify(PASSWORD, stored), true)
    assert.equal(await passwords.verify('another password', stored), false)
  })

  it('has 12 to 200 characters', async () => {
    for (const typed of ['', 'elevenchars', '🦊'.repeat(11), 'a'.repeat(201), 'a'.repeat(1_000_000)])
      await assert.rejects(passwords.hash(typed), { code: 'invalid_request' }, `${typed.length}`)
    for (const typed of ['twelve chars', '🦊'.repeat(12), 'a'.repeat(200)])
      assert.equal(await passwords.verify(typed, await passwords.hash(typed)), true)
  })

  it('takes one hash to compare, whether there is something to compare with or not', async () => {
    const { seen, derive } = counted()
    const watched = createPasswords({ derive })
    const stored = await watched.hash(PASSWORD)
    seen.all = 0
    assert.equal(await watched.verify(PASSWORD, null), false)
    assert.equal(seen.all, 1)
    assert.equal(await watched.verify('a wrong password', stored), false)
    assert.equal(seen.all, 2)
  })
})

describe('passwords at once', () => {
  it('are two in a process and 32 who wait, and the rest is refused with a time to come back', async () => {
    const { seen, derive } = counted()
    const passwords = createPasswords({ derive })
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => passwords.verify(PASSWORD, null)))
    const refused = results.filter((result) => result.status === 'rejected')
    assert.equal(refused.length, 100 - 34)
    for (const { reason } of refused)
      assert.ok(reason instanceof Fault && reason.code === 'overloaded' && reason.retryAfterSeconds === 2)
    assert.deepEqual(seen, { now: 0, most: 2, all: 34 })
    assert.equal(await passwords.verify(PASSWORD, null), false, 'and then there is room again')
  })

  it('leave their places when they fail', async () => {
    let failing = true
    const passwords = createPasswords({
      derive: (derivation) => (failing ? Promise.reject(new Error('no memory')) : run('argon2id', derivation)),
    })
    for (let n = 0; n < 5; n += 1) await assert.rejects(passwords.verify(PASSWORD, null), /no memory/)
    failing = false
    assert.equal(await passwords.verify(PASSWORD, null), false)
  })
})
