import { renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import { ROOT } from './root.ts'

const SOURCE = path.join(ROOT, 'server/src/console/islands/main.ts')
/** Where the server looks for it. It is no source, and git ignores it. */
export const ISLANDS = path.join(ROOT, 'server/src/pages/assets/islands.js')

/** The script of the console's pages, as one small file. Whoever starts a server from its sources builds it first. */
export async function buildIslands(): Promise<void> {
  const build = await rolldown({ input: SOURCE, platform: 'browser' })
  const { output } = await build.generate({ format: 'esm', minify: true, comments: false })
  await build.close()
  const [{ code }] = output
  // Several may build it at once, and a server reads a whole one.
  const made = `${ISLANDS}.${process.pid}`
  writeFileSync(made, code)
  renameSync(made, ISLANDS)
}
