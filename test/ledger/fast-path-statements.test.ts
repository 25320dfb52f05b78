import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call } from '../../server/src/calls/call.ts'
import { voidOf } from '../../server/src/calls/calls.ts'
import { createFastPath } from '../../server/src/calls/fast-path.ts'
import { createMoneyQuery } from '../../server/src/calls/money-query.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { createColumnTypes } from '../../server/src/storage/column-types.ts'
import { startupOptions } from '../../server/src/storage/connection.ts'
import { MONEY_SETTINGS } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { watched } from './fast-path-world.ts'
import { callOf, makeParty, openSession, type Party, postOf, type Session, unfailed, windowOf } from './session.ts'
import { connect, ids, makeAllowance, makeCredential, pg, ROOMY } from './world.ts'

/** Which statements a batch takes, and what is beside what. */
const database = await freshDatabase()
const { pools, calls } = connect(database.url, { fast: true })
const pool = pools.rest
/** As the connections for money are, but that they wait for a lock however long it takes. */
const patient = new pg.Pool({
  connectionString: database.url,
  types: createColumnTypes(),
  options: startupOptions(MONEY_SETTINGS),
  application_name: 'patient',
})
// The database may be dropped before they are closed.
patient.on('error', () => {})
patient.on('connect', (client) => client.on('error', () => {}))
after(() => Promise.all([pools.close(), patient.end()]))

const SLOT = { scope: 'concurrency', key: 'all', limit: 2, fingerprint: '', keepSeconds: 0, endsWithOwner: true }

type Asks = { readonly own?: Id; readonly hold?: bigint | null }

function usual(party: Party, { own, hold = 10n }: Asks = {}): Call {
  return callOf(party, {
    hold,
    tokens: 5,
    windows: [ROOMY],
    claims: [SLOT],
    allowances: own === undefined ? [] : [own],
  })
}

/** A path that forgets nothing by itself, and which statements it has sent since the last look. */
function stage() {
  const clock = { ...systemClock, monotonicMs: () => 0 }
  const path = createFastPath({ clock, log: silentLog })
  const { query, take } = watched(createMoneyQuery(patient))
  const ownerId = ids.next()
  return {
    begin: async (...batch: readonly Call[]) => unfailed(await path.begin(query, ownerId, batch)),
    end: async (...endings: Parameters<typeof path.end>[1]) => unfailed(await path.end(query, endings)),
    names: async () => (await take()).map(({ name }) => name).sort(),
  }
}

async function withLock<T>({ accountId }: Party, work: (holder: Session) => Promise<T>): Promise<T> {
  const holder = await openSession(database.url)
  try {
    await holder.query('begin')
    await holder.query('select from accounts where id = $1 for no key update', [accountId])
    return await work(holder)
  } finally {
    await holder.close()
  }
}

const isWaiting = async () =>
  (await pool.query("select from pg_stat_activity where application_name = 'patient' and wait_event_type = 'Lock'"))
    .rowCount === 1

const agree = async (...parties: readonly Party[]) =>
  assert.deepEqual(
    await verifyLedger(
      pool,
      parties.map(({ accountId }) => accountId),
    ),
    [],
  )

describe('a key at its limit that has a budget of its own', () => {
  it('is judged at once for a while: its budget stands where it should, and is not why calls do not fit', async () => {
    const { begin, end, names } = stage()
    const party = await makeParty(pool, 10_000n)
    const own = await makeAllowance(pool, party.accountId, 'total', 10_000n)
    const open = [usual(party, { own }), usual(party, { own })]
    for (const call of open) {
      assert.equal((await begin(call))[0]?.outcome, 'begun')
      const isFirst = open.indexOf(call) === 0
      assert.deepEqual(await names(), [isFirst ? 'begin_attributed_calls_with_budgets' : 'begin_fitting_calls'])
    }
    const batches = []
    for (let round = 0; round < 4; round += 1) {
      await end(voidOf(open.shift() ?? assert.fail()))
      await names()
      const batch = [usual(party, { own }), usual(party, { own }), usual(party, { own })]
      const outcomes = (await begin(...batch)).map(({ outcome }) => outcome)
      assert.deepEqual(outcomes, ['begun', 'claim_taken', 'claim_taken'])
      open.push(...batch.slice(0, 1))
      batches.push(await names())
    }
    assert.deepEqual(batches, [
      ['begin_attributed_calls_with_budgets', 'begin_fitting_calls'],
      ...Array.from({ length: 3 }, () => ['begin_attributed_calls']),
    ])
    await agree(party)
  })
})

