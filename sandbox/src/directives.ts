import { STATUS_CODES } from 'node:http'
import { gzipBomb, paddedTo, wholeBytes } from './bytes.ts'
import {
  anyCount,
  countsByName,
  milliseconds,
  nothing,
  oneOf,
  optional,
  text,
  type Value,
  WrongValue,
  wholeNumber,
} from './directive-values.ts'
import type { Written } from './find-directives.ts'
import { dropContent, jsonOf, type Plan, turn } from './plan.ts'
import type { Knobs, UpstreamName } from './upstream.ts'
import { withUsageRewritten } from './upstreams/models/frames.ts'
import { scriptIn } from './upstreams/models/script.ts'
import { COURSE_DIRECTIVES } from './upstreams/video-directives.ts'

type Directive = { readonly only?: readonly UpstreamName[]; readonly apply: (plan: Plan, value: Value) => void }

const MODELS: readonly UpstreamName[] = ['openai', 'anthropic', 'gemini']
const ANSWER_LIMIT_TOKENS = 1_000_000
const PICTURES_LIMIT = 1_000
const DELTA_LIMIT_BYTES = 1_000_000
const SIZE_LIMIT = 4 * 1024 ** 3
const USAGE_MARK = '"usage of the sandbox"'
const MODEL_COUNTS = /"((?:prompt|completion|total|input|output)_tokens|(?:prompt|candidates|total)TokenCount)":(\d+)/g
const USAGE_WORDS: Readonly<Record<string, (tokens: number) => string>> = {
  string: (tokens) => `"${tokens}"`,
  huge: () => '1e300',
}

/** One directive, one function. They apply in this order, whatever their order in the request. */
const DIRECTIVES: Readonly<Record<string, Directive>> = {
  // What the answer says.
  tokens: directive(anyCount, (plan, tokens) => report(plan, tokens), ['rerank']),
  'no-usage': directive(nothing, hideUsage, ['rerank', ...MODELS]),
  'output-tokens': knob(wholeNumber(1, ANSWER_LIMIT_TOKENS), (outputTokens) => ({ outputTokens })),
  'input-tokens': knob(anyCount, (inputTokens) => ({ inputTokens })),
  'cache-read': knob(anyCount, (cacheRead) => ({ cacheRead })),
  'cache-write': knob(anyCount, (cacheWrite) => ({ cacheWrite })),
  script: knob(scriptIn, (script) => ({ script })),
  'cache-write-1h': knob(anyCount, (cacheWrite1h) => ({ cacheWrite1h })),
  'audio-tokens': knob(anyCount, (audioIn) => ({ audioIn })),
  'image-tokens': knob(anyCount, (imageIn) => ({ imageIn })),
  'output-audio': knob(anyCount, (audioOut) => ({ audioOut })),
  'output-image': knob(anyCount, (imageOut) => ({ imageOut })),
  calls: knob(countsByName, (calls) => ({ calls })),
  'service-tier': knob(text, (tier) => ({ tier })),
  images: directive(wholeNumber(0, PICTURES_LIMIT), (plan, images) => turn(plan, { images }), ['openai']),
  'delta-bytes': knob(wholeNumber(1, DELTA_LIMIT_BYTES), (deltaBytes) => ({ deltaBytes })),
  'delta-ms': knob(milliseconds, (deltaMs) => ({ deltaMs })),
  usage: directive(text, misreport, ['rerank', ...MODELS]),
  unsorted: directive(nothing, unsort, ['rerank']),
  code: directive(wholeNumber(0, 999_999), setCode, ['reseller']),
  'code-as-string': directive(nothing, (plan) => say(plan, { code: String(plan.body.code) }), ['reseller']),
  success: directive(oneOf('true', 'false'), (plan, word) => word === 'false' && deny(plan), ['comments', 'quotes']),
  ...courseDirectives(),

  // The message that says it.
  status: directive(wholeNumber(200, 599), setStatus),
  'retry-after': directive(text, (plan, value) => plan.headers.push(['retry-after', value])),
  redirect: directive(text, redirect),
  'done-anyway': directive(
    nothing,
    (plan) => {
      plan.isDoneAnyway = true
    },
    ['video', 'platform'],
  ),
  garbage: directive(nothing, (plan) => sendInstead(plan, '{"results": [oops, \u0000\u0001 }]')),
  html: directive(nothing, (plan) =>
    sendInstead(plan, '<!doctype html><title>502</title><h1>Bad Gateway</h1>', 'text/html'),
  ),
  empty: directive(nothing, (plan) => sendInstead(plan, '')),
  big: directive(wholeNumber(0, SIZE_LIMIT), (plan, size) => {
    refuseStream(plan)
    plan.bytes = paddedTo(size, jsonOf(plan))
  }),
  'gzip-bomb': directive(nothing, (plan) => {
    refuseStream(plan)
    plan.bytes = gzipBomb(jsonOf(plan))
    plan.headers.push(['content-encoding', 'gzip'])
  }),
  'content-type': directive(text, (plan, type) => {
    plan.contentType = type
  }),
  'dup-headers': directive(optional('others', oneOf('others', 'content-length')), duplicateHeaders),

  // How it is delivered.
  chunked: directive(nothing, ({ delivery }) => {
    delivery.isChunked = true
  }),
  'wrong-length': directive(optional(-7, wholeNumber(-1_000_000, 1_000_000)), (plan, off) => {
    refuseStream(plan)
    plan.delivery.lengthOff = off
  }),
  delay: directive(milliseconds, ({ delivery }, ms) => {
    delivery.delayMs = ms
  }),
  continue: directive(wholeNumber(1, 10_000), ({ delivery }, count) => {
    delivery.interims = count
  }),
  'slow-first-byte': directive(optional(1000, milliseconds), ({ delivery }, ms) => {
    delivery.firstByteMs = ms
  }),
  drip: directive(milliseconds, (plan, ms) => {
    refuseStream(plan)
    plan.delivery.dripMs = ms
  }),
  truncate: directive(nothing, ({ delivery }) => {
    delivery.close = 'in-body'
  }),
  'close-early': directive(nothing, ({ delivery }) => {
    delivery.close = 'before-headers'
  }),
  reset: directive(oneOf('before-headers', 'in-body'), ({ delivery }, stage) => {
    delivery.reset = stage
  }),
  hang: directive(oneOf('accept', 'headers', 'body'), ({ delivery }, stage) => {
    delivery.hang = stage
  }),
}

