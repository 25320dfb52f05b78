import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { createSandbox } from './sandbox.ts'

/** `node sandbox/src/main.ts [--port N] [--seed N]`: prints its address as one JSON line when it listens. */
const { values } = parseArgs({
  options: { port: { type: 'string', default: '0' }, seed: { type: 'string', default: '1' } },
})
const seed = Number(values.seed)
if (!Number.isSafeInteger(seed)) throw new Error('--seed takes a whole number')

const { server, close } = createSandbox({ seed })
server.listen(Number(values.port), '127.0.0.1')
await once(server, 'listening')
const address = server.address()
if (address !== null && typeof address === 'object')
  console.log(JSON.stringify({ url: `http://127.0.0.1:${address.port}` }))

for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void close())
