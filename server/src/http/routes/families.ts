import type { FastifyInstance } from 'fastify'
import { createAnswerCaller } from '../../callers/answer.ts'
import type { CallerParts } from '../../callers/parts.ts'
import { pathOf } from '../../callers/route.ts'
import { CALLER_ROUTES } from '../../callers/routes.ts'
import type { Operation } from '../../catalogue/operation.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import { LARGE_BYTES } from '../../kernel/memory-budget.ts'
import type { ReadBudgetState } from '../../ledger/budget-reader.ts'
import type { Links } from '../../links/links.ts'
import type { Assets } from '../../pages/assets.ts'
import { type JsonLimits, parseJson } from '../../wire/json.ts'
import type { LargeJson } from '../../wire/large-json.ts'
import { noQuotes } from '../../wording/header-names.ts'
import { largerThan } from '../body.ts'
import { callerOf } from '../caller.ts'
import { BASE_PATHS, type Family } from '../families.ts'
import { apiRequestOf } from '../json-routes.ts'
import type { LinkPages } from '../link-page.ts'
import { assetsFamily } from './assets.ts'
import { addLinkPages } from './link-pages.ts'
import { addOperations } from './operations.ts'

type Parts = CallerParts & {
  readonly run: Pipeline
  readonly links: Links
  readonly linkPages: LinkPages
  readonly assets: Assets
  readonly jsonLimits: JsonLimits
  readonly largeJson: Pick<LargeJson, 'read'>
  readonly readBudget: ReadBudgetState
  readonly modelBodyBytes: number
}

/**
 * Every route of base_url: those of the catalogue, the few by which a caller looks at its own account, and what the pages of users who
 * link an account are made of.
 */
export function createFamilies(parts: Parts): readonly Family[] {
  return [...BASE_PATHS.map((base) => baseFamily(base, parts)), assetsFamily(parts.assets)]
}

function baseFamily({ name, prefix, dialect }: (typeof BASE_PATHS)[number], parts: Parts): Family {
  return {
    name,
    prefix,
    dialect,
    register(scope: FastifyInstance) {
      addOperations(scope, prefix, under(prefix, parts.catalogue.operations), parts)
      scope.register(async (free) => {
        // They are free; whoever asks for a quote here all the same is told, as everywhere, that there is none.
        free.addHook('preHandler', async ({ headers }) => {
          if (headers[parts.headerNames.costMode] !== undefined) throw noQuotes(parts.headerNames)
        })
        addFreeRoutes(free, prefix, parts)
        if (name === 'data') addLinkPages(free, parts)
      })
    },
  }
}

function addFreeRoutes(scope: FastifyInstance, prefix: string, parts: Parts): void {
  const answer = createAnswerCaller(parts)
  for (const route of CALLER_ROUTES) {
    const path = pathOf(route, parts.names)
    if (baseOf(path) !== prefix) continue
    scope.route({
      method: route.method,
      // Names of models have slashes, which some clients encode and some do not.
      url: path
        .slice(prefix.length)
        .replace('{model}', '*')
        .replaceAll(/\{(\w+)\}/g, ':$1'),
      exposeHeadRoute: route.method === 'GET',
      config: { plainBadRequest: route.plainBadRequest === true },
      async handler(request, reply) {
        const { '*': model = '', ...params } = Object(request.params)
        const readBody = () => bodyOf(request.rawBody, parts.jsonLimits)
        const asked = { ...apiRequestOf(request), params: { ...params, model }, readBody }
        const { status, headers = {}, body } = await answer(route, callerOf(request), asked)
        return reply.code(status).headers(headers).send(body)
      },
    })
  }
}

function bodyOf(rawBody: Buffer | null, limits: JsonLimits): unknown {
  if (rawBody === null || rawBody.length === 0) return undefined
  if (rawBody.length > LARGE_BYTES) throw largerThan(LARGE_BYTES)
  return parseJson(rawBody, limits)
}

function under(prefix: string, operations: readonly Operation[]): readonly Operation[] {
  return operations.filter(({ path }) => baseOf(path) === prefix)
}

/** The first that it stands under: of two, the longer one. */
function baseOf(path: string): string | undefined {
  return BASE_PATHS.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`))?.prefix
}
