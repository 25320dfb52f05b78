import { may, type Role } from '../kernel/role.ts'

/**
 * The service is several resources: addresses under which it is reached, each with its own audience and its own scopes. A resource takes the access
 * tokens that were issued for it, and none of another's. Keys have no audience.
 */
export type Resource = {
  /** As tokens name it; null where it takes none. */
  readonly audience: string | null
  /** The scope by which a token may make calls there. */
  readonly callScope: OAuthScope | null
}

/** What a person lets a client do, by resource. */
export const OAUTH_SCOPES = {
  /** Make calls on base_url. */
  calls: 'Make calls that your workspace pays for, within the amount that you set',
  /** Use the agents' tools on mcp_url. */
  agent: 'Use the tools for agents, within the amount that you set',
  /** Read what the whole account has used, not the grant's own part alone. */
  'account.read':
    'See the usage and the balance of the whole account, and by the account API also its keys, budgets, calls, linked accounts, members with their e-mail addresses, and the audit log',
  /** Change what the person may change, by the account API. */
  'account.manage':
    'See and change keys, budgets and settings of your workspace, as far as your role allows, and create API keys that spend your balance',
} as const

export type OAuthScope = keyof typeof OAUTH_SCOPES

/** A resource whose tokens can do nothing, for listeners that take none. */
export const NO_RESOURCE: Resource = { audience: null, callScope: null }

export function isOAuthScope(text: string): text is OAuthScope {
  return Object.hasOwn(OAUTH_SCOPES, text)
}

/** What of these scopes somebody with this role may give away: nobody lets a client do what they may not. */
export function mayGive(role: Role, scope: OAuthScope): boolean {
  // What a client may change there is asked of the role at every request.
  if (scope === 'account.manage') return may(role, 'keys.manage') || may(role, 'billing.manage')
  return may(role, scope === 'account.read' ? 'billing.read' : 'mandates.give')
}

/** One spelling for a resource: clients write the same one with and without a slash at its end. */
export function audienceOf(url: string): string {
  const { origin, pathname, search } = new URL(url)
  return origin + pathname.replace(/\/+$/, '') + search
}
