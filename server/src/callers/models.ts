import { z } from 'zod'
import { modelNotSold } from '../gateway/require-sold.ts'
import { noSuchModel } from '../gateway/routing.ts'
import { invalidRequest } from '../kernel/fault.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Model, Models } from '../pricing/models.ts'
import { shownModel, shownModelBody } from '../pricing/shown-model.ts'
import type { ProtocolName } from '../protocols/protocol.ts'
import { listedModel } from './model-card.ts'
import { type CallerRequest, type CallerRoute, forAgents, forKey } from './route.ts'

async function named(models: Pick<Models, 'list' | 'find'>, mode: Mode, name = ''): Promise<Model> {
  const all = await models.list(mode)
  const model = all.find(({ id }) => id === name)
  if (model !== undefined) return model
  if ((await models.find(name))?.isOff === true) throw modelNotSold(name)
  throw noSuchModel(name.slice(0, 200), all)
}

/** Two protocols share the path; one of them always names its version. */
function isAnthropic({ header }: Pick<CallerRequest, 'header'>): boolean {
  return header('anthropic-version') !== undefined
}

function openaiModel(model: Model) {
  const { id, createdAt, ownedBy } = model
  const created = Math.floor(createdAt.getTime() / 1_000)
  return { id, object: 'model' as const, created, owned_by: ownedBy, ...shownModel(model) }
}

function anthropicModel({ id, displayName, createdAt }: Model) {
  return { type: 'model' as const, id, display_name: displayName, created_at: createdAt.toISOString() }
}

const PAGE = 20
const paging = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(PAGE),
  after_id: z.string().max(200).optional(),
  before_id: z.string().max(200).optional(),
})

function anthropicPage(models: readonly Model[], query: unknown) {
  const { success, data } = paging.safeParse(query)
  if (!success || (data.after_id !== undefined && data.before_id !== undefined))
    throw invalidRequest(
      'limit must be a whole number from 1 to 1,000; send after_id or before_id, not both, as the id of a model.',
    )
  const { limit, after_id, before_id } = data
  // By the order of their names, in which they are: one that has gone since the page before still has its place.
  const within = models.filter(
    ({ id }) => (after_id === undefined || id > after_id) && (before_id === undefined || id < before_id),
  )
  // What stands before an id is read backwards from it.
  const page = before_id === undefined ? within.slice(0, limit) : within.slice(-limit)
  return {
    data: page.map(anthropicModel),
    has_more: page.length < within.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  }
}

/** By the protocols of a model's routes. */
const ACTIONS: Readonly<Partial<Record<ProtocolName, readonly string[]>>> = {
  gemini: ['generateContent', 'streamGenerateContent', 'countTokens'],
  gemini_embeddings: ['embedContent', 'batchEmbedContents'],
}

function geminiModel({ id, displayName, limits, routes }: Model) {
  const spoken = new Set(routes.map(({ protocol }) => protocol))
  return {
    name: `models/${id}`,
    version: '1',
    displayName,
    inputTokenLimit: limits.contextWindow,
    outputTokenLimit: limits.outputMost,
    supportedGenerationMethods: [...spoken].flatMap((protocol) => ACTIONS[protocol] ?? []),
  }
}

const geminiPaging = z.object({
  pageSize: z.coerce.number().int().min(1).max(1_000).default(50),
  // The place of the first one on the page.
  pageToken: z.coerce.number().int().min(0).default(0),
})

function geminiPage(models: readonly Model[], query: unknown) {
  const { success, data } = geminiPaging.safeParse(query)
  if (!success)
    throw invalidRequest('pageSize must be a whole number from 1 to 1,000, and pageToken one that we returned.')
  const end = data.pageToken + data.pageSize
  const page = models.slice(data.pageToken, end).map(geminiModel)
  return { models: page, ...(end < models.length && { nextPageToken: String(end) }) }
}

const openaiBody = z
  .strictObject({
    id: z.string(),
    object: z.literal('model'),
    created: z.int(),
    owned_by: z.string(),
    ...shownModelBody,
  })
  .meta({ id: 'Model' })
