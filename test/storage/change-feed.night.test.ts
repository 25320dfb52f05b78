import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { type Child, startChild } from '../../harness/child.ts'
import { judge } from '../../harness/figures.ts'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createChangeCursor } from '../../server/src/storage/change-cursor.ts'
import { createColumnTypes } from '../../server/src/storage/column-types.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { changeThing, createThings, createThingsTable } from './things.ts'
import { withClient } from './with-client.ts'

const PROOF = 'change-log'
/** Judged in proofs only. */
const LIMIT = { unit: 'ms', atMost: 1_000 } as const
const HINTED = { unit: 'ms', atMost: 100 } as const
/** What a cache allows. */
const FRESH_MS = 1_000
const PROCESSES = 3
const INSERT = `insert into change_log (topic, key) values ('thing', $1)`
const KEYS = Array.from({ length: 20 }, (_, n) => `thing-${n}`)

const { url } = await freshDatabase()
await createThingsTable(url, KEYS)
const writers = new pg.Pool({ connectionString: url, max: 20, types: createColumnTypes() })
writers.on('error', () => {})
after(() => writers.end())

/** From 0 to 1, the same for the same seed. */
function createRandom(state: number): () => number {
  let current = state
  return () => {
    current = (current + 0x6d2b79f5) | 0
    let mixed = Math.imul(current ^ (current >>> 15), 1 | current)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function figures(latencies: readonly number[]) {
  const sorted = latencies.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { count: sorted.length, median_ms: at(0.5), p99_ms: at(0.99), worst_ms: at(1) }
}

/** Figures are kept only of what holds. */
function show(title: string, latencies: readonly number[], others: Readonly<Record<string, number>> = {}): void {
  assert.ok(latencies.every(Number.isFinite), 'each arrival was seen')
  judge(PROOF, `${title}: from the commit to a process`, LIMIT, latencies)
  recordProof(PROOF, title, { ...others, ...figures(latencies) })
}

describe('a change', () => {
  const seen: Map<string, number>[] = []
  const children: Child[] = []
  let ready = 0

  before(async () => {
    for (let n = 0; n < PROCESSES; n += 1) {
      const values = new Map<string, number>()
      seen.push(values)
      const script = path.join(import.meta.dirname, 'change-watcher.ts')
      children.push(
        startChild(process.execPath, [script, url, KEYS.join(',')], {
          onLine: (line) => {
            const [key, value, at] = line.split(' ')
            if (key === 'ready') ready += 1
            else values.set(`${key} ${value}`, Number(at))
          },
        }),
      )
    }
    await until(() => ready === PROCESSES, PATIENCE_MS, 'the start of the processes')
  })
  after(() => Promise.all(children.map((child) => child.kill())))

  /** Makes changes one after the other; how long each took from its commit to the last of the processes. */
  async function latencies(changes: number, name: string): Promise<number[]> {
    const found: number[] = []
    for (let n = 0; n < changes; n += 1) {
      const key = KEYS[n % KEYS.length] ?? ''
      const value = `${name}-${n}`
      const committedAtMs = await changeThing(writers, key, value)
      const hasArrived = () => seen.every((values) => values.has(`${key} ${value}`))
      await until(hasArrived, PATIENCE_MS, `${key} ${value} in all processes`)
      found.push(...seen.map((values) => (values.get(`${key} ${value}`) ?? Number.NaN) - committedAtMs))
      await systemClock.sleep((n * 37) % 100)
    }
    return found
  }

  function prove(title: string, found: readonly number[]): void {
    show(title, found, { processes: PROCESSES })
  }

  it('reaches every process within a second', async () => {
    const found = await latencies(count({ full: 500, reduced: 20 }), 'notified')
    judge(PROOF, 'with NOTIFY: the median, since the hint saves the wait for the next poll', HINTED, [
      figures(found).median_ms,
    ])
    prove('with NOTIFY', found)
  })

  it('reaches every process within a second beside a transaction that stays open, and that one when it commits', async () => {
    const key = KEYS[0] ?? ''
    await withClient(url, async (slow) => {
      await slow.query('begin')
      await slow.query(`select record_change('thing', $1)`, [key])
      prove('beside an open transaction', await latencies(count({ full: 300, reduced: 15 }), 'beside'))
      await slow.query('update things set value = $2 where key = $1', [key, 'last'])
      await slow.query('commit')
      const committedAtMs = Date.now()
      await until(() => seen.every((values) => values.has(`${key} last`)), PATIENCE_MS, 'the late change')
      const found = seen.map((values) => (values.get(`${key} last`) ?? Number.NaN) - committedAtMs)
      prove('recorded first, committed last', found)
    })
  })

  it('reaches every process within a second when NOTIFY is blocked', async () => {
    const { rows } = await writers.query(`select pg_get_functiondef('record_change'::regproc) as definition`)
    const definition: string = rows[0].definition
    await writers.query(`
      create or replace function record_change(topic text, key text) returns void language sql volatile
      begin atomic
        insert into change_log (topic, key) values (record_change.topic, record_change.key);
      end`)
    prove('without NOTIFY', await latencies(count({ full: 200, reduced: 10 }), 'polled'))
    await writers.query(definition)
  })
})

/** Reads without pause and in tiny pages, so that transactions commit between the pages of one read. */
async function createPageReader() {
  const client = await writers.connect()
  const told = new Set<string>()
  const changed = ({ key }: { readonly key: string }) => told.add(key)
  let resets = 0
  const readToEnd = createChangeCursor({ changed, reset: () => (resets += 1), pageRows: 2 })
  await readToEnd(client)
  const stopping = new AbortController()
  const reading = (async () => {
    while (!stopping.signal.aborted) await readToEnd(client)
    client.release()
  })()
  return {
    told,
    resets: () => resets,
    async stop(): Promise<void> {
      stopping.abort()
      await reading
    },
  }
}

describe('no change is missed', () => {
  it('by any reader in a storm of overlapping transactions that commit in any order', async (t) => {
    console.log(`seed ${seed}`)
    const random = createRandom(seed)
    const readers = Array.from({ length: 3 }, () => createThings(url))
    t.after(() => Promise.all(readers.map((reader) => reader.close())))
    await until(() => readers.every(({ feed }) => feed.lagMs() < FRESH_MS), PATIENCE_MS, 'the start of the readers')
    const pages = await createPageReader()
    t.after(pages.stop)
    const committed = new Map<string, number>()
    let transactions = 0

    async function writeSome(writer: number): Promise<void> {
      for (let n = 0; n < count({ full: 200, reduced: 12 }); n += 1) {
        const keys = Array.from({ length: 1 + Math.floor(random() * 4) }, (_, i) => `storm ${writer} ${n} ${i}`)
        const client = await writers.connect()
        transactions += 1
        await client.query('begin')
        if (random() < 0.3) await client.query('select pg_current_xact_id()')
        for (const key of keys) {
          if (random() < 0.3) await systemClock.sleep(random() * 60)
          // Half of them without a hint.
          const record = random() < 0.5 ? `select record_change('thing', $1)` : INSERT
          await client.query(record, [key])
        }
        if (random() < 0.2)
          await client.query(`savepoint s; select record_change('thing', 'never'); rollback to s; release s`)
        await systemClock.sleep(random() < 0.1 ? random() * 800 : random() * 30)
        const commits = random() < 0.8
        await client.query(commits ? 'commit' : 'rollback')
        if (commits) for (const key of keys) committed.set(key, Date.now())
        client.release()
      }
    }
    await Promise.all(Array.from({ length: 12 }, (_, writer) => writeSome(writer)))
    const expected = [...committed.keys()].toSorted()
    const hasAll = (keys: Iterable<string>) => {
      const given = new Set(keys)
      return expected.every((key) => given.has(key))
    }
    const haveAll = () => readers.every(({ told }) => hasAll(told.map(({ key }) => key))) && hasAll(pages.told)
    await until(haveAll, PATIENCE_MS, 'every committed change at every reader').catch(() => {})
    // Whatever is told twice, or should not be told at all, comes as soon.
    await systemClock.sleep(FRESH_MS)
    for (const { told, resets } of readers) {
      const storm = told.filter(({ key }) => key.startsWith('storm') || key === 'never').map(({ key }) => key)
      assert.deepEqual(storm.toSorted(), expected, 'each committed change once, and no other')
      assert.equal(resets(), 1, 'the reset of the start and no other')
    }
    await pages.stop()
    assert.deepEqual([...pages.told].toSorted(), expected, 'also when most reads take several pages')
    assert.equal(pages.resets(), 1)
    const found = readers.flatMap(({ told }) => told.map(({ key, atMs }) => atMs - (committed.get(key) ?? atMs)))
    const size = { transactions, changes: committed.size, readers: readers.length }
    show('a storm of overlapping transactions', found, size)
  })

  it('beside an open transaction and 25,000 other changes, and everything is dropped once', async (t) => {
    const reader = createThings(url)
    t.after(reader.close)
    await until(() => reader.feed.lagMs() < FRESH_MS, PATIENCE_MS, 'the start of the reader')
    const arrival = async (key: string, committedAtMs: number) => {
      const find = () => reader.told.find((one) => one.key === key)
      await until(() => find() !== undefined, PATIENCE_MS, `the change of ${key}`)
      return (find()?.atMs ?? Number.NaN) - committedAtMs
    }
    await withClient(url, async (slow) => {
      await slow.query('begin')
      await slow.query(`select record_change('thing', 'far late')`)
      await writers.query(
        `insert into change_log (topic, key) select 'thing', 'far ' || n from generate_series(1, 25000) as n`,
      )
      // What was committed before that is covered by it, and need not be told.
      await until(() => reader.resets() === 2, PATIENCE_MS, 'the reset')
      const found: number[] = []
      for (let n = 0; n < count({ full: 200, reduced: 10 }); n += 1)
        found.push(await arrival(`beside far ${n}`, await changeThing(writers, `beside far ${n}`, 'new')))
      await slow.query('commit')
      found.push(await arrival('far late', Date.now()))
      assert.equal(reader.resets(), 2, 'that of the start and one more')
      show('beside an open transaction and 25,000 changes', found, { resets: reader.resets() - 1 })
    })
  })
})

describe('a cold cache', () => {
  it('makes at most one database read for each key: 10,000 look-ups of 100 keys at once', async (t) => {
    const keys = Array.from({ length: 100 }, (_, n) => `cold ${n}`)
    await writers.query(`insert into things select unnest($1::text[]), 'warm'`, [keys.slice(0, 50)])
    const process = createThings(url, silentLog, PATIENCE_MS)
    t.after(process.close)
    await until(() => process.feed.lagMs() < FRESH_MS, PATIENCE_MS, 'the start of the feed')
    await writers.query('delete from thing_reads')
    const startedAtMs = systemClock.monotonicMs()
    const values = await Promise.all(Array.from({ length: 10_000 }, (_, n) => process.cache.get(keys[n % 100] ?? '')))
    const tookMs = Math.round(systemClock.monotonicMs() - startedAtMs)
    assert.equal(values.filter((value) => value === 'warm').length, 5_000)
    assert.equal(values.filter((value) => value === undefined).length, 5_000)
    const { rows } = await writers.query(
      'select count(*)::int as reads, count(distinct key)::int as keys from thing_reads',
    )
    assert.deepEqual(rows, [{ reads: 100, keys: 100 }])
    recordProof(PROOF, '10,000 cold look-ups of 100 keys', { ...rows[0], took_ms: tookMs })
  })
})
