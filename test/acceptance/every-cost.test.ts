import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { count, recordProof, seed } from '../../harness/proof.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { Random } from '../../sandbox/src/random.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { costOfAnswer, isCounted, type Made, makeRandomCall } from './every-cost-calls.ts'
import { ask, type Customer, makeCustomer, makeKey, startInstallation, type Told } from './installation.ts'

const CALLS = count({ full: 10_000, reduced: 400 })
const AT_ONCE = count({ full: 24, reduced: 8 })
const KEYS = 6
const DETAILS = count({ full: 1_000, reduced: 100 })

const database = await freshDatabase()
const installation = await startInstallation(database.url, { processes: 3 })
const { gateways, url, pool, sandbox } = installation
after(installation.stop)

type Key = Pick<Customer, 'keyId' | 'secret' | 'accountId'>
type Done = { readonly made: Made; readonly told: Told; readonly key: Key }
type Charge = {
  id: string
  amount: bigint
  value: bigint
  executed: boolean
  failed: boolean
  input_tokens: bigint
  output_tokens: bigint
  credential_id: string
}

const nanosOf = (usd: string) => BigInt(usd.replace('.', ''))

describe('every cost', () => {
  it('BASE-3 BASE-5 USAGE-6 is the same in the header, the report, the record and the ledger, and each executed call was asked once', async () => {
    console.log(`seed ${seed}`)
    const keys = await makeKeys()
    const startedMs = performance.now()
    const done = await makeCalls(keys)
    const seconds = (performance.now() - startedMs) / 1_000

    const charges = await readCharges()
    const journal = await journalByRequest()
    for (const one of done) isConsistent(one, charges.get(one.told.id), journal.get(one.told.id) ?? [])
    const known = new Set(done.map(({ told }) => told.id))
    for (const id of [...charges.keys(), ...journal.keys()]) assert.ok(known.has(id), `nobody was told of ${id}`)

    for (const key of keys) {
      const own = done.filter(({ key: { keyId } }) => keyId === key.keyId)
      isReported(
        await usageOf(key),
        [...charges.values()].filter(({ credential_id }) => credential_id === key.keyId),
      )
      await areListed(key, own, charges)
    }
    await areRecorded(done.filter(({ told }) => charges.has(told.id)).slice(0, DETAILS))
    assert.deepEqual(await verifyLedger(pool), [])

    const executed = [...charges.values()].filter((charge) => charge.executed).length
    // Were most of them refused, this would show little.
    assert.ok(executed > CALLS * 0.7 && executed < CALLS, `${executed} of ${CALLS}`)
    recordProof('every-cost', 'header, report, record and ledger agree', {
      calls: CALLS,
      executed,
      charged: [...charges.values()].filter(({ amount }) => amount > 0n).length,
      failed: [...charges.values()].filter(({ failed }) => failed).length,
      statuses: tally(done.map(({ told }) => told.status)),
      operations: tally(done.map(({ made }) => made.operation)),
      processes: gateways.length,
      keys: keys.length,
      upstream_calls: [...journal.values()].flat().length,
      seconds: Math.round(seconds),
    })
  })
})

async function makeKeys(): Promise<readonly Key[]> {
  const keys: Key[] = []
  for (let n = 0; n < KEYS / 2; n += 1) {
    const customer = await makeCustomer(pool, { money: 100_000_000_000_000n })
    keys.push(customer, { ...customer, ...(await makeKey(pool, customer.workspaceId)) })
  }
  return keys
}

