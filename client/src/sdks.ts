import type { RequestBody } from './attempt.ts'
import { LONGEST_MS } from './checks.ts'

/** What the official SDKs take, so that their streams go by the same key, the same caps and the same rules about repetition. */
export type Sdks = {
  /** For `new OpenAI(…)`. */
  readonly openai: () => Settings & { readonly baseURL: string }
  /** For `new Anthropic(…)`. */
  readonly anthropic: () => Settings & { readonly baseURL: string }
  /** For `new GoogleGenAI(…)`. */
  readonly google: () => {
    readonly apiKey: string
    readonly httpOptions: { readonly baseUrl: string; readonly fetch: typeof globalThis.fetch }
  }
}

type Settings = {
  readonly apiKey: string
  readonly fetch: typeof globalThis.fetch
  /** The SDK repeats nothing by itself: it would do so without an idempotency key. The `fetch` beside it does, with one. */
  readonly maxRetries: 0
  /**
   * Beyond all that the `fetch` may take, with its waits and look-ups: a timeout of the SDK would end them, and nobody would learn what
   * came of a call that goes on.
   */
  readonly timeout: number
}

type Parts = { readonly apiKey: string; readonly baseUrl: string; readonly fetch: typeof globalThis.fetch }

export function createSdks({ apiKey, baseUrl, fetch }: Parts): Sdks {
  const settings = { apiKey, fetch, maxRetries: 0, timeout: LONGEST_MS } as const
  return {
    openai: () => ({ ...settings, baseURL: `${baseUrl}/v1` }),
    anthropic: () => ({ ...settings, baseURL: baseUrl }),
    google: () => ({ apiKey, httpOptions: { baseUrl, fetch } }),
  }
}

/** What a `fetch` was called with, as far as it can be sent a second time. */
export type Asked = {
  readonly url: string
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: RequestBody | undefined
  /** Whatever else it was given, such as `dispatcher`, `keepalive` or `duplex`. */
  readonly others: RequestInit
  readonly isRepeatable: boolean
  readonly signal: AbortSignal | undefined
}

/** A body that is a stream can be sent once. */
export async function askedOf(...[input, init = {}]: Parameters<typeof globalThis.fetch>): Promise<Asked> {
  const request = input instanceof Request ? new Request(input, init) : undefined
  const body = request === undefined ? (init.body ?? undefined) : await textOf(request)
  const { method: _m, headers: _h, body: _b, signal: _s, ...others } = init
  return {
    others,
    url: request?.url ?? String(input),
    method: (request?.method ?? init.method ?? 'GET').toUpperCase(),
    headers: Object.fromEntries(new Headers(request?.headers ?? init.headers)),
    body,
    isRepeatable: body === undefined || typeof body === 'string' || body instanceof Uint8Array,
    signal: request?.signal ?? init.signal ?? undefined,
  }
}

async function textOf(request: Request): Promise<string | undefined> {
  return request.body === null ? undefined : request.text()
}
