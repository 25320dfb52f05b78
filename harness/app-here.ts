import { startApp } from '../server/src/app.ts'
import { secretsIn } from '../server/src/cli/secrets.ts'
import { loadConfig } from '../server/src/config.ts'
import { createLog } from '../server/src/telemetry/log.ts'
import type { Changes } from './changes.ts'
import { type Child, keptOutput } from './child.ts'
import { childHere } from './child-here.ts'

export type Addresses = Readonly<Record<'gateway' | 'site' | 'agent' | 'admin', string>>

/** The server in this process. It can be stopped, and nothing else that is done to a process can be done to it. */
export async function startAppHere(
  env: NodeJS.ProcessEnv,
  onLine: ((line: string) => void) | undefined,
  changes: Changes,
): Promise<{ readonly child: Child; readonly addresses: Addresses }> {
  const config = loadConfig(env)
  const output = keptOutput()
  const write = (text: string): boolean => {
    output.add(text)
    if (onLine) for (const line of text.split('\n')) if (line !== '') onLine(line)
    return true
  }
  const log = createLog({ ...config.log, write, secrets: secretsIn(config) })
  const app = await startApp(config, { log, cancel: new AbortController().signal, ...changes(env) })
  const { gateway = '', site = '', agent = '', admin = '' } = app.addresses
  return { child: childHere(output.text, app.stop), addresses: { gateway, site, agent, admin } }
}
