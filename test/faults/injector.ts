import { setTimeout as delay } from 'node:timers/promises'
import { isAlive } from '../../harness/processes.ts'
import { until } from '../../harness/until.ts'
import type { Cluster } from './cluster.ts'
import type { History } from './history.ts'
import { strikeLink } from './injector-links.ts'
import type { Member } from './member.ts'
import { type Kind, LINK_KINDS, type LinkKind, type PlannedFault } from './plan.ts'
import { prey, WAIT_FOR_PREY_MS } from './prey.ts'
import { createTurn } from './turn.ts'

/** What was done to whom, from when to when, and how much it hit. */
export type Trouble = {
  readonly kind: Kind
  readonly target: string
  readonly fromMs: number
  readonly toMs: number
  readonly hits: number
}

/** After this a fault of one gateway takes another one, where that has work and the planned one has not. */
const AIM_MS = 500
const HOUR_MS = 3_600_000
/** Who waited for the sandbox may have left before it is dead. */
const KILL_TRIES = 5

/** Carries out a plan, each fault at its time; those that meet on one process come one after another. */
export async function carryOut(
  plan: readonly PlannedFault[],
  cluster: Cluster,
  history: History,
): Promise<readonly Trouble[]> {
  const startedAtMs = performance.now()
  return Promise.all(
    plan.map(async (fault) => {
      await delay(Math.max(0, startedAtMs + fault.atMs - performance.now()))
      const { kind, target } = fault
      const fromMs = Date.now()
      const aimed = await aim(fault, cluster)
      const hits = await strike(aimed, cluster).catch((error: unknown) => {
        throw new Error(`${kind} of ${target} could not be carried out`, { cause: error })
      })
      const trouble = { kind, target: aimed.target, fromMs, toMs: Date.now(), hits }
      history.note('fault', { ...fault, ...trouble })
      return trouble
    }),
  )
}

/** The fault as planned, or against a sibling where nothing could be hit: a gateway that sleeps or is away has no work. */
async function aim(fault: PlannedFault, { ways }: Cluster): Promise<PlannedFault> {
  const [what = '', at] = fault.target.split('-')
  if (at === undefined) return fault
  const ofGateways = what === 'database' ? ways.databases.slice(0, ways.edges.length) : ways.edges
  const planned = ofGateways[Number(at)]
  await until(() => (planned?.busy() ?? 0) > 0, AIM_MS).catch(() => {})
  if ((planned?.busy() ?? 0) > 0) return fault
  // Statements are short: at one instant there may be none anywhere.
  const busyOne = () => ofGateways.findIndex((way) => way.busy() > 0)
  await until(() => busyOne() !== -1, WAIT_FOR_PREY_MS).catch(() => {})
  const sibling = busyOne()
  return sibling === -1 ? fault : { ...fault, target: `${what}-${sibling}` }
}

/** Does the harm, waits, and undoes it. How much it hit. */
function strike(fault: PlannedFault, cluster: Cluster): Promise<number> {
  const { kind } = fault
  if (isLinkKind(kind)) return strikeLink({ ...fault, kind }, cluster)
  return PROCESS_FAULTS[kind](fault, cluster)
}

function isLinkKind(kind: Kind): kind is LinkKind {
  return (LINK_KINDS as readonly Kind[]).includes(kind)
}

type Strike = (fault: PlannedFault, cluster: Cluster) => Promise<number>

