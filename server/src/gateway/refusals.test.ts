import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { connect } from '../../../test/ledger/world.ts'
import { rowsRead } from '../../../test/storage/rows-read.ts'
import { systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds } from '../kernel/ids.ts'
import { createRefusals, OTHER_KEYS, pruneRefusals, refusalsOf } from './refusals.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const ids = createIds({ clock: systemClock })
const HOUR_MS = 3_600_000
const NOON_MS = Date.UTC(2026, 0, 31, 12)
const EVER = new Date(0)
const limited = new Fault('rate_limit_exceeded')
const broke = new Fault('insufficient_balance')

function start(most?: number) {
  let nowMs = NOON_MS
  const refusals = createRefusals({
    pool,
    clock: systemClock,
    time: { nowMs: () => nowMs },
    ...(most !== undefined && { most }),
  })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { ...refusals, pass }
}

const shortly = async (key: string) =>
  (await refusalsOf(pool, key, EVER)).map(({ hour, reason, count }) => [hour.getTime(), reason, count])

describe('refusals of a key', () => {
  it('are one row for each reason and hour, a million of them as one', async () => {
    const [key, other] = [ids.next(), ids.next()]
    const { count, write, pass } = start()
    for (let times = 0; times < 1_000_000; times += 1) count(key, limited)
    count(other, limited)
    await write()
    count(key, broke)
    pass(HOUR_MS)
    count(key, limited)
    await write()
    assert.deepEqual(await shortly(key), [
      [NOON_MS + HOUR_MS, 'rate_limit_exceeded', 1n],
      [NOON_MS, 'rate_limit_exceeded', 1_000_000n],
      [NOON_MS, 'insufficient_balance', 1n],
    ])
    assert.deepEqual(await shortly(other), [[NOON_MS, 'rate_limit_exceeded', 1n]])
    assert.equal((await refusalsOf(pool, key, new Date(NOON_MS + 1))).length, 1)
  })

  it('are what we refuse, and not what nobody was refused or an upstream has failed at', async () => {
    const key = ids.next()
    const { count, write } = start()
    const codes = ['invalid_credential', 'upstream_transport', 'internal_error', 'settlement_timeout'] as const
    for (const code of codes) count(key, new Fault(code))
    for (const code of ['overloaded', 'forbidden', 'idempotency_mismatch'] as const) count(key, new Fault(code))
    await write()
    assert.deepEqual((await shortly(key)).map(([, reason]) => reason).sort(), [
      'forbidden',
      'idempotency_mismatch',
      'overloaded',
    ])
  })

  it('are bounded where many keys are refused at once: those beyond are counted together, by reason', async () => {
    const keys = Array.from({ length: 50 }, () => ids.next())
    const { count, write } = start(20)
    for (const key of keys) {
      count(key, limited)
      count(key, limited)
    }
    for (const key of keys.slice(0, 25)) count(key, broke)
    const rows = async () => Number((await pool.query('select count(*) from refusals')).rows[0].count)
    const before = await rows()
    await write()
    assert.equal((await rows()) - before, 20 + 2)
    assert.deepEqual(await shortly(OTHER_KEYS), [
      [NOON_MS, 'rate_limit_exceeded', 60n],
      [NOON_MS, 'insufficient_balance', 25n],
    ])
    // There is room again.
    count(keys[49] ?? '', limited)
    await write()
    assert.deepEqual(await shortly(keys[49] ?? ''), [[NOON_MS, 'rate_limit_exceeded', 1n]])
  })

  it('are kept where they could not be written, and written with those that came since', async () => {
    const key = ids.next()
    const { count, write } = start()
    count(key, limited)
    await pool.query('alter table refusals rename to refusals_away')
    await assert.rejects(write())
    await pool.query('alter table refusals_away rename to refusals')
    count(key, limited)
    await write()
    assert.deepEqual(await shortly(key), [[NOON_MS, 'rate_limit_exceeded', 2n]])
  })

  it('are added up by processes that write at once, without waiting for each other for ever', async () => {
    const keys = Array.from({ length: 200 }, () => ids.next())
    const three = [start(), start(), start()]
    for (const [at, { count }] of three.entries())
      for (const key of at === 1 ? keys.toReversed() : keys) for (const fault of [limited, broke]) count(key, fault)
    await Promise.all(three.map(({ write }) => write()))
    for (const key of keys)
      assert.deepEqual(
        (await shortly(key)).map(([, , count]) => count),
        [3n, 3n],
      )
  })

  it('are forgotten when they are older than they are kept', async () => {
    const [old, young] = [ids.next(), ids.next()]
    const add = (key: string, days: number) =>
      pool.query(
        "insert into refusals select $1, date_trunc('hour', now()) - make_interval(days => $2), 'forbidden', 1",
        [key, days],
      )
    await add(old, 31)
    await add(young, 29)
    assert.ok((await pruneRefusals(pool, 30)) >= 1)
    assert.deepEqual([(await shortly(old)).length, (await shortly(young)).length], [0, 1])
  })

  it('are not read to find that none is old', async () => {
    await pool.query(
      "insert into refusals select gen_random_uuid(), date_trunc('hour', now()) - interval '1 day', 'forbidden', 1 from generate_series(1, 5000)",
    )
    await pruneRefusals(pool, 30)
    const read = await rowsRead(database.url, 'refusals', (one) => pruneRefusals(one, 30))
    assert.ok(read < 10, `${read} were read`)
  })
})
