import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import pg from 'pg'
import { makeMasterKey } from '../../../harness/seed.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { letTimePass, NOTE, notesTo, SECRET_NOTE, statesIn, write } from '../../../test/outbox/notes.ts'
import { rowsRead } from '../../../test/storage/rows-read.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { createSeal } from '../kernel/seal.ts'
import { SERVICE } from '../storage/audit.ts'
import { enqueue, SEALED_MESSAGES } from '../storage/outbox.ts'
import { reseal } from '../storage/reseal.ts'
import { inTransaction } from '../storage/transaction.ts'
import { silentLog } from '../telemetry/log.ts'
import { type Deliverer, type Delivery, DeliveryFailure } from './deliverer.ts'
import { outboxFigures, pruneOutbox, retryDead } from './operate.ts'
import { createOutboxWorker } from './worker.ts'

const ids = createIds({ clock: systemClock })
const HOUR_MS = 3_600_000

/** A database of a test's own. */
async function freshPool(): Promise<pg.Pool> {
  return (await fresh()).pool
}

async function fresh() {
  const { url } = await freshDatabase()
  const pool = new pg.Pool({ connectionString: url, max: 8 })
  // Its database is dropped before it is closed.
  pool.on('error', () => {})
  after(() => pool.end())
  return { url, pool }
}

/** As many that wait for their time in a lane as a receiver has who has been away for hours. */
async function postponed(pool: pg.Pool, count: number): Promise<void> {
  await pool.query(
    `insert into outbox (id, kind, destination, payload, due_at)
     select gen_random_uuid(), $1, 'a', '{}', clock_timestamp() + interval '1 hour' from generate_series(1, $2)`,
    [NOTE.name, count],
  )
}

type Changes = Partial<Parameters<typeof createOutboxWorker>[0]>

/** A worker that delivers notes, and what it counted. */
function startWorker(pool: pg.Pool, deliverer: Deliverer, changes: Changes = {}) {
  const outcomes: string[] = []
  const worker = createOutboxWorker({
    pool,
    deliverers: new Map([
      [NOTE.name, deliverer],
      [SECRET_NOTE.name, deliverer],
    ]),
    seal: null,
    clock: systemClock,
    log: silentLog,
    delivered: ({ outcome }) => void outcomes.push(outcome),
    ...changes,
  })
  /** Takes up what is due, and waits until all of it is over. */
  const work = async () => {
    const taken = await worker.tick()
    await worker.stop(60_000)
    return taken
  }
  return { ...worker, work, outcomes }
}

const refuse = async () => {
  throw new DeliveryFailure('answered with 503')
}

