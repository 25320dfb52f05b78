import { once } from 'node:events'
import type { App } from './app.ts'
import { createProgram } from './cli/program.ts'
import { secretsIn } from './cli/secrets.ts'
import { endOnUncaught } from './cli/uncaught.ts'
import { type Config, isStartedByNpx } from './config.ts'
import { createLog, type Log } from './telemetry/log.ts'

/** The `farebox` program. Everything but `serve` lives in cli/; serving needs the whole house. */
async function serve(config: Config): Promise<void> {
  const write = (line: string) => process.stdout.write(line)
  const log = createLog({ ...config.log, write, secrets: secretsIn(config) })
  endOnUncaught(log)
  if (isStartedByNpx())
    log.warn(
      'started by npx, which does not pass SIGTERM on: this process would outlive it. Start it with exec node instead',
    )
  let app: App | undefined
  // Before anything is up: a signal during the start must end what the start has begun.
  const told = toldToStop((signal) => stopAtOnce(log, app, signal))
  // Nobody reads the log any more: what was accepted is finished, and then there is nothing to be here for.
  outputClosed = told.stop

  // A command that only reads a row need not load the house.
  const { startApp } = await import('./app.ts')
  app = await startApp(config, { log, cancel: told.signal }).catch((error: unknown) => {
    if (told.signal.aborted) return undefined
    throw error
  })
  if (app === undefined) return log.info('stopped before it was up')
  write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
  if (!told.signal.aborted) await once(told.signal, 'abort')
  await app.stop()
}

const SIGNALS = { SIGTERM: 143, SIGINT: 130 } as const
type Signal = keyof typeof SIGNALS
/** A terminal and whoever started us may both pass one Ctrl-C on. */
const SAME_SIGNAL_MS = 300

/** The first signal asks for an orderly stop, the second for one at once. */
function toldToStop(atOnce: (signal: Signal) => void): { readonly signal: AbortSignal; readonly stop: () => void } {
  const told = new AbortController()
  let toldAtMs = 0
  const hear = (signal: Signal) => {
    if (!told.signal.aborted) {
      toldAtMs = performance.now()
      told.abort()
    } else if (performance.now() - toldAtMs > SAME_SIGNAL_MS) atOnce(signal)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => hear(signal))
  return { signal: told.signal, stop: () => told.abort() }
}

function stopAtOnce(log: Pick<Log, 'warn'>, app: App | undefined, signal: Signal): void {
  const reason = app?.waiting() ?? 'it was not up yet'
  log.warn('told twice to stop, so it stops at once', { signal, reason })
  process.exit(SIGNALS[signal])
}

/** Whoever read what we print has left, as `head` does: there is nobody to tell. */
let outputClosed: () => void = () => process.exit()
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    outputClosed()
  })

await (await createProgram({ serve }, process.argv[2])).parseAsync()
// Whatever a failed start left open must not keep alive a process that has said why it ends.
process.exit()
