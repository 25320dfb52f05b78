/** The one scope that a client of the tools asks for. */
const AGENT_SCOPE = 'agent'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'
const DEFAULT_PATH = '/mcp'

/** Where the tools are, and what a stranger is told of how to get a credential (RFC 9728). */
export type Metadata = {
  /** Below the listener's origin. */
  readonly path: string
  /** What a 401 says: where the document is, and which scope to ask for. */
  readonly challenge: (host: string, isWrong: boolean) => string
  /** By its path. */
  readonly documents: Readonly<Record<string, (host: string) => unknown>>
}

type Parts = {
  readonly mcpUrl: string | undefined
  readonly siteUrl: string | undefined
}

/**
 * The resource is spelt byte for byte as the operator spells mcp_url, because clients compare it with what a person typed. Without one,
 * only this machine reaches us, under the Host that it came by.
 */
export function createMetadata({ mcpUrl, siteUrl }: Parts): Metadata {
  const path = mcpUrl === undefined ? DEFAULT_PATH : new URL(mcpUrl).pathname
  // RFC 9728: the well-known part stands between the host and the path, and a path that is only a slash is none.
  const place = WELL_KNOWN + (path === '/' ? '' : path)
  const originFor = (host: string) => (mcpUrl === undefined ? `http://${host}` : new URL(mcpUrl).origin)
  const document = (host: string) => ({
    resource: mcpUrl ?? `http://${host}${path}`,
    ...(siteUrl !== undefined && { authorization_servers: [siteUrl] }),
    scopes_supported: [AGENT_SCOPE],
    bearer_methods_supported: ['header'],
    resource_name: 'Farebox tools for agents',
  })
  return {
    path,
    challenge: (host, isWrong) =>
      `Bearer ${isWrong ? 'error="invalid_token", ' : ''}resource_metadata="${originFor(host)}${place}", scope="${AGENT_SCOPE}"`,
    // Clients that know no path look at the root.
    documents: { [place]: document, [WELL_KNOWN]: document },
  }
}
