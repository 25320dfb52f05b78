import { Random } from '../../sandbox/src/random.ts'

/** What is done to the cluster and when: a pure function of the seed, so that a run can be repeated. */
export type PlannedFault = {
  readonly atMs: number
  readonly kind: Kind
  readonly target: string
  readonly forMs: number
}

const PROCESS_KINDS = [
  'kill gateway',
  'kill postgres',
  'kill sandbox',
  'kill worker',
  'pause gateway',
  'pause postgres',
  'pause worker',
  'restart gateway',
  'restart worker',
  'move clock',
] as const
const LINK_FAULTS = ['cut', 'stall', 'slow', 'throttle', 'slice', 'half-close'] as const
const LINKS = ['client', 'edge', 'database', 'upstream', 'operator'] as const
const DISK = 'fill disk'

export type LinkFault = (typeof LINK_FAULTS)[number]
export type Link = (typeof LINKS)[number]
export type LinkKind = `${LinkFault} ${Link}`
export type Kind = (typeof PROCESS_KINDS)[number] | LinkKind | typeof DISK

export const LINK_KINDS: readonly LinkKind[] = LINK_FAULTS.flatMap((fault) =>
  LINKS.map((link): LinkKind => `${fault} ${link}`),
)

export const GATEWAYS = 3
/** A fault begins about so often; longer ones overlap. */
const EVERY_MS = 1_250
/** What the workload does before the first fault, and after the last one has begun. */
const CALM_BEFORE_MS = 500
const CALM_AFTER_MS = 1_000
/** From this on there is time for what lasts longer than a lease, or than a caller waits for a settlement or a begin. */
const LONG_RUN_MS = 30_000
const LONGER_THAN_A_LEASE_MS = 14_000
const LONGER_THAN_A_SETTLEMENT_MS = 12_000
/** And shorter than a lease, so that every process lives on. */
const LONGER_THAN_A_BEGIN_MS = 6_000

/** Those by which nothing of the cluster works; never two at once. */
export const OUTAGES: ReadonlySet<Kind> = new Set(['kill postgres', 'pause postgres', DISK])
/** What a short run must have. */
const FIRST: readonly Kind[] = ['kill gateway', 'kill postgres', 'cut database']

const LASTING_MS: Readonly<Record<string, readonly [number, number]>> = {
  kill: [200, 1_500],
  pause: [300, 3_000],
  restart: [0, 0],
  move: [2_000, 6_000],
  fill: [1_500, 3_000],
  cut: [0, 0],
  'half-close': [0, 0],
  stall: [300, 3_000],
  slow: [1_000, 4_000],
  throttle: [1_000, 4_000],
  slice: [1_000, 4_000],
}

type Options = {
  /** Whether PostgreSQL has a disk of its own that can be filled. */
  readonly hasDisk: boolean
  /** Only these, over and over, to look at some faults alone; none where the list is empty. */
  readonly kinds?: readonly Kind[]
}

export function planOf(seed: number, seconds: number, { hasDisk, kinds: only }: Options): readonly PlannedFault[] {
  const random = new Random(seed)
  const lastMs = seconds * 1_000 - CALM_AFTER_MS
  const places = Math.max(FIRST.length, Math.floor((lastMs - CALM_BEFORE_MS) / EVERY_MS))
  const kinds = only ?? kindsOf(random, places, hasDisk)
  const order = only === undefined ? apart(shuffled(random, kinds)) : repeated(kinds, places)
  const everyMs = (lastMs - CALM_BEFORE_MS) / order.length
  const planned = order.map((kind, place): PlannedFault => {
    const [verb = ''] = kind.split(' ')
    const [least = 0, most = 0] = LASTING_MS[verb] ?? []
    return {
      atMs: Math.round(CALM_BEFORE_MS + (place + random.fraction() * 0.8) * everyMs),
      kind,
      target: targetOf(random, kind),
      forMs: random.between(least, most),
    }
  })
  return seconds * 1_000 >= LONG_RUN_MS ? withLongOnes(planned, lastMs) : planned
}

/** Each kind once as far as there is room, those first that a short run must have; then all of them again, round by round. */
function kindsOf(random: Random, places: number, hasDisk: boolean): readonly Kind[] {
  const all: readonly Kind[] = [...PROCESS_KINDS, ...LINK_KINDS, ...(hasDisk ? ([DISK] as const) : [])]
  const rest = all.filter((kind) => !FIRST.includes(kind))
  const kinds = [...FIRST, ...shuffled(random, rest)]
  while (kinds.length < places) kinds.push(...shuffled(random, all).slice(0, places - kinds.length))
  return kinds.slice(0, places)
}

function repeated(kinds: readonly Kind[], places: number): readonly Kind[] {
  return Array.from({ length: kinds.length === 0 ? 0 : places }, (_, at) => kinds[at % kinds.length] ?? DISK)
}

/** What a name on the command line means. */
export function isKind(name: string): name is Kind {
  return ([...PROCESS_KINDS, ...LINK_KINDS, DISK] as readonly string[]).includes(name)
}

/** Outages of everything are kept apart by what is not one. */
function apart(kinds: readonly Kind[]): readonly Kind[] {
  const outages = kinds.filter((kind) => OUTAGES.has(kind))
  const others = kinds.filter((kind) => !OUTAGES.has(kind))
  const everyOther = Math.max(1, Math.floor(others.length / Math.max(1, outages.length)))
  return others.flatMap((kind, place) => {
    const outage = place % everyOther === Math.floor(everyOther / 2) ? outages.shift() : undefined
    return outage === undefined ? [kind] : [outage, kind]
  })
}

/**
 * One gateway sleeps past its lease, one can not reach PostgreSQL for longer than callers wait, and PostgreSQL sleeps past
 * what a begin may take, as early as may be.
 */
function withLongOnes(planned: readonly PlannedFault[], lastMs: number): readonly PlannedFault[] {
  const lengthen = (faults: readonly PlannedFault[], kind: Kind, forMs: number) => {
    const first = faults.findIndex((fault) => fault.kind === kind && fault.atMs + forMs < lastMs)
    return faults.map((fault, at) => (at === first ? { ...fault, forMs } : fault))
  }
  const slept = lengthen(planned, 'pause gateway', LONGER_THAN_A_LEASE_MS)
  const stalled = lengthen(slept, 'stall database', LONGER_THAN_A_SETTLEMENT_MS)
  return lengthen(stalled, 'pause postgres', LONGER_THAN_A_BEGIN_MS)
}

function targetOf(random: Random, kind: Kind): string {
  const [verb = '', what = ''] = kind.split(' ')
  if (verb === 'move' || what === 'gateway') return `gateway-${random.between(0, GATEWAYS - 1)}`
  if (what === 'edge' || what === 'database') return `${what}-${random.between(0, GATEWAYS - 1)}`
  return verb === 'fill' ? 'postgres' : what
}

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const all = [...items]
  for (let at = all.length - 1; at > 0; at -= 1) {
    const other = random.between(0, at)
    const [a, b] = [all[at], all[other]]
    if (a !== undefined && b !== undefined) [all[at], all[other]] = [b, a]
  }
  return all
}
