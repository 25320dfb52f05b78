import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../harness/figures.ts'
import type { Gateway } from '../../harness/gateways.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { count, isFullProof, recordProof } from '../../harness/proof.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import { SANDBOX_LIMITS, SANDBOX_PRICE } from '../../harness/seed.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { releaseLosses } from '../../server/src/calls/losses.ts'
import { resolveOverdue } from '../../server/src/calls/orphans.ts'
import { formatUsd, type Nanos, nanos, usd } from '../../server/src/kernel/money.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { migrate } from '../../server/src/storage/migrate.ts'
import { inTransaction } from '../../server/src/storage/transaction.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { ask, type Customer, call, codeOf, ids, makeCustomer, startInstallation, type Told } from './installation.ts'

/**
 * The ceilings are those that an operator has who sets none. What is lost until they are reached is compared with the bound: the
 * ceiling, what was in flight when it was reached, and one second. And what is presumed reaches none of them, though it is more.
 */
const PROOF = 'loss-ceiling'
const PROCESSES = 3
const RATE = 50
const ACCOUNT_HOUR = usd('5')
const ROUTE_HOUR = usd('50')
const CEILINGS = {
  FAREBOX_LOSS_ACCOUNT_HOUR_USD: '5',
  FAREBOX_LOSS_ACCOUNT_DAY_USD: '20',
  FAREBOX_LOSS_ROUTE_HOUR_USD: '50',
  FAREBOX_LOSS_ROUTE_DAY_USD: '200',
}
/** What one call claims: 5 cents, or half a dollar where fewer calls have to do. */
const CLAIMED_TOKENS = count({ full: 1_000_000, reduced: 10_000_000 })
/** So long it goes on when the ceiling is known everywhere. */
const AFTERWARDS_MS = count({ full: 5_000, reduced: 1_000 })
const BYSTANDERS = 4
const ACCOUNTS = count({ full: 60, reduced: 40 })
const RERANK = 'rerank@rerank:test'
const MONEY = 1_000_000_000_000_000n

const postgres = await startPostgres()
await migrate({ url: new Secret(postgres.url()), log: silentLog })
const installation = await startInstallation(postgres.url(), {
  processes: PROCESSES,
  env: { ...CEILINGS, FAREBOX_LOG_LEVEL: 'silent' },
})
const { pool } = installation
const team: Gateway[] = [...installation.gateways]
const sandboxes = [installation.sandbox]
after(async () => {
  await Promise.all([...team.map((gateway) => gateway.stop()), ...sandboxes.map((sandbox) => sandbox.stop())])
  await installation.stop()
  await postgres.remove()
})

type Sent = {
  readonly process: number
  readonly sentAtMs: number
  readonly heardAtMs: number
  readonly told: Told
}

/** Sends calls at the rate, to one process after another, until it is told to stop. What came of them all. */
async function sendAtRate(
  work: (url: string, turn: number) => Promise<Told>,
  isOver: (sent: readonly Sent[]) => boolean,
): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const open = new Set<Promise<unknown>>()
  const startedMs = performance.now()
  for (let turn = 0; !isOver(sent); turn += 1) {
    await delay(Math.max(0, startedMs + (turn * 1_000) / RATE - performance.now()))
    const process = turn % PROCESSES
    const sentAtMs = Date.now()
    const one = work(team[process]?.url ?? '', turn)
      .then((told) => sent.push({ process, sentAtMs, heardAtMs: Date.now(), told }))
      .finally(() => open.delete(one))
    open.add(one)
  }
  await Promise.all(open)
  return sent
}

/** With a code of the ceilings: of its account, or of the route. */
function isRefused({ told }: Pick<Sent, 'told'>): boolean {
  return String(codeOf(told)).startsWith('loss_ceiling_')
}

/** Until every process has refused, and a while longer. */
function untilRefusedEverywhere(code: string): (sent: readonly Sent[]) => boolean {
  let refusedAtMs: number | undefined
  return (sent) => {
    const refusing = new Set(sent.filter(({ told }) => codeOf(told) === code).map(({ process }) => process))
    if (refusing.size === PROCESSES) refusedAtMs ??= Date.now()
    return refusedAtMs !== undefined && Date.now() - refusedAtMs > AFTERWARDS_MS
  }
}

