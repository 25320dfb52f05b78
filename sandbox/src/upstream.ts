/** What an upstream is asked, after the sandbox has read it. */
export type Asked = {
  readonly method: string
  /** Without the upstream's prefix and without the query. */
  readonly path: string
  readonly parameters: URLSearchParams
  /** The body as JSON; undefined where there was none or it was not JSON. */
  readonly body: unknown
  readonly seed: number
  readonly nowMs: number
}

export type JsonObject = Record<string, unknown>

export type Reply = {
  readonly status: number
  readonly body: JsonObject
  /** How many tokens the vendor counted; null where it sells something else. */
  readonly tokens: number | null
  /** Whether the vendor would charge for this answer. */
  readonly isBilled: boolean
}

export const UPSTREAM_NAMES = ['rerank', 'reseller', 'comments', 'quotes', 'financial', 'traffic'] as const
export type UpstreamName = (typeof UPSTREAM_NAMES)[number]

/** One vendor's wire format. Its name is also its prefix: `rerank` answers under `/rerank/`. */
export type Upstream = {
  readonly name: UpstreamName
  readonly method: 'GET' | 'POST'
  readonly credential: { readonly header: string; readonly scheme: 'bearer' | 'plain' }
  readonly has: (path: string) => boolean
  readonly answer: (asked: Asked) => Reply
  /** The body of the vendor's errors. */
  readonly errorBody: (status: number, message: string, asked: Asked) => JsonObject
}

/** The credential that every simulated vendor takes. */
export const SANDBOX_KEY = 'sandbox-key'

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
