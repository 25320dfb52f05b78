import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { after, afterEach, describe, it } from 'node:test'
import { count, recordProof } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { verifyLedger } from '../../../server/src/ledger/verify.ts'
import { LIMITS, type Limits } from '../../../server/src/people/attempts.ts'
import type { Deed, Done } from './deeds.ts'
import type { FromRacer, ToRacer } from './racer.ts'
import { anotherVisitor, CREDIT, connectPeople, countOf, joinAs, PASSWORD, tokenIn, workspaceOf } from './world.ts'

/** Sign-ups and verifications in several processes at once: a mailbox is credited once, and nothing is there twice. */
const PROOF = 'people-races'
const MANY = count({ full: 1_000, reduced: 40 })
const PROCESSES = 4

const { url } = await freshDatabase()
const world = connectPeople(url)
const { people, pool, join, masterKey } = world
const racers = Array.from({ length: PROCESSES }, () => fork(path.join(import.meta.dirname, 'racer.ts')))
after(async () => {
  for (const racer of racers) racer.send('end' satisfies ToRacer)
  await world.close()
})
afterEach(() => pool.query('delete from door_attempts'))

async function told(racer: ChildProcess): Promise<FromRacer> {
  const heard = new AbortController()
  const { signal } = heard
  try {
    const [message] = await Promise.race([
      once(racer, 'message', { signal }),
      once(racer, 'exit', { signal }).then(() => assert.fail('a racer has ended')),
    ])
    return message
  } finally {
    heard.abort()
  }
}

/** Shares deeds out to all processes, which begin together. What came of them, in no order. */
async function race(deeds: readonly Deed[], limits: Partial<Limits> = {}): Promise<readonly Done[]> {
  await Promise.all(
    racers.map(async (racer, place) => {
      const own = deeds.filter((_, n) => n % PROCESSES === place)
      racer.send({ url, masterKey: masterKey.reveal(), limits, deeds: own, place } satisfies ToRacer)
      assert.equal(await told(racer), 'ready')
    }),
  )
  const results = racers.map(async (racer) => {
    racer.send('go' satisfies ToRacer)
    const done = await told(racer)
    assert.ok(done !== 'ready')
    return done
  })
  return (await Promise.all(results)).flat()
}

function tally(done: readonly Done[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const one of done) counts[one] = (counts[one] ?? 0) + 1
  return counts
}

/** As many letters as there are sign-ups: what is raced for is the credit. */
const manyLetters = {
  signUpsOfAddress: { ...LIMITS.signUpsOfAddress, most: 100_000 },
  signUpsOfMailbox: { ...LIMITS.signUpsOfMailbox, most: 100_000 },
}

async function linksTo(pattern: RegExp): Promise<readonly string[]> {
  return (await world.letters(pattern)).flatMap((letter) => (letter.what === 'verify' ? [tokenIn(letter.link)] : []))
}

/** What was credited in all to workspaces of people with such addresses, in credits. */
function creditsOf(like: string): Promise<number> {
  return countOf(
    pool,
    `select coalesce(sum(credited), 0) / ${CREDIT} from accounts join workspaces on live_account_id = accounts.id
     join members on members.workspace_id = workspaces.id where email like $1`,
    [like],
  )
}

describe('sign-ups at once', () => {
  it(`${MANY} of one address send so many letters and no more`, async () => {
    const deeds = Array.from({ length: MANY }, () => ({
      ...{ do: 'sign up' as const, email: 'limited@example.com', password: PASSWORD },
    }))
    const done = tally(await race(deeds))
    assert.deepEqual(done, { done: 5, rate_limit_exceeded: MANY - 5 })
    assert.equal((await world.letters('limited@example.com')).length, 5)
    assert.equal(await countOf(pool, "select count(*) from people where email = 'limited@example.com'"), 1)
    recordProof(PROOF, 'sign-ups of one address', { sign_ups: MANY, processes: PROCESSES, letters: 5 })
  })

  it(`${MANY} of one address, and as many verifications, are one person, one workspace and one credit`, async () => {
    const email = 'one@example.com'
    const signUps = Array.from({ length: MANY }, () => ({ do: 'sign up' as const, email, password: PASSWORD }))
    assert.deepEqual(tally(await race(signUps, manyLetters)), { done: MANY })
    const tokens = await linksTo(/^one@/)
    assert.equal(tokens.length, MANY)
    const done = tally(await race(tokens.map((token) => ({ do: 'verify', token }))))
    assert.deepEqual(done, { done: 1, nothing: MANY - 1 })
    assert.equal(await countOf(pool, 'select count(*) from members where email = $1', [email]), 1)
    assert.equal(await creditsOf(email), 1)
    recordProof(PROOF, 'links of one address', { verifications: MANY, processes: PROCESSES, verified: 1, credits: 1 })
  })

  it(`one link, brought ${MANY} times, works once`, async () => {
    await people.signUp(anotherVisitor(), { name: 'Some One', email: 'same@example.com', password: PASSWORD })
    const [token = ''] = await linksTo(/^same@/)
    const deeds = Array.from({ length: MANY }, () => ({ do: 'verify' as const, token }))
    assert.deepEqual(tally(await race(deeds)), { done: 1, nothing: MANY - 1 })
    assert.equal(await creditsOf('same@example.com'), 1)
    recordProof(PROOF, 'one link', { verifications: MANY, processes: PROCESSES, verified: 1, credits: 1 })
  })

  it(`${MANY} addresses of one mailbox are credited once`, async () => {
    const aliases = Array.from({ length: MANY }, (_, n) => `m.i.ra+${n}@${n % 2 === 0 ? 'gmail' : 'googlemail'}.com`)
    const signUps = aliases.map((email) => ({ do: 'sign up' as const, email, password: PASSWORD }))
    assert.deepEqual(tally(await race(signUps, manyLetters)), { done: MANY })
    const tokens = await linksTo(/^m\.i\.ra\+/)
    assert.deepEqual(tally(await race(tokens.map((token) => ({ do: 'verify', token })))), { done: MANY })
    assert.equal(await countOf(pool, "select count(*) from members where email like 'm.i.ra+%'"), MANY)
    assert.equal(await creditsOf('m.i.ra+%'), 1)
    assert.deepEqual(await verifyLedger(pool), [])
    recordProof(PROOF, 'addresses of one mailbox', { verified: MANY, processes: PROCESSES, credits: 1 })
  })
})

describe('owners who leave at once', () => {
  it('leave one behind', async () => {
    const rounds = count({ full: 50, reduced: 3 })
    const OWNERS = 4
    const by = await join('owner@example.com')
    const workspaceId = await workspaceOf(people, by)
    for (let round = 0; round < rounds; round += 1) {
      const others = []
      for (let n = 1; n < OWNERS; n += 1) {
        const { rows } = await pool.query("select person_id from members where workspace_id = $1 and role = 'owner'", [
          workspaceId,
        ])
        others.push(await joinAs(world, 'owner', { by: rows[0]?.person_id, workspaceId }))
        await pool.query('delete from door_attempts')
      }
      const { rows } = await pool.query('select person_id from members where workspace_id = $1', [workspaceId])
      assert.equal(rows.length, OWNERS)
      const done = tally(await race(rows.map(({ person_id: personId }) => ({ do: 'leave', personId, workspaceId }))))
      assert.deepEqual(done, { done: OWNERS - 1, last_owner: 1 }, `round ${round}`)
    }
    recordProof(PROOF, 'owners who leave', { rounds, owners: OWNERS, processes: PROCESSES, left: 1 })
  })
})
