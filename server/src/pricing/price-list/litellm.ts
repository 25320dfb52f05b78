import type { TokenClass } from '../../catalogue/price-classes.ts'
import { MODEL_NAME } from '../models.ts'
import { type NewModelPrice, problemIn } from '../set-model-price.ts'
import type { FileModel, FilePrice } from './file.ts'
import { limitsOf, textAt } from './litellm-limits.ts'
import { plainDecimal } from './plain-decimal.ts'
import { PriceListError } from './problems.ts'
import { readTree, type Tree } from './tree.ts'

/**
 * Converts the public community list (litellm's model_prices_and_context_window.json) into a price list. It has a price for a
 * token as a float, by members whose names say class, step and tier. What can't be carried over is said. Where leaving it out
 * would make a price wrong, the model is left out; where it only means that something is not sold, the model stays.
 */
export type Converted = {
  readonly models: Readonly<Record<string, FileModel>>
  /** By the model's name in the community list: why it is not in `models`. */
  readonly leftOut: readonly Note[]
  /** What of a model in `models` was not carried over, and what follows from that. */
  readonly notes: readonly Note[]
}

export type Note = { readonly name: string; readonly text: string }

export type Choice = {
  /** Whether a name of the community list is wanted. */
  readonly isWanted: (name: string) => boolean
  /** What our names begin with, by litellm_provider; a provider that is not there keeps its names. */
  readonly prefixes: ReadonlyMap<string, string>
  /** Whether the prices are what the upstream charges us, too. */
  readonly withCost: boolean
}

/** The entry that explains the others. */
const SAMPLE = 'sample_spec'

/** Throws a PriceListError where the file is not of that shape. */
export function convertCommunityList(bytes: Uint8Array, { isWanted, prefixes, withCost }: Choice): Converted {
  const tree = readTree(bytes)
  if (tree.kind !== 'members') throw new PriceListError(['it must be an object with a member for each model'])
  const models: Record<string, FileModel> = {}
  const names = new Map<string, string>()
  const leftOut: Note[] = []
  const notes: Note[] = []
  for (const [name, entry] of tree.members) {
    if (name === SAMPLE || !isWanted(name)) continue
    try {
      const id = nameFor(name, entry, prefixes)
      const twin = names.get(id)
      if (twin !== undefined) throw new Unfit(`it would be ${id}, as ${twin} is: choose one with --only`)
      const { model, said } = converted(id, entry, withCost)
      models[id] = model
      names.set(id, name)
      notes.push(...said.map((text) => ({ name, text })))
    } catch (error) {
      if (!(error instanceof Unfit)) throw error
      leftOut.push({ name, text: error.message })
    }
  }
  return { models, leftOut, notes }
}

/** A model that can't be carried over without making a price wrong. */
class Unfit extends Error {}

function nameFor(name: string, entry: Tree, prefixes: ReadonlyMap<string, string>): string {
  const provider = textAt(entry, 'litellm_provider') ?? ''
  const prefix = prefixes.get(provider)
  const bare = name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name
  const id = prefix === undefined ? name : prefix + bare
  if (!MODEL_NAME.test(id)) throw new Unfit(`${JSON.stringify(id)} cannot be the name of a model here`)
  return id
}

const MODES: ReadonlySet<string> = new Set(['chat', 'completion', 'responses', 'embedding'])

function converted(id: string, entry: Tree, withCost: boolean) {
  if (entry.kind !== 'members') throw new Unfit('it is not an object')
  const mode = textAt(entry, 'mode') ?? 'chat'
  if (!MODES.has(mode)) throw new Unfit(`its mode is ${mode}: only models that are sold per token are converted`)
  const said: string[] = []
  const read = costsIn(entry.members, said)
  const price = priceOf(read, said)
  const problem = problemIn(asGiven(id, price))
  if (problem !== undefined) throw new Unfit(problem)
  const limits = limitsOf(entry, mode, said)
  return { model: { ...limits, price, ...(withCost && { cost: price }) }, said }
}

function asGiven(model: string, { input, output, cache_read, cache_write, classes }: FilePrice): NewModelPrice {
  return {
    ...{ model, input, output },
    ...(cache_read !== undefined && { cacheRead: cache_read }),
    ...(cache_write !== undefined && { cacheWrite: cache_write }),
    ...(classes !== undefined && { classes }),
  }
}

