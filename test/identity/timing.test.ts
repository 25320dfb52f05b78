import assert from 'node:assert/strict'
import { after, before, describe, it, mock } from 'node:test'
import { z } from 'zod'
import { count, isFullProof, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createDatabaseTime } from '../../server/src/calls/ownership.ts'
import { revokeGrant } from '../../server/src/grants/grants.ts'
import { createFailuresByAddress } from '../../server/src/identity/failures-by-address.ts'
import { createIdentify } from '../../server/src/identity/identify.ts'
import { makeAccessToken, makeKey } from '../../server/src/identity/key-format.ts'
import { revokeKey } from '../../server/src/identity/keys.ts'
import type { Resource } from '../../server/src/identity/resources.ts'
import { systemClock as clock } from '../../server/src/kernel/clock.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createChangeFeed } from '../../server/src/storage/change-feed.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog as log } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'
import { ACTOR, type Customer, ids, makeCustomer } from './customers.ts'
import { AUDIENCE, expiredToken, type Granted, issueToken, MCP_AUDIENCE, makeGranted } from './granted.ts'
import { difference, medianOf, T_LIMIT, type Timings } from './timing-difference.ts'

/**
 * Whether the time of a refusal tells if an id exists. The real look-up is asked on its real PostgreSQL, from the next
 * line of code: nobody who guesses over a network sees as clearly. Whoever wants to know of an id has to ask for it again
 * and again, so the ids stay the same. Times are compared in the proof; that the same is asked for, and as much found, always.
 */
const PROOF = 'identity-timing'
const CALLS = count({ full: 20_000, reduced: 200 })
const WARM_UP = count({ full: 500, reduced: 0 })
/** A machine that others use too can do anything once; what is true of the code it does each time. */
const ROUNDS = 3
const ADDRESS = '192.0.2.1'

const database = await freshDatabase()
const url = new Secret(database.url)
const pools = createPools({ url, log })
const metrics = createMetrics()
const feed = createChangeFeed({ url, log, clock, metrics })
const time = createDatabaseTime(clock)
// Who is limited is refused without a look-up, and nothing is learnt from that.
const failures = createFailuresByAddress({ clock, limit: Number.POSITIVE_INFINITY })
const identify = createIdentify({ pool: pools.rest, feed, clock, time, metrics, failures })

let known: Customer
let revoked: Customer
/**
 * Ids that nobody has, each right behind one that somebody has: the same rows are read for both. How long a row takes to read
 * differs by what has become of it, which says nothing of an id beside it.
 */
const RESOURCE: Resource = { audience: AUDIENCE, callScope: 'calls' }
let granted: Granted
let ended: Granted
let expired = ''
let foreign = ''
let besideKnown = ''
let besideRevoked = ''

before(async () => {
  const nowMs = clock.monotonicMs()
  time.learn(clock.nowMs(), nowMs, nowMs)
  feed.start()
  await until(() => feed.lagMs() < 1_000, PATIENCE_MS, 'the first reading of the change log')
  for (let n = 0; n < 10; n += 1) await makeCustomer(pools.rest)
  known = await makeCustomer(pools.rest)
  besideKnown = ids.next()
  revoked = await makeCustomer(pools.rest)
  besideRevoked = ids.next()
  await identify(new Secret(known.secret), ADDRESS, RESOURCE)
  await identify(new Secret(revoked.secret), ADDRESS, RESOURCE)
  await revokeKey({ pool: pools.rest, ids }, ACTOR, revoked.keyId)
  const { workspaceId } = known
  const audiences = [AUDIENCE, MCP_AUDIENCE]
  granted = await makeGranted(pools.rest, { workspaceId, audiences })
  ended = await makeGranted(pools.rest, { workspaceId })
  foreign = (await issueToken(pools.rest, granted, { audience: MCP_AUDIENCE })).token
  expired = (await expiredToken(pools.rest, granted)).token
  // One with the least hash, so that there is a row before whatever is asked for.
  await pools.rest.query(
    `insert into access_tokens (hash, grant_id, audience, oauth_scopes, expires_at)
     values ($1, $2, 'x', '{calls}', clock_timestamp())`,
    [Buffer.alloc(32), granted.id],
  )
  for (const { token } of [granted, ended]) await identify(new Secret(token), ADDRESS, RESOURCE)
  await revokeGrant({ pool: pools.rest }, ACTOR, ended.id)
})
after(async () => {
  await feed.close()
  await pools.close()
})

type Guess = () => Secret
const always =
  (secret: Secret): Guess =>
  () =>
    secret
const wrongKeyOf = (id: string) => makeKey(id, 'live', 5)

async function timeRefusal(credential: Secret): Promise<number> {
  const startedAt = process.hrtime.bigint()
  try {
    await identify(credential, ADDRESS, RESOURCE)
  } catch (error) {
    const took = Number(process.hrtime.bigint() - startedAt)
    assert.ok(error instanceof Fault && error.code === 'invalid_credential', String(error))
    return took
  }
  throw new Error('somebody was let in')
}

const random = mulberry(seed)

/** Refusals of two kinds in random order, so that whatever happens to the machine happens to both. */
async function measure(guesses: readonly [one: Guess, other: Guess]): Promise<Timings> {
  const timings: [number[], number[]] = [[], []]
  const order = Array.from({ length: WARM_UP + CALLS }, () => (random() < 0.5 ? 0 : 1))
  const credentials = order.map((which) => guesses[which]())
  for (const [at, credential] of credentials.entries()) {
    const took = await timeRefusal(credential)
    if (at >= WARM_UP) timings[order[at] === 0 ? 0 : 1].push(took)
  }
  return timings
}