type Loss = { readonly id: string; readonly nanos: bigint; readonly atMs: number }

async function lossesAt(route: string, accounts: readonly Customer[]): Promise<readonly Loss[]> {
  const { rows } = await pool.query(
    `select id, nanos, (extract(epoch from at) * 1000)::float8 as "atMs" from losses
     where route = $1 and account_id = any ($2) order by at, id`,
    [route, accounts.map(({ accountId }) => accountId)],
  )
  return rows
}

const sum = (losses: readonly Loss[]): Nanos => nanos(losses.reduce((total, one) => total + one.nanos, 0n))

/** Compares what was lost with the ceiling, what was in flight when that was reached, and a second at the rate. */
function compare(title: string, ceiling: Nanos, sent: readonly Sent[], losses: readonly Loss[]): void {
  const atMsOf = new Map(losses.map(({ id, atMs }) => [id, atMs]))
  const crossing = losses.find((_, at) => sum(losses.slice(0, at + 1)) >= ceiling)
  assert.ok(crossing !== undefined, 'the ceiling is reached')
  const served = sent.filter(({ told }) => told.status === 200)
  assert.equal(served.length, losses.length, 'each call that was let through has its loss')
  requireShutOnce(sent)
  const refused = sent.filter(isRefused).length
  // A machine that is very busy may shed some load.
  if (isFullProof) assert.equal(served.length + refused, sent.length)
  const inFlight = served.filter(
    ({ sentAtMs, told }) => sentAtMs <= crossing.atMs && (atMsOf.get(told.id) ?? 0) >= crossing.atMs,
  ).length
  const largest = losses.reduce((most, one) => (one.nanos > most ? one.nanos : most), 0n)
  const [lost, bound] = [sum(losses), nanos(ceiling + BigInt(inFlight + RATE) * largest)]
  if (isFullProof) assert.ok(lost <= bound, `${lost} of ${bound}`)
  const last = Math.max(...served.map(({ sentAtMs }) => sentAtMs))
  judge(
    PROOF,
    `${title}: the last call that was let through after the ceiling was reached`,
    { unit: 'ms', atMost: 1_000 },
    [Math.max(0, last - crossing.atMs)],
  )
  recordProof(PROOF, title, {
    ...{ processes: PROCESSES, calls_per_second: RATE, calls: sent.length, let_through: served.length },
    ...{ refused, in_flight_when_reached: inFlight },
    largest_loss_of_a_call_usd: formatUsd(nanos(largest)),
    ceiling_usd: formatUsd(ceiling),
    bound_usd: formatUsd(bound),
    lost_usd: formatUsd(lost),
  })
}

/** Who asks a process when another has heard that it refuses is refused. */
function requireShutOnce(sent: readonly Sent[]): void {
  for (let process = 0; process < PROCESSES; process += 1) {
    const own = sent.filter((one) => one.process === process)
    const heard = own.filter(isRefused).map(({ heardAtMs }) => heardAtMs)
    const after = own.filter(({ sentAtMs }) => sentAtMs > Math.min(...heard))
    assert.ok(after.length > 0 && after.every(({ told }) => told.status !== 200))
  }
}

async function release(): Promise<void> {
  await inTransaction(pool, (query) =>
    releaseLosses(query, ids, { route: RERANK, accountId: undefined, actor: 'the proof' }),
  )
}

const overReported = (secret: string) => (url: string) =>
  call(url, secret, 'rerank', `sandbox:tokens=${CLAIMED_TOKENS}`)
const newCustomer = () => makeCustomer(pool, { money: MONEY })
const newCustomers = (wanted: number) => Promise.all(Array.from({ length: wanted }, newCustomer))

async function reachedIn({ adminUrl }: Gateway): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith('farebox_loss_ceilings_reached{'))
  assert.equal(lines.length, 4)
  return lines.reduce((total, line) => total + Number(line.split(' ')[1]), 0)
}

