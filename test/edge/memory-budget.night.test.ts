import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startChild } from '../../harness/child.ts'
import { judge } from '../../harness/figures.ts'
import type { Gateway } from '../../harness/gateways.ts'
import { count, recordProof } from '../../harness/proof.ts'
import { EMBEDDING_PRICE } from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { createSeal } from '../../server/src/kernel/seal.ts'
import { Secret } from '../../server/src/kernel/secret.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { saveModel, saveRoute, setModelPrice } from '../../server/src/pricing/configure-models.ts'
import { saveUpstream } from '../../server/src/upstreams/configure.ts'
import { ask, ids, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { cpuSeconds } from '../acceptance/models/many-streams-process.ts'
import { leftOver, settled } from '../acceptance/models/streams.ts'

const PROOF = 'memory-budget'
const MIB = 1_048_576
const NON_READERS = count({ full: 200, reduced: 20 })
const READERS = count({ full: 50, reduced: 8 })
/** 900 vectors are 56 MiB of JSON; where memory is not looked at, some less. */
const INPUTS = count({ full: 900, reduced: 300 })
const DIMENSIONS = 3_072
const SMALL_CALLS = count({ full: 2_000, reduced: 50 })
const ROUNDS = count({ full: 5, reduced: 1 })
const READER_ACCOUNTS = 5
const MODEL = 'test/vectors'
const PEAK_LIMIT_MIB = 1_024
const TURN_LIMIT_MS = 100
const CPU_RATIO_LIMIT = 1.2
/** Of what is kept when all is over, beside what it was before. */
const KEPT_LIMIT_MIB = 16

const database = await freshDatabase()
const installation = await startInstallation(database.url, {
  changes: 'test/edge/measured-server.ts',
  env: { FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1/32' },
})
after(installation.stop)
const { url, pool, masterKey } = installation
const gateway = installation.gateways[0] ?? assert.fail('a gateway')

type Said = { readonly url: string; readonly bytes: number; readonly tokens: number }
const said = Promise.withResolvers<Said>()
const upstream = startChild(
  process.execPath,
  [path.join(import.meta.dirname, 'vector-upstream.ts'), String(INPUTS), String(DIMENSIONS)],
  { onLine: (line) => line.startsWith('{"url"') && said.resolve(JSON.parse(line)) },
)
after(() => upstream.kill())
const vectors = await said.promise
const seal = createSeal({ current: masterKey })
await saveUpstream(
  { pool, ids, seal },
  { slot: 'vectors', mode: 'test', kind: 'native', baseUrl: vectors.url, credential: new Secret('key') },
)
await saveModel({ pool }, { id: MODEL, contextWindow: 8_192, outputCap: 1, outputMost: 1, tokenizer: 'bytes_3' })
await saveRoute({ pool, ids }, { model: MODEL, slot: 'vectors', protocol: 'openai_embeddings' })
await setModelPrice({ pool }, { model: MODEL, ...EMBEDDING_PRICE })

const BODY = { model: MODEL, input: Array.from({ length: INPUTS }, () => 'a'), dimensions: DIMENSIONS }

/** Asks for the largest reply over a connection that is never read. */
function askUnread(secret: string): Socket {
  const text = JSON.stringify(BODY)
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.on('error', () => {}).pause()
  socket.write(
    `POST /v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
  return socket
}

type Read = { readonly refused: number; readonly bytes: number; readonly costUsd: string | null }

/** Asks until it is served, and reads all of it. */
async function askAndRead(secret: string): Promise<Read> {
  for (let refused = 0; ; refused += 1) {
    const response = await fetch(`${url}/v1/embeddings`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(BODY),
    })
    let bytes = 0
    for await (const chunk of response.body ?? []) bytes += chunk.length
    if (response.status === 200) return { refused, bytes, costUsd: response.headers.get('x-farebox-cost-usd') }
    assert.equal(response.status, 503)
    assert.equal(response.headers.get('retry-after'), '1')
    await delay(1_000)
  }
}

async function figure(name: string): Promise<number> {
  const exposed = await (await fetch(`${gateway.adminUrl}/metrics`)).text()
  return Number(new RegExp(`^farebox_memory_${name} (\\S+)$`, 'm').exec(exposed)?.[1])
}

/** The most memory that the kernel has ever given the process. */
function peakMib({ pid }: Gateway): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

type Measured = { readonly longest_turn_ms: number; readonly heapUsed: number; readonly arrayBuffers: number }

/** What the process says about itself since it was asked the last time. */
async function measured(): Promise<Measured> {
  const lines = () => gateway.output().match(/^\{"measured":true.*\}$/gm) ?? []
  const before = lines().length
  gateway.signal('SIGUSR2')
  await until(() => lines().length > before, PATIENCE_MS, 'what the process says')
  return JSON.parse(lines().at(-1) ?? '{}')
}

/** Processor time of the process for one small call, one after the other. */
async function smallCallMs(secret: string): Promise<number> {
  const startSeconds = cpuSeconds(gateway)
  for (let at = 0; at < SMALL_CALLS; at += 1) {
    const told = await ask(url, secret, '/v1/rerank', { body: { query: 'a', documents: ['b', 'c'] } })
    assert.equal(told.status, 200)
  }
  return ((cpuSeconds(gateway) - startSeconds) * 1_000) / SMALL_CALLS
}

const mib = (bytes: number) => Math.round((10 * bytes) / MIB) / 10

describe(`${NON_READERS} callers who do not read the largest replies, and ${READERS} who do`, () => {
  it('cost no more memory than the budget, no long turn, and nobody else anything', async (test) => {
    const bystander = await makeCustomer(pool)
    const idler = await makeCustomer(pool, { money: 1_000_000_000_000n })
    const readers = await Promise.all(Array.from({ length: READER_ACCOUNTS }, () => makeCustomer(pool)))
    // A process that has worked for a while: compiled, connected, its caches full.
    await smallCallMs(bystander.secret)
    const quiet: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) quiet.push(await smallCallMs(bystander.secret))
    const start = await measured()
    const startMib = peakMib(gateway)

    const unread = Array.from({ length: NON_READERS }, () => askUnread(idler.secret))
    test.after(() => {
      for (const socket of unread) socket.destroy()
    })
    const read = await Promise.all(
      Array.from({ length: READERS }, (_, at) => askAndRead(readers[at % READER_ACCOUNTS]?.secret ?? '')),
    )
    for (const { bytes } of read) assert.equal(bytes, vectors.bytes, 'all of the reply')
    const costs = new Set(read.map(({ costUsd }) => costUsd))
    assert.deepEqual([...costs], [`0.${String(vectors.tokens * 100).padStart(9, '0')}`])
    const afterLoad = await measured()

    await until(async () => (await figure('waiting')) === 0, PATIENCE_MS, 'that nobody waits')
    const unreadBytes = await figure('reserved_bytes')
    assert.ok(unreadBytes >= vectors.bytes, 'answers are waiting to be read')
    const beside: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) beside.push(await smallCallMs(bystander.secret))
    const figures = { waits: await figure('waits_total'), refusals: await figure('refusals_total') }

    for (const socket of unread) socket.destroy()
    await until(async () => (await figure('reserved_bytes')) === 0, PATIENCE_MS, 'that all is given back')
    await settled(pool)
    assert.deepEqual(await leftOver(pool), { holds: 0, claims: 0 })
    assert.deepEqual(await verifyLedger(pool), [])
    const end = await measured()

    const keptMib = (end.heapUsed + end.arrayBuffers - start.heapUsed - start.arrayBuffers) / MIB
    const peak = peakMib(gateway)
    const median = (of: readonly number[]) => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? Number.NaN
    const shown = {
      non_readers: NON_READERS,
      readers: READERS,
      reply_bytes: vectors.bytes,
      replies_read_whole: read.length,
      refusals_that_readers_tried_again_after: read.reduce((sum, { refused }) => sum + refused, 0),
      ...figures,
      reserved_for_unread_answers_mib: mib(unreadBytes),
      peak_before_mib: Math.round(startMib),
      peak_mib: Math.round(peak),
      longest_turn_cpu_ms: Math.round(Math.max(afterLoad.longest_turn_ms, end.longest_turn_ms) * 10) / 10,
      cpu_of_a_small_call_ms: { before: median(quiet), beside_unread_answers: median(beside) },
      kept_after_mib: Math.round(10 * keptMib) / 10,
      reserved_after_bytes: 0,
    }
    test.diagnostic(JSON.stringify(shown))
    recordProof(PROOF, 'callers who do not read the largest replies, and some who do', shown)
    judge(PROOF, 'the most resident memory', { unit: 'MiB', atMost: PEAK_LIMIT_MIB }, [peak])
    judge(PROOF, 'processor time of the longest turn', { unit: 'ms', atMost: TURN_LIMIT_MS }, [
      afterLoad.longest_turn_ms,
      end.longest_turn_ms,
    ])
    const ratio = median(beside) / median(quiet)
    judge(PROOF, "others' processor time for a call, to that before", { unit: 'ratio', atMost: CPU_RATIO_LIMIT }, [
      ratio,
    ])
    judge(PROOF, 'memory that is kept when all is over', { unit: 'MiB', atMost: KEPT_LIMIT_MIB }, [keptMib])
  })
})
