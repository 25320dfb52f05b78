import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { answer } from '../../contracts/answer.ts'
import { queryParameters } from '../../contracts/query-parameters.ts'
import { refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractParameter, ContractRoute } from '../../contracts/route.ts'
import type { Begin } from '../../gateway/begin.ts'
import { noSuchModel } from '../../gateway/routing.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Model, Models } from '../../pricing/models.ts'
import { shownModel, shownModelBody } from '../../pricing/shown-model.ts'
import type { ProtocolName } from '../../protocols/protocol.ts'
import { admit } from './admit.ts'
import { idInPath } from './id-in-path.ts'

type Parts = { readonly begin: Begin; readonly models: Models }

/** GET /v1/models and /v1/models/{id}: what can be asked for, in the shape of whichever protocol asks. Free. */
export function addModels(scope: FastifyInstance, { begin, models }: Parts): void {
  scope.get('/models', { exposeHeadRoute: true }, async (request, reply) => {
    const { mode } = await admit(begin, 'models', request, reply)
    const all = await models.list(mode)
    return isAnthropic(request) ? anthropicPage(all, request.query) : { object: 'list', data: all.map(openaiModel) }
  })

  // Names have slashes, which some clients encode and some do not.
  scope.get<{ Params: { '*': string } }>('/models/*', { exposeHeadRoute: true }, async (request, reply) => {
    const { mode } = await admit(begin, 'models', request, reply)
    const model = named(await models.list(mode), request.params['*'])
    return isAnthropic(request) ? anthropicModel(model) : openaiModel(model)
  })
}

/** GET /v1beta/models and /v1beta/models/{id}: the same in the third shape. */
export function addGeminiModels(scope: FastifyInstance, { begin, models }: Parts): void {
  scope.get('/models', { exposeHeadRoute: true }, async (request, reply) => {
    const { mode } = await admit(begin, 'models', request, reply)
    return geminiPage(await models.list(mode), request.query)
  })

  scope.get<{ Params: { '*': string } }>('/models/*', { exposeHeadRoute: true }, async (request, reply) => {
    const { mode } = await admit(begin, 'models', request, reply)
    return geminiModel(named(await models.list(mode), request.params['*']))
  })
}

function named(models: readonly Model[], name: string): Model {
  const model = models.find(({ id }) => id === name)
  if (model !== undefined) return model
  throw noSuchModel(name.slice(0, 200), models)
}

/** Two protocols share the path; one of them always names its version. */
function isAnthropic({ headers }: FastifyRequest): boolean {
  return headers['anthropic-version'] !== undefined
}

function openaiModel(model: Model) {
  const { id, createdAt, ownedBy } = model
  const created = Math.floor(createdAt.getTime() / 1_000)
  return { id, object: 'model', created, owned_by: ownedBy, ...shownModel(model) }
}

function anthropicModel({ id, displayName, createdAt }: Model) {
  return { type: 'model', id, display_name: displayName, created_at: createdAt.toISOString() }
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
    throw new Fault('invalid_request', {
      detail:
        'limit must be a whole number from 1 to 1,000; send after_id or before_id, not both, as the id of a model.',
    })
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
    throw new Fault('invalid_request', {
      detail: 'pageSize must be a whole number from 1 to 1,000, and pageToken one that we returned.',
    })
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

const VERSION: ContractParameter = {
  in: 'header',
  name: 'anthropic-version',
  description: 'Whoever sends it gets the shape of that protocol.',
  schema: { type: 'string' },
}
const MODEL = idInPath('The name of a model. Its slashes may be encoded or not.', 'model')

/** Lists of models, for contracts. All are free. */
export const MODEL_ROUTES: readonly ContractRoute[] = [
  {
    operationId: 'list_models',
    method: 'GET',
    path: '/v1/models',
    summary: 'Models that can be asked for',
    tag: 'models',
    access: 'credential',
    parameters: [VERSION, ...queryParameters(paging)],
    answers: {
      200: answer(
        'The models.',
        z.union([z.strictObject({ object: z.literal('list'), data: z.array(openaiBody) }), page]),
      ),
    },
    refusals: refusalsOfFree('openai_or_anthropic'),
  },
  {
    operationId: 'get_model',
    method: 'GET',
    path: '/v1/models/{model}',
    summary: 'One model',
    tag: 'models',
    access: 'credential',
    parameters: [VERSION, MODEL],
    answers: { 200: answer('The model.', z.union([openaiBody, anthropicBody])) },
    refusals: refusalsOfFree('openai_or_anthropic', { name: 'one_model', codes: ['model_not_found'] }),
  },
  {
    operationId: 'list_gemini_models',
    method: 'GET',
    path: '/v1beta/models',
    summary: 'Models that can be asked for, in the Gemini protocol',
    tag: 'models',
    access: 'credential',
    parameters: queryParameters(geminiPaging),
    answers: {
      200: answer('The models.', z.strictObject({ models: z.array(geminiBody), nextPageToken: z.string().optional() })),
    },
    refusals: refusalsOfFree('gemini'),
  },
  {
    operationId: 'get_gemini_model',
    method: 'GET',
    path: '/v1beta/models/{model}',
    summary: 'One model, in the Gemini protocol',
    tag: 'models',
    access: 'credential',
    parameters: [MODEL],
    answers: { 200: answer('The model.', geminiBody) },
    refusals: refusalsOfFree('gemini', { name: 'one_model', codes: ['model_not_found'] }),
  },
]