describe('a message', () => {
  it('is delivered with its id, its payload and its attempt, and then kept without what it said', async () => {
    const pool = await freshPool()
    const [id] = await write(pool, [{ kind: NOTE, destination: 'a', payload: { text: 'hello' } }])
    const deliveries: Delivery[] = []
    const worker = startWorker(pool, { deliver: async (delivery) => void deliveries.push(delivery) })
    assert.equal(await worker.work(), 1)
    assert.equal(await worker.work(), 0)
    const [delivery] = deliveries
    assert.deepEqual(
      [deliveries.length, delivery?.id, delivery?.destination, delivery?.payload, delivery?.attempts],
      [1, id, 'a', { text: 'hello' }, 1],
    )
    const { rows } = await pool.query(
      'select payload, sealed, due_at, delivered_at is not null as is_delivered from outbox',
    )
    assert.deepEqual(rows, [{ payload: null, sealed: null, due_at: null, is_delivered: true }])
    assert.deepEqual(worker.outcomes, ['delivered'])
  })

  it('of a transaction that is rolled back, or not committed yet, is not delivered', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 3), true)
    const worker = startWorker(pool, { deliver: async () => {} })
    await inTransaction(pool, async (query) => {
      await enqueue(query, { ids, seal: null }, { kind: NOTE, destination: 'a', payload: {} })
      assert.equal(await worker.work(), 0)
    })
    assert.equal(await worker.work(), 1)
    assert.deepEqual(await statesIn(pool), { delivered: 1 })
  })

  it('with a key is written once, even by many at once and after it was delivered', async () => {
    const pool = await freshPool()
    const message = { kind: NOTE, destination: 'a', key: 'low balance 2026-11', payload: {} }
    const written = await Promise.all(Array.from({ length: 5 }, () => write(pool, [message])))
    assert.equal(written.flat().filter((id) => id !== '').length, 1)
    await startWorker(pool, { deliver: async () => {} }).work()
    assert.deepEqual(await write(pool, [message]), [''])
    assert.deepEqual(await statesIn(pool), { delivered: 1 })
    await write(pool, [{ ...message, key: 'low balance 2026-12' }])
    assert.deepEqual(await statesIn(pool), { delivered: 1, waiting: 1 })
  })

  it('is bounded, and its kind and destination are', async () => {
    const pool = await freshPool()
    const wrong = [
      { kind: NOTE, destination: 'a', payload: 'x'.repeat(70_000) },
      { kind: NOTE, destination: 'a', payload: undefined },
      { kind: NOTE, destination: 'a'.repeat(256), payload: {} },
      { kind: { name: 'Two Words', isSealed: false }, destination: 'a', payload: {} },
    ]
    for (const message of wrong) await assert.rejects(write(pool, [message]))
    assert.deepEqual(await statesIn(pool), {})
  })

  it('that holds a secret is sealed, for itself alone, through a change of the master key', async () => {
    const pool = await freshPool()
    const [old, current] = [makeMasterKey(), makeMasterKey()]
    const message = { kind: SECRET_NOTE, destination: 'a', payload: { text: 'canary-7f3a' } }
    await assert.rejects(write(pool, [message]), /secrets\.master_key/)
    await inTransaction(pool, (query) => enqueue(query, { ids, seal: createSeal({ current: old }) }, message))
    const { rows } = await pool.query('select * from outbox')
    assert.equal(rows[0].payload, null)
    assert.ok(!rows[0].sealed.includes('canary'))

    const both = createSeal({ current, previous: old })
    const { done, failed } = await inTransaction(pool, (query) => reseal(pool, both, SEALED_MESSAGES, query))
    assert.deepEqual([done, failed], [1, []])
    const payloads: unknown[] = []
    const deliverer = { deliver: async ({ payload }: Delivery) => void payloads.push(payload) }
    await startWorker(pool, deliverer, { seal: createSeal({ current: old }) }).work()
    assert.deepEqual(payloads, [])
    await letTimePass(pool)
    await startWorker(pool, deliverer, { seal: createSeal({ current }) }).work()
    assert.deepEqual(payloads, [{ text: 'canary-7f3a' }])
  })
})

describe('a delivery that fails', () => {
  it('is tried again after a while, with the same id, and is a dead letter after so many times', async () => {
    const pool = await freshPool()
    const [id] = await write(pool, notesTo('a', 1))
    const seen: (readonly [string, number])[] = []
    const worker = startWorker(pool, {
      deliver: ({ id: own, attempts }) => {
        seen.push([own, attempts])
        return refuse()
      },
      retries: { attempts: 3, leastMs: HOUR_MS, mostMs: HOUR_MS },
    })
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      assert.equal(await worker.work(), 1)
      assert.equal(await worker.work(), 0, 'not before its time')
      await letTimePass(pool)
    }
    assert.equal(await worker.work(), 0)
    assert.deepEqual(
      seen,
      [1, 2, 3].map((attempt) => [id, attempt]),
    )
    assert.deepEqual(worker.outcomes, ['failed', 'failed', 'died'])
    const { rows } = await pool.query('select failure, attempts, payload from outbox where died_at is not null')
    assert.deepEqual(rows, [{ failure: 'answered with 503', attempts: 3, payload: '{"text":"note 0"}' }])

    assert.equal(await retryDead(pool, SERVICE, id ?? ''), true)
    assert.equal(await startWorker(pool, { deliver: async () => {} }).work(), 1)
    assert.deepEqual(await statesIn(pool), { delivered: 1 })
  })

  it('for good is a dead letter at once', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    const worker = startWorker(pool, {
      deliver: async () => {
        throw new DeliveryFailure('gone', { isFinal: true })
      },
    })
    await worker.work()
    assert.deepEqual([worker.outcomes, await statesIn(pool)], [['died'], { dead: 1 }])
  })

  it('in a way that nobody explained is kept by its name alone, which holds nothing of the payload', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    await startWorker(pool, {
      deliver: async () => {
        throw new TypeError('canary-91c2')
      },
    }).work()
    assert.deepEqual((await pool.query('select failure from outbox')).rows, [{ failure: 'TypeError' }])
  })

  it('by taking too long is given up, and told so', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    const signals: AbortSignal[] = []
    const worker = startWorker(pool, {
      timeoutMs: 50,
      deliver: ({ signal }) => {
        signals.push(signal)
        return new Promise(() => {})
      },
    })
    await worker.work()
    assert.deepEqual([signals[0]?.aborted, worker.outcomes], [true, ['failed']])
    assert.deepEqual((await pool.query('select failure from outbox')).rows, [{ failure: 'not delivered within 50 ms' }])
  })

  it('because the process stops is tried again', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    const worker = startWorker(pool, {
      deliver: ({ signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new DeliveryFailure('stopping')))),
    })
    await worker.tick()
    await worker.stop(10)
    assert.deepEqual([worker.outcomes, await statesIn(pool)], [['failed'], { waiting: 1 }])
  })
})

