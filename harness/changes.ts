import path from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Start } from '../server/src/app/options.ts'
import { ROOT } from './root.ts'

/** What a test changes of the real server, by the environment that it is started with. */
export type Changes = (env: NodeJS.ProcessEnv) => Omit<Start, 'log' | 'cancel'>

/** Those that a module exports as `changes`; none where there is no module. */
export async function loadChanges(file: string | undefined): Promise<Changes> {
  if (file === undefined) return () => ({})
  const { changes } = (await import(pathToFileURL(path.join(ROOT, file)).href)) as { readonly changes: Changes }
  return changes
}
