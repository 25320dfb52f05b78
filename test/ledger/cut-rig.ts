import assert from 'node:assert/strict'
import { type Cut, createTcpProxy, type Direction, type Place } from '../../harness/tcp-proxy.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { Call, Ending, Judgement, Settlement } from '../../server/src/calls/call.ts'
import { NO_USAGE } from '../../server/src/calls/calls.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import { disagreements, type Told } from './told.ts'
import { connect, holdOf, ids, makeAccount, makeCredential, type pg, ROOMY } from './world.ts'

/**
 * A gateway's module whose connections to PostgreSQL lead through a proxy, and cases that cut one of them. A case begins
 * a batch of two calls that the account can pay and one that it can't, and ends the two; one of the two statements goes
 * over a connection that is cut at the case's place.
 */
export const BALANCE = 1_000n
export const HELD = 300n
export const CHARGED = 200n
const TOO_MUCH = 5_000n
/** Cases that run at once, each over a proxy and pools of its own. */
const WIDTH = 6
/** By how much a fault may miss its deadline, where that is judged. */
export const SLACK_MS = 200

export type Statement = 'begin' | 'end'

export type Case = {
  readonly statement: Statement
  readonly direction: Direction
  readonly at: Place
  readonly how: Cut
  /** Whether the connection is made for the statement, so that it can be cut while it is being made. */
  readonly cold: boolean
  /** Whether PostgreSQL can't be reached again before the deadline. */
  readonly lasting: boolean
}

type Options = NonNullable<Parameters<typeof connect>[1]>
export type Rig = Awaited<ReturnType<typeof createRig>>
export type Party = { readonly accountId: Id; readonly credentialId: Id }

export async function createRig(url: string, options: Options = {}) {
  const { beginDeadlineMs = 5_000, endDeadlineMs = 10_000 } = options
  const passed = { toServer: { bytes: 0, messages: 0 }, toClient: { bytes: 0, messages: 0 } }
  const { hostname: host, port } = new URL(url)
  const proxy = await createTcpProxy({
    target: { host, port: Number(port) },
    protocol: 'postgres',
    observe: ({ direction, bytes, endsMessage }) => {
      passed[direction].bytes += bytes.length
      passed[direction].messages += endsMessage ? 1 : 0
    },
  })
  const { calls, pools } = connect(proxy.url(url), { fast: true, ...options })
  const direct = connect(url)
  const pool = direct.pools.rest
  const begin = (call: Call) => outcomeOf(calls.begin(call), beginDeadlineMs)
  const end = (ending: Ending) => outcomeOf(calls.end(ending), endDeadlineMs)

  return {
    url,
    proxy,
    calls,
    pools,
    passed,
    pool,
    direct: direct.calls,
    begin,
    end,
    /**
     * Leaves the pool with a connection on which the statements of a case are prepared, and which is the next to be used. What a case sends must not depend on the case before:
     * so it is what a case sends, and of another account each time, because calls of one for whom they did not fit are judged at once for a while.
     */
    async warm(): Promise<void> {
      await until(async () => {
        const batch = batchOf(await makeParty(pool, BALANCE))
        const begun = await Promise.all(batch.map(begin))
        const open = batch.filter((_, at) => begun[at]?.text === 'begun')
        const ended = await Promise.all(open.map((call) => end({ ...endingOf(call), amount: null })))
        return ended.length === 2 && ended.every(({ text }) => text === 'voided')
      }, PATIENCE_MS)
    },
    /** Leaves the pool empty. One that was being made for work before is there only after a while: all are cut until none is left. */
    async chill(): Promise<void> {
      const isEmpty = () => {
        proxy.cut('reset')
        return pools.money.totalCount === 0
      }
      await until(isEmpty, PATIENCE_MS, 'the loss of idle connections')
    },
    async close(): Promise<void> {
      proxy.resume()
      await pools.close(100)
      await proxy.close()
      await direct.pools.close()
    },
  }
}

export async function makeParty(pool: pg.Pool, balance: bigint): Promise<Party> {
  const accountId = await makeAccount(pool, balance)
  return { accountId, credentialId: await makeCredential(pool, accountId) }
}

export function callOf({ accountId, credentialId }: Party, amount: bigint, claims: Call['claims'] = []): Call {
  const party = { accountId, credentialId }
  return { id: ids.next(), ...party, operation: 'probe', hold: holdOf(amount), tokens: 1, windows: [ROOMY], claims }
}

/** Two calls that the account can pay, and one that it can't: they do not fit together, and are judged one by one. */
function batchOf(party: Party): readonly Call[] {
  return [callOf(party, HELD), callOf(party, TOO_MUCH), callOf(party, HELD)]
}

export function endingOf({ id, accountId }: Call): Ending {
  const usage = { ...NO_USAGE, value: nanos(CHARGED), executed: true }
  return { id, accountId, amount: nanos(CHARGED), forgiven: false, usage }
}

/** An answer in short, or a fault and by how much it missed the deadline. */
export type Outcome = { readonly text: string; readonly charged: bigint | null; readonly lateMs: number }

/** Anything but an answer or a fault fails the test. */
async function outcomeOf(work: Promise<Judgement | Settlement>, deadlineMs: number): Promise<Outcome> {
  const startedAtMs = performance.now()
  const lateMs = () => Math.max(0, performance.now() - startedAtMs - deadlineMs)
  try {
    const answer = await work
    const charged = 'charged' in answer ? BigInt(answer.charged) : null
    return { text: answer.outcome, charged, lateMs: lateMs() }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { text: error.code, charged: null, lateMs: lateMs() }
  }
}