const PROCESS_FAULTS: Readonly<Record<Exclude<Kind, LinkKind>, Strike>> = {
  'kill gateway': (fault, cluster) => killMember(fault, memberOf(cluster, fault)),
  'kill worker': (fault, cluster) => killMember(fault, cluster.worker),
  'pause gateway': (fault, cluster) => pauseMember(fault, memberOf(cluster, fault)),
  'pause worker': (fault, cluster) => pauseMember(fault, cluster.worker),
  'restart gateway': (fault, cluster) => ROLLING(() => restartMember(memberOf(cluster, fault))),
  'restart worker': (_, cluster) => restartMember(cluster.worker),
  'move clock': (fault, cluster) => moveClock(fault, memberOf(cluster, fault)),

  'kill postgres': ({ forMs }, cluster) =>
    cluster.postgres.turn(async () => {
      const hits = await prey(() => statements(cluster))
      await cluster.postgres.kill()
      await delay(forMs)
      await cluster.postgres.start()
      return hits
    }),

  'pause postgres': ({ forMs }, cluster) =>
    cluster.postgres.turn(async () => {
      const hits = await prey(() => statements(cluster))
      cluster.postgres.pause()
      await delay(forMs)
      cluster.postgres.resume()
      return hits
    }),

  'kill sandbox': ({ forMs }, { upstream }) =>
    upstream.turn(async () => {
      let hits = 0
      for (let tries = 0; tries < KILL_TRIES && hits === 0; tries += 1) {
        await prey(upstream.way.busy)
        hits = await upstream.kill()
      }
      if (hits === 0) return 0
      await delay(forMs)
      await upstream.start()
      return hits
    }),

  'fill disk': ({ forMs }, cluster) => cluster.postgres.turn(() => fillDisk(forMs, cluster)),
}

/** One gateway after another, as whoever rolls out a version does. */
const ROLLING = createTurn()

function memberOf({ gateways }: Cluster, { target }: PlannedFault): Member {
  const member = gateways.find(({ name }) => name === target)
  if (member === undefined) throw new Error(`there is no ${target}`)
  return member
}

function statements({ ways }: Cluster): number {
  return ways.databases.reduce((sum, { busy }) => sum + busy(), 0)
}

/** Requests that a gateway is answering; for the worker, which answers nobody, its connections. */
function workOf({ edge, database }: Member): number {
  return edge === undefined ? database.connections().length : edge.busy()
}

function killMember({ forMs }: PlannedFault, member: Member): Promise<number> {
  return member.turn(async () => {
    const hits = await prey(() => workOf(member))
    await member.kill()
    await delay(forMs)
    await member.start()
    return hits
  })
}

function pauseMember({ forMs }: PlannedFault, member: Member): Promise<number> {
  return member.turn(async () => {
    const hits = await prey(() => workOf(member))
    member.process().pause()
    await delay(forMs)
    member.process().resume()
    return hits
  })
}

export function restartMember(member: Member): Promise<number> {
  return member.turn(async () => {
    const hits = await prey(() => workOf(member))
    await member.stop()
    await member.start()
    return hits
  })
}

async function moveClock({ forMs }: PlannedFault, member: Member): Promise<number> {
  const before = member.edge?.passes() ?? 0
  member.moveClock(forMs % 2 === 0 ? HOUR_MS : -HOUR_MS)
  await delay(forMs)
  const hits = await prey(() => (member.edge?.passes() ?? 0) - before)
  member.moveClock(0)
  return hits
}

/** Hits are what PostgreSQL complains of. It may crash, and a supervisor starts it again when there is room. */
async function fillDisk(forMs: number, { postgres, pool }: Cluster): Promise<number> {
  const { disk } = postgres
  if (disk === undefined) return 0
  const complaints = () => postgres.log().match(/No space left on device|could not extend file/g)?.length ?? 0
  const before = complaints()
  disk.fill()
  // More of the log is written than calls would, so that it is full while the disk is.
  const writeLog = () =>
    pool.query("select pg_logical_emit_message(true, 'filler', repeat('x', 1000000))").catch(() => {})
  const filling = setInterval(writeLog, 50)
  await delay(forMs)
  await prey(() => complaints() - before)
  clearInterval(filling)
  const hits = complaints() - before
  disk.empty()
  await until(() => isBack(postgres, pool), COMES_BACK_MS, 'that PostgreSQL comes back when there is room')
  return Math.max(0, hits)
}

const COMES_BACK_MS = 30_000

/** Whether PostgreSQL answers. One that has ended is started again, as a supervisor does. */
async function isBack(postgres: Cluster['postgres'], pool: Cluster['pool']): Promise<boolean> {
  if (!isAlive(postgres.pid())) await postgres.start()
  return pool.query('select 1').then(
    () => true,
    () => false,
  )
}
