import { hash } from 'node:crypto'
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Control } from './control.ts'
import { deliver, type Hung } from './deliver.ts'
import { applyDirectives } from './directives.ts'
import { directivesInBody, directivesInQuery, type Written } from './find-directives.ts'
import { closeEntry, type OpenEntry, type Outcome } from './journal.ts'
import { planFor } from './plan.ts'
import { BODY_LIMIT, jsonIn, readBody } from './read-body.ts'
import { sendJson } from './send-json.ts'
import { type Asked, type Reply, SANDBOX_KEY, type Upstream } from './upstream.ts'

/** One request to an upstream, and where its answer goes. */
export type Exchange = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly entry: OpenEntry
  readonly upstream: Upstream
  /** Without the upstream's prefix. */
  readonly path: string
  readonly query: string
}

type Parts = {
  readonly control: Control
  readonly hung: Hung
  readonly seed: number
  readonly nowMs: () => number
}

const NOTHING_SHA256 = hash('sha256', '')

/** The path of every request to an upstream: read it, check the credential, make the answer up, spoil it as asked, send it. */
export function createExchanges({ control, hung, seed, nowMs }: Parts): (exchange: Exchange) => void {
  return function run(exchange) {
    const { request, response, entry, upstream, path, query } = exchange
    const parameters = new URLSearchParams(query)
    // Of two the later one counts, which is what control has said.
    const known = [...directivesInQuery(query, parameters), ...control.take(upstream.name)]
    const asked = { method: request.method ?? '', path, parameters, body: undefined, seed, nowMs: nowMs() }
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
      answer(exchange, { ...asked, body }, [...directivesInBody(bytes, body), ...known])
    }
  }

  function answer(
    { request, response, entry, upstream }: Exchange,
    asked: Asked,
    directives: readonly Written[],
  ): void {
    entry.credential = credentialOf(request, upstream)
    const reply = replyTo(asked, upstream, entry.credential)
    entry.tokens = reply.tokens
    entry.billed = reply.isBilled
    if (directives.length === 0 || entry.credential !== 'right') finish(response, entry, reply.status, reply.body)
    else {
      const plan = planFor(upstream, asked, reply)
      const wrong = applyDirectives(plan, directives)
      entry.directives = directives
      entry.tokens = plan.tokens
      entry.billed = plan.isBilled && wrong === undefined
      if (wrong === undefined) void deliver(response, plan, entry, hung)
      else finish(response, entry, 400, { sandbox_error: wrong }, 'refused')
    }
  }
}

function replyTo(asked: Asked, upstream: Upstream, credential: OpenEntry['credential']): Reply {
  const status = asked.method !== upstream.method ? 405 : credential !== 'right' ? 401 : 200
  if (status === 200) return upstream.answer(asked)
  return { status, body: upstream.errorBody(status, STATUS_CODES[status] ?? '', asked), tokens: null, isBilled: false }
}

function credentialOf({ headers }: IncomingMessage, { credential }: Upstream): 'right' | 'wrong' | 'missing' {
  const sent = headers[credential.header]
  if (sent === undefined) return 'missing'
  return sent === (credential.scheme === 'bearer' ? `Bearer ${SANDBOX_KEY}` : SANDBOX_KEY) ? 'right' : 'wrong'
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
): void {
  sendJson(response, status, body)
  entry.status = status
  closeEntry(entry, outcome)
}
