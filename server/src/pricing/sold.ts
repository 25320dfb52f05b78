import type pg from 'pg'
import { z } from 'zod'
import { type Catalogue, isSoldByUnit, type Operation } from '../catalogue/operation.ts'
import { asUnavailable } from '../kernel/fault.ts'
import { MODES, type Mode } from '../kernel/mode.ts'
import type { ProtocolName } from '../protocols/protocol.ts'
import { spokenBy } from '../protocols/protocols.ts'
import { type CacheParts, createCache } from '../storage/cache.ts'
import { queryOn, type Transactions } from '../storage/transaction.ts'
import { listSwitchedOff, type Switches, switchesOf } from './switches.ts'

/**
 * What is sold: the operations that no operator has switched off and that an upstream can be asked for. Website, contract, sales data and
 * agents' tools take it from here, and calls refuse by the same switches.
 */
export type Sold = {
  /** By the mode of a key, in the order of the catalogue. */
  readonly in: Readonly<Record<Mode, readonly Operation[]>>
  /** `test` where nothing is sold in live mode, as in development: what is shown to everybody can be tried with test keys alone. */
  readonly soldIn: Mode
  readonly switches: Switches
}

type Operations = Pick<Catalogue, 'operations'>

/** Who can be asked for what: slots of upstreams, and protocols in which a priced model is served, each in a mode. */
const reachRow = z.object({ is_new: z.boolean(), slots: z.array(z.string()), protocols: z.array(z.string()) })

/** As PostgreSQL has it now. */
export async function readSold(on: Transactions, { operations }: Operations): Promise<Sold> {
  const switches = switchesOf(await listSwitchedOff(on))
  const { rows } = await queryOn(on)(
    `select not exists (select from upstreams) as is_new,
       array(select distinct mode || ' ' || slot from upstreams where enabled) as slots,
       array(select distinct mode || ' ' || protocol
          from model_routes join upstreams using (slot) join models on models.id = model_routes.model
          where models.enabled and model_routes.enabled and upstreams.enabled
            and exists (select from model_prices where model_prices.model = models.id)) as protocols`,
  )
  const { is_new: isNew, slots, protocols } = reachRow.parse(rows[0])
  const [asked, spoken] = [new Set(slots), new Set(protocols)]
  // An installation in which nothing is set up yet shows what it can sell.
  const isReached = (one: Operation, mode: Mode) =>
    isNew || (isSoldByUnit(one) ? asked.has(`${mode} ${one.upstream.slot}`) : spoken.has(`${mode} ${spokenBy(one)}`))
  const of = (mode: Mode) => operations.filter((one) => !switches.isOff(one) && isReached(one, mode))
  const [live, test] = [of('live'), of('test')]
  return { in: { live, test }, soldIn: live.length === 0 && test.length > 0 ? 'test' : 'live', switches }
}

/** What is shown to everybody, whoever they are. */
export function onSale({ in: sold, soldIn }: Sold): readonly Operation[] {
  return sold[soldIn]
}

/** In which modes an operation is sold. */
export function modesOf({ in: sold }: Sold, { id }: Pick<Operation, 'id'>): readonly Mode[] {
  return MODES.filter((mode) => sold[mode].some((one) => one.id === id))
}

/** The protocols in which models can still be asked when some operations are off. */
export function protocolsSold({ operations }: Operations, switches: Switches): ReadonlySet<ProtocolName> {
  return new Set(operations.flatMap((one) => (isSoldByUnit(one) || switches.isOff(one) ? [] : [spokenBy(one)])))
}

/** The same from memory, never older than a second. */
export function createSold({
  pool,
  catalogue,
  ...parts
}: CacheParts & { readonly pool: pg.Pool; readonly catalogue: Operations }) {
  const cache = createCache<Sold>({
    ...parts,
    name: 'sold',
    // Told of with every change of an upstream, a model, a price and a switch.
    topic: 'models',
    load: () => readSold(pool, catalogue),
    maxEntries: 1,
  })
  const now = async () => (await cache.get(ALL).catch(asUnavailable)) ?? NOTHING
  return {
    now,
    operations: async (mode: Mode) => (await now()).in[mode],
    close: cache.close,
  }
}

const ALL = 'all'
const NOTHING: Sold = { in: { live: [], test: [] }, soldIn: 'live', switches: switchesOf([]) }

export type KeptSold = ReturnType<typeof createSold>
