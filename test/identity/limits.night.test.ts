import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import { type Gateway, startGateways } from '../../harness/gateways.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { grantTier } from '../../server/src/workspaces/workspaces.ts'
import { connect } from '../ledger/world.ts'
import { ACTOR, ask, ids, makeCustomer, PROBE_SERVER } from './customers.ts'

const PROOF = 'limits'
const PROCESSES = 3
const WINDOW_SECONDS = 60

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())

async function withServers(use: (servers: readonly Gateway[]) => Promise<void>): Promise<void> {
  const servers = await startGateways(PROCESSES, { databaseUrl: database.url, ...PROBE_SERVER })
  try {
    await use(servers)
  } finally {
    await Promise.all(servers.map((server) => server.stop()))
  }
}

type Answer = { readonly isAdmitted: boolean; readonly left: number; readonly limit: number; readonly reset: number }

/** Answers by the window that they speak of, which its end tells. */
function byWindow(answers: readonly Answer[]): ReadonlyMap<number, readonly Answer[]> {
  const windows = new Map<number, Answer[]>()
  for (const answer of answers) windows.set(answer.reset, [...(windows.get(answer.reset) ?? []), answer])
  return windows
}

describe('LIMIT-5 limits over three processes', () => {
  it('LIMIT-4 hold at twice the load, and the headers of every answer are true', async () => {
    const limit = count({ full: 600, reduced: 300 })
    const windows = count({ full: 10, reduced: 1 })
    const customer = await makeCustomer(pool)
    const limits = { requestsPerMinute: limit, tokensPerMinute: 1_000_000, concurrency: 50 }
    await grantTier({ pool, ids }, ACTOR, customer.workspaceId, { tier: 'enterprise', limits })
    await withServers(async (servers) => {
      const answers: Answer[] = []
      // Reduced, the same number of requests comes in a part of the window.
      const durationMs = isFullProof ? windows * WINDOW_SECONDS * 1_000 : 10_000
      const perSecond = (2 * limit * windows) / (durationMs / 1_000)
      const startedAtMs = performance.now()
      let sent = 0
      const asking: Promise<void>[] = []
      for (let passedMs = 0; passedMs < durationMs; passedMs = performance.now() - startedAtMs) {
        for (; sent < (passedMs / 1_000) * perSecond; sent += 1) {
          const { url } = servers[sent % PROCESSES] ?? { url: '' }
          asking.push(
            ask(url, customer.secret).then(({ status, headers }) => {
              assert.ok(status === 200 || status === 429, `told ${status}`)
              const header = (name: string) => Number(headers.get(`X-RateLimit-${name}-Requests`))
              answers.push({
                isAdmitted: status === 200,
                left: header('Remaining'),
                limit: header('Limit'),
                reset: header('Reset'),
              })
            }),
          )
        }
        await delay(5)
      }
      await Promise.all(asking)

      const shown = []
      for (const [reset, told] of byWindow(answers)) {
        const admitted = told.filter(({ isAdmitted }) => isAdmitted)
        const refused = told.filter(({ isAdmitted }) => !isAdmitted)
        // Each number is told to one caller, from the limit down without a gap: so each was true when it was told.
        assert.deepEqual(
          admitted.map(({ left }) => left).sort((a, b) => b - a),
          Array.from({ length: admitted.length }, (_, at) => limit - 1 - at),
          `window until ${reset}`,
        )
        assert.ok(told.every((answer) => answer.limit === limit))
        assert.ok(refused.every(({ left }) => left === 0))
        if (refused.length > 0) assert.equal(admitted.length, limit, `window until ${reset}`)
        shown.push({ admitted: admitted.length, refused: refused.length })
      }
      assert.ok(shown.filter(({ refused }) => refused > 0).length >= windows - 1 && shown.length >= windows)
      recordProof(PROOF, 'headers at twice the load', { processes: PROCESSES, limit, sent, windows: shown })
    })
  })
})

describe('calls at once', () => {
  it('trap: limit × replicas; trap: a slot leaks until the key is deadlocked: five of a hundred racers, also when a process dies', async () => {
    const customer = await makeCustomer(pool, { promotion: 1_000_000_000n })
    const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000, concurrency: SLOTS }
    await grantTier({ pool, ids }, ACTOR, customer.workspaceId, { tier: 'enterprise', limits })
    await withServers(async (started) => {
      const servers = [...started]
      const race = startRace(servers, customer.secret)
      const watch = startWatch(customer.keyId)
      await until(() => race.told.ended > 50 && watch.taken().length === SLOTS, PATIENCE_MS, 'five at once')

      const backAfterMs: number[] = []
      while (backAfterMs.length < count({ full: 5, reduced: 1 })) {
        const [victim] = servers.splice(0, 1)
        assert.ok(victim !== undefined)
        await victim.kill()
        const diedAtMs = performance.now()
        // What is still there after the longest call belonged to the dead.
        await delay(4 * STAY_MS)
        const orphans = watch.taken().filter(({ ageMs }) => ageMs > 3 * STAY_MS)
        const isBack = () => {
          const taken = watch.taken()
          return taken.length === SLOTS && taken.every(({ id }) => orphans.every((orphan) => orphan.id !== id))
        }
        await until(isBack, PATIENCE_MS, 'all five back')
        // A process that held none when it died shows nothing.
        if (orphans.length > 0) backAfterMs.push(Math.round(performance.now() - diedAtMs))
        servers.push(await victim.restart())
      }
      await Promise.all([race.stop(), watch.stop()])
      await Promise.all(servers.map((server) => server.stop()))
      assert.ok(watch.most() === SLOTS, `${watch.most()} at once`)
      judge(PROOF, 'from a death to the slots of the dead', { unit: 'ms', atMost: 15_000 }, backAfterMs)
      assert.ok(race.told.refused > 100)
      assert.deepEqual(await verifyLedger(pool, [customer.accountId]), [])
      recordProof(PROOF, 'five slots', {
        racers: RACERS,
        most_at_once: watch.most(),
        back_after_ms: backAfterMs,
        ...race.told,
      })
    })
  })
})

const SLOTS = 5
const RACERS = 100
const STAY_MS = 250

/** Racers that go from one process to the next, and try again when they were refused or their process died. */
function startRace(servers: readonly Gateway[], secret: string) {
  const told = { ended: 0, refused: 0 }
  let isOver = false
  const racers = Array.from({ length: RACERS }, async (_, at) => {
    for (let turn = at; !isOver; turn += 1) {
      const { url } = servers[turn % servers.length] ?? { url: '' }
      const asked = { hold: 2, ms: STAY_MS, limits: 'concurrency' }
      const answer = await ask(url, secret, asked).catch(() => undefined)
      if (answer?.status === 200) told.ended += 1
      else await delay(100)
      if (answer?.status === 429) told.refused += 1
    }
  })
  return {
    told,
    async stop() {
      isOver = true
      await Promise.all(racers)
    },
  }
}

/** Looks all the time which calls have a slot. */
function startWatch(keyId: string) {
  let taken: readonly { readonly id: string; readonly ageMs: number }[] = []
  let most = 0
  let isOver = false
  const watching = (async () => {
    while (!isOver) {
      const { rows } = await pool.query<{ id: string; ageMs: number }>(
        `select id, (extract(epoch from clock_timestamp() - begun_at) * 1000)::float8 as "ageMs"
         from holds where credential_id = $1 and at_once`,
        [keyId],
      )
      taken = rows
      most = Math.max(most, rows.length)
      await delay(5)
    }
  })()
  return {
    taken: () => taken,
    most: () => most,
    async stop() {
      isOver = true
      await watching
    },
  }
}