export const DIRECTIVE_NAMES: readonly string[] = Object.keys(DIRECTIVES)
export const VIDEO_DIRECTIVE_NAMES = DIRECTIVE_NAMES.filter((name) => DIRECTIVES[name]?.only?.includes('video'))

/** Changes a plan as the directives say, of two with the same name as the later one says. Tells what is wrong with them, if anything is. */
export function applyDirectives(plan: Plan, written: readonly Written[]): string | undefined {
  const values = new Map(written.map(parsed))
  for (const name of values.keys()) if (!Object.hasOwn(DIRECTIVES, name)) return `there is no directive ${name}`
  for (const [name, { only, apply }] of Object.entries(DIRECTIVES)) {
    if (!values.has(name)) continue
    if (only && !only.some((one) => one === plan.upstream.name)) return `${name} means nothing to ${plan.upstream.name}`
    try {
      apply(plan, values.get(name))
    } catch (error) {
      if (error instanceof WrongValue) return `${name} ${error.message}`
      throw error
    }
  }
  return undefined
}

function parsed(written: Written): [name: string, value: Value] {
  const at = written.indexOf('=')
  return at < 0 ? [written, undefined] : [written.slice(0, at), written.slice(at + 1)]
}

function directive<T>(
  read: (value: Value) => T,
  change: (plan: Plan, value: T) => unknown,
  only?: readonly UpstreamName[],
): Directive {
  return { ...(only && { only }), apply: (plan, value) => void change(plan, read(value)) }
}

/** What becomes of a video task, which later requests tell. */
function courseDirectives(): Record<string, Directive> {
  return Object.fromEntries(
    Object.entries(COURSE_DIRECTIVES).map(([name, courseOf]) => [
      name,
      directive(courseOf, (plan, course) => turn(plan, { course: { ...plan.knobs.course, ...course } }), ['video']),
    ]),
  )
}

/** A directive that has a model's answer made differently. */
function knob<T>(read: (value: Value) => T, knobs: (value: T) => Knobs): Directive {
  return directive(read, (plan, value) => turn(plan, knobs(value)), MODELS)
}

