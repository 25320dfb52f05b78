import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { KEYS_PER_TIER, TIERS } from '../../server/src/catalogue/tiers.ts'
import { createKey, revokeKey } from '../../server/src/identity/keys.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { askOf } from '../../server/src/limits/ask.ts'
import { ACTOR, makeCustomer } from '../identity/customers.ts'
import { connect, holdOf, ids } from '../ledger/world.ts'

const database = await freshDatabase()
const PROOF = 'doors'
/** Two processes: one begins what fits by one statement, the other judges all. */
const processes = [connect(database.url, { fast: true }), connect(database.url)]
const pool = (processes[0] ?? connect(database.url)).pools.rest
after(async () => {
  await Promise.all(processes.map(({ pools }) => pools.close()))
})

describe('keys that are made anew', () => {
  const ATTEMPTS = count({ full: 2_000, reduced: 80 })
  const WORKERS = count({ full: 40, reduced: 8 })
  const { requestsPerMinute, tokensPerMinute, concurrency } = TIERS.free
  const KEYS = KEYS_PER_TIER.free

  it('never give an account more requests, tokens and calls at once than the keys of its tier', async () => {
    const { accountId, workspaceId, keyId } = await makeCustomer(pool, { promotion: 1_000_000_000_000n })
    const limits = { ...TIERS.free }
    const ask = askOf(limits, ['tokens', 'concurrency'])
    let [attempts, refused, calls] = [0, 0, 0]

    /** Uses up a key: calls race, and a few of them go on when the key has ended. */
    async function useUp(credentialId: Id, at: number): Promise<void> {
      const { calls: path } = processes[at % processes.length] ?? assert.fail()
      const rounds = Array.from({ length: 3 }, async (_, round) => {
        for (let n = 0; n < 25; n += 1) {
          const id = ids.next()
          const hold = holdOf(1n)
          const asked = { id, accountId, credentialId, operation: 'probe', hold, tokens: 1_000 }
          const { outcome } = await path.begin({ ...asked, windows: ask.windows, claims: ask.slots })
          if (outcome !== 'begun') continue
          calls += 1
          if (n === 10 && round === 0) continue
          const usage = { ...NO_USAGE, executed: true, inputTokens: 1_000, value: nanos(1n) }
          await path.end({ id, accountId, amount: nanos(1n), forgiven: false, usage })
        }
      })
      await Promise.all(rounds)
    }

    async function work(worker: number): Promise<void> {
      while (attempts < ATTEMPTS) {
        attempts += 1
        try {
          const { id } = await createKey({ pool, ids }, ACTOR, { workspaceId, mode: 'live', name: 'anew' })
          await useUp(id, worker)
          await revokeKey({ pool, ids }, ACTOR, id)
        } catch (error) {
          if (!(error instanceof Fault)) throw error
          assert.ok(error.code === 'rate_limit_exceeded' || error.code === 'quota_exceeded', error.code)
          refused += 1
        }
      }
    }
    await useUp(keyId, 0)
    await Promise.all(Array.from({ length: WORKERS }, (_, worker) => work(worker)))

    const { rows } = await pool.query<{ keys: number; requests: number; tokens: number; running: number }>(
      `with used as (
         select c.all_requests as requests, c.all_tokens as tokens, c.calls_at_once as running, k.created_at as starts_at,
           case when k.revoked_at is null or c.calls_at_once > 0 then 'infinity'
             else greatest(k.revoked_at, c.all_started_at + interval '60 seconds') end as ends_at
         from api_keys k join credentials c on c.id = k.id where k.workspace_id = $1
       )
       select count(*)::integer as keys, sum(own.requests)::integer as requests, sum(own.tokens)::float8 as tokens, sum(own.running)::integer as running
       from used at join used own on own.starts_at <= at.starts_at and own.ends_at > at.starts_at group by at.starts_at`,
      [workspaceId],
    )
    const most = (of: (row: (typeof rows)[number]) => number) => Math.max(...rows.map(of))
    assert.ok(most(({ keys }) => keys) <= KEYS, `${most(({ keys }) => keys)} keys at once`)
    assert.ok(most(({ requests }) => requests) <= KEYS * requestsPerMinute)
    assert.ok(most(({ tokens }) => tokens) <= KEYS * tokensPerMinute)
    assert.ok(most(({ running }) => running) <= KEYS * concurrency)
    assert.ok(refused > 0 && calls > 0, `${refused} were refused, ${calls} calls began`)
    recordProof(PROOF, 'M2 keys that are made anew never give an account more than the keys of its tier', {
      attempts,
      refused,
      calls,
      keysAtOnce: most(({ keys }) => keys),
      counterexamples: 0,
    })
  })
})
