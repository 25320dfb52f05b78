import { callerContractRoutes } from '../../callers/contract.ts'
import { createdTask } from '../../callers/tasks.ts'
import type { Catalogue } from '../../catalogue/operation.ts'
import type { ContractInput } from '../../contracts/document.ts'
import { MARKED_NAMES as names } from '../../contracts/draft.ts'
import { headerWords } from '../../contracts/header-words.ts'
import { routesOfOperations } from '../../contracts/operation-routes.ts'
import type { ContractRoute } from '../../contracts/route.ts'
import { schemaOf } from '../../contracts/schema-of.ts'
import { INTERFACE_VERSION } from '../../contracts/version.ts'
import { createHeaderNames, type HeaderNames } from '../../wording/header-names.ts'
import { refusalSchemas } from '../dialects/schemas.ts'
import { documentedDialect } from '../families.ts'
import { healthRoutes } from '../health.ts'
import { linkPageRoutes } from './link-pages.ts'

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
export function contractInputOf({ operations }: Pick<Catalogue, 'operations'>): ContractInput {
  const headerNames = createHeaderNames(names.provider)
  return {
    title: `${names.provider} gateway`,
    description:
      'A metered gateway: models and data for one key. Money is integer micro-USD, and exact decimal USD beside it. ' +
      'What a call costs is told by quotes and by the headers of its answer, and is no part of this contract.',
    version: INTERFACE_VERSION,
    tags: TAGS,
    routes: [
      ...routesOfOperations(operations, { names, headerNames, taskCreated: schemaOf(createdTask) }),
      ...platformRoutes(headerNames),
    ],
    refusals: refusalSchemas(),
    headers: headerWords(headerNames),
  }
}

/** Every route of base_url that is not sold. What pages are made of has no contract. */
function platformRoutes(headerNames: HeaderNames): readonly ContractRoute[] {
  return [
    ...callerContractRoutes({ names, headerNames, dialectOf: documentedDialect }),
    ...linkPageRoutes(names),
    ...healthRoutes(),
  ]
}
