/**
 * Whether a page of an Origin may speak to the tools from a browser: our own, and those that the operator allows for base_url. Who sends
 * none is no browser.
 */
export function createOriginCheck(mcpUrl: string | undefined, allowed: readonly string[]) {
  const origins = new Set(allowed)
  const own = mcpUrl === undefined ? undefined : new URL(mcpUrl).origin
  // Without a URL of our own, the Host is one of this machine's names: that was seen to before.
  return (origin: string, host: string) =>
    origins.has('*') || origins.has(origin) || origin === (own ?? `http://${host}`)
}
