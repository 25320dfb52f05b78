import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { loadavg } from 'node:os'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { judge } from '../../../harness/figures.ts'
import { startGateway } from '../../../harness/gateways.ts'
import { count, recordProof, seed } from '../../../harness/proof.ts'
import { freshDatabase } from '../../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { hashOf, Random } from '../../../sandbox/src/random.ts'
import { grantTier } from '../../../server/src/workspaces/workspaces.ts'
import { ACTOR, ids, makeCustomer, startInstallation } from '../installation.ts'
import { bytesInKernel, startPausingWay } from './many-streams-pause.ts'
import { cpuSeconds, loopDelay, rssMb, watchMemory } from './many-streams-process.ts'
import {
  byCall,
  chargesOf,
  costOf,
  eachOf,
  type Heard,
  hear,
  leftOver,
  type Protocol,
  type Question,
  settled,
  streamed,
  tokensIn,
  tokensOf,
} from './streams.ts'

const STREAMS = count({ full: 1_000, reduced: 100 })
/** How long all of them are open at once. */
const STEADY_MS = count({ full: 60_000, reduced: 2_000 })
/** So much longer is each, for all to begin and for what is looked at before the first ends. */
const BEGINNING_MS = count({ full: 15_000, reduced: 20_000 })
const PROOF = 'many-streams'
const GROWTH_LIMIT_MB = 200
const LOOP_P99_LIMIT_MS = 50
const EVERY_MS = { least: 100, most: 500 } as const
const DELTA_TOKENS = 3
const CHECKSUM_TOKENS = 24
const WARM_UP = 40
const LOOK_EVERY_MS = 100
const TRIES = count({ full: 1, reduced: 100 })
const MONEY = 1_000_000_000_000n

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  // All callers come from one address here, as they do from a load balancer.
  env: { FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1/32' },
})
after(installation.stop)
const { url, pool, sandbox, masterKey } = installation
const gateway = installation.gateways[0] ?? assert.fail('a gateway')
const { secret, accountId, workspaceId } = await makeCustomer(pool, { money: MONEY })
const limits = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 2 * STREAMS }
await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'enterprise', limits })

const random = new Random(hashOf(seed, 'many streams'))

/** A stream that goes on for so long, with a delta every so often. */
function lasting(protocol: Protocol, forMs: number, everyMs: number, number: number): Question {
  const deltas = Math.ceil(forMs / everyMs)
  const tokens = deltas * DELTA_TOKENS + CHECKSUM_TOKENS
  const directives = { 'output-tokens': tokens, 'delta-bytes': 3 * DELTA_TOKENS, 'delta-ms': everyMs }
  const words = Object.entries(directives).map(([name, value]) => `sandbox:${name}=${value}`)
  return streamed(protocol, 'sandbox/checksum', `number ${number} ${words.join(' ')}`)
}

function someOf(streams: number, forMs: number, least: number, most: number): Question[] {
  return Array.from({ length: streams }, (_, number) => {
    const everyMs = least + Math.round(random.fraction() * (most - least))
    return lasting(number % 2 === 0 ? 'openai' : 'anthropic', forMs, everyMs, number)
  })
}

function assertIntact({ status, end, text, events }: Heard): void {
  assert.deepEqual([status, end], [200, 'clean'], JSON.stringify(events.slice(-2)))
  const [, said = '', checksum] = /^(.*) sha256:([0-9a-f]{64})$/s.exec(text) ?? []
  assert.equal(checksum, hash('sha256', said))
}

/** As a caller does who is told that too much is asked for on a busy machine: asks again. On a quiet one nobody is told so. */
async function hearServed(at: string, one: Question): Promise<Heard> {
  for (let tries = 1; ; tries += 1) {
    const heard = await hear(at, secret, one)
    if (heard.status !== 503 || tries === TRIES) return heard
    await delay(LOOK_EVERY_MS)
  }
}

