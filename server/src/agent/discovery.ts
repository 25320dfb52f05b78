import { z } from 'zod'
import { listedModel } from '../callers/model-card.ts'
import { isSoldByUnit, isTask, type Operation, spell } from '../catalogue/operation.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import type { Caller } from '../identity/caller.ts'
import { allowsOperation, LINKING, mayAllowModel, type Scopes } from '../identity/scopes.ts'
import { decimalText } from '../kernel/rational.ts'
import { createSearchIndex, type SearchIndex, wordsOf } from '../kernel/search-index.ts'
import type { FreeOperation, FreeOperations } from './free-operations.ts'
import type { AgentOperations } from './operations.ts'
import type { AgentParts } from './parts.ts'
import type { ToolArguments } from './tool-arguments.ts'

/** An operation as lists and search results have it. */
export type Listed = {
  readonly operation_id: string
  readonly summary: string
  readonly category: string
  readonly price: string
  /** Whether this key may use it: other ones are listed all the same, so that somebody can ask for them. */
  readonly allowed: boolean
}

const CATEGORIES: Readonly<Record<string, string>> = {
  models: 'Models: conversations, embeddings, pictures, reranking, web research',
  video: 'Videos that models make, as tasks that take minutes',
  social: 'Social platforms: posts, comments, stories, tags, creators; linked accounts',
  finance: 'Companies and their figures',
  traffic: 'Websites and their visitors',
  account: 'What is left to spend, and what calls have cost',
}
const MODELS_SHOWN = 5

type Parts = Pick<AgentParts, 'models' | 'names' | 'sold'> & {
  readonly operations: AgentOperations
  readonly free: FreeOperations
}

/** What there is to use in the mode of the key: by words, and by category. */
export function createDiscovery(parts: Parts) {
  const { operations, free, models, names, sold } = parts
  const all: readonly (Operation | FreeOperation)[] = [...operations.all, ...free.all]
  const byId = new Map(all.map((one) => [one.id, one]))
  const everywhere = indexOf(all, names)
  const byCategory = new Map(
    Object.keys(CATEGORIES).map((name) => [
      name,
      indexOf(
        all.filter(({ category }) => category === name),
        names,
      ),
    ]),
  )

  return {
    async search({ caller }: AgentRequest, { query, category, limit }: ToolArguments<'search'>) {
      const offered = await sold.operations(caller.mode)
      const isOffered = isOfferedIn(offered)
      const index = category === undefined ? everywhere : byCategory.get(category)
      // What is not sold takes no place of what is.
      const hits = index?.(query, all.length) ?? []
      const found = hits
        .flatMap(({ id }) => byId.get(id) ?? [])
        .filter(isOffered)
        .slice(0, limit)
      const asked = new Set(wordsOf(query))
      const named = (await models.list(caller.mode)).filter(({ id }) => isNamed(id, asked)).slice(0, MODELS_SHOWN)
      return {
        operations: found.map((one) => listed(one, caller)),
        ...(named.length > 0 && { models: named.map((one) => listedModel(one, offered, caller)) }),
        ...(found.length === 0 && { hint: 'Nothing matches. Use other words, or list_categories.' }),
      }
    },

    async list({ caller }: AgentRequest) {
      const isOffered = isOfferedIn(await sold.operations(caller.mode))
      const offered = all.filter(isOffered)
      return {
        categories: Object.entries(CATEGORIES)
          .map(([category, summary]) => ({
            category,
            summary,
            operations: offered.filter((one) => one.category === category).map((one) => listed(one, caller)),
          }))
          .filter(({ operations: own }) => own.length > 0),
      }
    },
  }
}

/** What is free is offered always: a key looks after its tasks and its money whatever is sold. */
function isOfferedIn(sold: readonly Operation[]): (one: Operation | FreeOperation) => boolean {
  const ids = new Set(sold.map(({ id }) => id))
  return (one) => !('limits' in one) || ids.has(one.id)
}

/** A model is named by what no other word is: gpt, 5.5, or all of its name. What every name has in it tells nothing. */
function isNamed(id: string, asked: ReadonlySet<string>): boolean {
  const own = wordsOf(id)
  const shared = own.filter((word) => asked.has(word))
  return shared.length > 0 && shared.length * 2 >= own.length
}

function indexOf(operations: readonly (Operation | FreeOperation)[], names: Parts['names']): SearchIndex {
  return createSearchIndex(
    operations.map((one) => {
      const { id, summary, asks, category } = one
      return {
        id,
        fields: [
          { text: id.replaceAll('_', ' '), weight: 2 },
          { text: summary, weight: 2 },
          { text: asks, weight: 1.5 },
          { text: `${category} ${parametersOf(one)}`, weight: 0.5 },
          { text: 'path' in one ? spellLoosely(one.path, names) : '', weight: 0.3 },
        ],
      }
    }),
  )
}

/** The names of a path that the operator has spelt are how people know a platform here. */
function spellLoosely(path: string, names: Parts['names']): string {
  return spell(path, { ...names, model: '' }).replaceAll(/[/_:-]/g, ' ')
}

function parametersOf(one: Operation | FreeOperation): string {
  if (!('input' in one)) return 'model'
  const { properties } = z.toJSONSchema(one.input, { io: 'input', unrepresentable: 'any' })
  return Object.keys(properties ?? {}).join(' ')
}

export function listed(one: Operation | FreeOperation, { scopes }: Caller): Listed {
  const { id, summary, category } = one
  const allowed = scopes === null || isAllowed(one, scopes)
  return { operation_id: id, summary, category, price: priceWords(one), allowed }
}

/** What is free needs no scope, but for the one by which a key may act for somebody. */
function isAllowed(one: Operation | FreeOperation, scopes: Scopes): boolean {
  if ('limits' in one) return allowsOperation(scopes, one) || mayAllowModel(scopes, one)
  return one.id !== LINKING.id || allowsOperation(scopes, { ...LINKING, limits: [] })
}

/** The published price, in a few words. */
export function priceWords(one: Operation | FreeOperation): string {
  if (!('limits' in one) || one.protocol?.endsWith('_count_tokens')) return 'free'
  if (isTask(one)) return 'by the second of its model'
  if (!isSoldByUnit(one))
    return one.protocol === 'openai_images' ? 'by the picture or token of its model' : 'by the token of its model'
  const { unitPrice, unit } = one.price
  return `${decimalText(unitPrice, 9)} USD per ${unit}`
}
