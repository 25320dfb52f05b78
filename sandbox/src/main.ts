import { parseArgs } from 'node:util'
import { startSimulation } from './simulation.ts'

/**
 * `node sandbox/src/main.ts [--port N] [--host ADDRESS] [--smtp-port N] [--seed N] [--video-tasks FILE] [--replay FOLDER]…`: prints its
 * address as one JSON line when it listens. It receives mail where a port for that is given, which can be 0 for any.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string' },
    'smtp-port': { type: 'string' },
    seed: { type: 'string', default: '1' },
    'video-tasks': { type: 'string' },
    replay: { type: 'string', multiple: true, default: [] },
  },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number')

const { 'smtp-port': smtpPort, 'video-tasks': videoTasks, replay } = values
const { url, smtpUrl, close } = await startSimulation({
  seed,
  port: Number(values.port),
  host: values.host,
  smtpPort: smtpPort === undefined ? undefined : Number(smtpPort),
  videoTasks,
  replay,
})
console.log(JSON.stringify({ url, ...(smtpUrl !== undefined && { smtp_url: smtpUrl }) }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void close())
