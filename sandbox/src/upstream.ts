import type { IncomingHttpHeaders } from 'node:http'
import type { Bill } from './bill.ts'
import type { Delivery } from './delivery.ts'
import type { Deviance } from './deviants.ts'
import { isObject, type JsonObject } from './json.ts'
import type { Prefixes } from './upstreams/models/prefixes.ts'
import type { Script } from './upstreams/models/script.ts'
import type { Stream } from './upstreams/models/stream.ts'
import type { Platform } from './upstreams/platform-state.ts'
import type { Course } from './upstreams/video-course.ts'
import type { VideoTasks } from './upstreams/video-tasks.ts'

/** What an upstream is asked, after the sandbox has read it. */
export type Asked = {
  readonly method: string
  /** Without the upstream's prefix and without the query. */
  readonly path: string
  readonly parameters: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The body as JSON; undefined where there was none or it was not JSON. */
  readonly body: unknown
  /** The body as a form; empty where it was none. */
  readonly form: URLSearchParams
  /** Of the body as it came; empty where it was not read. */
  readonly bodySha256: string
  readonly seed: number
  readonly nowMs: number
  /** The prompts that vendors have in their cache. */
  readonly prefixes: Prefixes
  /** The tasks that the vendor of videos knows. */
  readonly videos: VideoTasks
  /** Whom users of the social platform have let in. */
  readonly platform: Platform
  /** How the vendor differs from what its protocol says. */
  readonly deviance: Deviance
}

export type Header = readonly [name: string, value: string]

/** What directives may set about an answer before it is made. */
export type Knobs = {
  readonly outputTokens?: number
  readonly deltaMs?: number
  readonly deltaBytes?: number
  readonly inputTokens?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly cacheWrite1h?: number
  /** Of the input, and of the output. */
  readonly audioIn?: number
  readonly imageIn?: number
  readonly audioOut?: number
  readonly imageOut?: number
  /** Of tools that the vendor runs, by their names. */
  readonly calls?: Readonly<Record<string, number>>
  readonly tier?: string
  readonly hidesUsage?: boolean
  /** What a model says, turn by turn. */
  readonly script?: Script
  /** How many pictures come. */
  readonly images?: number
  /** What becomes of a video task, as far as it is not the usual. */
  readonly course?: Partial<Course>
}

export type Reply = {
  readonly status: number
  readonly body: JsonObject
  /** How many tokens the vendor counted; null where it sells something else. */
  readonly tokens: number | null
  /** Whether the vendor would charge for this answer. */
  readonly isBilled: boolean
  /** What it would charge for, whatever it reports; of a stream, if all of it comes. */
  readonly bill?: Bill
  readonly headers?: readonly Header[]
  /** What is sent instead of the body, for what is not JSON. */
  readonly content?: { readonly type: string; readonly bytes: string | Buffer }
  /** What is sent instead of the body. Its tokens count as they are sent. */
  readonly stream?: Stream
  /** What goes wrong on the way by itself. */
  readonly delivery?: Partial<Delivery>
  /** What the journal says of a model's answer. */
  readonly about?: { readonly model: string; readonly isStreamed: boolean; readonly inputTokens: number }
  /** The same answer with knobs. */
  readonly remade?: (knobs: Knobs) => Reply
  /** The video task that was asked about. */
  readonly taskId?: string
  /** Does what was asked, before a byte of the answer is sent, unless directives have made another answer of it; the task that it made, if any. */
  readonly carryOut?: (knobs: Knobs) => string | undefined
}

/** Vendors with a file of their own. */
export const UPSTREAM_NAMES = [
  'rerank',
  'reseller',
  'comments',
  'quotes',
  'traffic',
  'deep_research',
  'openai',
  'anthropic',
  'gemini',
  'video',
  'platform',
] as const
export type UpstreamName = (typeof UPSTREAM_NAMES)[number]

/** One vendor's wire format. Its name is also its prefix: `rerank` answers under `/rerank/`. */
export type Upstream = {
  readonly name: string
  readonly methodOf: (path: string) => 'GET' | 'POST' | 'either'
  /** Of several that are sent the first one here counts. */
  readonly credentials: readonly { readonly header: string; readonly scheme: 'bearer' | 'plain' }[]
  /** For a vendor that gives credentials out itself, instead of those. */
  readonly credentialOf?: (asked: Asked) => Credential
  readonly has: (path: string) => boolean
  /** What needs no credential. */
  readonly isOpen?: (path: string) => boolean
  readonly answer: (asked: Asked) => Reply
  /** The body of the vendor's errors. */
  readonly errorBody: (status: number, message: string, asked: Asked) => JsonObject
  /** Their content type, where it is not that of JSON. */
  readonly errorType?: (asked: Asked) => string
  /** What every answer of the vendor has, errors too. */
  readonly headersOf?: (asked: Asked) => readonly Header[]
}

/** The credential that every simulated vendor takes. */
export const SANDBOX_KEY = 'sandbox-key'
/** Or this with a dot and a word behind it: each is another account of the vendor's, with a cache of its own. */
const CREDENTIAL = new RegExp(`^${SANDBOX_KEY}(\\.[a-z0-9]{1,32})?$`)

export function isCredential(text: string): boolean {
  return CREDENTIAL.test(text)
}

/** The credential that came, whichever header had it. */
export function credentialIn(headers: IncomingHttpHeaders): string {
  const sent = headers.authorization ?? headers['x-api-key'] ?? headers['x-goog-api-key'] ?? headers['api-key']
  return String(sent ?? '').replace(/^Bearer /, '')
}

/** The figures in a model's answer, by whichever of its names. */
export function usageIn({ usage, usageMetadata }: JsonObject): JsonObject | undefined {
  return [usage, usageMetadata].find(isObject)
}

/** Whether the credential that came was the one that was asked for. */
export type Credential = 'right' | 'wrong' | 'missing'
