import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type pg from 'pg'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { connect } from '../../../test/ledger/world.ts'
import { rowsRead } from '../../../test/storage/rows-read.ts'
import { type Clock, systemClock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import { createIds, firstIdAt, type Id } from '../kernel/ids.ts'
import { usd } from '../kernel/money.ts'
import { silentLog } from '../telemetry/log.ts'
import { createWorkspace } from '../workspaces/workspaces.ts'
import { findRefusedCall, findRefusedWithKey, listRefusedCalls, type RefusedFilter } from './read-refused-calls.ts'
import { createRefusedCalls, KEPT_PER_MINUTE, pruneRefusedCalls, type RefusedRequest } from './refused-calls.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

const ids = createIds({ clock: systemClock })
const SECOND_MS = 1_000
const NOON_MS = Date.UTC(2026, 0, 31, 12)
const broke = new Fault('insufficient_balance', {
  members: { needed_usd: '0.500000000', left_usd: '0.100000000', fix_url: 'https://site.example/console' },
})

async function makeCaller() {
  const made = await createWorkspace({ pool, ids }, { actor: 'operator test', origin: {} }, { name: 'Refused' })
  return {
    workspaceId: made.id,
    accountId: made.liveAccountId,
    credentialId: ids.next(),
    testAccountId: made.testAccountId,
  }
}

type Caller = Awaited<ReturnType<typeof makeCaller>>

/** A process with a clock of its own: its seconds pass when the test says so. */
function startProcess(given: Pick<pg.Pool, 'query'> = pool) {
  let nowMs = NOON_MS
  let wake = () => {}
  let statements = 0
  let answered = 0
  const lost: Record<string, number> = {}
  const clock: Clock = {
    ...systemClock,
    nowMs: () => nowMs,
    sleep: (ms, signal) =>
      signal === undefined
        ? new Promise((resolve) => {
            wake = resolve
          })
        : systemClock.sleep(ms, signal),
  }
  const own = createIds({ clock })
  const counted = {
    async query(statement: pg.QueryConfig) {
      statements += 1
      try {
        return await given.query(statement)
      } finally {
        answered += 1
      }
    },
  }
  const refused = createRefusedCalls({
    pool: counted as pg.Pool,
    clock,
    log: silentLog,
    metrics: {
      refusedCallsNotKept: {
        inc: ({ reason }: { reason: string }, count = 1) => {
          lost[reason] = (lost[reason] ?? 0) + count
        },
      },
    } as unknown as Parameters<typeof createRefusedCalls>[0]['metrics'],
  })
  return {
    lost,
    statements: () => statements,
    add(caller: Caller, more: Partial<RefusedRequest> = {}, fault = broke): Id {
      const id = own.next()
      refused.add({ id, caller, operation: 'rerank', model: undefined, idempotencyKey: undefined, ...more }, fault)
      return id
    },
    /** Lets so much time pass, until what waited for that is written. */
    async pass(ms = SECOND_MS) {
      const before = answered
      nowMs += ms
      wake()
      await until(() => answered > before, PATIENCE_MS, 'that it writes')
    },
    /** Lets time pass while nothing waits. */
    skip(ms: number) {
      nowMs += ms
    },
    flush: () => refused.flush(PATIENCE_MS),
  }
}

const ALL = { sinceMs: 0, untilMs: NOON_MS + 86_400_000, limit: 100_000 }
const listed = async (filter: Partial<RefusedFilter>) => (await listRefusedCalls(pool, { ...ALL, ...filter })).rows

describe('refused calls', () => {
  it('can be read as they were refused: what was needed, what was left, whose budget, and where it is mended', async () => {
    const [caller, { add, flush }] = [await makeCaller(), startProcess()]
    const fault = new Fault('budget_exceeded', {
      retryAfterSeconds: 7,
      members: {
        ...{
          needed_usd: '0.5',
          left_usd: '0',
          budget_kind: 'tag',
          budget_subject: 'team=search',
          budget_period: 'day',
        },
        ...{ limited_by: 'key', fitting_output_limit: 12, fix_url: 'https://site.example/console' },
      },
    })
    const id = add(caller, { operation: 'chat_completions', model: 'vendor/small', idempotencyKey: 'order-1' }, fault)
    await flush()
    const found = await findRefusedCall(pool, { accountId: caller.accountId }, id)
    assert.deepEqual(found, {
      id,
      accountId: caller.accountId,
      credentialId: caller.credentialId,
      at: new Date(NOON_MS),
      operation: 'chat_completions',
      model: 'vendor/small',
      code: 'budget_exceeded',
      status: 402,
      needed: usd('0.5'),
      left: 0n,
      budget: { kind: 'tag', subject: 'team=search', period: 'day' },
      limitedBy: 'key',
      fittingOutput: 12,
      retryAfterSeconds: 7,
      fixUrl: 'https://site.example/console',
    })
    assert.deepEqual(await listed({ credentialIds: [caller.credentialId] }), [found])
    assert.deepEqual(await findRefusedWithKey(pool, caller.credentialId, { idempotencyKey: 'order-1' }), [found])
    const other = { idempotencyKey: 'order-1', operation: 'rerank' }
    assert.deepEqual(await findRefusedWithKey(pool, caller.credentialId, other), [])
    assert.equal(await findRefusedCall(pool, [ids.next()], id), undefined)
    assert.deepEqual(await findRefusedCall(pool, 'everybody', id), found)
  })

  it('cost PostgreSQL one statement a second, however many there are, and 200 rows of a workspace and minute', async () => {
    const { add, pass, statements, lost } = startProcess()
    const [SECONDS, A_SECOND, FLOOD] = [60, 834, 500]
    const flooding = await makeCaller()
    const callers = Array.from({ length: 260 }, () => ({ ...flooding, workspaceId: ids.next(), accountId: ids.next() }))
    for (let second = 0; second < SECONDS; second += 1) {
      for (let at = 0; at < A_SECOND; at += 1) add(callers[(second * A_SECOND + at) % callers.length] ?? flooding)
      for (let times = 0; times < FLOOD; times += 1) add(flooding)
      // None before the second is over, and then one.
      assert.equal(statements(), second)
      await pass()
    }
    assert.equal(statements(), SECONDS)
    const kept = await listed({ credentialIds: [flooding.credentialId] })
    assert.equal(kept.length, SECONDS * A_SECOND + KEPT_PER_MINUTE)
    assert.equal(kept.filter(({ accountId }) => accountId === flooding.accountId).length, KEPT_PER_MINUTE)
    assert.deepEqual(lost, { over_limit: SECONDS * FLOOD - KEPT_PER_MINUTE })
  })

  it('are 200 of a workspace and minute over all processes, live and test together', async () => {
    const caller = await makeCaller()
    const inTest = { ...caller, accountId: caller.testAccountId }
    const processes = Array.from({ length: 4 }, () => startProcess())
    for (const { add } of processes) for (let times = 0; times < 150; times += 1) add(times % 2 === 0 ? caller : inTest)
    await Promise.all(processes.map(({ flush }) => flush()))
    const [live, test] = await Promise.all(
      [caller, inTest].map(async ({ accountId }) => (await listed({ accountId })).length),
    )
    assert.equal((live ?? 0) + (test ?? 0), KEPT_PER_MINUTE)
    assert.equal(
      processes.reduce((sum, { lost }) => sum + (lost.over_limit ?? 0), 0),
      4 * 150 - KEPT_PER_MINUTE,
    )
    // The next minute has room again.
    for (const { add, skip } of processes) {
      skip(60_000)
      add(caller)
    }
    await Promise.all(processes.map(({ flush }) => flush()))
    assert.equal((await listed({ accountId: caller.accountId })).length, (live ?? 0) + 4)
  })

  it('are dropped and counted where PostgreSQL does not take them, or where they are more than there is room for', async () => {
    const caller = await makeCaller()
    const down = { query: () => Promise.reject(new Error('down')) } as unknown as pg.Pool
    const { add, pass, lost } = startProcess(down)
    for (let times = 0; times < 3; times += 1) add(caller)
    await pass()
    assert.deepEqual({ ...lost }, { not_written: 3 })
    const model = 'm'.repeat(200)
    for (let workspace = 0; workspace < 3_000; workspace += 1) add({ ...caller, workspaceId: ids.next() }, { model })
    assert.ok((lost.no_room ?? 0) > 0)
    const room = 3_000 - (lost.no_room ?? 0)
    // What waits has no more than a mebibyte, at two bytes a character.
    assert.ok(room * 2 * 500 < 1_048_576, `${room} waited`)
    await pass()
    assert.deepEqual(lost.not_written, 3 + room)
  })

  it('are listed the latest first, page after page, also where few of them match', async () => {
    const [caller, { add, pass }] = [await makeCaller(), startProcess()]
    const all: Id[] = []
    for (let times = 0; times < 30; times += 1) {
      all.unshift(add(caller, { operation: times % 10 === 0 ? 'rerank' : 'tag_detail' }))
      if (times % 3 === 0) await pass()
    }
    await pass()
    const seen: Id[] = []
    let after: RefusedFilter['after']
    do {
      const { rows, next } = await listRefusedCalls(pool, { ...ALL, accountId: caller.accountId, limit: 7, after })
      seen.push(...rows.map(({ id }) => id))
      after = next ?? undefined
    } while (after !== undefined)
    assert.deepEqual(seen, all)
    const some = await listed({ accountId: caller.accountId, operation: 'rerank' })
    assert.deepEqual(
      some.map(({ id }) => id),
      all.filter((_, at) => (29 - at) % 10 === 0),
    )
    const [fifth = ''] = all.slice(5, 6)
    const before = await listed({
      accountId: caller.accountId,
      after: { endedUs: BigInt(NOON_MS) * 1_000n, id: fifth },
    })
    assert.ok(before.every(({ id }) => id < firstIdAt(NOON_MS + 1)))
  })

  it('have no key that somebody has put in the place of a name, and no text that PostgreSQL has no room for', async () => {
    const [caller, { add, flush }] = [await makeCaller(), startProcess()]
    const secret = 'fb_live_000abcdefghijklmnopqrstuvwxyz0123456789'
    for (const model of [secret, `use ${secret}`, 'a\0b', `${'x'.repeat(300)}`, '\ud800'])
      add(caller, { model, idempotencyKey: secret })
    await flush()
    const rows = await listed({ accountId: caller.accountId })
    assert.deepEqual(rows.map(({ model }) => model).toReversed(), [null, null, null, 'x'.repeat(200), '\ufffd'])
    const { rows: found } = await pool.query(
      "select count(*)::integer as n from refused_calls where idempotency_key ~ 'fb_'",
    )
    assert.equal(found[0]?.n, 0)
  })

  it('are forgotten after their days, without reading those that stay', async () => {
    const caller = await makeCaller()
    const old = firstIdAt(Date.now() - 8 * 86_400_000)
    const insert = `insert into refused_calls (id, account_id, credential_id, code, status) select id, $2, $3, 'forbidden', 403 from unnest($1::uuid[]) id`
    const young = Array.from({ length: 2_000 }, (_, at) => firstIdAt(Date.now() - 6 * 86_400_000 + at))
    await pool.query(insert, [[old, ...young], caller.accountId, caller.credentialId])
    await pruneRefusedCalls(pool, 7)
    assert.equal(await findRefusedCall(pool, 'everybody', old), undefined)
    const { rows } = await listRefusedCalls(pool, { ...ALL, untilMs: Date.now(), accountId: caller.accountId })
    assert.equal(rows.length, young.length)
    const read = await rowsRead(database.url, 'refused_calls', (one) => pruneRefusedCalls(one, 7))
    assert.ok(read < 10, `${read} rows were read to find that none is old`)
  })
})
