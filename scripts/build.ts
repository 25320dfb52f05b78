import { spawnSync } from 'node:child_process'
import { cpSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type Plugin, rolldown } from 'rolldown'
import { billOfMaterials } from '../harness/bill-of-materials.ts'
import { buildClient } from '../harness/build-client.ts'
import { buildIslands } from '../harness/build-islands.ts'
import { statusOfProofs } from '../harness/proof-status.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { bundledPackages, thirdPartyNotices } from '../harness/third-party-notices.ts'
import { accountContractInput } from '../server/src/account/document.ts'
import { catalogue } from '../server/src/catalogue/catalogue.ts'
import { VERSION } from '../server/src/cli/version.ts'
import { draftFile, writtenDraft } from '../server/src/contracts/draft.ts'
import { draftOf } from '../server/src/contracts/make-draft.ts'
import { contractInputOf } from '../server/src/http/routes/contract-input.ts'

/** `npm run build`: the server with its packages as a few files beside its threads and migrations, the client with its types. */
scriptArguments('Usage: npm run build: server, sandbox and client for production, under dist/ of each.', {})
/** What pg would use where it is there. */
const NOT_INSTALLED = ['pg-native', 'cloudflare:sockets']
/** An import of node:http loads whatever node:http can lend, a second undici with it: 30 ms of each start. */
const requiredHttp: Plugin = {
  name: 'required http',
  resolveId: { filter: { id: /^(node:)?http$/ }, handler: () => '\0http.cjs' },
  load: { filter: { id: /^\0http\.cjs$/ }, handler: () => "module.exports = process.getBuiltinModule('node:http')" },
}
const BILL_OF_MATERIALS = 'sbom.cdx.json'
const at = (...parts: string[]) => path.join(ROOT, ...parts)

/** One file with all packages, because looking for some thousand files is most of a start. */
async function bundle(input: Record<string, string>, folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const build = await rolldown({
    input,
    platform: 'node',
    external: (id) => NOT_INSTALLED.includes(id),
    plugins: [requiredHttp],
    // Of the package depd, for functions that we do not call.
    checks: { eval: false },
  })
  const { output } = await build.write({ dir: folder, format: 'esm', sourcemap: true, entryFileNames: '[name].js' })
  await build.close()
  const files = output.flatMap((part) => (part.type === 'chunk' ? part.moduleIds : []))
  const packages = bundledPackages(files)
  writeFileSync(path.join(folder, 'third-party-notices.txt'), thirdPartyNotices(packages))
  writeFileSync(path.join(folder, BILL_OF_MATERIALS), billOfMaterials(VERSION, packages))
}

// A thread needs a file of its own, beside the bundle.
const threads = {
  'count-worker': at('server/src/upstreams/tokens/count-worker.ts'),
  'large-json-worker': at('server/src/wire/large-json-worker.ts'),
}
await bundle({ server: at('server/src/main.ts'), ...threads }, at('server/dist'))
// An old Node could not even read the bundle, and has to be told so in a sentence.
for (const file of ['main.js', 'require-node.js']) cpSync(at('server/bin', file), at('server/dist', file))
await buildIslands()
cpSync(at('server/src/pages/assets'), at('server/dist/assets'), { recursive: true })
// The guides and proofs that the website shows, with which proofs are stale as of this build.
for (const part of ['proof', 'performance']) cpSync(at('docs', part), at('server/dist/docs', part), { recursive: true })
for (const file of readdirSync(at('docs')).filter((name) => /\.(md|svg)$/.test(name)))
  cpSync(at('docs', file), at('server/dist/docs', file))
for (const [name, input] of [
  ['gateway', contractInputOf(catalogue)],
  ['account', accountContractInput()],
] as const)
  writeFileSync(at('server/dist', draftFile(name)), writtenDraft(draftOf(input)))
const states = statusOfProofs().map(({ proof, state }) => [proof, state])
writeFileSync(at('server/dist/docs/proof-status.json'), JSON.stringify(Object.fromEntries(states)))
for (const folder of ['migrations', 'functions'])
  cpSync(at(`server/src/storage/${folder}`), at(`server/dist/${folder}`), { recursive: true })
// A start that ends for want of a database compiles what every start compiles, and leaves it beside the bundle.
spawnSync(process.execPath, [at('server/dist/main.js'), 'serve'], {
  env: { FAREBOX_DATABASE_URL: 'postgres://127.0.0.1:1/none', FAREBOX_LOG_LEVEL: 'silent' },
  timeout: 60_000,
})
await bundle({ main: at('sandbox/src/main.ts') }, at('sandbox/dist'))
await buildClient()
console.log('built server/dist, sandbox/dist, client/dist')