/** That each call was charged what the upstream reported for it, which is what the caller has heard. */
async function assertCharged(heard: readonly Heard[]): Promise<void> {
  const charges = await chargesOf(pool, { accountId })
  const journal = byCall(await sandbox.journal())
  for (const { id, text } of heard) {
    const charge = charges.get(id)
    const tokens = tokensIn(journal.get(id)?.usage)
    assert.equal(tokens.output, tokensOf(text))
    assert.equal(charge?.amount, costOf(tokens))
    assert.deepEqual(charge?.tokens, tokens)
    assert.deepEqual([charge?.outcome, charge?.overrun, charge?.failed], ['posted', 0n, false])
  }
}

async function openCalls(): Promise<number> {
  return (await leftOver(pool)).holds
}

/** Waits until all streams are open, and a moment longer. */
async function allOpen(): Promise<void> {
  const isSo = async () => {
    await delay(LOOK_EVERY_MS)
    return (await openCalls()) === STREAMS
  }
  await until(isSo, BEGINNING_MS - 2_000, 'that all streams are open')
  await delay(500)
}

const rounded = (figure: number) => Math.round(figure * 10) / 10

// What a process needs once it has worked for a while is not what streams cost it.
await eachOf(someOf(WARM_UP, 1_000, 20, 50), 20, async (one) => assertIntact(await hearServed(url, one)))
await settled(pool)

describe(`${STREAMS} slow streams at once in one process`, () => {
  it('all arrive intact and are charged as reported', async (test) => {
    const startMb = rssMb(gateway)
    const memory = watchMemory(gateway)
    test.after(memory.stop)
    await loopDelay(gateway)
    const questions = someOf(STREAMS, BEGINNING_MS + STEADY_MS, EVERY_MS.least, EVERY_MS.most)
    const streams = Promise.all(questions.map((one) => hearServed(url, one)))

    await allOpen()
    const beginning = await loopDelay(gateway)
    const loadBefore = loadavg()[0] ?? 0
    const cpuBefore = cpuSeconds(gateway)
    await delay(STEADY_MS)
    const steady = await loopDelay(gateway)
    const cpu = cpuSeconds(gateway) - cpuBefore
    const steadyMb = memory.mostMb()
    assert.equal(await openCalls(), STREAMS, 'all were open at once for all that time')

    const heard = await streams
    const ending = await loopDelay(gateway)
    for (const one of heard) assertIntact(one)
    await settled(pool)
    await assertCharged(heard)
    assert.deepEqual(await leftOver(pool), { holds: 0, claims: 0 })

    const grownMb = rounded(memory.mostMb() - startMb)
    const figures = {
      streams: STREAMS,
      all_open_for_seconds: STEADY_MS / 1_000,
      deltas: heard.reduce((sum, { events }) => sum + events.length, 0),
      intact: heard.length,
      charged_otherwise_than_reported: 0,
      rss_before_mb: rounded(startMb),
      grown_at_the_most_mb: grownMb,
      grown_while_all_were_open_mb: rounded(steadyMb - startMb),
      // The 10 ms between two measurements are part of each of these.
      loop_delay_ms: { beginning, steady, ending },
      processor_of_the_process_percent: Math.round((100_000 * cpu) / STEADY_MS),
      load_of_the_machine: { before: rounded(loadBefore), after: rounded(loadavg()[0] ?? 0) },
    }
    test.diagnostic(JSON.stringify(figures))
    recordProof(PROOF, 'slow streams at once in one process', figures)
    judge(PROOF, 'memory that slow streams at once cost', { unit: 'MB', atMost: GROWTH_LIMIT_MB }, [grownMb])
    const loopLimit = { unit: 'ms', atMost: LOOP_P99_LIMIT_MS } as const
    judge(PROOF, 'delay of the event loop, p99, while all are open', loopLimit, [steady.p99Ms])
  })
})

const LONG_TOKENS = 60_000
const PAUSE_AT_BYTE = 1_048_576
const PAUSE_MS = count({ full: 20_000, reduced: 3_000 })
/**
 * A stream of some 45 MB, as fast as it is read. Kernels differ in how much they take on the way: with Linux's usual
 * ceilings (32 MB to receive, of which half is payload, and 4 MB to send) two connections hold at most 40 MB.
 */