describe('workers beside each other', () => {
  it('never take up the same message while a lease lasts', async () => {
    const pool = await freshPool()
    for (let lane = 0; lane < 10; lane += 1) await write(pool, notesTo(`receiver ${lane}`, 30))
    const times = new Map<string, number>()
    const deliverer = { atOnce: 20, deliver: async ({ id }: Delivery) => void times.set(id, (times.get(id) ?? 0) + 1) }
    const workers = Array.from({ length: 4 }, () => startWorker(pool, deliverer))
    while ((await statesIn(pool)).waiting !== undefined) await Promise.all(workers.map(({ work }) => work()))
    assert.deepEqual([times.size, Math.max(...times.values())], [300, 1])
  })

  it('take over what one has left when its lease has ended, and what it says late changes nothing', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 2))
    const late: PromiseWithResolvers<void>[] = []
    const dead = startWorker(pool, {
      deliver: () => {
        const answer = Promise.withResolvers<void>()
        late.push(answer)
        return answer.promise
      },
    })
    assert.equal(await dead.tick(), 2)
    const alive = startWorker(pool, { deliver: async () => {} })
    assert.equal(await alive.work(), 0, 'while the lease lasts')
    await letTimePass(pool)
    assert.equal(await alive.work(), 2)
    late[0]?.reject(new DeliveryFailure('too late', { isFinal: true }))
    late[1]?.resolve()
    await dead.stop(60_000)
    assert.deepEqual(await statesIn(pool), { delivered: 2 })
  })

  it('are not disturbed by one whose lease has ended', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    const answers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const [late, alive] = answers.map(({ promise }) => startWorker(pool, { deliver: () => promise }))
    await late?.tick()
    await letTimePass(pool)
    await alive?.tick()
    answers[0]?.reject(new DeliveryFailure('too late', { isFinal: true }))
    await late?.stop(60_000)
    assert.deepEqual(await statesIn(pool), { waiting: 1 })
    answers[1]?.resolve()
    await alive?.stop(60_000)
    assert.deepEqual(await statesIn(pool), { delivered: 1 })
  })

  it('give up a message that ends each of its workers', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('a', 1))
    const deliverer = { retries: { attempts: 2 }, deliver: () => new Promise<void>(() => {}) }
    for (let death = 0; death < 2; death += 1) {
      assert.equal(await startWorker(pool, deliverer).tick(), 1)
      await letTimePass(pool)
    }
    const last = startWorker(pool, { ...deliverer, deliver: async () => assert.fail('it is not tried again') })
    await last.work()
    assert.deepEqual([last.outcomes, await statesIn(pool)], [['died'], { dead: 1 }])
  })

  it('leave alone what they cannot deliver', async () => {
    const pool = await freshPool()
    await write(pool, [{ kind: { name: 'other', isSealed: false }, destination: 'a', payload: {} }])
    assert.equal(await startWorker(pool, { deliver: async () => {} }).work(), 0)
    assert.deepEqual(await statesIn(pool), { waiting: 1 })
  })
})

