import { isOAuthScope, type OAuthScope } from '../identity/faces.ts'

/** What is reached with a token: the API of callers, the tools of agents, or what an account says of itself. */
export type FaceName = 'callers' | 'agent' | 'account'

/** What a client may ask for, by the face that it asks. */
export const SCOPES_OF = {
  callers: ['calls', 'account.read'],
  agent: ['agent'],
  account: ['account.read', 'account.manage'],
} as const satisfies Readonly<Record<FaceName, readonly OAuthScope[]>>

/** What a client gets that asks for nothing in particular. */
export const DEFAULT_SCOPES = {
  callers: ['calls'],
  agent: ['agent'],
  account: ['account.read'],
} as const satisfies Readonly<Record<FaceName, readonly OAuthScope[]>>

/** Of no face: who somebody is, and a token to go on with. */
export const OWN_SCOPES = ['openid', 'offline_access'] as const

/**
 * What the server says that there is. Some clients ask for all of it, so what reaches into accounts is left out: whoever needs that knows
 * its name.
 */
export const TOLD_SCOPES: readonly string[] = [...SCOPES_OF.agent, ...DEFAULT_SCOPES.callers, ...OWN_SCOPES]

export function scopesIn(text: unknown): readonly OAuthScope[] {
  return [...new Set(String(text ?? '').split(' '))].filter(isOAuthScope)
}

export function isScopeOf(face: FaceName, scope: OAuthScope): boolean {
  const scopes: readonly OAuthScope[] = SCOPES_OF[face]
  return scopes.includes(scope)
}
