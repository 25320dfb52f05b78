import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import type { Catalogue, Names, Operation } from '../../catalogue/operation.ts'
import type { Begin } from '../../gateway/begin.ts'
import { type HeaderNames, noQuotes } from '../../gateway/header-names.ts'
import type { Pipeline } from '../../gateway/pipeline.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { ReadBudgetState } from '../../ledger/budget-reader.ts'
import type { Links } from '../../links/links.ts'
import type { Models } from '../../pricing/models.ts'
import type { Tasks } from '../../tasks/tasks.ts'
import { BASE_PATHS, type Family } from '../families.ts'
import type { JsonLimits } from '../json.ts'
import type { LargeJson } from '../large-json.ts'
import type { Assets } from '../pages/assets.ts'
import type { LinkPages } from '../pages/link-page.ts'
import { assetsFamily } from './assets.ts'
import { addBalance } from './balance.ts'
import { addLinks } from './links.ts'
import { addGeminiModels, addModels } from './models.ts'
import { addOperations } from './operations.ts'
import { addRequests } from './requests.ts'
import { addTasks } from './tasks.ts'
import { addUsage } from './usage.ts'

type Parts = {
  readonly catalogue: Catalogue
  readonly run: Pipeline
  readonly begin: Begin
  readonly models: Models
  readonly tasks: Tasks
  readonly links: Links
  readonly linkPages: LinkPages
  readonly assets: Assets
  readonly publicUrl: string | undefined
  readonly pool: pg.Pool
  readonly time: Pick<Clock, 'nowMs'>
  readonly names: Names
  readonly headerNames: HeaderNames
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
      if (name === 'data') addFree(scope, parts, addTasks)
      if (name === 'data') addFree(scope, parts, addLinks)
      if (name === 'models') addFree(scope, parts, addAccount)
      if (name === 'gemini') addFree(scope, parts, addGeminiModels)
    },
  }
}

type Add = (scope: FastifyInstance, parts: Parts) => void

function addFree(scope: FastifyInstance, parts: Parts, add: Add): void {
  scope.register(async (free) => {
    // They are free; whoever asks for a quote here all the same is told, as everywhere, that there is none.
    free.addHook('preHandler', async ({ headers }) => {
      if (headers[parts.headerNames.costMode] !== undefined) throw noQuotes(parts.headerNames)
    })
    add(free, parts)
  })
}

function addAccount(scope: FastifyInstance, parts: Parts): void {
  addModels(scope, parts)
  addUsage(scope, parts)
  addBalance(scope, parts)
  addRequests(scope, parts)
}

function under(prefix: string, operations: readonly Operation[]): readonly Operation[] {
  return operations.filter(({ path }) => baseOf(path) === prefix)
}

/** The first that it stands under: of two, the longer one. */
function baseOf(path: string): string | undefined {
  return BASE_PATHS.find(({ prefix }) => path === prefix || path.startsWith(`${prefix}/`))?.prefix
}
