import { isUpdate, REPLAYED } from '../api/answer.ts'
import { contractRouteOf } from '../api/contract.ts'
import type { ContractInput } from '../contracts/document.ts'
import { MARKED_NAMES } from '../contracts/draft.ts'
import { PLAIN_HEADERS } from '../contracts/header-words.ts'
import { ON_ARRIVAL } from '../contracts/refusals.ts'
import type { ContractParameter, ContractRoute, Refusals } from '../contracts/route.ts'
import { refusalSchemas } from '../http/dialects/schemas.ts'
import type { FaultCode } from '../kernel/fault.ts'
import { may, ROLES } from '../kernel/role.ts'
import { ACCOUNT_PREFIX, type AccountRoute } from './route.ts'
import { ACCOUNT_ROUTES } from './routes.ts'

/** A change that breaks programs raises its first number. */
const ACCOUNT_VERSION = '1.0.0'

const TAGS: ContractInput['tags'] = {
  audit: 'Who changed what.',
  budgets: 'Ceilings on the spend of a workspace, a member, a tag or an end user.',
  closure: 'Taking the data of a workspace along, and closing it.',
  document: 'This document.',
  keys: 'API keys: what they may do, spend and how fast.',
  links: 'Platform accounts that users have linked to keys.',
  members: 'Members of a workspace, their roles, and invitations.',
  money: 'Balance, statement and usage.',
  quota: 'Asking for higher limits.',
  records: 'Calls and tasks of all keys.',
  webhooks: 'Messages to your own servers.',
  workspaces: 'Workspaces of a person.',
}

/** What the document of the account API is made from. */
export function accountContractInput(): ContractInput {
  return {
    title: `${MARKED_NAMES.provider} account API`,
    description:
      'What members of a workspace see and change: keys, budgets, members, money and records. Amounts are exact decimal USD, and whole micro-USD beside it. Times are ISO 8601 in UTC. ' +
      'Every change takes an Idempotency-Key; sent again within 24 hours, it is not made again. Every update takes the ETag of what was read as If-Match.',
    version: ACCOUNT_VERSION,
    tags: TAGS,
    routes: ACCOUNT_ROUTES.map(contractRoute),
    refusals: refusalSchemas(),
    headers: {
      ...PLAIN_HEADERS,
      ETag: { description: 'What it is like now. A change of it takes this as If-Match.', schema: { type: 'string' } },
      [REPLAYED]: {
        description: 'The change was made before, and this is what was answered then, without any secret.',
        schema: { type: 'string', enum: ['true'] },
      },
    },
    credentials: {
      session: {
        type: 'apiKey',
        in: 'cookie',
        name: '__Host-fb_session',
        description:
          'Of a browser in which somebody has signed in. Whatever changes something also takes the header X-Form-Token, with the form_token that GET /account/v1/me returns.',
      },
      token: {
        type: 'http',
        scheme: 'bearer',
        description:
          'An access token for the resource /account/v1 with the scope account.read, and for changes account.manage. It sees one workspace in one mode.',
      },
    },
  }
}

function contractRoute(route: AccountRoute): ContractRoute {
  const { method, path, need, description, answer } = route
  const isWrite = method !== 'GET' && need !== 'nothing'
  return contractRouteOf(route, {
    path: ACCOUNT_PREFIX + path,
    access: need === 'nothing' ? 'public' : 'credential',
    description: [description, whoMay(route)].filter((one) => one !== undefined).join('\n\n'),
    params: PLACES,
    headers: [...(isWrite ? [IDEMPOTENCY_KEY] : []), ...(isUpdate(route) ? [IF_MATCH] : [])],
    answerHeaders: [...(answer.hasEtag === true ? ['ETag'] : []), ...(isWrite ? [REPLAYED] : [])],
    refusals: refusalsOf(route),
  })
}

/** For people, who read it in the document. */
function whoMay(route: AccountRoute): string | undefined {
  const { need } = route
  if (need === 'nothing') return undefined
  const roles =
    need === 'sign_in'
      ? 'For whoever has signed in'
      : `For members whose role is ${ROLES.filter((role) => may(role, need)).join(', ')}`
  return `${roles}${whichTokens(route)}.`
}

function whichTokens({ tokens, mode }: AccountRoute): string {
  if (tokens === 'never') return ', in a browser: no access token may do this'
  return tokens === 'own mode' && mode === undefined ? '; an access token for test money may not' : ''
}

const PLACES: Readonly<Record<string, string>> = {
  workspace_id: 'The id of a workspace.',
  key_id: 'The id of a key.',
  request_id: 'The id of a call, as X-Request-ID told it.',
  budget_id: 'The id of a budget.',
  member_id: 'The id of a member.',
  invitation_id: 'The id of an invitation.',
  link_id: 'The id of a linked account.',
  quota_request_id: 'The id of a quota request.',
  export_id: 'The id of an export.',
}

const IDEMPOTENCY_KEY: ContractParameter = {
  in: 'header',
  name: 'Idempotency-Key',
  description: 'A new one for each change, and the same one when it is sent again.',
  required: true,
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const IF_MATCH: ContractParameter = {
  in: 'header',
  name: 'If-Match',
  description: 'The ETag of what was read, or * for whatever is there.',
  required: true,
  schema: { type: 'string' },
}

const WITH_MEMBER: readonly FaultCode[] = [
  ...(['sign_in_required', 'invalid_credential', 'forbidden', 'rate_limit_exceeded'] as const),
  ...(['address_not_allowed', 'mandate_paused', 'billing_dependency_timeout'] as const),
]
const OF_WRITES: readonly FaultCode[] = [
  ...(['cross_site_refused', 'idempotency_mismatch', 'invalid_json', 'body_too_deep'] as const),
]

/** Routes that refuse alike share the name of it. */
function refusalsOf(route: AccountRoute): Refusals {
  const { method, path, need, whileClosing, codes = [] } = route
  const isWrite = method !== 'GET'
  const isOne = path.includes('{')
  const isClosedTo = isWrite && path.startsWith('/workspaces/{') && whileClosing !== true
  const all = [
    ...ON_ARRIVAL,
    ...(need === 'nothing' ? [] : WITH_MEMBER),
    ...(isWrite ? OF_WRITES : []),
    ...(isOne ? (['resource_not_found'] as const) : []),
    ...(isUpdate(route) ? (['precondition_required', 'precondition_failed'] as const) : []),
    ...(isClosedTo ? (['workspace_closing', 'workspace_suspended'] as const) : []),
    ...codes,
  ]
  const kind = [
    need === 'nothing' ? 'open' : 'member',
    isOne ? 'one' : 'any',
    isUpdate(route) ? 'update' : isWrite ? 'write' : 'read',
    ...(isWrite && isOne && !isClosedTo ? ['closing'] : []),
  ]
  return { name: [...kind, ...codes].join('_'), dialect: 'problem', codes: [...new Set(all)] }
}
