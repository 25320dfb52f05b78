import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { freePort } from '../../harness/free-port.ts'
import type { Gateway } from '../../harness/gateways.ts'
import { killAndRestart } from '../../harness/kill-and-restart.ts'
import { count, recordProof, seed, sometimes } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { Random } from '../../sandbox/src/random.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { makeGranted } from '../identity/granted.ts'
import { askRaw, callBody, MODERN } from '../mcp/raw-agent.ts'

/**
 * One mandate of 1 USD, and hundreds of calls at once by `use` and `batch_use`, on three processes of which one after the other is killed.
 * What is charged and held is looked at all the while, and never is a micro above.
 */
const CALLS = count({ full: 500, reduced: 120 })
const ROUNDS = count({ full: 4, reduced: 1 })
const BATCH = 5
/** A call costs a cent, so that there are several times as many as there is room for. */
const CENT = usd('0.01')
const CEILING = nanos(CENT * BigInt(count({ full: 100, reduced: 40 })))
const PAUSE_BETWEEN_KILLS_MS = 700
const MCP_URL = `http://127.0.0.1:${await freePort()}/mcp`

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  processes: 3,
  env: { FAREBOX_LOG_LEVEL: 'error', FAREBOX_HTTP_MCP_URL: MCP_URL },
})
const { pool, sandbox } = installation
const team: Gateway[] = [...installation.gateways]
after(async () => {
  await Promise.all(team.map((gateway) => gateway.stop()))
  await installation.stop()
})
const random = new Random(seed)
const HEADERS = { 'mcp-protocol-version': MODERN, 'mcp-method': 'tools/call', host: new URL(MCP_URL).host }

/** A mandate that is not in the way of anything but the ceiling. */
async function makeMandate() {
  const customer = await makeCustomer(pool, { money: 1_000_000_000_000n })
  const granted = await makeGranted(pool, {
    ...{ workspaceId: customer.workspaceId, mode: 'test', audiences: [MCP_URL], scopes: ['agent'] },
    budget: { period: 'total', amount: CEILING },
    terms: { rates: { requestsPerMinute: 100_000 }, scopes: ['finance'] },
    asks: { callLimit: usd('0.05'), asksHighCost: true },
  })
  const { rows } = await pool.query<{ id: string }>('select allowance_id as id from grants where id = $1', [granted.id])
  return { ...customer, token: granted.token, allowanceId: rows[0]?.id ?? '' }
}

const oneCall = (at: number) => ({
  operation_id: 'financial_metrics_snapshot',
  arguments: { ticker: `T${at} sandbox:delay=${random.between(0, 300)}` },
})

/** Every fourth is a batch. How many calls it was; whether anybody answered. */
async function send(at: number, token: string): Promise<boolean> {
  const isBatch = at % 4 === 0
  const given = isBatch
    ? { calls: Array.from({ length: BATCH }, (_, place) => oneCall(at * 100 + place)), max_total_usd: 1 }
    : { ...oneCall(at), max_price_usd: 0.02 }
  const name = isBatch ? 'batch_use' : 'use'
  const { agentUrl } = team[random.between(0, team.length - 1)] ?? { agentUrl: '' }
  try {
    const body = callBody(name, given)
    const { status } = await askRaw(`${agentUrl}/mcp`, token, { body, headers: { ...HEADERS, 'mcp-name': name } })
    return status === 200
  } catch {
    return false
  }
}

/** What the ledger says of the mandate and of its calls, each by itself. */
async function spentOf({ accountId, allowanceId }: { accountId: string; allowanceId: string }) {
  const { rows } = await pool.query<{ counted: bigint; listed: bigint }>(
    `select coalesce((select charged + held from allowance_periods where allowance_id = $2), 0)::bigint as counted,
       (coalesce((select sum(amount) from charges where account_id = $1), 0)
         + coalesce((select sum(amount) from holds where account_id = $1), 0))::bigint as listed`,
    [accountId, allowanceId],
  )
  return rows[0] ?? { counted: 0n, listed: 0n }
}

describe('a mandate of one dollar', () => {
  it(`AUTH-7 is never passed by a micro, by ${CALLS} messages at once in three processes that are killed`, async () => {
    let [most, looks, kills, answered, lost] = [0n, 0, 0, 0, 0]
    for (let round = 0; round < ROUNDS; round += 1) {
      const mandate = await makeMandate()
      let isOver = false
      const killing = killAndRestart(team, { random, pauseMs: PAUSE_BETWEEN_KILLS_MS, isOver: () => isOver })
      const watching = watch()
      const all = await Promise.all(Array.from({ length: CALLS }, (_, at) => send(at, mandate.token)))
      // Those that died with their process are sent once more, to whoever lives.
      const again = await Promise.all(all.flatMap((isHeard, at) => (isHeard ? [] : [send(at, mandate.token)])))
      isOver = true
      kills += await killing
      await watching
      answered += [...all, ...again].filter(Boolean).length
      lost += all.filter((isHeard) => !isHeard).length
      const { counted, listed } = await spentOf(mandate)
      assert.equal(counted, listed, 'what is counted is what there are charges and holds of')
      assert.ok(counted <= CEILING, `${counted} of ${CEILING}`)
      // A call that never reached its upstream gives its cent back, perhaps when nobody is left to spend it.
      assert.ok(counted > 0n)
      sometimes(counted >= CEILING - 5n * CENT, `all but five cents can be spent (${counted} of ${CEILING})`)
      assert.deepEqual(await verifyLedger(pool, [mandate.accountId]), [])

      async function watch(): Promise<void> {
        while (!isOver) {
          const { counted } = await spentOf(mandate)
          looks += 1
          if (counted > most) most = counted
          assert.ok(counted <= CEILING, `${counted} of ${CEILING}`)
          await delay(20)
        }
      }
    }
    sometimes(kills > 0, 'a kill')
    assert.ok((await sandbox.journal()).length <= Number(CEILING / CENT) * ROUNDS, 'no upstream was asked for more')
    recordProof('mandates', 'one mandate under messages at once, with kills', {
      ...{
        messages: CALLS * ROUNDS,
        of_them_batches: Math.ceil(CALLS / 4) * ROUNDS,
        processes: 3,
        kills,
        answered,
        lost,
      },
      ...{ ceiling_nanos: String(CEILING), most_seen_nanos: String(most), looks, above: 0 },
    })
  })
})
