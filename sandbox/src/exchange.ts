import { hash } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Control } from './control.ts'
import { deliver, type Hung } from './deliver.ts'
import { deviate } from './deviant-replies.ts'
import type { Deviance } from './deviants.ts'
import { applyDirectives } from './directives.ts'
import { directivesInBody, directivesInQuery, type Written } from './find-directives.ts'
import { closeEntry, type OpenEntry, type Outcome } from './journal.ts'
import { foldedJson, parametersOf } from './loose-reading.ts'
import { headersOf, planFor } from './plan.ts'
import { BODY_LIMIT, jsonIn, readBody } from './read-body.ts'
import { sendJson } from './send-json.ts'
import {
  type Asked,
  type Credential,
  credentialIn,
  type Header,
  isCredential,
  type Knobs,
  type Reply,
  type Upstream,
  usageIn,
} from './upstream.ts'
import { Prefixes } from './upstreams/models/prefixes.ts'
import type { Platform } from './upstreams/platform-state.ts'
import type { VideoTasks } from './upstreams/video-tasks.ts'

/** One request to an upstream, and where its answer goes. */
export type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly entry: OpenEntry
  readonly upstream: Upstream
  /** Without the upstream's prefix. */
  readonly path: string
  readonly query: string
  readonly deviance: Deviance
}

type Parts = {
  readonly control: Control
  readonly videos: VideoTasks
  readonly platform: Platform
  readonly hung: Hung
  readonly seed: number
  readonly nowMs: () => number
}

const NOTHING_SHA256 = hash('sha256', '')
const FORM_TYPE = 'application/x-www-form-urlencoded'
const NO_FORM = new URLSearchParams()
const NO_DIRECTIVES: readonly Written[] = []

/** The path of every request to an upstream: read it, check the credential, make the answer up, spoil it as asked, send it. */
export function createExchanges({ control, videos, platform, hung, seed, nowMs }: Parts): (exchange: Exchange) => void {
  const prefixes = new Prefixes()

  return function run(exchange) {
    const { request, response, entry, upstream, path, query, deviance } = exchange
    const parameters = parametersOf(query, deviance)
    // Of two the later one counts, which is what control has said.
    const known = [
      ...directivesInQuery(query, parameters),
      ...control.take(upstream.name, path, credentialIn(request.headers)),
    ]
    const { method = '', headers } = request
    const about = { method, path, parameters, headers, seed, nowMs: nowMs(), prefixes, videos, platform, deviance }
    const asked = { ...about, body: undefined, form: NO_FORM, bodySha256: '' }
    // Such a request is answered by nothing, so not a byte of its body is read.
    if (known.includes('hang=accept')) answer(exchange, asked, known)
    else
      readBody(request, (bytes) => {
        if (bytes === 'left') closeEntry(entry, 'left')
        else if (bytes === 'too-large') refuseBody(response, entry)
        else answerBody(exchange, asked, bytes, known)
      })
  }

  function answerBody(exchange: Exchange, asked: Asked, bytes: Buffer, known: readonly Written[]): void {
    const { entry } = exchange
    if (bytes.length === 0) {
      entry.body_sha256 = NOTHING_SHA256
      answer(exchange, asked, known)
    } else {
      entry.body_bytes = bytes.length
      entry.body_sha256 = hash('sha256', bytes)
      const body = jsonIn(bytes)
      const form = asked.headers['content-type']?.startsWith(FORM_TYPE)
        ? new URLSearchParams(bytes.toString())
        : NO_FORM
      const read = asked.deviance.foldsCase ? foldedJson(body) : body
      const whole = { ...asked, body: read, form, bodySha256: entry.body_sha256 }
      answer(exchange, whole, [...directivesInBody(bytes, body), ...known])
    }
  }

  function answer({ request, response, entry, upstream }: Exchange, asked: Asked, written: readonly Written[]): void {
    entry.credential = upstream.credentialOf?.(asked) ?? credentialOf(request, upstream)
    const isTrusted = entry.credential === 'right' || upstream.isOpen?.(asked.path) === true
    const reply = deviate(replyTo(asked, upstream, isTrusted), asked)
    const directives = isTrusted ? written : NO_DIRECTIVES
    if (directives.length === 0 && isPlain(reply)) {
      note(entry, reply)
      if (reply.about) entry.usage = usageIn(reply.body) ?? null
      carryOut(entry, reply, {})
      finish(response, entry, reply.status, reply.body, 'answered', headersOf(upstream, asked, reply))
    } else {
      const plan = planFor(upstream, asked, reply)
      const wrong = applyDirectives(plan, directives)
      note(entry, plan)
      entry.directives = directives
      entry.task_id = reply.taskId ?? null
      const isStill = plan.status < 300 || plan.status === reply.status
      const isDone = wrong === undefined && (isStill || plan.isDoneAnyway)
      entry.billed = reply.carryOut ? isDone && reply.isBilled : wrong === undefined && plan.isBilled
      entry.bill = (entry.billed && plan.bill) || null
      if (isDone) carryOut(entry, reply, plan.knobs)
      if (wrong === undefined) void deliver(response, plan, entry, hung)
      else finish(response, entry, 400, { sandbox_error: wrong }, 'refused')
    }
  }
}

