import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type pg from 'pg'
import { makeMasterKey } from '../../../harness/seed.ts'
import type { Call } from '../../../server/src/calls/call.ts'
import { type Calls, createCalls } from '../../../server/src/calls/calls.ts'
import { createMoneyQuery } from '../../../server/src/calls/money-query.ts'
import { VIDEO_TASKS } from '../../../server/src/gateway/plans/video-tasks.ts'
import { type Clock, systemClock } from '../../../server/src/kernel/clock.ts'
import type { Id } from '../../../server/src/kernel/ids.ts'
import { nanos } from '../../../server/src/kernel/money.ts'
import { rational } from '../../../server/src/kernel/rational.ts'
import { createSeal, type Seal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { termsAsText } from '../../../server/src/pricing/terms.ts'
import { createPools } from '../../../server/src/storage/pools.ts'
import { createPoller, type Poller } from '../../../server/src/tasks/poller.ts'
import { silentLog } from '../../../server/src/telemetry/log.ts'
import { createMetrics } from '../../../server/src/telemetry/metrics.ts'
import { createBindings } from '../../../server/src/upstreams/bindings.ts'
import { saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { createTransport } from '../../../server/src/upstreams/transport.ts'
import { connect, ids, makeAccount, makeCredential } from '../../ledger/world.ts'

/** What is held for a task of this world: five seconds in 720P. */
export const HELD = 500_000_000n
const SLOT = { scope: 'tasks', key: 'video_tasks', limit: 3, fingerprint: '', keepSeconds: 0, endsWithOwner: false }

const rate = (lines: string, pricePerMs: bigint) => {
  const price = rational(pricePerMs)
  return { unit: `${lines} video millisecond`, price, published: price, providerCost: null }
}
const RATES = [rate('480P', 50_000n), rate('720P', 100_000n), rate('1080P', 150_000n)]
export const TERMS = termsAsText({ version: '1', rates: RATES }, [0n, 5_000n, 0n])

/** What an upstream answers: a status and a body, or nothing at all. */
export type Answer = { readonly status: number; readonly body: string } | 'reset'

export type Task = { readonly id: Id; readonly accountId: Id; readonly name: string }

/** Tasks without a gateway: PostgreSQL, an upstream that says what it is told to, and any number of pollers. */
export type TaskWorld = {
  readonly pool: pg.Pool
  readonly calls: Calls
  readonly seal: Seal
  readonly upstreamId: Id
  /** A call of somebody's that would make a task. */
  readonly newCall: () => Promise<Call>
  /** Begins one; nobody has its task yet. */
  readonly begin: () => Promise<Task>
  readonly handOver: (task: Task, state: 'PENDING' | 'RUNNING', name?: string) => Promise<boolean>
  /** The next answers about a task, one for each question; the last one stands. */
  readonly script: (name: string, answers: readonly (Answer | Promise<Answer>)[]) => void
  /** How many questions about a task have arrived. */
  readonly asked: (name: string) => number
  readonly makeDue: (tasks: readonly Pick<Task, 'id'>[]) => Promise<void>
  readonly startPoller: (options?: { readonly ended?: (id: Id) => void; readonly clock?: Clock }) => Poller
  readonly stop: () => Promise<void>
}

const FEED = { subscribe: () => () => {}, lagMs: () => 0 }

export async function startTaskWorld(url: string): Promise<TaskWorld> {
  const { pools, calls } = connect(url)
  const pool = pools.rest
  const seal = createSeal({ current: makeMasterKey() })
  const upstream = await startUpstream()
  const slot = 'video'
  const upstreamId = await saveUpstream(
    { pool, ids, seal },
    { slot, mode: 'test', baseUrl: upstream.url, kind: 'native', credential: null },
  )
  const transport = createTransport({ clock: systemClock })
  const bindings = createBindings({ pool, feed: FEED, clock: systemClock, metrics: createMetrics(), seal })
  const closing: (() => Promise<void>)[] = []

  async function newCall(): Promise<Call> {
    const accountId = await makeAccount(pool, 10_000_000_000n)
    const credentialId = await makeCredential(pool, accountId)
    const id = ids.next()
    const prompt = seal.seal(new Secret('a fox'), `task ${id} prompt`)
    return {
      ...{ id, accountId, credentialId, operation: 'video_synthesis', tokens: 0, windows: [], claims: [SLOT] },
      hold: { amount: nanos(HELD), terms: TERMS, allowances: [] },
      task: { model: 'a/model', prompt },
    }
  }

  async function begin(): Promise<Task> {
    const call = await newCall()
    const { id, accountId } = call
    const { outcome } = await calls.begin(call)
    if (outcome !== 'begun') throw new Error(`a task was not begun: ${outcome}`)
    return { id, accountId, name: `job-${id}` }
  }

  return {
    pool,
    calls,
    seal,
    upstreamId,
    newCall,
    begin,
    handOver: ({ id, name: own }, state, name = own) =>
      calls.handOver({ id, upstream: { id: upstreamId, name: slot, slot, mode: 'test' }, name, state }),
    script: upstream.script,
    asked: upstream.asked,
    async makeDue(tasks) {
      const text = 'update tasks set next_poll_at = clock_timestamp() where id = any ($1) and next_poll_at is not null'
      await pool.query(text, [tasks.map(({ id }) => id)])
    },
    startPoller({ ended = () => {}, clock = systemClock } = {}) {
      const own = createPools({ url: new Secret(url), log: silentLog, moneyConnections: 1, restConnections: 1 })
      closing.push(() => own.close())
      const query = createMoneyQuery(own.money)
      return createPoller({
        ...{ pool: own.rest, bindings, transport, seal, clock, log: silentLog, overran: () => {} },
        // Noted by whoever has ended it.
        records: { add: ended },
        polled: () => {},
        kind: VIDEO_TASKS,
        calls: createCalls({ query, ownerId: ids.next(), clock: systemClock, log: silentLog }),
      })
    },
    async stop() {
      await transport.close()
      await upstream.stop()
      await Promise.all([...closing.map((close) => close()), pools.close()])
    },
  }
}

async function startUpstream() {
  const scripts = new Map<string, (Answer | Promise<Answer>)[]>()
  const questions = new Map<string, number>()
  const server = createServer(async (request, response) => {
    const name = decodeURIComponent(request.url?.split('/').at(-1) ?? '')
    questions.set(name, (questions.get(name) ?? 0) + 1)
    const script = scripts.get(name) ?? []
    const answer = script.length > 1 ? script.shift() : script[0]
    send(response, (await answer) ?? { status: 404, body: '' })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    script: (name: string, answers: readonly (Answer | Promise<Answer>)[]) => void scripts.set(name, [...answers]),
    asked: (name: string) => questions.get(name) ?? 0,
    async stop() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function send(response: ServerResponse, answer: Answer): void {
  if (answer === 'reset') response.socket?.resetAndDestroy()
  else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body)
}