describe('budgets that have to be put to their credentials', () => {
  it('are put there by the statement that begins the first call of each', async () => {
    const { begin, names } = stage()
    const parties = await Promise.all(Array.from({ length: 5 }, () => makeParty(pool, 100n)))
    const owns = await Promise.all(parties.map(({ accountId }) => makeAllowance(pool, accountId, 'day', 50n)))
    const batch = () => parties.map((party, at) => usual(party, { own: owns[at] ?? '' }))
    for (const sent of ['begin_attributed_calls_with_budgets', 'begin_fitting_calls']) {
      assert.deepEqual(new Set((await begin(...batch())).map(({ outcome }) => outcome)), new Set(['begun']))
      assert.deepEqual(await names(), [sent])
    }
    await agree(...parties)
  })

  it('are put there beside tasks that begin, and not where the call is refused', async () => {
    const { begin, end, names } = stage()
    const [one, poor, other] = [await makeParty(pool, 100n), await makeParty(pool, 5n), await makeParty(pool, 100n)]
    const own = await makeAllowance(pool, one.accountId, 'day', 50n)
    const poors = await makeAllowance(pool, poor.accountId, 'day', 50n)
    const task = { ...callOf(other, { hold: 10n }), task: { model: 'm', prompt: Buffer.of() } }
    const batch = [usual(one, { own }), usual(poor, { own: poors }), task]
    assert.deepEqual(
      (await begin(...batch)).map(({ outcome }) => outcome),
      ['begun', 'money_spent', 'begun'],
    )
    assert.deepEqual(await names(), ['begin_attributed_calls_with_tasks_with_budgets'])
    const stands = 'select budget_id as id from credentials where id = any ($1) order by array_position($1, id)'
    const { rows } = await pool.query(stands, [[one.credentialId, poor.credentialId]])
    assert.deepEqual(rows, [{ id: own }, { id: null }])
    await end(...batch.filter((call) => call.accountId !== poor.accountId).map(voidOf))
    await agree(one, poor, other)
  })

  it('are put there by nobody where that fails, and nobody tries it again for a while: the calls begin all the same', async () => {
    const party = await makeParty(pool, 100n)
    const own = await makeAllowance(pool, party.accountId, 'day', 50n)
    const other = await makeAllowance(pool, party.accountId, 'day', 50n)
    await pool.query('select meter_budget(credential => $1, allowance => $2)', [party.credentialId, other])
    // As no statement leaves it: the period that has to make room is among the kept ones already.
    await pool.query(
      `insert into kept_periods (allowance_id, starts_at, amount, charged, held)
       select budget_id, budget_starts_at, budget_amount, 0, 0 from credentials where id = $1`,
      [party.credentialId],
    )
    const { begin, end, names } = stage()
    const [neighbour, call, next] = [usual(await makeParty(pool, 100n)), usual(party, { own }), usual(party, { own })]
    const outcomes = async (...batch: readonly Call[]) => (await begin(...batch)).map(({ outcome }) => outcome)
    assert.deepEqual(await outcomes(neighbour, call), ['begun', 'begun'])
    assert.deepEqual(await names(), ['begin_attributed_calls', 'begin_fitting_calls'])
    assert.deepEqual(await outcomes(next), ['begun'])
    assert.deepEqual(await names(), ['begin_attributed_calls'])
    await end(voidOf(neighbour), voidOf(call), voidOf(next))
  })

  it('are put there once, where several processes begin the first calls of a key at once', async () => {
    const party = await makeParty(pool, 1_000n)
    const own = await makeAllowance(pool, party.accountId, 'day', 500n)
    const processes = Array.from({ length: 6 }, stage)
    const begun = await Promise.all(processes.map(({ begin }) => begin({ ...usual(party, { own }), claims: [] })))
    assert.deepEqual(new Set(begun.flat().map(({ outcome }) => outcome)), new Set(['begun']))
    const { rows } = await pool.query('select budget_id as id, budget_held as held from credentials where id = $1', [
      party.credentialId,
    ])
    assert.deepEqual(rows, [{ id: own, held: 60n }])
    await agree(party)
  })
})

