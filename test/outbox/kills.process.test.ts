import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Gateway, startGateway, startGateways } from '../../harness/gateways.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { NOTE, notesTo, statesIn, write } from './notes.ts'
import { type Arrival, startReceiver } from './receiver.ts'

/**
 * Worker processes are killed while they deliver, each time one that has a delivery under way; receivers fail and break off as well.
 * What a transaction wrote is delivered, what one took back is not, and receivers that know ids see everything once.
 */
const PROOF = 'outbox'
const KILLS = count({ full: 20, reduced: 3 })
const MESSAGES = count({ full: 1_000, reduced: 120 })
const WORKERS = 3
const RECEIVERS = 4
const IN_A_TRANSACTION = 5
/** Every so many transactions are rolled back. */
const ROLLED_BACK = 5
const ALL_WITHIN_MS = 5 * PATIENCE_MS

const random = new Random(seed)
const database = await freshDatabase()
const pools = createPools({ url: new Secret(database.url), log: silentLog })
const pool = pools.rest

/** What receivers have acted on, by id. */
const acted = new Map<string, string>()
const figures = { arrivals: 0, repeated: 0, refused: 0, broken_off: 0 }

/** Acts once on each id, and often enough does not get to say so. */
function receive({ id, body, answer }: Arrival): void {
  figures.arrivals += 1
  const luck = random.between(1, 100)
  if (luck <= 5) {
    figures.refused += 1
    answer.writeHead(503).end()
    return
  }
  if (acted.has(id)) figures.repeated += 1
  else acted.set(id, body)
  if (luck <= 10) {
    figures.broken_off += 1
    answer.destroy()
  } else setTimeout(() => answer.writeHead(204).end(), random.between(0, 60))
}

const receivers = await Promise.all(Array.from({ length: RECEIVERS }, () => startReceiver(receive)))
const workers: Gateway[] = await startGateways(WORKERS, {
  databaseUrl: database.url,
  changes: 'test/outbox/delivering-server.ts',
  env: {
    FAREBOX_ROLES: 'worker',
    FAREBOX_LOG_LEVEL: 'silent',
    FAREBOX_OUTBOUND_ALLOWED_ORIGINS: receivers.map(({ url }) => url).join(','),
  },
})
after(async () => {
  await Promise.all(workers.map((worker) => worker.stop()))
  await pools.close()
})

const written: string[] = []
const takenBack: string[] = []

/** Writes some messages, a few in each transaction, and takes some transactions back. */
async function writeSome(many: number): Promise<void> {
  for (let done = 0; done < many; done += IN_A_TRANSACTION) {
    const { url = '' } = receivers[random.between(0, RECEIVERS - 1)] ?? {}
    const size = Math.min(IN_A_TRANSACTION, many - done)
    written.push(...(await write(pool, notesTo(`${url}/notes`, size))))
    if (random.between(1, ROLLED_BACK) === 1)
      takenBack.push(...(await write(pool, notesTo(`${url}/notes`, size), true)))
  }
}

/** Kills a worker that a receiver is just hearing from, and starts another in its place. */
async function killOneAtWork(): Promise<void> {
  const busy = () => {
    const pids = new Set(receivers.flatMap(({ open }) => [...open].map(({ worker }) => worker)))
    return workers.findIndex(({ pid }) => pids.has(pid))
  }
  await until(() => busy() !== -1, PATIENCE_MS, 'a delivery under way')
  const at = busy()
  const victim = workers[at]
  assert.ok(victim !== undefined)
  await victim.kill()
  workers[at] = await victim.restart()
}

describe('messages of an outbox whose workers are killed', () => {
  it(`are all delivered, and what was rolled back never is (${KILLS} kills, seed ${seed})`, async () => {
    const portion = Math.ceil(MESSAGES / KILLS)
    for (let kill = 0; kill < KILLS; kill += 1) {
      const writing = writeSome(Math.min(portion, MESSAGES - written.length))
      await killOneAtWork()
      await writing
    }
    assert.equal(written.length, MESSAGES)
    const allDelivered = async () => (await statesIn(pool)).delivered === MESSAGES
    await until(allDelivered, ALL_WITHIN_MS, 'the delivery of all')
    // Whoever took one up twice would be at it for a moment longer.
    await until(() => receivers.every(({ open }) => open.size === 0), PATIENCE_MS, 'the end of all deliveries')
    await delay(500)

    const lost = written.filter((id) => !acted.has(id))
    const wrong = [...acted.keys()].filter((id) => !written.includes(id))
    assert.deepEqual([lost, wrong], [[], []])
    sometimes(takenBack.length > 0, 'some were taken back')
    const bodies = new Set(acted.values())
    assert.deepEqual(
      [...bodies].toSorted(),
      notesTo('', IN_A_TRANSACTION)
        .map(({ payload }) => JSON.stringify(payload))
        .toSorted(),
    )
    const { rows } = await pool.query(
      `select count(*)::integer as rows, count(*) filter (where attempts > 1)::integer as tried_again, max(attempts) as attempts_at_most,
         count(payload)::integer as payloads_kept from outbox where kind = $1`,
      [NOTE.name],
    )
    const [{ payloads_kept, ...attempts }] = rows
    assert.equal(payloads_kept, 0)
    sometimes(attempts.tried_again > 0, 'some were tried again')
    sometimes(figures.repeated > 0, 'some came again, and were known by their ids')
    recordProof(PROOF, 'workers killed while they deliver', {
      ...{
        messages: MESSAGES,
        kills: KILLS,
        workers: WORKERS,
        receivers: RECEIVERS,
        delivered: acted.size,
        lost: lost.length,
      },
      ...{ rolled_back: takenBack.length, rolled_back_and_delivered: wrong.length, ...figures, ...attempts },
    })
  })
})

describe('a receiver that does not answer', () => {
  it('keeps nobody else waiting: all others are told before it has said a word', async () => {
    const held: Arrival[] = []
    const told = new Set<string>()
    const stuck = await startReceiver((arrival) => void held.push(arrival))
    const fine = await startReceiver(({ id, answer }) => {
      told.add(id)
      answer.writeHead(204).end()
    })
    const own = await freshDatabase()
    const ownPools = createPools({ url: new Secret(own.url), log: silentLog })
    const lone = await startGateway({
      databaseUrl: own.url,
      changes: 'test/outbox/delivering-server.ts',
      env: {
        FAREBOX_ROLES: 'worker',
        FAREBOX_LOG_LEVEL: 'silent',
        FAREBOX_OUTBOUND_ALLOWED_ORIGINS: `${stuck.url},${fine.url}`,
      },
    })
    try {
      await write(ownPools.rest, notesTo(`${stuck.url}/a`, 500))
      await until(() => stuck.open.size > 0, PATIENCE_MS, 'a delivery that is stuck')
      const ids = await write(ownPools.rest, notesTo(`${fine.url}/z`, 200))
      await until(() => told.size === ids.length, PATIENCE_MS, 'the delivery to the other')
      assert.ok(stuck.open.size <= 8, `${stuck.open.size} at once`)
      const { rows } = await ownPools.rest.query(
        'select count(*)::integer as many from outbox where destination = $1 and due_at is null',
        [`${stuck.url}/a`],
      )
      assert.equal(rows[0].many, 0)
      recordProof(PROOF, 'a receiver that does not answer', { stuck: 500, others_told_meanwhile: told.size })
    } finally {
      for (const { answer } of held) answer.destroy()
      await lone.stop()
      await ownPools.close()
    }
  })
})
