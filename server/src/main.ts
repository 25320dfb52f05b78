import { startApp } from './app.ts'
import { createProgram } from './cli/program.ts'
import type { Config } from './config.ts'

/** The `farebox` program. Everything but `serve` lives in cli/; serving needs the whole house. */
async function serve(config: Config): Promise<void> {
  // Before anything is up: a signal during the start must end what the start has begun.
  const told = new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => resolve())
  })
  const app = await startApp(config, (line) => process.stdout.write(line))
  process.stdout.write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
  await told
  await app.stop()
}

await createProgram({ serve }).parseAsync()
