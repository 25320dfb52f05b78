import { once } from 'node:events'
import { startApp } from './app.ts'
import { createProgram } from './cli/program.ts'
import { secretsIn } from './cli/secrets.ts'
import { endOnUncaught } from './cli/uncaught.ts'
import type { Config } from './config.ts'
import { createLog } from './telemetry/log.ts'

/** The `farebox` program. Everything but `serve` lives in cli/; serving needs the whole house. */
async function serve(config: Config): Promise<void> {
  const write = (line: string) => process.stdout.write(line)
  const log = createLog({ level: config.log.level, write, secrets: secretsIn(config) })
  endOnUncaught(log)
  // Before anything is up: a signal during the start must end what the start has begun.
  const told = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => told.abort())

  const app = await startApp(config, { log, cancel: told.signal }).catch((error: unknown) => {
    if (told.signal.aborted) return undefined
    throw error
  })
  if (app === undefined) return log.info('stopped before it was up')
  write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
  if (!told.signal.aborted) await once(told.signal, 'abort')
  await app.stop()
}

await createProgram({ serve }).parseAsync()
// Whatever a failed start left open must not keep alive a process that has said why it ends.
process.exit()
