import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import pg from 'pg'
import { count, isFullProof, recordProof, seed } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { Random } from '../../../sandbox/src/random.ts'
import { LIMITS, type Limits } from '../../../server/src/people/attempts.ts'
import { createPasswords, type Passwords } from '../../../server/src/people/passwords.ts'
import { difference, medianOf, T_LIMIT } from '../timing-difference.ts'
import { anotherVisitor, connectPeople, PASSWORD } from './world.ts'

/**
 * Whether somebody who is not signed in can find out if an address has an account. The same statements run and the same hashes are
 * made for a known and an unknown one, which is asserted; their times are compared in the proof.
 */
const PROOF = 'people-timing'
const CALLS = count({ full: 1_000, reduced: 4 })
const ROUNDS = 3

/** Nobody is refused: who is learns nothing. */
const endless: Limits = Object.assign(
  { ...LIMITS },
  Object.fromEntries(Object.entries(LIMITS).map(([name, limit]) => [name, { ...limit, most: 1_000_000 }])),
)

let hashes = 0
const counted = (passwords: Passwords): Passwords => ({
  hash: (password) => {
    hashes += 1
    return passwords.hash(password)
  },
  verify: (password, stored) => {
    hashes += 1
    return passwords.verify(password, stored)
  },
})

const { url } = await freshDatabase()
const world = connectPeople(url, { limits: endless, passwords: counted(createPasswords({ waiting: 1_000 })) })
const { people, pool, join } = world
after(() => world.close())

const KNOWN = 'known@example.com'
const UNCONFIRMED = 'unconfirmed@example.com'
const UNKNOWN = 'nobody@example.com'
const visitor = anotherVisitor()

before(async () => {
  await join(KNOWN)
  await people.signUp(visitor, { name: 'A', email: UNCONFIRMED, password: PASSWORD })
})

const DOORS: Readonly<Record<string, (email: string) => Promise<unknown>>> = {
  'a sign-in': (email) => people.signIn(visitor, { email, password: 'a wrong password' }),
  'a sign-up': (email) => people.signUp(visitor, { name: 'A', email, password: PASSWORD }),
  'a forgotten password': (email) => people.askReset(visitor, email),
  'a verification again': (email) => people.resendVerification(visitor, email),
}

/** What is asked of PostgreSQL, the hashes that are made, and what is answered. */
async function workOf(email: string, knock: (email: string) => Promise<unknown>) {
  const query = mock.method(pg.Client.prototype, 'query')
  hashes = 0
  try {
    const answer = await knock(email)
    const texts = query.mock.calls.map(({ arguments: [text] }) => statementOf(text))
    return { answer, hashes, statements: texts }
  } finally {
    query.mock.restore()
  }
}

/** A letter that is meant is kept, and one that is not is taken back: both are one statement. */
function statementOf(asked: unknown): string {
  const text = typeof asked === 'string' ? asked : String(Object(asked).text)
  return /^(release|rollback to) savepoint letter$/.test(text) ? 'end of letter' : text
}

const random = new Random(seed)

async function timesOf(knock: (email: string) => Promise<unknown>): Promise<readonly [number[], number[]]> {
  const times: [number[], number[]] = [[], []]
  for (let call = 0; call < CALLS; call += 1) {
    const which = random.between(0, 1) === 0 ? 0 : 1
    const startedAt = process.hrtime.bigint()
    await knock(which === 0 ? KNOWN : UNKNOWN)
    times[which].push(Number(process.hrtime.bigint() - startedAt))
  }
  return times
}

describe('whether an address has an account', () => {
  for (const [name, knock] of Object.entries(DOORS)) {
    it(`is not told by ${name}: the same work is done, and the same is answered`, async () => {
      // An unknown one that signs up is no longer unknown: the first time is compared.
      const unknown = await workOf(UNKNOWN, knock)
      await pool.query('delete from mailed_links where person_id in (select id from people where email = $1)', [
        UNKNOWN,
      ])
      await pool.query('delete from people where email = $1', [UNKNOWN])
      assert.ok(unknown.statements.length > 0)
      assert.equal(unknown.hashes, name === 'a sign-in' || name === 'a sign-up' ? 1 : 0)
      for (const email of [KNOWN, UNCONFIRMED]) assert.deepEqual(await workOf(email, knock), unknown, email)
    })
  }

  for (const [name, knock] of Object.entries(DOORS).filter(([name]) => name !== 'a sign-up'))
    it(`is not told by the time that ${name} takes`, async () => {
      const rounds: { t: number; median_us: readonly number[] }[] = []
      do {
        const times = await timesOf(knock)
        const micros = times.map((sample) => Math.round(medianOf(sample) / 100) / 10)
        rounds.push({ t: Math.round(difference(times) * 100) / 100, median_us: micros })
      } while (isFullProof && Math.abs(rounds.at(-1)?.t ?? 0) >= T_LIMIT && rounds.length < ROUNDS)
      recordProof(PROOF, name, { calls: CALLS, limit: T_LIMIT, rounds })
      if (isFullProof) assert.ok(Math.abs(rounds.at(-1)?.t ?? Number.NaN) < T_LIMIT, `${rounds.map(({ t }) => t)}`)
    })
})