/** What a token of a class costs, by its member's name there. */
const CLASSES: Readonly<Record<string, TokenClass>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost: 'cache_write',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'input_audio',
  input_cost_per_image_token: 'input_image',
  cache_read_input_audio_token_cost: 'cache_read_audio',
  output_cost_per_audio_token: 'output_audio',
  output_cost_per_image_token: 'output_image',
}
const STEP = /_above_(\d{1,6})k_tokens(?=_|$)/
const TIER = /_(priority|flex|batch|batches|fast|ultrafast)$/
/** Batches are an API of their own, and what is called a speed is no tier: neither is served. */
const NOT_SERVED: ReadonlySet<string> = new Set(['batch', 'batches', 'fast', 'ultrafast'])

type Priced = { readonly name: TokenClass; readonly tokens: number; readonly tier: string }

/** Which price a member has; undefined where it is none that is known. */
function pricedBy(member: string): Priced | undefined {
  const thousands = STEP.exec(member)?.[1] ?? '0'
  const ofAny = member.replace(STEP, '')
  const base = ofAny.replace(TIER, '')
  const name = Object.hasOwn(CLASSES, base) ? CLASSES[base] : undefined
  return name && { name, tokens: Number(thousands) * 1_000, tier: TIER.exec(ofAny)?.[1] ?? '' }
}

/** Members that cost nothing to whoever calls a model, or that the gateway does not take from them. */
const WITHOUT_PRICE =
  /^(?:supports_|supported_|max_|default_|litellm_provider$|mode$|source$|metadata$|comment$|deprecation_date$|rpm$|tpm$|rpd$|tpd$|output_vector_size$|tool_use_system_prompt_tokens$)/
const ABOUT_MONEY = /cost|price|pricing|rate|fee|multiplier|uplift|discount|surcharge|dbu/

/** No vendor publishes a price of more. */
const DIGITS_OF_PEOPLE = 12

type Rates = Partial<Record<TokenClass, string>>
type Table = { readonly rates: Rates; readonly above: Map<number, Rates> }
type Costs = {
  /** By tier; the standard one has no name. */
  readonly tables: Map<string, Table>
  readonly tools: Readonly<Record<string, string>>
}

function costsIn(members: ReadonlyMap<string, Tree>, said: string[]): Costs {
  const tables = new Map<string, Table>([['', { rates: {}, above: new Map() }]])
  const tools: Record<string, string> = {}
  for (const [member, value] of members) {
    if (value.kind === 'text' && value.text === null) continue
    const priced = pricedBy(member)
    if (priced === undefined) readOther(member, value, tools, said)
    else if (!NOT_SERVED.has(priced.tier)) {
      const price = perMillion(member, value)
      ratesOf(tables, priced)[priced.name] = price
      if (price.replace(/[.]|^[0.]+/g, '').length > DIGITS_OF_PEOPLE)
        said.push(`${member} is ${price} for a million, as the list has it: it looks like a rounded float`)
    }
  }
  requireSameReasoning(members, tables.get('')?.rates.output)
  return { tables, tools }
}

function ratesOf(tables: Map<string, Table>, { tokens, tier }: Priced): Rates {
  const table = tables.get(tier) ?? { rates: {}, above: new Map<number, Rates>() }
  tables.set(tier, table)
  if (tokens === 0) return table.rates
  const rates = table.above.get(tokens) ?? {}
  table.above.set(tokens, rates)
  return rates
}

const SEARCH = 'search_context_cost_per_query'
const FILE_SEARCH = 'file_search_cost_per_1k_calls'
const REASONING = 'output_cost_per_reasoning_token'
/** Said, and the model stays: whoever asks for it is refused, because it has no price. */
const NOT_SOLD: Readonly<Record<string, string>> = {
  code_interpreter_cost_per_session: 'a code interpreter has a price per session, and is not sold',
  computer_use_input_cost_per_1k_tokens: 'computer use is not sold',
  computer_use_output_cost_per_1k_tokens: 'computer use is not sold',
  vector_store_cost_per_gb_per_day: 'vector stores are not sold',
  provider_specific_entry: 'prices of regions and speeds are not converted, and such requests are refused',
}

function readOther(member: string, value: Tree, tools: Record<string, string>, said: string[]): void {
  if (member === REASONING || WITHOUT_PRICE.test(member)) return
  const note = Object.hasOwn(NOT_SOLD, member) ? NOT_SOLD[member] : undefined
  if (note !== undefined) said.push(`${member}: ${note}`)
  else if (member === FILE_SEARCH) tools.file_search = shifted(member, value, -3)
  else if (member === SEARCH) readSearch(value, tools, said)
  else if (isNothing(value)) return
  else if (ABOUT_MONEY.test(member) || (value.kind !== 'text' && hasNumber(value)))
    throw new Unfit(`${member} is not understood, and may be a price`)
}

