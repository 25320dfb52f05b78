import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import { ROOT } from './root.ts'

/** The client for production: one file that any runtime with web standards loads, and its types. */
export async function buildClient(folder = path.join(ROOT, 'client/dist')): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const tsc = path.join(ROOT, 'node_modules/.bin/tsc')
  const types = ['-p', 'client/tsconfig.json', '--emitDeclarationOnly', '--outDir', folder]
  execFileSync(tsc, types, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })
  // The compiler leaves the names of sources in declarations, which older ones and other tools do not find.
  for (const name of readdirSync(folder)) {
    const file = path.join(folder, name)
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/ from '(\.\/[\w-]+)\.ts'/g, " from '$1.js'"))
  }
  const build = await rolldown({ input: path.join(ROOT, 'client/src/index.ts'), platform: 'neutral' })
  // What sources say stands in the types, and in the sources that the map names.
  await build.write({ file: path.join(folder, 'index.js'), format: 'esm', sourcemap: true, comments: false })
  await build.close()
  cpSync(path.join(ROOT, 'LICENSE'), path.join(folder, 'LICENSE'))
}