export type Run = { readonly fired: boolean; readonly failed: boolean; readonly lateMs: number }

/** Runs one case. Afterwards whoever was not begun holds nothing, and everybody paid once what they were told. */
export async function run(rig: Rig, one: Case): Promise<Run> {
  const party = await makeParty(rig.pool, BALANCE)
  const batch = batchOf(party)
  const where = JSON.stringify(one)
  let fired = false

  async function send(statement: Statement, work: () => Promise<Outcome[]>): Promise<Outcome[]> {
    if (one.statement !== statement) return work()
    if (one.cold) await rig.chill()
    else if (statement === 'begin') await rig.warm()
    const armed = rig.proxy.arm({ direction: one.direction, at: one.at, effect: one.how })
    const unreachable = armed.fired.then(() => {
      if (!one.lasting) return
      rig.proxy.refuse()
      rig.proxy.cut(one.how)
    })
    const outcomes = await work()
    fired = armed.hasFired()
    if (fired) await unreachable
    armed.disarm()
    rig.proxy.accept()
    return outcomes
  }

  if (one.statement === 'end') await rig.warm()
  const begun = await send('begin', () => Promise.all(batch.map(rig.begin)))
  const open = batch.filter((_, at) => begun[at]?.text === 'begun')
  const ended = await send('end', () => Promise.all(open.map((call) => rig.end(endingOf(call)))))

  assert.ok(await rig.calls.flush(PATIENCE_MS), `${where}: not everything was written`)
  const told = batch.map(({ id, accountId }) => {
    const at = open.findIndex((call) => call.id === id)
    return { id, accountId, charged: ended[at]?.charged ?? null }
  })
  await agree(rig.pool, told, where)
  const failed = checkOutcomes(one, begun, ended)
  if (begun[0]?.text === 'billing_dependency_timeout')
    for (const call of batch)
      assert.equal((await rig.direct.begin(call)).outcome, 'ended', `${where}: a late hold meets a tombstone`)
  return { fired, failed, lateMs: Math.max(...[...begun, ...ended].map(({ lateMs }) => lateMs)) }
}

/** Where there is time enough only the right answer will do; else it is that, or the one right fault for all. */
function checkOutcomes(one: Case, begun: readonly Outcome[], ended: readonly Outcome[]): boolean {
  const where = JSON.stringify(one)
  const begins = begun.map(({ text }) => text)
  const ends = ended.map(({ text, charged }) => `${text} ${charged ?? ''}`.trim())
  const timeout = 'billing_dependency_timeout'
  const beginFailed = one.lasting && begins[0] === timeout
  const endFailed = one.lasting && ends[0] === 'settlement_timeout'
  assert.deepEqual(begins, beginFailed ? [timeout, timeout, timeout] : ['begun', 'money_spent', 'begun'], where)
  const end = endFailed ? 'settlement_timeout' : `posted ${CHARGED}`
  assert.deepEqual(ends, beginFailed ? [] : [end, end], where)
  return beginFailed || endFailed
}

/** The ledger agrees with what callers were told, but for what is still being given back or voided. */
export async function agree(pool: pg.Pool, told: readonly Told[], where: string): Promise<void> {
  let found: string[] = []
  const agrees = async () => {
    found = await disagreements(pool, told)
    return found.length === 0
  }
  await until(agrees, PATIENCE_MS).catch(() => assert.deepEqual(found, [], where))
}

/** Runs cases side by side, each worker with a rig of its own. */
export async function runAll(url: string, cases: readonly Case[], options: Options = {}): Promise<Run[]> {
  const runs: Run[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: WIDTH }, async () => {
      const rig = await createRig(url, options)
      try {
        for (let one = cases[next++]; one !== undefined; one = cases[next++]) runs.push(await run(rig, one))
      } finally {
        next = cases.length
        await rig.close()
      }
    }),
  )
  return runs
}

/** Learns how many messages and bytes a statement takes each way: the least of three exchanges, because a busy machine may part a batch. */
export async function measure(url: string, statement: Statement, cold: boolean): Promise<Rig['passed']> {
  const exchanges: Rig['passed'][] = []
  for (let times = 0; times < 3; times += 1) exchanges.push(await measureOne(url, statement, cold))
  return exchanges.reduce((least, one) => (one.toServer.messages < least.toServer.messages ? one : least))
}

/** By an exchange that nothing interrupts. */
async function measureOne(url: string, statement: Statement, cold: boolean): Promise<Rig['passed']> {
  const rig = await createRig(url)
  try {
    const party = await makeParty(rig.pool, BALANCE)
    const batch = batchOf(party)
    await rig.warm()
    if (statement === 'end') await Promise.all(batch.map(rig.begin))
    if (cold) await rig.chill()
    const before = structuredClone(rig.passed)
    if (statement === 'begin') await Promise.all(batch.map(rig.begin))
    else await Promise.all(batch.flatMap((call, at) => (at === 1 ? [] : rig.end(endingOf(call)))))
    const difference = (direction: Direction) => ({
      bytes: rig.passed[direction].bytes - before[direction].bytes,
      messages: rig.passed[direction].messages - before[direction].messages,
    })
    return { toServer: difference('toServer'), toClient: difference('toClient') }
  } finally {
    await rig.close()
  }
}