async function makeCalls(keys: readonly Key[]): Promise<readonly Done[]> {
  const random = new Random(seed)
  const all = Array.from({ length: CALLS }, () => ({
    made: makeRandomCall(random),
    key: random.pick(keys as [Key, ...Key[]]),
    gateway: random.pick(gateways.map((gateway) => gateway.url) as [string, ...string[]]),
  }))
  const done: Done[] = []
  const left = all.values()
  const work = async () => {
    for (const { made, key, gateway } of left) {
      const { path, body, headers } = made
      const told = await ask(gateway, key.secret, path, { headers, ...(body !== undefined && { body }) })
      done.push({ made, told, key })
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  assert.equal(done.length, CALLS)
  assert.equal(new Set(done.map(({ told }) => told.id)).size, CALLS)
  return done
}

async function readCharges(): Promise<ReadonlyMap<string, Charge>> {
  const { rows } = await pool.query<Charge>(
    'select id, amount, value, executed, failed, input_tokens, output_tokens, credential_id from charges',
  )
  return new Map(rows.map((row) => [row.id, row]))
}

async function journalByRequest(): Promise<ReadonlyMap<string, readonly JournalEntry[]>> {
  return Map.groupBy(await sandbox.journal(), ({ request_id }) => request_id ?? 'without an id')
}

function isConsistent({ made, told }: Done, charge: Charge | undefined, asked: readonly JournalEntry[]): void {
  const what = `${made.operation} ${JSON.stringify(made)} ${told.status} ${told.id}`
  assert.equal(asked.length, charge?.executed === true ? 1 : 0, `asked upstream: ${what}`)
  assert.equal(made.isRefused, charge === undefined, `refused or begun: ${what}`)
  assert.equal(told.costUsd === null, charge === undefined, `has a cost: ${what}`)
  if (charge === undefined || told.costUsd === null) return
  assert.equal(nanosOf(told.costUsd), charge.amount, `header and ledger: ${what}`)
  assert.equal(charge.amount, costOfAnswer(made, told, charge), `what the answer is worth: ${what}`)
  // Nobody pays for what the vendor itself would not charge, as far as that can be read.
  if (isCounted(made, told)) assert.ok(charge.amount > 0n, what)
  else if (charge.amount > 0n) assert.equal(asked[0]?.billed, true, what)
}

async function usageOf({ secret }: Key): Promise<Record<string, number>> {
  return Object((await ask(url, secret, '/v1/usage?start_time=1')).json.totals)
}

function isReported(totals: Record<string, number>, charges: readonly Charge[]): void {
  const executed = charges.filter((charge) => charge.executed)
  const sum = (pick: (charge: Charge) => bigint) => executed.reduce((all, charge) => all + pick(charge), 0n)
  assert.deepEqual(totals, {
    requests: executed.length,
    failed_requests: executed.filter(({ failed }) => failed).length,
    input_tokens: Number(sum(({ input_tokens }) => input_tokens)),
    output_tokens: Number(sum(({ output_tokens }) => output_tokens)),
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    usage_value_micros_usd: Number(sum(({ value }) => value) / 1_000n),
    charged_micros_usd: Number(sum(({ amount }) => amount) / 1_000n),
  })
}

/** The list of a key has each of its calls that began, once, at its cost. */
async function areListed({ secret }: Key, own: readonly Done[], charges: ReadonlyMap<string, Charge>): Promise<void> {
  const listed: [string, string][] = []
  for (let cursor = ''; ; ) {
    const { data, next_cursor } = (await ask(url, secret, `/v1/requests?limit=100${cursor}`)).json
    for (const { id, outcome, cost } of data as { id: string; outcome: string; cost: { usd: string } }[])
      if (outcome !== 'refused') listed.push([id, cost.usd])
    if (next_cursor === null) break
    cursor = `&cursor=${next_cursor}`
  }
  const told = own.filter(({ told: { id } }) => charges.has(id)).map(({ told: { id, costUsd } }) => [id, costUsd])
  assert.equal(listed.length, told.length)
  assert.deepEqual(new Map(listed), new Map(told as [string, string][]))
}

/** What is kept of a call says the same, with the status that its caller saw. */
async function areRecorded(done: readonly Done[]): Promise<void> {
  for (const { told, key } of done) {
    const read = async () => (await ask(url, key.secret, `/v1/requests/${told.id}`)).json
    // It is written behind the answer.
    await until(async () => (await read()).detail !== null, PATIENCE_MS, `the detail of ${told.id}`)
    const { cost, detail } = await read()
    assert.equal(Object(cost).usd, told.costUsd)
    assert.equal(Object(detail).status, told.status)
  }
}

function tally(values: readonly (string | number)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}
