import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { addUpUsage } from '../../server/src/ledger/add-up-usage.ts'
import { readUsage } from '../../server/src/ledger/usage.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { callOf, makeParty, openSession, outcomesOf, type Party, postOf, type Session } from './session.ts'
import { inTail } from './usage-rows.ts'
import { connect } from './world.ts'

/** Usage is added up while others write it and read it, and also where that takes long. */
const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
const session = await openSession(database.url)
after(() => Promise.all([session.close(), pools.close()]))

const HOUR = 3_600
const nowSeconds = Math.floor(Date.now() / 1_000)
/** From an hour that it cuts to one that has not begun. */
const window = { startSeconds: nowSeconds - 2 * HOUR - 1, endSeconds: Math.ceil(nowSeconds / HOUR) * HOUR + 2 * HOUR }

/** Calls of one nano, each of a run of its own, so that each has a row of the tail. */
async function charge(through: Session, party: Party, from: number, calls: number): Promise<void> {
  const some = Array.from({ length: calls }, (_, at) =>
    callOf(party, {
      hold: 10n,
      attribution: { model: null, endUser: null, tags: [{ name: 'run', value: String(from + at) }] },
    }),
  )
  assert.deepEqual(new Set(await outcomesOf(through.begin(...some))), new Set(['begun']))
  assert.deepEqual(new Set(await outcomesOf(through.end(...some.map((call) => postOf(call, 1n))))), new Set(['posted']))
}

describe('usage that is added up', () => {
  it('is in every report once while calls settle and others add up, and a report is one statement, behind a look at what is kept', async () => {
    const [ALL, EACH] = [300, 5]
    const party = await makeParty(pool, 10n ** 9n)
    let [begun, ended, statements, steps, reports] = [0, 0, 0, 0, 0]
    let isDone = false
    const settling = (async () => {
      for (; begun < ALL; ) {
        begun += EACH
        await charge(session, party, begun, EACH)
        ended += EACH
      }
    })().finally(() => {
      isDone = true
    })
    const adding = (async () => {
      for (; !isDone; steps += 1) await pool.query('select add_up_usage(most => $1)', [1 + (steps % 7)])
    })()
    const counted = new Proxy(pool, {
      get(target, name) {
        if (name === 'query') statements += 1
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })
    let before = 0n
    const seen = new Set<bigint>()
    while (!isDone) {
      const least = ended
      const scope = reports % 2 === 0 ? party : { accountId: party.accountId }
      const { totals, groups = [] } = await readUsage(counted, { scope, ...window, groupBy: { tag: 'run' } })
      reports += 1
      const grouped = groups.reduce((sum, group) => sum + group.totals.charged, 0n)
      assert.equal(grouped, totals.requests)
      assert.ok(groups.every(({ kind }) => kind !== 'none'))
      assert.ok(totals.requests >= before && totals.requests >= BigInt(least), `${totals.requests} after ${before}`)
      assert.ok(totals.requests <= BigInt(begun), `${totals.requests} of ${begun}`)
      before = totals.requests
      seen.add(before)
    }
    await Promise.all([settling, adding])
    assert.equal(statements, 2 * reports)
    assert.ok(steps > 0)
    sometimes(seen.size > 3 && steps > 3, `more than three states in as many steps (${seen.size} in ${steps})`)
    await addUpUsage(pool)
    assert.equal((await readUsage(pool, { scope: party, ...window })).totals.requests, BigInt(ALL))
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('goes on in smaller portions where one takes too long, and fails where even a small one does', async () => {
    const party = await makeParty(pool, 10n ** 9n)
    for (let from = 0; from < 500; from += 100) await charge(session, party, from, 100)
    // As PostgreSQL cancels a statement that takes too long: here one that takes more than so many rows.
    await session.query(`
      create function cancel_large() returns trigger language plpgsql as $$
      begin
        if (select count(*) from taken) > tg_argv[0]::integer then raise exception 'too long' using errcode = 'query_canceled'; end if;
        return null;
      end $$`)
    const cancelAbove = (rows: number) =>
      session.query(
        `create or replace trigger cancel_large after delete on usage_tail referencing old table as taken
         for each statement execute function cancel_large(${rows})`,
      )
    await cancelAbove(5)
    assert.equal(await inTail(pool), 500)
    await assert.rejects(addUpUsage(pool), { code: '57014' })
    assert.equal(await inTail(pool), 500)
    await cancelAbove(200)
    let added = 0
    // The one that failed may not be undone yet, and then there is still somebody at it.
    while ((await inTail(pool)) > 0) added += await addUpUsage(pool)
    assert.equal(added, 500)
    await session.query('drop function cancel_large cascade')
    assert.deepEqual(await verifyLedger(pool), [])
  })

  it('is told by how much of it waits, and for how long', async () => {
    // Nobody can add up.
    await session.query("select pg_advisory_lock(hashtext('add_up_usage'))")
    await charge(session, await makeParty(pool, 10n ** 9n), 0, 3)
    await session.query("update usage_tail set at = at - interval '30 minutes'")
    const worker = await startGateway({
      databaseUrl: database.url,
      env: { FAREBOX_ROLES: 'worker,admin', FAREBOX_LOG_LEVEL: 'silent' },
    })
    try {
      const told = async (name: string) =>
        Number(new RegExp(`^${name} (.+)$`, 'm').exec(await (await fetch(`${worker.adminUrl}/metrics`)).text())?.[1])
      const isTold = async () =>
        (await told('farebox_usage_tail_rows')) === 3 && (await told('farebox_usage_tail_oldest_seconds')) >= 1_800
      await until(isTold, PATIENCE_MS, 'three rows of half an hour')
    } finally {
      await worker.stop()
      await session.query("select pg_advisory_unlock(hashtext('add_up_usage'))")
    }
  })
})