describe('a destination', () => {
  it('has so many deliveries at once and no more, and the others have theirs meanwhile', async () => {
    const pool = await freshPool()
    await write(pool, notesTo('slow', 300))
    await write(pool, notesTo('quick', 10))
    let slow = 0
    let quick = 0
    const answer = Promise.withResolvers<void>()
    const worker = startWorker(pool, {
      atOnce: 5,
      deliver: async ({ destination }) => {
        if (destination === 'quick') quick += 1
        else {
          slow += 1
          await answer.promise
        }
      },
    })
    while (quick < 10) await worker.tick()
    await worker.tick()
    assert.deepEqual([slow, quick], [5, 10])
    answer.resolve()
    await worker.stop(60_000)
  })

  it('has what is due found without reading what is not', async () => {
    const { url, pool } = await fresh()
    await postponed(pool, 5_000)
    await write(pool, notesTo('a', 3))
    const read = await rowsRead(url, 'outbox', async (one) => {
      assert.equal(await startWorker(one, { deliver: async () => {} }).work(), 3)
    })
    assert.ok(read < 50, `${read} were read`)
  })

  it('has its turn before those that had theirs, whatever the order in which messages were written', async () => {
    const pool = await freshPool()
    const LANES = 40
    const names = Array.from({ length: LANES }, (_, at) => `lane ${String(at).padStart(2, '0')}`)
    for (const name of names.toReversed()) await write(pool, notesTo(name, 20))
    const told = new Set<string>()
    const worker = startWorker(pool, { deliver: async ({ destination }) => void told.add(destination) })
    // 128 at once, 8 to each.
    for (let ticks = 0; ticks < 3; ticks += 1) await worker.work()
    assert.equal(told.size, LANES)
  })

  it('has its turn, however many there are', async () => {
    const pool = await freshPool()
    const DESTINATIONS = 1_200
    await write(
      pool,
      Array.from({ length: DESTINATIONS }, (_, at) => ({ kind: NOTE, destination: `d${at}`, payload: {} })),
    )
    const told = new Set<string>()
    const worker = startWorker(pool, { deliver: async ({ destination }) => void told.add(destination) })
    let ticks = 0
    for (; told.size < DESTINATIONS && ticks < 100; ticks += 1) await worker.work()
    assert.equal(told.size, DESTINATIONS)
  })
})

describe('the figures and the upkeep of an outbox', () => {
  it('say how many wait, since when, and how many are dead, by kind', async () => {
    const pool = await freshPool()
    assert.deepEqual(await outboxFigures(pool), [])
    await write(pool, notesTo('a', 3))
    await write(pool, [{ kind: { name: 'other', isSealed: false }, destination: 'a', payload: {} }])
    await pool.query("update outbox set created_at = created_at - interval '1 hour' where kind = $1", [NOTE.name])
    await pool.query(
      'update outbox set died_at = clock_timestamp(), due_at = null where id = (select id from outbox where kind = $1 limit 1)',
      [NOTE.name],
    )
    const figures = await outboxFigures(pool)
    assert.deepEqual(
      figures.map(({ kind, waiting, dead }) => [kind, waiting, dead]),
      [
        ['other', 1, 0],
        [NOTE.name, 2, 1],
      ],
    )
    assert.ok((figures[1]?.oldest_seconds ?? 0) >= 3_600)
  })

  it('forget what was delivered, and what nobody wanted, after some days', async () => {
    const pool = await freshPool()
    const kept = { deliveredDays: 7, deadDays: 90 }
    await pool.query(
      `insert into outbox (id, kind, destination, due_at, delivered_at)
       select gen_random_uuid(), 'test.note', 'a', null, clock_timestamp() - make_interval(days => case when n <= 2500 then 8 else 6 end)
       from generate_series(1, 2600) n`,
    )
    await pool.query(
      `insert into outbox (id, kind, destination, payload, due_at, died_at)
       select gen_random_uuid(), 'test.note', 'a', '{}', null, clock_timestamp() - make_interval(days => case when n <= 20 then 91 else 89 end)
       from generate_series(1, 30) n`,
    )
    await write(pool, notesTo('a', 5))
    await pool.query("update outbox set created_at = created_at - interval '1 year' where due_at is not null")
    assert.equal(await pruneOutbox(pool, kept), 2_520)
    assert.deepEqual(await statesIn(pool), { delivered: 100, dead: 10, waiting: 5 })
  })

  it('forget nothing without reading what is not old', async () => {
    const { url, pool } = await fresh()
    await postponed(pool, 5_000)
    await pool.query(
      "update outbox set due_at = null, payload = null, delivered_at = clock_timestamp() - interval '6 days'",
    )
    await postponed(pool, 5_000)
    const read = await rowsRead(url, 'outbox', (one) => pruneOutbox(one, { deliveredDays: 7, deadDays: 90 }))
    assert.ok(read < 10, `${read} were read`)
  })
})