/** Before a byte of the answer is sent, so that it is done though the answer is lost. */
function carryOut(entry: OpenEntry, reply: Reply, knobs: Knobs): void {
  const made = reply.carryOut?.(knobs)
  entry.task_id = reply.taskId ?? made ?? null
}

/** Whether an answer is but JSON that is sent whole. */
function isPlain({ stream, content, delivery }: Reply): boolean {
  return stream === undefined && content === undefined && delivery === undefined
}

function replyTo(asked: Asked, upstream: Upstream, isTrusted: boolean): Reply {
  const status = !takes(upstream, asked) ? 405 : isTrusted ? 200 : 401
  if (status === 200) return upstream.answer(asked)
  const body = upstream.errorBody(status, STATUS_CODES[status] ?? '', asked)
  const type = upstream.errorType?.(asked)
  const content = type === undefined ? undefined : { type, bytes: JSON.stringify(body) }
  return { status, body, tokens: null, isBilled: false, ...(content && { content }) }
}

function takes({ methodOf }: Upstream, { method, path }: Asked): boolean {
  const taken = methodOf(path)
  return method === taken || (taken === 'either' && (method === 'GET' || method === 'POST'))
}

type Noted = {
  readonly tokens: number | null
  readonly isBilled: boolean
  readonly bill?: Reply['bill'] | undefined
  readonly about?: Reply['about'] | undefined
}

/** What the answer says, whatever becomes of it on the way. */
function note(entry: OpenEntry, { tokens, isBilled, bill, about }: Noted): void {
  entry.tokens = tokens
  entry.billed = isBilled
  entry.bill = (isBilled && bill) || null
  if (about === undefined) return
  entry.model = about.model
  entry.stream = about.isStreamed
  entry.input_tokens = about.inputTokens
}

function credentialOf({ headers }: IncomingMessage, { credentials }: Upstream): Credential {
  const sent = credentials.find(({ header }) => headers[header] !== undefined)
  if (sent === undefined) return 'missing'
  const prefix = sent.scheme === 'bearer' ? 'Bearer ' : ''
  const text = String(headers[sent.header])
  return text.startsWith(prefix) && isCredential(text.slice(prefix.length)) ? 'right' : 'wrong'
}

/** Closes the connection too: what is still to come of such a body is not worth reading. */
function refuseBody(response: ServerResponse, entry: OpenEntry): void {
  response.once('finish', () => response.destroy())
  response.shouldKeepAlive = false
  finish(response, entry, 413, { error: `The sandbox reads at most ${BODY_LIMIT} bytes.` }, 'refused')
}

/** Answers whole and at once. */
export function finish(
  response: ServerResponse,
  entry: OpenEntry,
  status: number,
  body: unknown,
  outcome: Outcome = 'answered',
  headers: readonly Header[] = [],
): void {
  sendJson(response, status, body, headers)
  entry.status = status
  closeEntry(entry, outcome)
}