const found = z.object({ rowCount: z.number() })

/** What a refusal asks PostgreSQL for, and how many rows that finds. */
async function statementsOf(guess: Guess) {
  const query = mock.method(pools.rest, 'query')
  await timeRefusal(guess())
  query.mock.restore()
  return Promise.all(
    query.mock.calls.map(async (call) => ({
      statement: Object(call.arguments[0]).name,
      rows: found.parse(await call.result).rowCount,
    })),
  )
}

/** Whether the key is let in without a look-up. What was told of it at first, its creation for one, takes it out of memory again. */
async function isInMemory({ secret }: Customer): Promise<boolean> {
  const query = mock.method(pools.rest, 'query')
  await identify(new Secret(secret), ADDRESS, RESOURCE)
  const asked = query.mock.callCount()
  query.mock.restore()
  return asked === 0
}

const LOOK_UP = [{ statement: 'load_key', rows: 1 }]
const LOOK_UP_OF_TOKENS = [
  { statement: 'load_token', rows: 1 },
  { statement: 'load_grant', rows: 1 },
]

async function assertAlike(
  title: string,
  guesses: readonly [one: Guess, other: Guess],
  lookUp = LOOK_UP,
): Promise<void> {
  await until(() => isInMemory(known), PATIENCE_MS, 'the known key in memory')
  for (const guess of guesses) assert.deepEqual(await statementsOf(guess), lookUp, 'the same look-up for everybody')
  const rounds: { t: number; median_us: readonly number[] }[] = []
  do {
    const timings = await measure(guesses)
    const micros = timings.map((sample) => Math.round(medianOf(sample) / 100) / 10)
    rounds.push({ t: Math.round(difference(timings) * 100) / 100, median_us: micros })
  } while (Math.abs(rounds.at(-1)?.t ?? 0) >= T_LIMIT && rounds.length < ROUNDS && isFullProof)
  console.log(`${title}: ${JSON.stringify(rounds)} (seed ${seed})`)
  recordProof(PROOF, title, { calls: CALLS, limit: T_LIMIT, rounds })
  if (isFullProof)
    assert.ok(Math.abs(rounds.at(-1)?.t ?? Number.NaN) < T_LIMIT, `the times differ: t = ${rounds.map(({ t }) => t)}`)
}

describe('the time of a refusal', () => {
  it('is the same for an unknown id and for a wrong secret of a known one, the same ones each time', async () => {
    const guesses = [always(wrongKeyOf(besideKnown)), always(wrongKeyOf(known.keyId))] as const
    await assertAlike('unknown id, wrong secret', guesses)
  })

  it('is the same for them with another secret each time', async () => {
    const guesses = [() => wrongKeyOf(besideKnown), () => wrongKeyOf(known.keyId)] as const
    await assertAlike('unknown id, wrong secret, another each time', guesses)
  })

  it('is the same for an unknown id and for the right secret of one that is revoked', async () => {
    const guesses = [always(wrongKeyOf(besideRevoked)), always(new Secret(revoked.secret))] as const
    await assertAlike('unknown id, revoked key', guesses)
  })
})

describe('the time of a refusal of an access token', () => {
  const wrongTokenOf = (id: string) => makeAccessToken(id, 5)
  const cases: Readonly<Record<string, readonly [() => Secret, () => Secret]>> = {
    'unknown grant, wrong secret of a known one': [() => wrongTokenOf(ids.next()), () => wrongTokenOf(granted.id)],
    'unknown token, revoked grant': [() => wrongTokenOf(granted.id), () => new Secret(ended.token)],
    'unknown token, expired one': [() => wrongTokenOf(granted.id), () => new Secret(expired)],
    'unknown token, one of another audience': [() => wrongTokenOf(granted.id), () => new Secret(foreign)],
  }
  for (const [title, guesses] of Object.entries(cases))
    it(`is the same, with the same look-up: ${title}`, async () => {
      await assertAlike(title, guesses, LOOK_UP_OF_TOKENS)
    })
})

describe('the difference of two samples', () => {
  // The same samples in every run: of fresh ones a few in a thousand runs differ by chance.
  const chance = mulberry(1)
  /** Times like those of a busy machine: most are near the least, and some are anywhere. */
  const noisy = (length: number, shift: number) =>
    Array.from(
      { length },
      () => 100_000 + shift - 40_000 * Math.log(chance()) + (chance() < 0.1 ? 2_000_000 * chance() : 0),
    )

  it('is found where one takes a tenth longer, below noise that is twenty times as large', () => {
    assert.ok(difference([noisy(2_000, 0), noisy(2_000, 10_000)]) < -T_LIMIT)
    assert.ok(difference([noisy(2_000, 10_000), noisy(2_000, 0)]) > T_LIMIT)
  })

  it('is not found where there is none', () => {
    const found = Array.from({ length: 30 }, () => Math.abs(difference([noisy(2_000, 0), noisy(2_000, 0)])))
    assert.ok(Math.max(...found) < T_LIMIT, String(Math.max(...found)))
  })
})

/** A small generator of random numbers that a seed replays. */
function mulberry(start: number): () => number {
  let state = start | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
