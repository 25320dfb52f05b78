import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rolldown } from 'rolldown'
import { buildClient } from '../harness/build-client.ts'
import { statusOfProofs } from '../harness/proof-status.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/** `npm run build`: the server as one file beside its threads and migrations, the client with its types, the console's pages. */
scriptArguments('Usage: npm run build: server, sandbox, client and console for production, under dist/ of each.', {})
const at = (...parts: string[]) => path.join(ROOT, ...parts)
const run = (command: string, ...args: string[]) =>
  execFileSync(at('node_modules/.bin', command), args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] })

async function bundle(input: Record<string, string>, folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  // Packages stay outside: they are installed, pinned and audited as packages.
  const build = await rolldown({
    input,
    platform: 'node',
    external: (id) => !id.startsWith('.') && !path.isAbsolute(id),
  })
  await build.write({ dir: folder, format: 'esm', sourcemap: true, entryFileNames: '[name].js' })
  await build.close()
}

// A thread needs a file of its own, beside the bundle.
const threads = {
  'count-worker': at('server/src/upstreams/tokens/count-worker.ts'),
  'large-json-worker': at('server/src/http/large-json-worker.ts'),
}
await bundle({ server: at('server/src/main.ts'), ...threads }, at('server/dist'))
// An old Node could not even read the bundle, and has to be told so in a sentence.
cpSync(at('server/bin/require-node.js'), at('server/dist/require-node.js'))
writeFileSync(at('server/dist/main.js'), "import './require-node.js'\n\nawait import('./server.js')\n")
cpSync(at('server/src/http/pages/assets'), at('server/dist/assets'), { recursive: true })
// The guides and proofs that the website shows, with which proofs are stale as of this build.
for (const part of ['proof', 'performance']) cpSync(at('docs', part), at('server/dist/docs', part), { recursive: true })
for (const file of readdirSync(at('docs')).filter((name) => /\.(md|svg)$/.test(name)))
  cpSync(at('docs', file), at('server/dist/docs', file))
const states = statusOfProofs().map(({ proof, state }) => [proof, state])
writeFileSync(at('server/dist/docs/proof-status.json'), JSON.stringify(Object.fromEntries(states)))
cpSync(at('server/src/storage/migrations'), at('server/dist/migrations'), { recursive: true })
await bundle({ main: at('sandbox/src/main.ts') }, at('sandbox/dist'))
await buildClient()
run('vite', 'build', '--logLevel', 'warn', '--config', 'console/vite.config.ts')
console.log('built server/dist, sandbox/dist, client/dist, console/dist')
