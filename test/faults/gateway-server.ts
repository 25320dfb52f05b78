import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { startApp } from '../../server/src/app.ts'
import { secretsIn } from '../../server/src/cli/secrets.ts'
import { loadConfig } from '../../server/src/config.ts'
import { type Clock, systemClock } from '../../server/src/kernel/clock.ts'
import { createLog } from '../../server/src/telemetry/log.ts'

/** The real server as a program whose wall clock can be moved while it runs: SIGUSR2 makes it read the offset anew. */
const file = process.env.HARNESS_CLOCK_FILE ?? ''
let offsetMs = 0
process.on('SIGUSR2', () => {
  offsetMs = Number(readFileSync(file, 'utf8'))
})
const clock: Clock = { ...systemClock, nowMs: () => systemClock.nowMs() + offsetMs }

const config = loadConfig()
const log = createLog({
  level: config.log.level,
  write: (line) => process.stdout.write(line),
  secrets: secretsIn(config),
})
const told = new AbortController()
process.on('SIGTERM', () => told.abort())
const app = await startApp(config, { log, cancel: told.signal, clock })
process.stdout.write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
if (!told.signal.aborted) await once(told.signal, 'abort')
await app.stop()
process.exit()
