import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { testCaller } from '../../harness/test-caller.ts'
import { callerOf } from '../../server/src/http/caller.ts'
import { createEdge, type EdgeParts } from '../../server/src/http/edge.ts'
import type { Family } from '../../server/src/http/families.ts'
import type { Caller } from '../../server/src/identity/caller.ts'
import type { Identify } from '../../server/src/identity/identify.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { FAULTS, Fault, type FaultCode } from '../../server/src/kernel/fault.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { createLog } from '../../server/src/telemetry/log.ts'
import { createMetrics } from '../../server/src/telemetry/metrics.ts'

export const KEY = 'fb_test_probe'
export const SLOWLY_KNOWN_KEY = 'fb_test_slowly'

export const isFaultCode = (text: string): text is FaultCode => Object.hasOwn(FAULTS, text)

/** What a fault that a probe throws carries beside its code, to be found again at the other end. */
export const MEMBERS = { needed_usd: '2.000000000', left_usd: '1.000000000' }

export type Probe = Awaited<ReturnType<typeof startProbeEdge>>

/** A real edge on a real port, whose routes do what a test asks them for. */
export async function startProbeEdge(parts: Partial<EdgeParts> = {}) {
  const lines: string[] = []
  const handled: string[] = []
  const edge = createEdge({
    clock: systemClock,
    ids: createIds({ clock: systemClock }),
    log: createLog({ level: 'info', write: (line) => lines.push(line), secrets: [] }),
    metrics: createMetrics(),
    families: probeFamilies((request) => handled.push(request.id)),
    identify,
    readiness: () => [],
    ...parts,
  })
  const { port } = await edge.listen({ host: '127.0.0.1', port: 0 })
  return { edge, port, url: `http://127.0.0.1:${port}`, lines, handled }
}

/** A probe edge for as long as it is used. */
export async function withEdge(parts: Partial<EdgeParts>, use: (probe: Probe) => Promise<void>): Promise<void> {
  const probe = await startProbeEdge(parts)
  try {
    await use(probe)
  } finally {
    await probe.edge.drain({ idleGraceMs: 0, deadlineMs: 500 })
  }
}

/** Somebody who is known by a name, and of whom nothing else matters. */
export function callerNamed(credentialId: string, accountId = 'account'): Caller {
  return testCaller({ workspaceId: 'workspace', accountId, credentialId, mode: 'test' })
}

const identify: Identify = (credential) => {
  const key = credential.reveal()
  const caller = callerNamed(key)
  if (key === KEY) return caller
  if (key === SLOWLY_KNOWN_KEY) return systemClock.sleep(5).then(() => caller)
  throw new Fault('invalid_credential')
}

export function probeFamilies(onHandled: (request: FastifyRequest) => void = () => {}): Family[] {
  const counting = (register: (scope: FastifyInstance) => void) => (scope: FastifyInstance) => {
    scope.addHook('preHandler', async (request) => onHandled(request))
    register(scope)
  }
  return [
    { name: 'chat', prefix: '/v1', dialect: 'openai', register: counting(addChat) },
    { name: 'messages', prefix: '/v1/messages', dialect: 'anthropic', register: counting(addMessages) },
    { name: 'gemini', prefix: '/v1beta', dialect: 'gemini', register: counting(addGemini) },
    { name: 'data', prefix: '/apis/v1', dialect: 'data', register: counting(addData) },
  ]
}

function addChat(scope: FastifyInstance): void {
  scope.post('/chat/completions', (request) => answer(modelOf(request)))
  scope.get('/models', () => answer(''))
  scope.get<{ Querystring: { fault?: string } }>('/usage', { config: { plainBadRequest: true } }, ({ query }) =>
    answer(query.fault ?? ''),
  )
}

function addMessages(scope: FastifyInstance): void {
  scope.post('', (request) => answer(modelOf(request)))
}

function addGemini(scope: FastifyInstance): void {
  scope.post<{ Params: { '*': string } }>('/models/*', ({ params }) => answer(params['*'].replace(/:.*/, '')))
}

function addData(scope: FastifyInstance): void {
  scope.get<{ Querystring: { fault?: string } }>('/probe', ({ query }) => answer(query.fault ?? ''))
  scope.get('/probe/public', { config: { access: 'public' } }, () => ({ ok: true }))
  scope.get('/probe/optional', { config: { access: 'optional' } }, ({ caller }) => ({
    caller: caller?.credentialId ?? null,
  }))
  scope.get('/probe/caller', (request) => ({ caller: callerOf(request).credentialId, address: request.address }))
  scope.get<{ Querystring: { ms: string } }>('/probe/slow', async ({ query }) => {
    await systemClock.sleep(Number(query.ms))
    return { ok: true }
  })
  scope.get('/probe/close', (_request, reply) => reply.header('connection', 'close').send({ ok: true }))
  scope.get('/probe/throw', () => {
    throw new Error('the reason stays inside')
  })
  scope.get<{ Querystring: { bytes: string } }>('/probe/big', ({ query }, reply) =>
    reply.type('application/octet-stream').send(Buffer.alloc(Number(query.bytes), 'x')),
  )
  scope.post('/probe/take', () => ({ ok: true }))
  scope.get('/probe/stream', (_request, reply) => {
    reply.hijack()
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
    reply.raw.write('data: 1\n\n')
    setTimeout(() => reply.raw.end('data: 2\n\n'), 100)
  })
  scope.post('/probe/echo', ({ body, rawBody }) => ({
    body,
    bytes: rawBody?.length,
    sha256: rawBody && createHash('sha256').update(rawBody).digest('hex'),
  }))
}

/** `fault-<code>` or `fault-<code>-<seconds>` throws that fault, with a Retry-After where seconds are given. */
function answer(wish: string): { ok: true } {
  const [word, code = '', seconds] = wish.split('-')
  if (word === 'fault' && isFaultCode(code)) {
    const retryAfterSeconds = seconds === undefined ? {} : { retryAfterSeconds: Number(seconds) }
    throw new Fault(code, { detail: 'Thrown by a probe.', members: MEMBERS, ...retryAfterSeconds })
  }
  return { ok: true }
}

function modelOf({ body }: FastifyRequest): string {
  if (typeof body !== 'object' || body === null || !('model' in body)) return ''
  return typeof body.model === 'string' ? body.model : ''
}