describe('an upstream that over-reports', () => {
  it(`costs one hostile account's ceiling and a second, and is not taken from anybody else`, async () => {
    const hostile = await newCustomer()
    const others = await newCustomers(BYSTANDERS)
    let isOver = false
    const served: Told[] = []
    const bystanders = others.map(async ({ secret }, at) => {
      for (let turn = at; !isOver; turn += 1) {
        served.push(await call(team[turn % PROCESSES]?.url ?? '', secret, 'rerank', 'sandbox:tokens=1'))
        await delay(250)
      }
    })
    const code = 'loss_ceiling_account'
    const sent = await sendAtRate(overReported(hostile.secret), untilRefusedEverywhere(code))
    isOver = true
    await Promise.all(bystanders)
    const title = 'one hostile account'
    compare(title, ACCOUNT_HOUR, sent, await lossesAt(RERANK, [hostile]))
    assert.ok(served.length >= BYSTANDERS)
    assert.deepEqual(new Set(served.map(({ status }) => status)), new Set([200]))
    for (const gateway of team) assert.equal(await reachedIn(gateway), 1)
    recordProof(PROOF, 'others at the same route meanwhile', { accounts: BYSTANDERS, calls: served.length, refused: 0 })
    await release()
  })

  it('costs the ceiling of a route and a second where many accounts lose, none of which is at its own', async () => {
    const many = await newCustomers(ACCOUNTS)
    const code = 'loss_ceiling_route'
    const work = (url: string, turn: number) => overReported(many[turn % ACCOUNTS]?.secret ?? '')(url)
    const sent = await sendAtRate(work, untilRefusedEverywhere(code))
    compare('many accounts', ROUTE_HOUR, sent, await lossesAt(RERANK, many))
    await release()
    await until(async () => (await Promise.all(team.map(reachedIn))).every((reached) => reached === 0), PATIENCE_MS)
  })
})

/** Thirty dollars are held for a call of it and six are charged, both more than what an account may lose in an hour. */
const DEAR = 'dear/chat'
const TOKENS = 10_000
const DEAR_CALLS = count({ full: 60, reduced: 12 })

async function makeDearModel(): Promise<void> {
  await saveModel({ pool }, { id: DEAR, ...SANDBOX_LIMITS })
  await setModelPrice({ pool }, { model: DEAR, ...SANDBOX_PRICE, output: '3000' })
  await saveRoute({ pool, ids }, { model: DEAR, slot: 'openai', protocol: 'openai', upstreamModel: 'sandbox/long' })
}

function askDearly({ secret }: Customer, words: string, at: number): Promise<Told | undefined> {
  const messages = [{ role: 'user', content: `a story ${words}` }]
  const body = { model: DEAR, max_tokens: TOKENS, messages }
  const { url } = team[at % team.length] ?? { url: '' }
  return ask(url, secret, '/v1/chat/completions', { body }).catch(() => undefined)
}

function oneOf(customers: readonly Customer[], turn: number): Customer {
  const customer = customers[turn % customers.length]
  assert.ok(customer !== undefined)
  return customer
}

async function overrunOf(customers: readonly Customer[]): Promise<Nanos> {
  const accounts = customers.map(({ accountId }) => accountId)
  const { rows } = await pool.query(
    'select coalesce(sum(overrun), 0)::bigint as overrun from charges where account_id = any ($1)',
    [accounts],
  )
  return nanos(rows[0]?.overrun ?? 0n)
}

async function heldBy(customers: readonly Customer[]): Promise<number> {
  const accounts = customers.map(({ accountId }) => accountId)
  return (await pool.query('select from holds where account_id = any ($1)', [accounts])).rowCount ?? 0
}

/** More than any ceiling was presumed lost, and nobody is refused for it. */
async function requireNothingReached(title: string, customers: readonly Customer[]): Promise<void> {
  const presumed = await overrunOf(customers)
  assert.ok(presumed > ROUTE_HOUR, `${presumed}`)
  assert.deepEqual(await lossesAt(`${DEAR}@openai:test`, customers), [])
  // Every process has looked since.
  await delay(2_000)
  for (const gateway of team) assert.equal(await reachedIn(gateway), 0)
  for (const [at, customer] of customers.entries()) {
    const answer = await askDearly(customer, '', at)
    assert.equal(answer?.status, 200, answer?.text)
  }
  recordProof(PROOF, `${title}: nobody is refused`, {
    calls: DEAR_CALLS,
    presumed_usd: formatUsd(presumed),
    evidenced: 0,
  })
}

