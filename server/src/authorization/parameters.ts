import { invalidRequest } from '../kernel/fault.ts'
import type { Resource, Resources } from './resources.ts'
import { DEFAULT_SCOPES } from './scopes.ts'

/**
 * What a client sent, as the library is given it: resources in one spelling, and scopes where none are named. Clients leave out either,
 * and write the first with and without a slash. Some renew tokens with all that they first asked for.
 */
export function readable(sent: string, resources: Resources, { needsScope }: { readonly needsScope: boolean }): string {
  const given = new URLSearchParams(sent)
  requireBounds(given)
  const all = [...given].map(([name, value]) => {
    const resource = name === 'resource' ? resources.named(value) : undefined
    return { name, value: resource?.audience ?? value }
  })
  requireQueryMode(given)
  const written = new URLSearchParams()
  const isRenewal = given.get('grant_type') === 'refresh_token'
  for (const { name, value } of all)
    if (!isRenewal || name !== 'scope') written.append(name, value)
    else if (scopesOfGrants(value) !== '') written.append(name, scopesOfGrants(value))
  if (needsScope && !given.has('scope')) written.append('scope', defaultScope(given, resources))
  return written.toString()
}

/** Refresh tokens are given with and without `offline_access`, so that no grant has it, and nobody is refused for naming it. */
function scopesOfGrants(scope: string): string {
  return scope
    .split(' ')
    .filter((one) => one !== 'offline_access')
    .join(' ')
}

function defaultScope(given: URLSearchParams, resources: Resources): string {
  const named = given.getAll('resource').map((url) => resources.named(url))
  const asked = (named.length === 0 ? [resources.unnamed] : named).filter((one): one is Resource => one !== undefined)
  return [...new Set(asked.flatMap(({ name }) => DEFAULT_SCOPES[name]))].join(' ')
}

/** A code in a fragment, or in a form that a script sends, is nothing that a client of ours needs. */
function requireQueryMode(given: URLSearchParams): void {
  if (given.getAll('response_mode').some((mode) => mode !== 'query'))
    throw invalidRequest('response_mode must be query.')
}

const MEMBERS_LIMIT = 50
const NAME_LIMIT = 100
const VALUE_LIMIT = 4_096

/** PostgreSQL takes no zero byte, and no parameter of OAuth has a control character in it. */
function requireBounds(given: URLSearchParams): void {
  if (given.size > MEMBERS_LIMIT)
    throw invalidRequest(`There are ${given.size} parameters; the limit is ${MEMBERS_LIMIT}. Send fewer.`)
  for (const [name, value] of given) {
    if (name.length > NAME_LIMIT || value.length > VALUE_LIMIT)
      throw invalidRequest(
        `A parameter is too long: the limit is ${VALUE_LIMIT} characters, and ${NAME_LIMIT} for its name.`,
      )
    if (/\p{Cc}/u.test(name + value)) throw invalidRequest('Parameters must not contain control characters.')
  }
}
