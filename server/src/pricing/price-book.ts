import type pg from 'pg'
import { z } from 'zod'
import type { Catalogue, Operation } from '../catalogue/operation.ts'
import type { Mode } from '../kernel/mode.ts'
import { inSnapshot, type OpenTransaction } from '../storage/transaction.ts'
import { listModels, type Model } from './models.ts'
import { type SetPrice, setPriceIn } from './operation-terms.ts'
import { PRICE_SQL, type PriceText, priceText } from './set-model-price.ts'
import { onSale, protocolsSold, readSold } from './sold.ts'

/** All that is published of prices, as it was read at one time. */
export type PriceBook = {
  readonly readAt: Date
  /** The operations that are sold, in the order of the catalogue. */
  readonly sold: readonly Operation[]
  /** Those that are sold, in the order of their names: with a price, and with an upstream in the mode below. */
  readonly models: readonly Model[]
  /** `test` where nothing has an upstream in live mode, as in development: test keys alone can call what is listed. */
  readonly soldIn: Mode
  /** What operators have set in place of the published prices of operations; undefined where that can't be read. */
  readonly operations: ReadonlyMap<string, SetPrice | undefined>
  /** What each model has cost, the newest first; not all of its versions where there are many. */
  readonly histories: ReadonlyMap<string, readonly PriceStep[]>
}

/** A version of a model's published price, and since when it is charged. */
export type PriceStep = { readonly since: Date } & Pick<
  PriceText,
  'version' | 'input' | 'output' | 'cacheRead' | 'cacheWrite' | 'images' | 'videos'
>

const VERSIONS_MOST = 30
/** Of all that is kept: where models are many, each has fewer versions, and none goes without. */
const ROWS_MOST = 50_000
/** What is read in one turn. */
const ROWS_A_TURN = 1_000

const operationRow = z.object({ operation: z.string() })
const stepRow = priceText.extend({ model: z.string(), since: z.date() })

/** Reads all of it in one state, but histories that are known and have not changed: a model costs what its newest step says. */
export async function readPriceBook(
  pool: pg.Pool,
  catalogue: Pick<Catalogue, 'operations'>,
  nowMs: () => number,
  known: PriceBook['histories'] = new Map(),
): Promise<PriceBook> {
  const readAt = new Date(nowMs())
  return inSnapshot(pool, async (snapshot) => {
    const sold = await readSold(snapshot, catalogue)
    const { soldIn } = sold
    const { [soldIn]: models } = await listModels(snapshot, protocolsSold(catalogue, sold.switches))
    const operations = await setPrices(snapshot)
    const histories = await historiesOf(snapshot, models, known)
    return { readAt, sold: onSale(sold), models, soldIn, operations, histories }
  })
}

async function setPrices({ query }: OpenTransaction): Promise<PriceBook['operations']> {
  const { rows } = await query(
    `select distinct on (operation) operation, version, unit_price::text, provider_cost::text from price_versions
     order by operation, version desc limit $1`,
    [ROWS_MOST],
  )
  return new Map(
    rows.map((row) => {
      const price = setPriceIn(row)
      return [operationRow.parse(row).operation, price === 'unreadable' ? undefined : price] as const
    }),
  )
}

async function historiesOf(
  snapshot: OpenTransaction,
  models: readonly Pick<Model, 'id'>[],
  known: PriceBook['histories'],
): Promise<PriceBook['histories']> {
  const most = Math.max(1, Math.min(VERSIONS_MOST, Math.floor(ROWS_MOST / Math.max(1, models.length))))
  const histories = new Map<string, readonly PriceStep[]>()
  const unknown: string[] = []
  for (const { id } of models) {
    const steps = known.get(id)
    if (steps === undefined) unknown.push(id)
    else histories.set(id, steps)
  }
  const atOnce = Math.max(1, Math.floor(ROWS_A_TURN / most))
  for (let from = 0; from < unknown.length; from += atOnce)
    for (const [model, steps] of await stepsOf(snapshot, unknown.slice(from, from + atOnce), most))
      histories.set(model, steps)
  return histories
}

/** The newest versions of each of these models. */
async function stepsOf(
  { query }: OpenTransaction,
  models: readonly string[],
  most: number,
): Promise<Map<string, PriceStep[]>> {
  const { rows } = await query(
    `select model, created_at as since, ${PRICE_SQL}
     from unnest($1::text[]) as wanted (name)
     cross join lateral (select * from model_prices where model = wanted.name order by version desc limit $2) as versions
     order by model collate "C", version desc`,
    [models, most],
  )
  const histories = new Map<string, PriceStep[]>()
  for (const row of rows) {
    const { data } = stepRow.safeParse(row)
    // What can't be read is no price, and is shown as none.
    if (data === undefined) continue
    const { model, since, version, input, output, cacheRead, cacheWrite, images, videos } = data
    const step = { since, version, input, output, cacheRead, cacheWrite, images, videos }
    const steps = histories.get(model)
    if (steps === undefined) histories.set(model, [step])
    else steps.push(step)
  }
  return histories
}