describe('what is presumed', () => {
  it('reaches no ceiling in an outage of a vendor: broken answers, and its death with calls in flight', async () => {
    await makeDearModel()
    const customers = await newCustomers(PROCESSES)
    const pick = (at: number) => oneOf(customers, at)
    const WORDS = ['reset=before-headers', 'reset=in-body', 'close-early', 'truncate', 'status=500', 'status=503']
    await until(async () => (await askDearly(pick(0), '', 0))?.status === 200, PATIENCE_MS, 'the model is known')
    for (let at = 0; at < DEAR_CALLS / 2; at += 1) {
      await askDearly(pick(at), `sandbox:${WORDS[at % WORDS.length]}`, at)
      // So that no breaker keeps the next one from being lost.
      if (at % 4 === 3) for (const [process] of team.entries()) await askDearly(pick(process), '', process)
    }
    const open = Array.from({ length: DEAR_CALLS / 2 }, (_, at) => askDearly(pick(at), 'sandbox:delay=30000', at))
    await until(async () => (await heldBy(customers)) === DEAR_CALLS / 2, PATIENCE_MS, 'all are in flight')
    await until(
      async () =>
        (await installation.sandbox.journal()).filter(({ outcome }) => outcome === 'open').length >= DEAR_CALLS / 2,
      PATIENCE_MS,
      'the vendor has them',
    )
    const { port } = new URL(installation.sandbox.url)
    await installation.sandbox.kill()
    for (const told of await Promise.all(open)) assert.equal(told?.status, 502)
    for (let at = 0; at < PROCESSES; at += 1) assert.equal((await askDearly(pick(at), '', at))?.status, 502)
    sandboxes.push(await startSandbox({ port: Number(port) }))
    await until(
      async () =>
        (await Promise.all(team.map((_, at) => askDearly(pick(at), '', at)))).every((told) => told?.status === 200),
      PATIENCE_MS,
      'all processes ask it again',
    )
    await requireNothingReached('an outage of a vendor', customers)
  })

  it('reaches none when PostgreSQL goes away for longer than a settlement may take, and comes back', async () => {
    const customers = await newCustomers(PROCESSES)
    const calls = Array.from({ length: DEAR_CALLS }, (_, at) =>
      askDearly(oneOf(customers, at), 'sandbox:delay=3000', at),
    )
    await until(async () => (await heldBy(customers)) === DEAR_CALLS, PATIENCE_MS, 'all are in flight')
    await postgres.kill()
    const told = await Promise.all(calls)
    assert.deepEqual(new Set(told.map((one) => one && codeOf(one))), new Set(['settlement_timeout']))
    await postgres.start()
    await until(async () => (await heldBy(customers).catch(() => 1)) === 0, PATIENCE_MS, 'all are settled')
    await requireNothingReached('PostgreSQL killed and started again', customers)
  })

  it('reaches none by calls that nobody resolved in 24 hours', async () => {
    const customers = await newCustomers(PROCESSES)
    const last = PROCESSES - 1
    const calls = Array.from({ length: DEAR_CALLS }, (_, at) =>
      askDearly(oneOf(customers, at), 'sandbox:delay=60000', last),
    )
    await until(async () => (await heldBy(customers)) === DEAR_CALLS, PATIENCE_MS, 'all are in flight')
    const mortal = team[last]
    assert.ok(mortal !== undefined)
    await mortal.kill()
    await Promise.all(calls)
    team[last] = await mortal.restart()
    await pool.query("update holds set owner_id = null, unsettled_at = now() - interval '25 hours'")
    await resolveOverdue({ pool, log: silentLog }, 24 * 3_600)
    await until(async () => (await heldBy(customers)) === 0, PATIENCE_MS, 'all are voided')
    await requireNothingReached('voids after 24 hours', customers)
  })
})

describe('the ledger', () => {
  it('holds after all this', async () => {
    assert.deepEqual(await verifyLedger(pool), [])
  })
})
