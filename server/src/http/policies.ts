import { isIP } from 'node:net'
import { audienceOf, NO_RESOURCE, type Resource } from '../identity/resources.ts'
import type { FaultDialect } from '../wire/answer.ts'
import type { FamilyName } from '../wire/family.ts'
import { BASE_PATHS } from './families.ts'

/** What tells one listener from another, beside the families that it serves. */
export type Policy = {
  /** What is asked of whoever comes to a path that no route takes, before it is said that there is none. */
  readonly unknownPath: 'credential' | 'public'
  /** How refusals are told outside every family. */
  readonly dialect: FaultDialect
  /** Whose protocols are known also where this process serves no routes there. */
  readonly paths: readonly FamilyName[]
  /** Whether a Host is one of ours. A page of somebody else's could otherwise let a browser speak to us under its own name. */
  readonly isOurHost: (host: string) => boolean
  /** For which access tokens it is. */
  readonly resource: Resource
  /** What a 401 says of how to get a credential, to who came by a Host; `Bearer` where left out. */
  readonly challenge?: (host: string, isWrong: boolean) => string
  /** What `GET /` answers to anybody, and each 401 names; neither where there is no website. */
  readonly home?: Home
}

/** Where somebody who has nothing but an address reads on. */
export type Home = { readonly website_url: string; readonly documentation_url: string }

export function homeOf(siteUrl: string | undefined): Home | undefined {
  if (siteUrl === undefined) return undefined
  return { website_url: siteUrl, documentation_url: `${siteUrl.replace(/\/$/, '')}/docs` }
}

const ANY_HOST = () => true

/** base_url: whether a path exists is told to known callers alone; they come under many names, through balancers and proxies. */
export const CALLERS: Policy = {
  unknownPath: 'credential',
  dialect: 'data',
  paths: BASE_PATHS.map((base) => ({ ...base, name: 'none' })),
  isOurHost: ANY_HOST,
  resource: NO_RESOURCE,
}

/** The same under its own URL, without which nobody can issue a token for it: where one does, a 401 says where to read who. */
export function createCallersPolicy(
  publicUrl: string | undefined,
  { home, metadataPath }: { readonly home?: Home | undefined; readonly metadataPath?: string | undefined } = {},
): Policy {
  const resource = resourceOf(publicUrl, 'calls')
  const challenge =
    publicUrl === undefined || metadataPath === undefined
      ? undefined
      : (_: string, isWrong: boolean) =>
          `Bearer ${isWrong ? 'error="invalid_token", ' : ''}resource_metadata="${new URL(publicUrl).origin}${metadataPath}"`
  return { ...CALLERS, resource, ...(challenge && { challenge }), ...(home && { home }) }
}

/** site_url: for people, so that what is not there is a page too. */
export function createSitePolicy(siteUrl: string | undefined): Policy {
  return { unknownPath: 'public', dialect: 'html', paths: [], isOurHost: hostOf(siteUrl), resource: NO_RESOURCE }
}

/** mcp_url: for agents, whose clients look for what they may find before they have a credential. */
export function createAgentPolicy(
  mcpUrl: string | undefined,
  challenge: NonNullable<Policy['challenge']>,
  home?: Home,
): Policy {
  const resource = resourceOf(mcpUrl, 'agent')
  const isOurHost = hostOf(mcpUrl)
  return { unknownPath: 'public', dialect: 'problem', paths: [], isOurHost, resource, challenge, ...(home && { home }) }
}

/** The operators' own: reached by address, on this machine, or under a name that nobody outside can give it. */
export function createAdminPolicy(hosts: readonly string[]): Policy {
  const named = new Set(hosts.map((host) => host.toLowerCase()))
  const isOurHost = (host: string) => isLocal(host) || isAddress(host) || isOneWord(host) || named.has(nameIn(host))
  return { unknownPath: 'public', dialect: 'problem', paths: [], isOurHost, resource: NO_RESOURCE }
}

function resourceOf(url: string | undefined, callScope: Resource['callScope']): Resource {
  return url === undefined ? NO_RESOURCE : { audience: audienceOf(url), callScope }
}

/** Without a URL of our own, only this machine is ours. */
function hostOf(url: string | undefined): (host: string) => boolean {
  if (url === undefined) return isLocal
  const own = new URL(url)
  const names = new Set([own.host, own.port === '' ? `${own.host}:${own.protocol === 'https:' ? 443 : 80}` : own.host])
  return (host) => names.has(host.toLowerCase())
}

function nameIn(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '')
}

function isLocal(host: string): boolean {
  return ['127.0.0.1', 'localhost', '[::1]'].includes(nameIn(host))
}

function isAddress(host: string): boolean {
  return isIP(nameIn(host).replace(/^\[|\]$/g, '')) !== 0
}

function isOneWord(host: string): boolean {
  return /^[a-z0-9_-]+$/.test(nameIn(host))
}
