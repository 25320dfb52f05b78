import { Fault } from '../../kernel/fault.ts'
import type { Resource, Resources } from './resources.ts'
import { DEFAULT_SCOPES } from './scopes.ts'

/**
 * What a client sent, as the library is given it: resources in one spelling, and scopes where none are named. Clients leave out either,
 * and write the first with and without a slash.
 */
export function readable(sent: string, resources: Resources, { needsScope }: { readonly needsScope: boolean }): string {
  const given = new URLSearchParams(sent)
  const all = [...given].map(([name, value]) => {
    const resource = name === 'resource' ? resources.named(value) : undefined
    return { name, value: resource?.audience ?? value }
  })
  requireQueryMode(given)
  const written = new URLSearchParams()
  for (const { name, value } of all) written.append(name, value)
  if (needsScope && !given.has('scope')) written.append('scope', defaultScope(given, resources))
  return written.toString()
}

function defaultScope(given: URLSearchParams, resources: Resources): string {
  const named = given.getAll('resource').map((url) => resources.named(url))
  const asked = (named.length === 0 ? [resources.unnamed] : named).filter((one): one is Resource => one !== undefined)
  return [...new Set(asked.flatMap(({ face }) => DEFAULT_SCOPES[face]))].join(' ')
}

/** A code in a fragment, or in a form that a script sends, is nothing that a client of ours needs. */
function requireQueryMode(given: URLSearchParams): void {
  if (given.getAll('response_mode').some((mode) => mode !== 'query'))
    throw new Fault('invalid_request', { detail: 'response_mode must be query.' })
}
