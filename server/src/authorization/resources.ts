import { audienceOf, type OAuthScope } from '../identity/resources.ts'
import { isScopeOf, type ResourceName, SCOPES_OF, scopesIn, TOLD_SCOPES } from './scopes.ts'

/** What a token can be for. A token for one of them is nothing to the others. */
export type Resource = {
  readonly name: ResourceName
  /** As the operator wrote it: some clients compare it with what they were given, to the letter. */
  readonly url: string
  /** As it stands in a token. */
  readonly audience: string
}

export type Resources = {
  readonly all: readonly Resource[]
  /** With or without a slash at its end, as people and libraries write it; undefined for what is not ours. */
  readonly named: (url: string) => Resource | undefined
  /** For a client that names none; undefined where there is none. */
  readonly unnamed: Resource | undefined
  /** Of what a client named: what is ours, and the scopes that mean something there. */
  readonly asked: (resource: unknown, scope: unknown) => Asked
}

type Asked = { readonly audiences: readonly string[]; readonly scopes: readonly OAuthScope[] }

export const ACCOUNT_PATH = '/account/v1'

type Urls = {
  readonly siteUrl: string
  readonly baseUrl: string | undefined
  readonly mcpUrl: string | undefined
}

export function createResources({ siteUrl, baseUrl, mcpUrl }: Urls): Resources {
  const resource = (name: ResourceName, url: string): Resource => ({ name, url, audience: audienceOf(url) })
  const all = [
    ...(mcpUrl === undefined ? [] : [resource('agent', mcpUrl)]),
    ...(baseUrl === undefined ? [] : [resource('callers', baseUrl)]),
    resource('account', siteUrl + ACCOUNT_PATH),
  ]
  const byAudience = new Map(all.map((one) => [one.audience, one]))
  // A fragment is no part of a resource's name.
  const named = (url: string) => (URL.canParse(url) && !url.includes('#') ? byAudience.get(audienceOf(url)) : undefined)
  const unnamed = all.find(({ name }) => name !== 'account')
  return {
    ...{ all, named, unnamed },
    asked(resource, scope) {
      const given = [resource ?? unnamed?.audience].flat()
      const found = given
        .map((url) => (typeof url === 'string' ? named(url) : undefined))
        .filter((one) => one !== undefined)
      return {
        audiences: found.map(({ audience }) => audience),
        scopes: scopesIn(scope).filter((one) => found.some(({ name }) => isScopeOf(name, one))),
      }
    },
  }
}

/** RFC 9728: what a resource says of itself. Its scopes are the least that a client needs there, and none of accounts. */
export function protectedResourceMetadata({ name, url }: Resource, siteUrl: string) {
  return {
    resource: url,
    authorization_servers: [siteUrl],
    scopes_supported: SCOPES_OF[name].filter((scope) => TOLD_SCOPES.includes(scope)),
    bearer_methods_supported: ['header'],
  }
}

/** Where a resource says it: at its origin, with its path behind. */
export function metadataPathOf(url: string): string {
  const { pathname } = new URL(url)
  return `/.well-known/oauth-protected-resource${pathname.replace(/\/$/, '')}`
}
