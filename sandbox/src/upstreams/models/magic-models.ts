import type { Delivery } from '../../delivery.ts'

/** How a model answers. What is absent is as with any model. */
export type MagicModel = {
  readonly says?: 'echo' | 'prose' | 'long' | 'checksum'
  /** When it calls the tools that it is offered; whenever it may, where left out. */
  readonly calls?: 'always' | 'bound'
  readonly everyMs?: number
  readonly usage?: 'none' | 'zero'
  readonly status?: number | 'overloaded'
  readonly retryAfter?: string
  /** What goes wrong with the connection. */
  readonly delivery?: Partial<Delivery>
  /** What goes wrong between the frames of a stream. */
  readonly frames?: 'error' | 'garbage' | 'no-end'
}

/** An agent offers tools with every request, and people try it with echo: it calls none unless it is bound to. */
const ECHO: MagicModel = { calls: 'bound' }
/** Any other name answers like echo, and calls the tools that it is offered. */
const OTHER: MagicModel = {}

export const MAGIC_MODELS: Readonly<Record<string, MagicModel>> = {
  'sandbox/echo': ECHO,
  'sandbox/text': { says: 'prose' },
  'sandbox/long': { says: 'long' },
  'sandbox/slow': { says: 'prose', everyMs: 50 },
  'sandbox/checksum': { says: 'checksum', everyMs: 20 },
  'sandbox/tools': { calls: 'always' },
  'sandbox/no-usage': { usage: 'none' },
  'sandbox/zero-usage': { usage: 'zero' },
  'sandbox/429': { status: 429, retryAfter: '7' },
  'sandbox/500': { status: 500 },
  'sandbox/overloaded': { status: 'overloaded' },
  'sandbox/cut-mid-stream': { says: 'prose', delivery: { reset: 'in-body' } },
  'sandbox/hang': { says: 'prose', delivery: { hang: 'body', breaksAfter: 'first-delta' } },
  'sandbox/error-mid-stream': { says: 'prose', frames: 'error' },
  'sandbox/garbage-frame': { says: 'prose', frames: 'garbage' },
  'sandbox/no-end': { says: 'prose', frames: 'no-end' },
}

export const MODEL_NAMES: readonly string[] = Object.keys(MAGIC_MODELS)

export function magicModel(name: string): MagicModel {
  return Object.hasOwn(MAGIC_MODELS, name) ? (MAGIC_MODELS[name] ?? OTHER) : OTHER
}
