import type { Catalogue, Names } from '../../catalogue/operation.ts'
import type { ContractInput } from '../../contracts/document.ts'
import { headerWords } from '../../contracts/header-words.ts'
import { routesOfOperations } from '../../contracts/operation-routes.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import { schemaOf } from '../../contracts/schema-of.ts'
import { INTERFACE_VERSION } from '../../contracts/version.ts'
import { createHeaderNames, type HeaderNames } from '../../gateway/header-names.ts'
import { REFUSAL_SCHEMAS } from '../dialects/schemas.ts'
import { HEALTH_ROUTES } from '../health.ts'
import { BALANCE_ROUTES } from './balance.ts'
import { linkRoutes } from './links.ts'
import { MODEL_ROUTES } from './models.ts'
import { REQUEST_ROUTES } from './requests.ts'
import { createdTask, taskRoutes } from './tasks.ts'
import { USAGE_ROUTES } from './usage.ts'

type Parts = {
  readonly catalogue: Pick<Catalogue, 'operations'>
  readonly names: Names & { readonly provider: string }
  readonly publicUrl: string | undefined
}

const TAGS: ContractInput['tags'] = {
  account: 'What a key has, has used and has called. Free.',
  finance: 'Data about companies.',
  health: 'For whoever watches over processes.',
  links: 'Accounts of users that a key acts for.',
  models: 'Inference, in the protocols of OpenAI, Anthropic and Gemini.',
  social: 'Data of social platforms, and what is done there for a user.',
  tasks: 'Calls that take minutes.',
  traffic: 'Data about websites.',
  video: 'Videos, as tasks.',
}

/** What the contract of base_url is made from: everything that is sold, and the few routes beside it. */
export function contractInputOf({ catalogue, names, publicUrl }: Parts): ContractInput {
  const headerNames = createHeaderNames(names.provider)
  return {
    title: `${names.provider} gateway`,
    description:
      'A metered gateway: models and data for one key. Money is integer micro-USD, and exact decimal USD beside it. ' +
      'What a call costs is told by quotes and by the headers of its answer, and is no part of this contract.',
    version: INTERFACE_VERSION,
    serverUrl: publicUrl,
    tags: TAGS,
    routes: [
      ...routesOfOperations(catalogue.operations, { names, headerNames, taskCreated: schemaOf(createdTask) }),
      ...platformRoutes(names, headerNames),
    ],
    refusals: REFUSAL_SCHEMAS,
    headers: headerWords(headerNames),
  }
}

/** Every route of base_url that is not sold. What pages are made of has no contract. */
function platformRoutes(names: Names, headerNames: HeaderNames): readonly ContractRoute[] {
  return [
    ...BALANCE_ROUTES,
    ...USAGE_ROUTES,
    ...REQUEST_ROUTES,
    ...MODEL_ROUTES,
    ...taskRoutes(headerNames),
    ...linkRoutes(names),
    ...HEALTH_ROUTES,
  ]
}