const anthropicBody = z
  .strictObject({ type: z.literal('model'), id: z.string(), display_name: z.string(), created_at: z.iso.datetime() })
  .meta({ id: 'AnthropicModel' })
const geminiBody = z
  .strictObject({
    name: z.string(),
    version: z.string(),
    displayName: z.string(),
    inputTokenLimit: z.int(),
    outputTokenLimit: z.int(),
    supportedGenerationMethods: z.array(z.string()),
  })
  .meta({ id: 'GeminiModel' })

const page = z.strictObject({
  data: z.array(anthropicBody),
  has_more: z.boolean(),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
})

const VERSION = {
  in: 'header',
  name: 'anthropic-version',
  description: 'Whoever sends it gets the shape of that protocol.',
  schema: { type: 'string' },
} as const
const COMMON = { method: 'GET', tag: 'models', counts: 'models' } as const
const ONE = {
  ...COMMON,
  params: { model: 'The name of a model. Its slashes may be encoded or not.' },
  refusesAs: 'one_model',
  codes: ['model_not_found', 'not_sold'],
} as const

const choice = z.strictObject({
  contains: z.string().max(200).default('').describe('A part of the names to list'),
  after: z.string().max(200).default('').describe('The last model of the page before'),
})
const AGENTS_PAGE = 50

/** What can be asked for, in the shape of whichever protocol asks. */
export const MODEL_ROUTES: readonly CallerRoute[] = [
  forKey({
    ...COMMON,
    operationId: 'list_models',
    path: '/v1/models',
    summary: 'Models that can be asked for',
    headers: [VERSION],
    describedQuery: paging,
    answer: {
      description: 'The models.',
      body: z.union([z.strictObject({ object: z.literal('list'), data: z.array(openaiBody) }), page]),
    },
    agents: forAgents({
      id: 'list_models',
      summary: 'List the models on sale with what each costs and how long its answers can be',
      asks: `models model price prices pricing cost costs how much does cheap cheapest expensive compare per million
        tokens token rate rates context window available offered which what llm list support supported catalogue
        catalog largest longest output limit`,
      example: { contains: '' },
      category: 'models',
      input: choice,
      async run({ models, sold }, { caller }, { contains, after }) {
        const part = contains.toLowerCase()
        const all = await models.list(caller.mode)
        const found = all.filter(({ id }) => id > after && id.toLowerCase().includes(part))
        const page = found.slice(0, AGENTS_PAGE)
        const next_after = page.length < found.length ? (page.at(-1)?.id ?? null) : null
        const operations = await sold.operations(caller.mode)
        return { data: page.map((one) => listedModel(one, operations, caller)), next_after }
      },
    }),
    async run({ models }, asked) {
      const all = await models.list(asked.caller.mode)
      if (isAnthropic(asked)) return { body: anthropicPage(all, asked.query) }
      return { body: { object: 'list' as const, data: all.map(openaiModel) } }
    },
  }),
  forKey({
    ...ONE,
    operationId: 'get_model',
    path: '/v1/models/{model}',
    summary: 'One model',
    headers: [VERSION],
    answer: { description: 'The model.', body: z.union([openaiBody, anthropicBody]) },
    async run({ models }, asked) {
      const model = await named(models, asked.caller.mode, asked.params.model)
      return { body: isAnthropic(asked) ? anthropicModel(model) : openaiModel(model) }
    },
  }),
  forKey({
    ...COMMON,
    operationId: 'list_gemini_models',
    path: '/v1beta/models',
    summary: 'Models that can be asked for, in the Gemini protocol',
    describedQuery: geminiPaging,
    answer: {
      description: 'The models.',
      body: z.strictObject({ models: z.array(geminiBody), nextPageToken: z.string().optional() }),
    },
    run: async ({ models }, { caller, query }) => ({ body: geminiPage(await models.list(caller.mode), query) }),
  }),
  forKey({
    ...ONE,
    operationId: 'get_gemini_model',
    path: '/v1beta/models/{model}',
    summary: 'One model, in the Gemini protocol',
    answer: { description: 'The model.', body: geminiBody },
    run: async ({ models }, { caller, params }) => ({
      body: geminiModel(await named(models, caller.mode, params.model)),
    }),
  }),
]
