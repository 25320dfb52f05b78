import { isOAuthScope, type OAuthScope } from '../identity/resources.ts'

/** What is reached with a token: the API of callers, the tools of agents, or what an account says of itself. */
export type ResourceName = 'callers' | 'agent' | 'account'

/** What a client may ask for, by the resource that it asks. */
export const SCOPES_OF = {
  callers: ['calls', 'account.read'],
  agent: ['agent'],
  account: ['account.read', 'account.manage'],
} as const satisfies Readonly<Record<ResourceName, readonly OAuthScope[]>>

/** What a client gets that asks for nothing in particular. */
export const DEFAULT_SCOPES = {
  callers: ['calls'],
  agent: ['agent'],
  account: ['account.read'],
} as const satisfies Readonly<Record<ResourceName, readonly OAuthScope[]>>

/** For every resource: who somebody is, and a token to go on with. */
export const OWN_SCOPES = ['openid', 'offline_access'] as const

/**
 * What the server says that there is. Some clients ask for all of it, so what reaches into accounts is left out: whoever needs that knows
 * its name.
 */
export const TOLD_SCOPES: readonly string[] = [...SCOPES_OF.agent, ...DEFAULT_SCOPES.callers, ...OWN_SCOPES]

export function scopesIn(text: unknown): readonly OAuthScope[] {
  return [...new Set(String(text ?? '').split(' '))].filter(isOAuthScope)
}

export function isScopeOf(resource: ResourceName, scope: OAuthScope): boolean {
  const scopes: readonly OAuthScope[] = SCOPES_OF[resource]
  return scopes.includes(scope)
}
