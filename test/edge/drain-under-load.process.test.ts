import assert from 'node:assert/strict'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { count, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { startChildEdge } from './child-edge.ts'
import { KEY } from './probe-edge.ts'

const CALLERS = 20
const Ended = z.object({
  drained: z.object({ cutRequests: z.number() }),
  begun: z.array(z.string()),
  acceptedPorts: z.array(z.number()),
})

type Outcome =
  | { readonly kind: 'answered'; readonly id: string }
  /** Nobody takes connections any more. */
  | { readonly kind: 'not accepted' }
  /** A new connection was cut before a byte came back: its number tells whether the process had ever accepted it. */
  | { readonly kind: 'cut'; readonly localPort: number | undefined; readonly reason: string }
  | { readonly kind: 'failed'; readonly reason: string }

describe('SIGTERM under load', () => {
  it('fails no request that was accepted, and ends with 0', async () => {
    const rounds = count({ full: 20, reduced: 3 })
    const figures = { rounds, answered: 0, failed: 0, refused_to_connect: 0, slowest_stop_ms: 0 }
    for (let round = 0; round < rounds; round += 1) {
      const { outcomes, begun, cutRequests, code, stopMs } = await stopUnderLoad(round)
      const answered = new Set(outcomes.flatMap((outcome) => (outcome.kind === 'answered' ? [outcome.id] : [])))
      assert.ok(begun.length > 100, `only ${begun.length} requests were begun`)
      assert.deepEqual(
        begun.filter((id) => !answered.has(id)),
        [],
        'begun, but not answered',
      )
      assert.deepEqual(
        outcomes.filter(({ kind }) => kind === 'failed'),
        [],
      )
      assert.equal(cutRequests, 0)
      assert.equal(code, 0)
      figures.answered += answered.size
      figures.refused_to_connect += outcomes.filter(({ kind }) => kind === 'not accepted').length
      figures.slowest_stop_ms = Math.max(figures.slowest_stop_ms, Math.round(stopMs))
    }
    console.log(figures)
    recordProof('edge-drain', 'SIGTERM under load', figures)
  })
})

async function stopUnderLoad(round: number) {
  // No connection is closed for being idle: a caller that a busy machine keeps from running would find its own one closed.
  const edge = await startChildEdge({ pauseMs: round % 2 === 0 ? 0 : 300, idleGraceMs: PATIENCE_MS })
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS })
  const outcomes: Outcome[] = []
  const caller = async (index: number) => {
    // Every caller stops by itself once nobody takes connections any more.
    for (;;) {
      const path = index < 4 ? '/apis/v1/probe/slow?ms=700' : `/apis/v1/probe/slow?ms=${index % 5}`
      const outcome = await call(edge.port, path, agent)
      outcomes.push(outcome)
      if (outcome.kind === 'not accepted' || outcome.kind === 'cut') return
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, index) => caller(index)))
  await sleep(700 + 100 * (round % 7))
  await until(() => outcomes.length > 100, PATIENCE_MS, 'a load')
  const startedMs = performance.now()
  edge.child.signal('SIGTERM')
  await callers
  agent.destroy()
  const { code } = await edge.child.exited
  const stopMs = performance.now() - startedMs
  const last = edge.lines.findLast((line) => line.startsWith('{"drained"'))
  const { begun, drained, acceptedPorts } = Ended.parse(JSON.parse(last ?? '{}'))
  const judged = outcomes.map((outcome) => judge(outcome, new Set(acceptedPorts)))
  return { outcomes: judged, begun, cutRequests: drained.cutRequests, code, stopMs }
}

/** A connection that waited in the system's queue when the process stopped listening was never the process's to serve. */
function judge(outcome: Outcome, acceptedPorts: ReadonlySet<number>): Outcome {
  if (outcome.kind !== 'cut') return outcome
  const { localPort, reason } = outcome
  const wasAccepted = localPort === undefined || acceptedPorts.has(localPort)
  return wasAccepted ? { kind: 'failed', reason: `accepted, then: ${reason}` } : { kind: 'not accepted' }
}

function call(port: number, path: string, agent: Agent): Promise<Outcome> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${KEY}` }
    const request = httpRequest({ host: '127.0.0.1', port, path, agent, headers }, (response) => {
      read(response).then(resolve)
    })
    let localPort: number | undefined
    request.once('socket', (socket) => {
      if (!socket.connecting) return
      socket.once('connect', () => {
        localPort = socket.localPort
      })
    })
    request.on('error', (error) => {
      const code = 'code' in error ? error.code : undefined
      const isNew = !request.reusedSocket && (request.socket?.bytesRead ?? 0) === 0
      if (code === 'ECONNREFUSED') resolve({ kind: 'not accepted' })
      else if ((code === 'ECONNRESET' || code === 'EPIPE') && isNew)
        resolve({ kind: 'cut', localPort, reason: String(error) })
      else resolve({ kind: 'failed', reason: String(error) })
    })
    request.end()
  })
}

function read(response: IncomingMessage): Promise<Outcome> {
  return new Promise((resolve) => {
    let text = ''
    response.setEncoding('utf8')
    response.on('data', (part: string) => {
      text += part
    })
    response.on('error', (error) => resolve({ kind: 'failed', reason: String(error) }))
    response.on('end', () => {
      const whole = response.statusCode === 200 && text === '{"ok":true}'
      const id = String(response.headers['x-request-id'])
      resolve(whole ? { kind: 'answered', id } : { kind: 'failed', reason: `${response.statusCode} ${text}` })
    })
  })
}
