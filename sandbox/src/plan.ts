import type { Bytes } from './bytes.ts'
import type { Asked, JsonObject, Reply, Upstream } from './upstream.ts'

/** How an answer goes wrong on its way. */
export type Delivery = {
  interims: number
  delayMs: number
  firstByteMs: number
  dripMs: number
  isChunked: boolean
  /** Added to the true Content-Length. */
  lengthOff: number
  hang: 'never' | 'accept' | 'headers' | 'body'
  reset: 'never' | 'before-headers' | 'in-body'
  close: 'never' | 'before-headers' | 'in-body'
}

/** An answer that directives may still change, each in its turn, before it is delivered. */
export type Plan = {
  readonly upstream: Upstream
  readonly asked: Asked
  status: number
  contentType: string
  readonly headers: (readonly [name: string, value: string])[]
  body: JsonObject
  /** A directive has said what is in the body, so an error status leaves it as it is. */
  keepsBody: boolean
  /** What is done to the JSON text, for what JSON can't say. */
  readonly rewrites: ((json: string) => string)[]
  /** Sent instead of the body. */
  bytes: Bytes | undefined
  tokens: number | null
  isBilled: boolean
  readonly delivery: Delivery
}

export function planFor(upstream: Upstream, asked: Asked, reply: Reply): Plan {
  return {
    upstream,
    asked,
    status: reply.status,
    contentType: 'application/json',
    headers: [],
    body: { ...reply.body },
    keepsBody: false,
    rewrites: [],
    bytes: undefined,
    tokens: reply.tokens,
    isBilled: reply.isBilled,
    delivery: {
      interims: 0,
      delayMs: 0,
      firstByteMs: 0,
      dripMs: 0,
      isChunked: false,
      lengthOff: 0,
      hang: 'never',
      reset: 'never',
      close: 'never',
    },
  }
}

export function jsonOf({ body, rewrites }: Plan): string {
  return rewrites.reduce((json, rewrite) => rewrite(json), JSON.stringify(body))
}