function hasNumber(value: Tree): boolean {
  if (value.kind === 'text') return /^[\d.]/.test(value.text ?? '')
  return (value.kind === 'list' ? value.items : [...value.members.values()]).some(hasNumber)
}

/** A search has one price here. Where the list has one by how much is read of the web, nobody may choose for the operator. */
function readSearch(value: Tree, tools: Record<string, string>, said: string[]): void {
  if (value.kind !== 'members') throw new Unfit(`${SEARCH} is not understood, and may be a price`)
  const prices = new Set([...value.members].map(([size, price]) => shifted(`${SEARCH}.${size}`, price, 0)))
  const [only] = prices
  if (only !== undefined && prices.size === 1) tools.web_search = only
  else
    said.push(`${SEARCH}: a search has ${prices.size} prices, and is not sold until tools.web_search is given by hand`)
}

function isNothing(value: Tree): boolean {
  return value.kind === 'text' && /^0+(?:\.0+)?$/.test(value.text ?? '0')
}

/** Reasoning is output here, and costs as much. */
function requireSameReasoning(members: ReadonlyMap<string, Tree>, output: string | undefined): void {
  const value = members.get(REASONING)
  if (value === undefined || (value.kind === 'text' && value.text === null)) return
  if (perMillion(REASONING, value) !== output) throw new Unfit('its reasoning has another price than its output')
}

const perMillion = (member: string, value: Tree) => shifted(member, value, 6)

function shifted(member: string, value: Tree, timesTenTo: number): string {
  try {
    if (value.kind !== 'text' || value.text === null) throw new RangeError('not a number')
    return plainDecimal(value.text, timesTenTo)
  } catch (error) {
    throw new Unfit(`${member}: ${error instanceof Error ? error.message : 'not a number'}`)
  }
}

const PLAIN: ReadonlySet<string> = new Set(['input', 'output', 'cache_read', 'cache_write'])

function priceOf({ tables, tools }: Costs, said: string[]): FilePrice {
  const standard = tables.get('') ?? { rates: {}, above: new Map<number, Rates>() }
  const { input, output, cache_read, cache_write } = standard.rates
  if (input === undefined || output === undefined) throw new Unfit('it has no price for input and output tokens')
  const parts = Object.entries(standard.rates).filter(([name]) => !PLAIN.has(name))
  const tiers = tiersOf(tables, standard, said)
  const classes = {
    ...(parts.length > 0 && { rates: Object.fromEntries(parts) }),
    ...(standard.above.size > 0 && { above: stepsOf(standard) }),
    ...(Object.keys(tiers).length > 0 && { tiers }),
    ...(Object.keys(tools).length > 0 && { tools }),
  }
  return {
    ...{ input, output },
    ...(cache_read !== undefined && { cache_read }),
    ...(cache_write !== undefined && { cache_write }),
    ...(Object.keys(classes).length > 0 && { classes }),
  }
}

function stepsOf({ above }: Table) {
  return [...above].toSorted(([a], [b]) => a - b).map(([tokens, rates]) => ({ tokens, rates }))
}

/** A tier that lacks a class or a step of the standard price would have to be guessed, and is not sold instead. */
function tiersOf(tables: Costs['tables'], standard: Table, said: string[]) {
  const tiers: Record<string, { rates: Rates; above?: { tokens: number; rates: Rates }[] }> = {}
  for (const [tier, table] of tables) {
    if (tier === '') continue
    const lacking = lackingIn(table, standard)
    if (lacking.length > 0) said.push(`the tier ${tier} has no price of ${lacking.join(', ')}, and is not sold`)
    else tiers[tier] = { rates: table.rates, ...(table.above.size > 0 && { above: stepsOf(table) }) }
  }
  return tiers
}

function lackingIn(table: Table, standard: Table): readonly string[] {
  const names = Object.keys(standard.rates)
  const lacks = (rates: Rates | undefined, where: string) =>
    names.filter((name) => !Object.hasOwn(rates ?? {}, name)).map((name) => name + where)
  const steps = [...standard.above.keys()].flatMap((tokens) => lacks(table.above.get(tokens), ` above ${tokens}`))
  const beyond = [...table.above.keys()].filter((tokens) => !standard.above.has(tokens))
  return [...lacks(table.rates, ''), ...steps, ...beyond.map((tokens) => `the standard tier above ${tokens}`)]
}
