import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Refuse, RefusedOf } from '../gateway/refuse.ts'
import type { Caller } from '../identity/caller.ts'
import { asFault, Fault, type FaultCode } from '../kernel/fault.ts'
import type { FaultDialect, RenderFault } from '../wire/answer.ts'
import { exchangeOf } from '../wire/exchange.ts'
import { dialectFor, type FamilyName } from '../wire/family.ts'
import { idHeaders } from '../wire/send-whole.ts'
import type { Traffic } from '../wire/traffic.ts'
import { FORM_TYPE } from './body.ts'
import type { Policy } from './policies.ts'

type Parts = {
  readonly traffic: Pick<Traffic, 'refused'>
  readonly render: RenderFault
  readonly refuse: Refuse
  readonly policy: Pick<Policy, 'challenge' | 'home'>
}

/** Answers whatever a route, a hook or the framework has thrown, in the protocol of whoever asked. */
export function createFailureAnswer({ traffic, render, refuse, policy: { challenge, home } }: Parts) {
  return (thrown: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const exchange = exchangeOf(request.raw)
    const hasLeft = (request.raw.destroyed && !request.raw.complete) || reply.raw.destroyed
    let fault = toFault(thrown, request)
    if (!hasLeft) {
      const { url: route } = request.routeOptions
      traffic.refused(fault, exchange, { route, isBegun: request.progress?.begun === true })
      // Where the framework gave up before its hooks ran, there is not even a null.
      if (request.caller) fault = refuse(refusedOf(request, request.caller), fault)
    }
    if (hasLeft || reply.raw.headersSent) {
      // Nobody is there, or an answer has begun: it can only be broken off, never be followed by another.
      reply.hijack()
      reply.raw.destroy()
      return
    }
    const shown = fault.status === 401 && home ? fault.with({ members: { ...fault.members, ...home } }) : fault
    const { status, headers, body } = render(dialectOf(request, fault), shown, request.id)
    if (reply.hasHeader('connection')) reply.header('connection', mayStayOpen(request, reply) ? 'keep-alive' : 'close')
    reply
      .code(status)
      .headers({
        ...headers,
        ...idHeaders(request.id),
        ...(status === 401 && challenge && challengeOf(challenge, request, fault)),
      })
      .send(body)
  }
}

function refusedOf(request: FastifyRequest, caller: Caller): RefusedOf {
  const { id, headers, progress } = request
  const idempotencyKey = headers['idempotency-key']
  return {
    id,
    caller,
    operation: request.routeOptions.config.callOf?.(request)?.id,
    model: progress?.model,
    idempotencyKey: typeof idempotencyKey === 'string' ? idempotencyKey : undefined,
    isBegun: progress?.begun === true,
  }
}

function challengeOf(
  challenge: NonNullable<Policy['challenge']>,
  { headers: { host = '' } }: FastifyRequest,
  fault: Fault,
) {
  return { 'www-authenticate': challenge(host, fault.code !== 'missing_credential') }
}

/**
 * The framework closes the connection after a body that it did not like. What is left of the body can be thrown away
 * instead, unless the caller waits to be told whether to send it at all.
 */
function mayStayOpen(request: FastifyRequest, reply: FastifyReply): boolean {
  const isLast = exchangeOf(request.raw)?.connection.isClosing === true
  return reply.raw.shouldKeepAlive && !isLast && request.headers.expect === undefined
}

function dialectOf(request: FastifyRequest, fault: Fault): FaultDialect {
  if (request.routeOptions.config.plainBadRequest === true && fault.status === 400) return 'plain'
  return dialectAskedBy(request)
}

/** The protocol of whoever asked, whether or not there is such a route. */
export function dialectAskedBy(request: FastifyRequest): FaultDialect {
  if (request.routeOptions.config.isPage === true) return dialectFor({ dialect: 'html' }, request.raw)
  return dialectFor(familyOf(request) ?? { dialect: 'data' }, request.raw)
}

function familyOf({ routeOptions, raw }: FastifyRequest): FamilyName | undefined {
  return routeOptions.config.family ?? exchangeOf(raw)?.family
}

const FRAMEWORK_FAULTS: ReadonlyMap<string, FaultCode> = new Map<string, FaultCode>([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'body_too_large'],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'unsupported_media_type'],
  ['FST_ERR_ROUTE_MISSING_CONTENT_TYPE', 'unsupported_media_type'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 'invalid_request'],
  ['FST_ERR_VALIDATION', 'invalid_request'],
  ['FST_ERR_BAD_URL', 'invalid_request'],
  ['FST_ERR_MAX_PARAM_LENGTH', 'uri_too_long'],
])

/** The framework's refusals in our words; its texts quote what the caller sent, so they are not passed on. */
function toFault(thrown: unknown, request: FastifyRequest): Fault {
  if (thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string') {
    const code = FRAMEWORK_FAULTS.get(thrown.code)
    if (code === 'unsupported_media_type') return new Fault(code, { detail: `Send ${typeTakenBy(request)}.` })
    if (code === 'body_too_large') return bodyTooLarge(request)
    if (code !== undefined) return new Fault(code)
  }
  return asFault(thrown)
}

function bodyTooLarge({ headers, routeOptions: { bodyLimit } }: FastifyRequest): Fault {
  const sent = Number(headers['content-length'])
  const limit = `the limit here is ${inMebibytes(bodyLimit)}`
  const detail = sent > bodyLimit ? `The body is ${inMebibytes(sent)}; ${limit}.` : `The body is too large: ${limit}.`
  return new Fault('body_too_large', { detail, members: { limit_bytes: bodyLimit } })
}

/** As people read it, and never so that what is too large looks as if it were not. */
function inMebibytes(bytes: number): string {
  if (bytes < 1_048_576) return `${bytes.toLocaleString('en-US')} bytes`
  const mebibytes = Math.ceil((bytes / 1_048_576) * 100) / 100
  return `${mebibytes.toLocaleString('en-US')} MiB`
}

/** A route may take forms in a family of JSON. */
function typeTakenBy({ server }: FastifyRequest): string {
  return server.hasContentTypeParser(FORM_TYPE) ? FORM_TYPE : 'application/json'
}
