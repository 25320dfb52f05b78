import assert from 'node:assert/strict'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { type Child, startChild } from '../../harness/child.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { resolveCall } from '../../server/src/calls/orphans.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { FIRST, type GrowingLife } from './growing-process.ts'
import { makeParty, moneyOf } from './session.ts'
import { connect, ids, makeAllowance } from './world.ts'

/**
 * Processes whose calls grow, on a balance and a budget that can't carry them all, killed one after the other. Whoever looks, at whatever
 * instant, sees every promise kept; what was told is in the ledger; and when the orphans are resolved, nothing is held.
 */
const KILLS = count({ full: 20, reduced: 3 })
const PROCESSES = 3
const STREAMS = 67
/** So many calls end before the next process dies. */
const ENDED_EACH = 300
const BALANCE = 25_000n
const ALLOWANCE = 20_000n
const RAISED_EACH = 2_000n
const PROGRAM = path.join(import.meta.dirname, 'growing-process.ts')

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

type Told = { readonly why: string; readonly id: string; readonly held: bigint; readonly charged: bigint }

/** What a process told until now. A last line may be cut off by its death. */
function toldBy({ output }: Pick<Child, 'output'>): Told[] {
  return output()
    .split('\n')
    .slice(0, -1)
    .flatMap((line) => {
      const [why = '', id, held, charged] = line.split(' ')
      return id === undefined ? [] : [{ why, id, held: BigInt(held ?? ''), charged: BigInt(charged ?? '') }]
    })
}

describe('calls that grow, of processes that are killed', () => {
  it(`(${KILLS} kills, seed ${seed}) never exceed balance and budget together, lose nothing told and leak nothing`, async () => {
    const party = await makeParty(pool, BALANCE)
    const { accountId } = party
    const allowance = await makeAllowance(pool, accountId, 'total', ALLOWANCE)
    const life = { url: database.url, party, allowances: [allowance], streams: STREAMS, sweeps: false }
    const all: Child[] = []
    const start = async (own: Partial<GrowingLife> = {}) => {
      const child = startChild(process.execPath, [PROGRAM, JSON.stringify({ ...life, ...own })])
      all.push(child)
      await until(() => child.output().includes('ready'), PATIENCE_MS, 'its birth')
      return child
    }
    after(() => Promise.all(all.map((child) => child.kill())))
    const sweeper = await start({ streams: 0, sweeps: true })
    const living = await Promise.all(Array.from({ length: PROCESSES }, () => start()))

    const told = () => all.flatMap(toldBy)
    let instants = 0
    for (let kill = 0; kill < KILLS; kill += 1) {
      const before = told().length
      const hasGoneOn = async () => {
        assert.deepEqual(await verifyLedger(pool, [accountId]), [])
        instants += 1
        return told().length >= before + ENDED_EACH
      }
      await until(hasGoneOn, PATIENCE_MS, 'calls that end')
      const victim = (seed + kill) % PROCESSES
      living[victim]?.signal('SIGKILL')
      await living[victim]?.exited
      living[victim] = await start()
      const entry = { entryId: ids.next(), accountId, kind: 'payment', amount: nanos(RAISED_EACH) } as const
      await creditAccount(pool, entry)
      await pool.query('select change_allowance($1, $2)', [allowance, ALLOWANCE + RAISED_EACH * BigInt(kill + 1)])
    }
    await Promise.all(living.map((child) => child.stop('SIGTERM', PATIENCE_MS)))

    const openHolds = async () =>
      (
        await pool.query<{ id: string; amount: bigint; unsettled: boolean }>(
          'select id, amount, unsettled_at is not null as unsettled from holds where account_id = $1',
          [accountId],
        )
      ).rows
    await until(async () => (await openHolds()).every(({ unsettled }) => unsettled), PATIENCE_MS, 'the orphans')
    const { rows: charges } = await pool.query<{ id: string; held: bigint; amount: bigint; overrun: bigint }>(
      'select id, held, amount, overrun from charges where account_id = $1',
      [accountId],
    )
    const byId = new Map(charges.map((charge) => [charge.id, charge]))
    for (const { why, id, held, charged } of told()) {
      const inLedger = byId.get(id)
      // Of a step that was not answered in time, the process goes by what it had.
      if (why === 'unanswered') assert.ok((inLedger?.held ?? 0n) >= held)
      else assert.equal(inLedger?.held, held, 'what the process went by is what was held')
      assert.equal(inLedger?.amount, charged)
    }
    const orphans = await openHolds()
    const sum = orphans.reduce((all_, { amount }) => all_ + amount, 0n)
    assert.equal((await moneyOf(pool, party)).held, sum)
    for (const { id, amount } of orphans) {
      const resolved = await resolveCall(pool, id, nanos(amount + 1n))
      assert.deepEqual(resolved, { outcome: 'posted', charged: amount, overrun: 1n })
    }
    assert.equal((await moneyOf(pool, party)).held, 0n)
    assert.deepEqual(await verifyLedger(pool, [accountId]), [])
    await sweeper.stop('SIGTERM', PATIENCE_MS)

    const outcomes: Record<string, number> = {}
    for (const { why } of told()) outcomes[why] = (outcomes[why] ?? 0) + 1
    const grownOrphans = orphans.filter(({ amount }) => amount > FIRST).length
    const overran = charges.filter(({ overrun }) => overrun > 0n).length
    const figures = {
      kills: KILLS,
      told: told().length,
      instants,
      outcomes,
      orphans: orphans.length,
      grownOrphans,
      overran,
    }
    console.log(JSON.stringify(figures))
    assert.ok((outcomes.allowance_spent ?? 0) > 0, 'some met the ceiling')
    sometimes(grownOrphans > 0, 'some die after they have grown')
    assert.ok(overran > 0)
    recordProof('ledger-growing', 'processes that are killed', figures)
  })
})
