import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { readReplays } from './replay.ts'
import { createSandbox } from './sandbox.ts'

/**
 * `node sandbox/src/main.ts [--port N] [--seed N] [--video-tasks FILE] [--replay FOLDER]…`: prints its address as one JSON
 * line when it listens. The file has what `GET /control/video/kept` gave before an earlier life ended; each
 * folder has recordings, which are served under `/replay/<its name>`.
 */
const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    seed: { type: 'string', default: '1' },
    'video-tasks': { type: 'string' },
    replay: { type: 'string', multiple: true, default: [] },
  },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number')

const file = values['video-tasks']
const videoTasks = file === undefined ? [] : JSON.parse(readFileSync(file, 'utf8'))
const { server, close } = createSandbox({ seed, videoTasks, replays: readReplays(values.replay) })
server.listen(Number(values.port), '127.0.0.1')
await once(server, 'listening')
const address = server.address()
if (address !== null && typeof address === 'object')
  console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}` }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void close())
