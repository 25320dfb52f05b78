import { subscribe } from 'node:diagnostics_channel'
import { Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { FastifyInstance } from 'fastify'
import { PATIENCE_MS } from '../../harness/until.ts'
import type { DrainOptions } from '../../server/src/wire/drain.ts'
import type { EdgeLimits } from '../../server/src/wire/limits.ts'
import { KEY, probeFamilies, startProbeEdge } from './probe-edge.ts'

/**
 * The probe edge as a program of its own, for tests that could kill it: prints its port, stops on SIGTERM as the real
 * one does, and then prints what became of its requests.
 */
type Wishes = Pick<DrainOptions, 'pauseMs' | 'deadlineMs' | 'idleGraceMs'> & { readonly limits?: Partial<EdgeLimits> }

const RESOLUTION_MS = 5
const wishes: Wishes = JSON.parse(process.argv[2] ?? '{}')
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
const begun: string[] = []
const acceptedPorts: number[] = []
let smuggled = 0

// Tells of every connection that the process takes from the system, whatever becomes of it.
subscribe('net.server.socket', (message) => {
  if (typeof message === 'object' && message !== null && 'socket' in message && message.socket instanceof Socket)
    acceptedPorts.push(message.socket.remotePort ?? 0)
})

function addControl(scope: FastifyInstance): void {
  const config = { access: 'public' } as const
  /** The longest the event loop stood still, and how often a smuggled request was run, since this was last asked. */
  scope.get('/stall', { config }, () => {
    const stalledMs = Math.max(0, delay.max / 1e6 - RESOLUTION_MS)
    const answer = { stalledMs, smuggled, handled: begun.length }
    delay.reset()
    smuggled = 0
    begun.length = 0
    return answer
  })
  scope.all('/smuggled', () => {
    smuggled += 1
    return { smuggled }
  })
}

const families = [
  ...probeFamilies(({ id }) => begun.push(id)),
  { name: 'control', prefix: '/control', dialect: 'data', register: addControl } as const,
]
const { edge, port, lines } = await startProbeEdge({ families, ...(wishes.limits && { limits: wishes.limits }) })
delay.enable()
console.log(JSON.stringify({ port, key: KEY }))

process.once('SIGTERM', async () => {
  const { limits: _, deadlineMs = PATIENCE_MS, ...drain } = wishes
  const drained = await edge.drain({ ...drain, deadlineMs })
  console.log(JSON.stringify({ drained, begun, acceptedPorts }))
  for (const line of lines) process.stderr.write(line)
})
