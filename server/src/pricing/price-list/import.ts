import type pg from 'pg'
import { type By, SERVICE } from '../../storage/audit.ts'
import { inTransaction, type Query } from '../../storage/transaction.ts'
import {
  keepModel,
  type ModelSettings,
  namesOfModels,
  readSettings,
  type StandingSettings,
  settingsAfter,
} from '../configure-models.ts'
import { belowCost, marginsOf } from '../margins.ts'
import { lockAllNames } from '../require-model.ts'
import { keepModelPrice, type PriceText, priceAfter, readPrices } from '../set-model-price.ts'
import { type Change, changesBetween, membersOfPrice, membersOfSettings } from './changes.ts'
import type { ListedModel, PriceList } from './format.ts'
import { heldCounts, heldPrices } from './moves.ts'
import { PriceListError } from './problems.ts'

/** What a list would change of the models that stand, and what is held back of that. */
export type ImportPlan = {
  readonly models: readonly PlannedModel[]
  /** Models that stand and are not in the list: they stay as they are. */
  readonly others: readonly string[]
}

export type PlannedModel = {
  readonly model: string
  readonly state: 'new' | 'changed' | 'unchanged'
  readonly changes: readonly Change[]
  /** Why it is held back; empty where it is not, or where it is allowed. */
  readonly held: readonly string[]
}

/** What of it is applied whatever its moves are. */
export type Allowed = { readonly all: boolean; readonly models: ReadonlySet<string> }

/** Changes nothing. */
export async function planImport(pool: pg.Pool, list: PriceList, allowed: Allowed): Promise<ImportPlan> {
  const query: Query = (text, values = []) => pool.query(text, [...values])
  return shown(await plan(query, list, allowed), await namesOfModels({ pool }))
}

/** Applies all that is not held back, in one transaction in which nobody else changes a model. */
export async function applyImport(
  { pool, by = SERVICE }: { readonly pool: pg.Pool; readonly by?: By },
  list: PriceList,
  allowed: Allowed,
): Promise<ImportPlan> {
  const applied = await inTransaction(pool, async (query) => {
    await lockAllNames(query)
    const models = await plan(query, list, allowed)
    for (const one of models) if (one.held.length === 0) await apply(query, by, one)
    return models
  })
  return shown(applied, await namesOfModels({ pool }))
}

/** A model is applied or held back whole: a mixture of two lists is the price of neither. */
async function apply(query: Query, by: By, { given, settings, price }: Planned): Promise<void> {
  if (settings.length > 0) await keepModel(query, by, given.settings)
  if (price.length > 0 && given.price !== undefined) await keepModelPrice(query, by, given.price)
}

type Planned = {
  readonly given: ListedModel
  readonly isNew: boolean
  readonly settings: readonly Change[]
  readonly price: readonly Change[]
  readonly held: readonly string[]
}

async function plan(query: Query, list: PriceList, allowed: Allowed): Promise<readonly Planned[]> {
  const ids = list.models.map(({ settings: { id } }) => id)
  const strangers = [...allowed.models].filter((model) => !ids.includes(model))
  if (strangers.length > 0)
    throw new PriceListError([`--allow names ${strangers.join(', ')}, which is not in the file`])
  const [settings, prices] = [await readSettings(query, ids), await readPrices(query, ids)]
  const problems: string[] = []
  const models = list.models.map((given) => {
    const { id } = given.settings
    return planned(given, settings.get(id), prices.get(id) ?? null, allowed, problems)
  })
  if (problems.length > 0) throw new PriceListError(problems)
  return models
}

function planned(
  listed: ListedModel,
  before: StandingSettings | undefined,
  priceBefore: PriceText | null,
  { all, models }: Allowed,
  problems: string[],
): Planned {
  const given = { ...listed, settings: before === undefined ? withCap(listed.settings) : listed.settings }
  const { id } = given.settings
  const after = settingsAfter(before, given.settings)
  for (const { path, message } of after.error?.issues ?? [])
    problems.push(`line ${given.line}: ${id}: ${inFile(`${path.join('.')}: ${message}`)}`)
  const next = given.price === undefined ? priceBefore : priceAfter(priceBefore, given.price)
  const settings = changesBetween(membersOfSettings(before), membersOfSettings(after.data))
  const price = changesBetween(membersOfPrice(priceBefore), membersOfPrice(next))
  const held = [
    ...heldCounts([...settings, ...price].filter(({ member }) => IS_COUNT.test(member))),
    ...(next === null || price.length === 0 ? [] : [...heldPrices(priceBefore, next), ...heldLosses(next)]),
  ]
  const isNew = before === undefined
  return { given, isNew, settings, price, held: all || models.has(id) ? [] : held }
}

function heldLosses(price: PriceText): readonly string[] {
  const below = belowCost(marginsOf(price))
  return below === undefined ? [] : [`price: below cost: ${below}`]
}

/** A name may be a number too, and is no limit. */
const IS_COUNT = /(?:_window|_cap|_most|_tokens|\.tool_calls|\.tool_input)$/
const NEW_OUTPUT_CAP = 4_096

/** Lists rarely say how long an answer may get where nobody asks for a length. */
function withCap({ outputCap, ...settings }: ModelSettings): ModelSettings {
  const { outputMost = NEW_OUTPUT_CAP } = settings
  return { ...settings, outputCap: outputCap ?? Math.min(outputMost, NEW_OUTPUT_CAP) }
}

/** With the names that members have in the file. */
function inFile(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function shown(models: readonly Planned[], standing: readonly string[]): ImportPlan {
  const listed = new Set(models.map(({ given }) => given.settings.id))
  return {
    others: standing.filter((id) => !listed.has(id)),
    models: models.map(({ given, isNew, settings, price, held }) => {
      const changes = [...settings, ...price]
      const state = isNew ? 'new' : changes.length > 0 ? 'changed' : 'unchanged'
      return { model: given.settings.id, state, changes, held }
    }),
  }
}