const LONG_TEXT = `sandbox:output-tokens=${LONG_TOKENS} sandbox:delta-bytes=1 sandbox:delta-ms=0`
const PAUSED_GROWTH_LIMIT_MB = 8
const KEPT_LIMIT_KIB = 512
/** So that memory is what the process keeps, and not what nobody has thrown away yet; never where nobody looks at memory. */
const COLLECT_EVERY_MS = count({ full: 100, reduced: 0 })
/** What a process keeps for ever after its first such streams is not what a pause costs. */
const BEFORE = count({ full: 2, reduced: 0 })
const FEW_COLLECTIONS = 5

const LOOKS_ALIKE = 3

/** How much of the last answer the upstream has handed to its connection. */
async function sentTokens(): Promise<number> {
  return (await sandbox.journal()).at(-1)?.tokens ?? 0
}

/** That, once it does not go on. */
async function standstill(): Promise<number> {
  let last = -1
  let looksAlike = 0
  const isSo = async () => {
    const before = last
    last = await sentTokens()
    looksAlike = last > 0 && last === before ? looksAlike + 1 : 0
    // On a busy machine it may rest for a second, too.
    if (looksAlike === LOOKS_ALIKE) return true
    await delay(1_000)
    return false
  }
  await until(isSo, PATIENCE_MS, 'that the upstream stands still')
  return last
}

describe('a caller that stops reading', () => {
  it('holds the upstream back, and gets the rest once it reads on', async (test) => {
    const collecting = await startGateway({
      databaseUrl: database.url,
      changes: 'test/acceptance/hostile-server.ts',
      env: {
        FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
        FAREBOX_LOG_LEVEL: 'warn',
        TEST_COLLECT_EVERY_MS: String(COLLECT_EVERY_MS),
      },
    })
    const closing: (() => unknown)[] = [() => collecting.stop()]
    test.after(async () => {
      for (const close of closing.reverse()) await close()
    })
    const question = streamed('openai', 'sandbox/checksum', LONG_TEXT, { max_tokens: LONG_TOKENS })
    const whole = await hear(sandbox.url, 'sandbox-key', { ...question, path: `/openai${question.path}` })
    for (let at = 0; at < BEFORE; at += 1) assertIntact(await hearServed(collecting.url, question))
    await delay(FEW_COLLECTIONS * COLLECT_EVERY_MS)
    const startMb = rssMb(collecting)
    const memory = watchMemory(collecting, 20)
    closing.push(memory.stop)

    const way = await startPausingWay(collecting.url, PAUSE_AT_BYTE)
    closing.push(way.close)
    const hearing = hear(way.url, secret, question)
    await until(way.isPaused, PATIENCE_MS, 'that the caller stops reading')
    const stoodAt = await standstill()
    await delay(PAUSE_MS)
    assert.equal(await sentTokens(), stoodAt, 'the upstream stands still')
    const pausedMb = rssMb(collecting) - startMb
    const sentBytes = (whole.bytes * stoodAt) / LONG_TOKENS
    const inKernel = bytesInKernel(collecting.url) + bytesInKernel(sandbox.url)
    const kept = sentBytes - way.bytesRead() - inKernel
    way.resume()
    const heard = await hearing
    assertIntact(heard)
    await settled(pool)
    await assertCharged([heard])
    const figures = {
      bytes_in_all: whole.bytes,
      read_before_the_pause: PAUSE_AT_BYTE,
      paused_for_seconds: PAUSE_MS / 1_000,
      garbage_collected_every_ms: COLLECT_EVERY_MS,
      sent_by_the_upstream: Math.round(sentBytes),
      of_it_in_kernel_buffers: inKernel,
      of_it_in_processes_kib: Math.round(kept / 1_024),
      grown_while_paused_mb: rounded(pausedMb),
      grown_at_the_most_mb: rounded(memory.mostMb() - startMb),
    }
    test.diagnostic(JSON.stringify(figures))
    recordProof(PROOF, 'a caller that stops reading', figures)
    assert.ok(kept < KEPT_LIMIT_KIB * 1_024, `${kept} bytes are kept`)
    assert.ok(stoodAt < LONG_TOKENS, 'the upstream has more to send')
    judge(PROOF, 'memory that a pause costs', { unit: 'MB', atMost: PAUSED_GROWTH_LIMIT_MB }, [pausedMb])
  })
})
