import { type Bytes, wholeBytes } from './bytes.ts'
import type { Delivery } from './delivery.ts'
import type { JsonObject } from './json.ts'
import type { Asked, Header, Knobs, Reply, Upstream } from './upstream.ts'
import type { Stream } from './upstreams/models/stream.ts'

/** An answer that directives may still change, each in its turn, before it is delivered. */
export type Plan = {
  readonly upstream: Upstream
  readonly asked: Asked
  status: number
  contentType: string
  readonly headers: Header[]
  body: JsonObject
  /** A directive has said what is in the body, so an error status leaves it as it is. */
  keepsBody: boolean
  /** What is done to the JSON text, for what JSON can't say. */
  readonly rewrites: ((json: string) => string)[]
  /** Sent instead of the body. */
  bytes: Bytes | undefined
  /** Sent instead of the body, unless there are bytes. */
  stream: Stream | undefined
  knobs: Knobs
  readonly remade: Reply['remade']
  tokens: number | null
  isBilled: boolean
  bill: Reply['bill']
  about: Reply['about']
  /** What was asked is carried out though the answer is an error. */
  isDoneAnyway: boolean
  readonly delivery: Delivery
}

const JSON_TYPE = 'application/json'
const EVENT_STREAM = 'text/event-stream; charset=utf-8'

export function planFor(upstream: Upstream, asked: Asked, reply: Reply): Plan {
  return {
    upstream,
    asked,
    status: reply.status,
    contentType: reply.content?.type ?? (reply.stream ? EVENT_STREAM : JSON_TYPE),
    headers: [...headersOf(upstream, asked, reply)],
    body: { ...reply.body },
    keepsBody: false,
    rewrites: [],
    bytes: reply.content && wholeBytes(reply.content.bytes),
    stream: reply.stream,
    knobs: {},
    remade: reply.remade,
    tokens: reply.tokens,
    isBilled: reply.isBilled,
    bill: reply.bill,
    about: reply.about,
    isDoneAnyway: false,
    delivery: {
      interims: 0,
      delayMs: 0,
      firstByteMs: 0,
      dripMs: 0,
      isChunked: false,
      lengthOff: 0,
      paddingBytes: 0,
      hang: 'never',
      reset: 'never',
      close: 'never',
      breaksAfter: 'half',
      ...reply.delivery,
    },
  }
}

export function headersOf({ headersOf }: Upstream, asked: Asked, { headers = [] }: Reply): readonly Header[] {
  return headersOf ? [...headersOf(asked), ...headers] : headers
}

/** Makes the answer anew with one more knob. Where there is nothing to turn, as with an error, nothing changes. */
export function turn(plan: Plan, knobs: Knobs): void {
  plan.knobs = { ...plan.knobs, ...knobs }
  const reply = plan.remade?.(plan.knobs)
  if (reply === undefined) return
  plan.body = reply.body
  plan.stream = reply.stream
  plan.tokens = reply.tokens
  plan.bill = reply.bill
  plan.about = reply.about
}

/** An answer of JSON in one piece after all. */
export function dropContent(plan: Plan): void {
  if (plan.stream === undefined && plan.bytes === undefined) return
  plan.stream = undefined
  plan.bytes = undefined
  plan.contentType = JSON_TYPE
}

export function jsonOf({ body, rewrites }: Plan): string {
  return rewrites.reduce((json, rewrite) => rewrite(json), JSON.stringify(body))
}
