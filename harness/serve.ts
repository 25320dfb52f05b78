import { once } from 'node:events'
import { startApp } from '../server/src/app.ts'
import { secretsIn } from '../server/src/cli/secrets.ts'
import { loadConfig } from '../server/src/config.ts'
import { createLog } from '../server/src/telemetry/log.ts'
import type { Changes } from './changes.ts'

/** The real server as a program of a test's own, with what it changes: says when it is ready, and stops on SIGTERM. */
export async function serve(changes: ReturnType<Changes>): Promise<never> {
  const config = loadConfig()
  const write = (line: string) => process.stdout.write(line)
  const told = new AbortController()
  process.on('SIGTERM', () => told.abort())
  const log = createLog({ ...config.log, write, secrets: secretsIn(config) })
  const app = await startApp(config, { log, cancel: told.signal, ...changes })
  write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
  if (!told.signal.aborted) await once(told.signal, 'abort')
  await app.stop()
  process.exit()
}