function say(plan: Plan, members: Record<string, unknown>): void {
  plan.body = { ...plan.body, ...members }
  plan.keepsBody = true
}

function report(plan: Plan, tokens: number): void {
  if (!plan.isBilled) return
  plan.tokens = tokens
  plan.body.usage = { total_tokens: tokens, prompt_tokens: tokens }
  if (plan.bill) plan.bill = { ...plan.bill, input: tokens }
}

function hideUsage(plan: Plan): void {
  if (plan.remade) turn(plan, { hidesUsage: true })
  else delete plan.body.usage
}

/** For what only an answer in one piece can have. */
function refuseStream({ stream }: Plan): void {
  if (stream !== undefined) throw new WrongValue('means nothing to a stream')
}

/** Puts the text in the place of the counts as it stands, so that it can be what JSON has no value for. */
function misreport(plan: Plan, value: string): void {
  const said = (tokens: number) => USAGE_WORDS[value]?.(tokens) ?? value
  if (plan.isBilled && plan.remade) misreportModel(plan, said)
  else if (plan.isBilled && plan.body.usage !== undefined) {
    const mark: unknown = JSON.parse(USAGE_MARK)
    const instead = said(plan.tokens ?? 0)
    plan.body.usage = { total_tokens: mark, prompt_tokens: mark }
    plan.rewrites.push((json) => json.replace(/("usage":\{.*?\})/, (usage) => usage.replaceAll(USAGE_MARK, instead)))
  }
}

/** No text of the answer can look like a count, since its quotation marks are escaped. */
function misreportModel(plan: Plan, said: (tokens: number) => string): void {
  const rewrite = (json: string) =>
    json.replaceAll(MODEL_COUNTS, (_, name, tokens) => `"${name}":${said(Number(tokens))}`)
  plan.rewrites.push(rewrite)
  const { stream } = plan
  if (stream) plan.stream = { ...stream, frames: () => withUsageRewritten(stream.frames(), rewrite) }
}

/** The worst result first. */
function unsort(plan: Plan): void {
  if (Array.isArray(plan.body.results)) plan.body.results = plan.body.results.toReversed()
}

function setCode(plan: Plan, code: number): void {
  const { upstream, asked } = plan
  if (code !== 200) say(plan, upstream.errorBody(code, STATUS_CODES[code] ?? 'Failed', asked))
  // A body that is an error already stays one, whatever code it bears.
  else say(plan, { code })
  plan.isBilled = code === 200
}

function deny(plan: Plan): void {
  if (plan.upstream.name === 'quotes') say(plan, { status: 'error', message: 'It failed.', tweets: [] })
  else say(plan, { success: false, comments: [], credits_charged: 0 })
  plan.isBilled = false
}

function setStatus(plan: Plan, status: number): void {
  plan.status = status
  if (status < 400 || plan.keepsBody) return
  dropContent(plan)
  plan.contentType = plan.upstream.errorType?.(plan.asked) ?? plan.contentType
  plan.body = plan.upstream.errorBody(status, STATUS_CODES[status] ?? 'Failed', plan.asked)
  plan.rewrites.length = 0
  plan.isBilled = false
  if (plan.tokens !== null) plan.tokens = 0
  if (plan.about) plan.about = { ...plan.about, inputTokens: 0 }
}

function redirect(plan: Plan, location: string): void {
  if (plan.status < 300 || plan.status > 399) plan.status = 302
  plan.headers.push(['location', location])
  dropContent(plan)
  plan.isBilled = false
}

function sendInstead(plan: Plan, content: string, contentType = plan.contentType): void {
  plan.bytes = wholeBytes(content)
  plan.contentType = contentType
}

/** `content-length` is duplicated with another value, which HTTP forbids; the others are merely ambiguous. */
function duplicateHeaders(plan: Plan, which: 'others' | 'content-length'): void {
  if (which === 'content-length') plan.headers.push(['content-length', '1'])
  else {
    plan.headers.push(['content-type', 'text/plain'], ['retry-after', '1'], ['retry-after', '2'])
    plan.headers.push(['x-request-id', 'sandbox-1'], ['x-request-id', 'sandbox-2'])
    plan.headers.push(['set-cookie', 'a=1'], ['set-cookie', 'b=2'])
  }
}