describe('what is not usual', () => {
  it('does not wait for the statement for the others', async () => {
    const { begin, names } = stage()
    const [locked, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const key = { ...SLOT, scope: 'idempotency', key: 'k', limit: 1 }
    const keyed = { ...usual(other), claims: [key] }
    const batch = [usual(locked), keyed]
    const begun = await withLock(locked, async (holder) => {
      const answer = begin(...batch)
      await until(
        async () => (await pool.query('select from holds where id = $1', [keyed.id])).rowCount === 1,
        PATIENCE_MS,
        'the hold of the call that is judged',
      )
      await until(isWaiting, PATIENCE_MS, 'the call that waits for its account')
      await holder.query('commit')
      return answer
    })
    assert.deepEqual(new Set(begun.map(({ outcome }) => outcome)), new Set(['begun']))
    assert.deepEqual(await names(), ['begin_attributed_calls', 'begin_fitting_calls'])
    await agree(locked, other)
  })

  it('takes all calls of its account with it, so that whoever comes first has the money', async () => {
    const { begin, names } = stage()
    const party = await makeParty(pool, 15n)
    const other = { ...party, credentialId: await makeCredential(pool, party.accountId) }
    const batch = [usual(party), usual(other, { hold: null }), usual(other)]
    const outcomes = (await begin(...batch)).map(({ outcome }) => outcome)
    assert.deepEqual(outcomes, ['begun', 'begun', 'money_spent'])
    assert.deepEqual(await names(), ['begin_attributed_calls'])
    await agree(party)
  })

  it('is answered, and not judged again, where somebody has the account of another', async () => {
    const [locked, other] = [await makeParty(pool, 100n), await makeParty(pool, 100n)]
    const waits = await withLock(locked, async (holder) => {
      const waiting = calls.begin(usual(locked))
      const admitted = await calls.begin(usual(other, { hold: null }))
      assert.equal(admitted.outcome, 'begun')
      await holder.query('commit')
      return waiting
    })
    assert.equal(waits.outcome, 'begun')
    assert.equal((await windowOf(pool, other, 'all'))?.requests, 1)
    await agree(locked, other)
  })
})

describe('a call whose account somebody has for longer than a statement waits', () => {
  it('leaves nothing behind where it is refused then', async () => {
    const party = await makeParty(pool, 15n)
    const late = usual(party)
    const refused = await withLock(party, async (holder) => {
      const waiting = calls.begin(late)
      // The judging function is sent once the first statement has been given up.
      const isJudged =
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%begin_attributed_calls%'"
      await until(async () => (await pool.query(isJudged)).rowCount === 1, PATIENCE_MS, 'the second statement')
      await holder.begin(usual(party))
      await holder.query('commit')
      return waiting
    })
    assert.equal(refused.outcome, 'money_spent')
    assert.ok(await calls.flush(PATIENCE_MS))
    assert.equal((await pool.query('select from charges where id = $1', [late.id])).rowCount, 0)
    await agree(party)
  })
})

/** As the process that runs the call does it. */
const EXTENDED = `select extend_calls(owner_id_in => owner_id, accounts_in => array[account_id], call_ids => array[id], call_accounts => array[account_id],
  call_amounts => '{40}', call_tokens => '{30}', ask_windows_to => '{1}', ask_groups => '{all}', ask_seconds => '{60}', ask_token_limits => '{100}')
  from holds where id = $1`

describe('calls that PostgreSQL refuses as a whole', () => {
  it('are judged, and so are those of their account that end next', async () => {
    const { begin, end, names } = stage()
    const party = await makeParty(pool, 100n)
    const [first, second] = [usual(party), usual(party)]
    await begin(first)
    await names()
    const [settlement] = await withLock(party, async (holder) => {
      const answer = end(postOf(first, 33n))
      await until(isWaiting, PATIENCE_MS, 'the wait for the lock')
      await holder.query(EXTENDED, [first.id])
      await holder.query('commit')
      return answer
    })
    assert.ok(settlement !== undefined && !(settlement instanceof Error))
    assert.deepEqual([settlement.charged, settlement.free], [33n, 67n])
    assert.deepEqual(await names(), ['end_attributed_calls'])
    await begin(second)
    assert.deepEqual(await names(), ['begin_fitting_calls'])
    await end(voidOf(second))
    assert.deepEqual(await names(), ['end_attributed_calls'])
    await agree(party)
  })
})
