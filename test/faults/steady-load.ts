import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../harness/until.ts'
import { Random } from '../../sandbox/src/random.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Caller, Marks } from './caller.ts'
import type { Cluster } from './cluster.ts'
import { type History, isStreamed } from './history.ts'
import type { Person } from './people.ts'
import { UNLIMITED } from './speeches.ts'

/** For what nobody may notice: clients that never repeat anything, and of whose requests none may fail. */

const CLIENTS = 12
const OPERATIONS = ['rerank', 'tag_detail', 'tweet_quotes', 'post_comments'] as const
/** Of the calls. Each stream is over before a gateway that is asked to end has to. */
const STREAMS = 0.25
const LOOKS = ['/v1/balance', '/v1/usage?start_time=1700000000', '/v1/requests?limit=5'] as const
const WRITTEN_WITHIN_MS = 60_000

/**
 * What a gateway needs for that: it goes on for as long as the balancer may take to notice. HAProxy looks every 100 ms, and was late by more than half a second on
 * a machine that was eight times overloaded: it then sent a request to a connection that was being closed.
 */
export const LEAVES_SLOWLY = { FAREBOX_HTTP_DRAIN_PAUSE_MS: '4000' }

type Load = {
  readonly caller: Caller
  readonly person: Person
  readonly seed: number
  /** Of the steps of a client, those that ask for a quote, and those that look at what was spent; the rest are calls. */
  readonly quotes?: number
  readonly looks?: number
}

/** Calls until it is told to stop. */
export function startSteadyLoad({ caller, person, seed, quotes = 0, looks = 0 }: Load): () => Promise<void> {
  let isOver = false
  const marks = new Marks()
  const [key] = person.keys
  assert.ok(key !== undefined)

  async function step(client: string, random: Random): Promise<void> {
    const who = { client, person, key: key ?? assert.fail() }
    const dice = random.fraction()
    if (dice < looks) {
      await caller.ask({ ...who, what: 'look', path: random.pick(LOOKS) })
      return
    }
    const mark = marks.make()
    if (random.chance(STREAMS)) {
      const words = `sandbox:delta-ms=${random.between(4, 40)}`
      const question = { model: 'sandbox/text', words, isStream: true, wantsUsage: true }
      await caller.ask({ ...who, what: 'call', mark, ...marks.question(random.pick(UNLIMITED), mark, question) })
      return
    }
    const request = marks.request(random.pick(OPERATIONS), mark, `sandbox:delay=${random.between(0, 400)}`)
    const isQuote = dice < looks + quotes
    await caller.ask({ ...who, what: isQuote ? 'quote' : 'call', mark, isQuote, ...request })
  }

  async function live(client: number): Promise<void> {
    const random = new Random(seed + client)
    while (!isOver) {
      await step(`client ${client}`, random)
      await delay(random.between(0, 30))
    }
  }

  const lives = Promise.all(Array.from({ length: CLIENTS }, (_, client) => live(client)))
  return async () => {
    isOver = true
    await lives
  }
}

/** No request failed, and each call was asked once, is charged as it was told, and is written down. Videos are told their cost when they are made. */
export async function requireUnharmed({ operations }: History, { pool, upstream }: Cluster): Promise<void> {
  const failed = operations.filter(({ outcome }) => outcome !== 'ok')
  assert.deepEqual(
    failed.map(({ n, what, told }) => ({ n, what, ...told })),
    [],
  )
  const calls = operations.filter(({ what }) => what === 'call')
  const all = calls.length + operations.filter(({ what }) => what === 'video').length
  const { rows } = await pool.query<{ id: string; amount: bigint }>('select id, amount from charges')
  const charges = new Map(rows.map(({ id, amount }) => [id, amount]))
  assert.ok(calls.some(isStreamed), 'some of them streamed')
  const lost = calls.filter(({ told }) => charges.get(told.id ?? '') !== told.costNanos)
  assert.deepEqual(lost, [], 'charges that callers were told of')
  assert.equal(charges.size, all, 'one charge for each call, and none beside')
  const asked = (await upstream.journal()).filter((entry) => entry.upstream !== 'video')
  assert.equal(asked.length, calls.length, 'one upstream call for each')
  assert.equal((await pool.query('select from holds')).rowCount, 0)
  assert.deepEqual(await verifyLedger(pool), [])
  // Records are written a moment behind the answers.
  const records = async () => (await pool.query('select from request_records')).rowCount
  const areWritten = async () => (await records()) === all
  await until(areWritten, WRITTEN_WITHIN_MS, `that ${all} records are written`)
}
