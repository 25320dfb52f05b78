import { z } from 'zod'
import type { LimitName } from './limit-groups.ts'
import type { PriceContract } from './price.ts'

/** The shapes in which a protocol tells of a refusal. */
export type Dialect = 'openai' | 'anthropic' | 'gemini' | 'data'

/** What we sell: everything that differs between endpoints. Routes, quotes, contracts and documents derive from it. */
export type Operation = DataOperation | ModelOperation | TaskOperation

type Common = {
  readonly id: string
  readonly summary: string
  /** How people ask for it: words that neither its id nor its summary has. General ones, and none for a single question. */
  readonly asks: string
  /** A call to begin with: the query of a GET, the body of a POST, and the model where the path names it. `<model>` stands for any. */
  readonly example: Readonly<Record<string, unknown>>
  readonly category: 'models' | 'video' | 'social' | 'finance' | 'traffic'
  readonly method: 'GET' | 'POST'
  /** With {names} that the configuration spells. */
  readonly path: string
  readonly dialect: Dialect
  /** Beside the requests a minute that limit every operation. */
  readonly limits: readonly LimitName[]
  readonly quotable: boolean
  /** A pending definition is incomplete: its request passes through as it came. */
  readonly definition: 'complete' | 'pending'
  /** Of a kind whose calls cost much: whoever gives a mandate is asked before each, unless they say otherwise. */
  readonly isHighCost?: true
  /** A request without a credential is told that there is no such thing. */
  readonly isHidden?: true
  readonly attempts: Attempts
}

/**
 * How many requests a call may make of upstreams at the most, whatever they answer and whoever still waits for it. What can not
 * be reached has got none. Who sends reads its bound from here, and tests hold the sandbox's journal against it.
 */
export type Attempts = {
  /** For what the call is for: to one upstream after another, or to the same once more. */
  readonly requests: number
  /** To refresh the token by which it acts for a user. */
  readonly refreshes: number
}

/** One thing at one price, from one upstream. */
export type DataOperation<Input = unknown> = Common & {
  /** The query of a GET, the body of a POST. */
  readonly input: z.ZodType<Input>
  /** Parameters that would change cost or scope and are not priced: each with the reason why it is refused. */
  readonly refuses?: Readonly<Record<string, string>>
  /** Parameters that the price is computed from: each with an example of how it is written. They have one spelling. */
  readonly priced?: Readonly<Record<string, string>>
  /** The body says everything: a query would reach the upstream without having been priced, and is refused. */
  readonly isBodyOnly?: true
  readonly output: z.ZodType
  readonly price: PriceContract<Input>
  /** Its price is scaled by the multiplier of the caller's customer plan. */
  readonly isScaledByCustomerPlan?: true
  readonly upstream: Upstream
  /** Done for a user who has linked an account to the key: what the user must have allowed. {linked_user} is who it is. */
  readonly actsFor?: { readonly scopes: readonly string[] }
  readonly protocol?: undefined
}

/** A protocol of model inference. Which models there are, what they cost and who serves them, operators configure. */
export type ModelOperation = Common & {
  readonly protocol: ModelProtocol
  readonly price?: undefined
  readonly upstream?: undefined
}

/** A protocol in which a call takes minutes: it is answered when it has begun, and asked for until it has ended. */
export type TaskOperation = Common & {
  readonly protocol: 'video'
  readonly price?: undefined
  readonly upstream?: undefined
}

export type ModelProtocol =
  | 'openai'
  | 'openai_responses'
  | 'openai_embeddings'
  | 'openai_images'
  | 'anthropic'
  | 'anthropic_count_tokens'
  | 'gemini'
  | 'gemini_stream'
  | 'gemini_count_tokens'
  | 'gemini_embeddings'
  | 'gemini_batch_embeddings'

export function isTask(operation: Operation): operation is TaskOperation {
  return operation.protocol === 'video'
}

export function isSoldByUnit(operation: Operation): operation is DataOperation {
  return operation.protocol === undefined
}

/** Whom it asks, and how. */
export type Upstream = {
  /** Which of the configured upstreams. */
  readonly slot: string
  /** Below the upstream's base URL, with {names} in the upstream's own spelling. */
  readonly path: string
  readonly adapter: 'pass_through' | 'rerank'
  /** The header in which the upstream takes our credential. */
  readonly credentialHeader: 'authorization' | 'x-api-key' | 'api-key'
  /** Whether its 403 is about what the caller asked for, and not about our account with it. */
  readonly passesOnForbidden?: boolean
  readonly totalMs: number
  readonly maxBodyBytes: number
}

/** Keeps the input's type together, from its schema to its price. */
export function defineOperation<Input>(operation: DataOperation<Input>): DataOperation {
  // A record is read with the input that its own schema parsed, and with no other.
  return operation as unknown as DataOperation
}

export type Catalogue = {
  readonly operations: readonly Operation[]
  readonly find: (id: string) => Operation | undefined
}

const record = z.looseObject({
  id: z.string().regex(/^[a-z][a-z0-9_]{1,62}$/),
  path: z.string().regex(/^\/(v1|v1beta|apis\/v1)\/[A-Za-z0-9_{}/:-]+$/),
  summary: z.string().min(10),
  asks: z.string().min(1),
  example: z.looseObject({}),
  attempts: z.object({ requests: z.int().min(1).max(3), refreshes: z.literal(0) }),
})

/** It is asked for once: what became of a request that failed is not always known. */
const ONCE = z.object({ requests: z.literal(1), refreshes: z.literal(0) })
/** A platform that refuses a token has done nothing: one refresh, and one more request. */
const ONCE_MORE_WITH_ANOTHER_TOKEN = z.object({ requests: z.int().min(1).max(2), refreshes: z.literal(1) })

const soldByUnit = record.extend({
  attempts: ONCE,
  price: z.looseObject({
    unit: z.string().min(1),
    unitPrice: z.object({ numerator: z.bigint().positive(), denominator: z.bigint().positive() }),
    most: z.function(),
    measure: z.function(),
  }),
})

const doneForUser = soldByUnit.extend({ attempts: ONCE_MORE_WITH_ANOTHER_TOKEN })

/** The list of what is sold. An operation without a price, without a bound on what it asks of upstreams, or one that collides with another, is refused. */
export function createCatalogue(operations: readonly Operation[]): Catalogue {
  const byId = new Map<string, Operation>()
  const places = new Set<string>()
  for (const operation of operations) {
    const { error } = formOf(operation).safeParse(operation)
    if (error) throw new Error(`${operation.id} can't be sold: ${z.prettifyError(error)}`)
    const place = `${operation.method} ${operation.path}`
    if (byId.has(operation.id) || places.has(place)) throw new Error(`${operation.id} (${place}) is there already`)
    byId.set(operation.id, operation)
    places.add(place)
  }
  return { operations: [...byId.values()], find: (id) => byId.get(id) }
}

function formOf(operation: Operation): z.ZodType {
  if (!isSoldByUnit(operation)) return record
  return operation.actsFor === undefined ? soldByUnit : doneForUser
}

/** Words of the configuration for the {names} in paths. */
export type Names = Readonly<Record<string, string>>

/** Where a path names the model, and what is to be done with it after that. */
export const MODEL_IN_PATH = '{model}:'

export function spell(path: string, names: Names): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const word = names[name]
    if (word === undefined) throw new Error(`nothing spells {${name}} in ${path}`)
    return word
  })
}
