import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import vm from 'node:vm'
import { gzipSync } from 'node:zlib'
import { rolldown } from 'rolldown'
import { npm } from '../../harness/npm.ts'
import { isFullProof, recordProof } from '../../harness/proof.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { examplesOfReadme, installClient } from './installed.ts'

const PROOF = 'client-package'
const GZIPPED_MOST = 15 * 1_024
const LONGEST_MS = 300_000

const database = await freshDatabase()
const installation = await startInstallation(database.url)
const { url, pool } = installation
const client = await installClient()
after(async () => {
  client.remove()
  await installation.stop()
})
const customer = await makeCustomer(pool)
const examples = examplesOfReadme({ url, key: customer.secret })
for (const { name, program } of examples) client.write(name, program)
// An SDK that an example uses is the reader's own.
symlinkSync(path.join(ROOT, 'node_modules/openai'), path.join(client.folder, 'node_modules/openai'))

const run = promisify(execFile)
const built = readFileSync(path.join(client.packed, 'dist/index.js'))

/** Brings packages from npm into a folder of their own, or says why it can't. */
function bring(...packages: readonly string[]): string | undefined {
  const folder = path.join(client.folder, `with-${packages[0]?.replaceAll(/[^a-z0-9]/g, '-')}`)
  try {
    execFileSync('mkdir', ['-p', folder])
    npm(folder, 'install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...packages)
    return folder
  } catch {
    return undefined
  }
}

/** Strict, and nothing else: what is not in the project of a reader is not needed. */
function project(name: string, files: readonly string[], options: Readonly<Record<string, unknown>>): string {
  const lib = ['es2022', 'dom', 'dom.iterable', 'dom.asynciterable']
  const strict = { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true }
  const compilerOptions = { ...strict, target: 'es2022', module: 'nodenext', lib, ...options }
  return client.write(`tsconfig.${name}.json`, JSON.stringify({ compilerOptions, files }))
}

const NOT_HERE = 'npm run proof brings it from npm'

describe('the package of the client', () => {
  it('has its one file, its types and its README, and depends on nothing', () => {
    assert.ok(client.files.includes('dist/index.js') && client.files.includes('README.md'))
    assert.ok(
      client.files.every((file) => /^(dist\/|package\.json$|README\.md$)/.test(file)),
      client.files.join(' '),
    )
    const { dependencies, peerDependencies } = JSON.parse(readFileSync(path.join(ROOT, 'client/package.json'), 'utf8'))
    assert.deepEqual([dependencies, peerDependencies], [undefined, undefined])
    assert.doesNotMatch(built.toString('utf8'), /^\s*(import|export .* from)\b|\b(require|process|Buffer|__dirname)\b/m)
  })

  it('is below 15 KB when it is gzipped', () => {
    const bytes = gzipSync(built, { level: 9 }).length
    assert.ok(bytes < GZIPPED_MOST, `${bytes} bytes`)
    recordProof(PROOF, 'size of the built client', { gzipped_bytes: bytes, at_most: GZIPPED_MOST })
  })

  it('runs the examples of its README in a fresh folder on Node, and prints what they say', async () => {
    assert.ok(examples.length >= 7)
    const outputs = await Promise.all(
      examples.map(({ name }) => run(process.execPath, [name], { cwd: client.folder, timeout: LONGEST_MS })),
    )
    examples.forEach(({ name, prints }, at) => {
      const lines = outputs[at]?.stdout.split('\n') ?? []
      for (const line of prints) assert.ok(lines.includes(line), `${name} did not print ${line}:\n${lines.join('\n')}`)
    })
    recordProof(PROOF, 'examples of the README on Node', { examples: examples.length, node: process.version })
  })

  it("has types that are strict, for the project's TypeScript and for 5", async (test) => {
    const compilers = [path.join(ROOT, 'node_modules/.bin/tsc')]
    const five = isFullProof ? bring('typescript@5') : undefined
    if (five !== undefined) compilers.push(path.join(five, 'node_modules/.bin/tsc'))
    client.write('alone.ts', ALONE)
    client.write('wrong.ts', WRONG)
    // Whoever reads the README has Node's types, and those of an SDK; the package itself needs none.
    const typeRoots = [path.join(ROOT, 'node_modules/@types')]
    const readme = project(
      'readme',
      examples.map(({ name }) => name),
      { types: ['node'], typeRoots, skipLibCheck: true },
    )
    const [alone, wrong] = [
      project('alone', ['alone.ts'], { types: [] }),
      project('wrong', ['wrong.ts'], { types: [] }),
    ]
    const versions: string[] = []
    for (const compiler of compilers) {
      versions.push(execFileSync(compiler, ['--version'], { encoding: 'utf8' }).trim())
      const told = await Promise.all(
        [readme, alone, wrong].map((file) => run(compiler, ['-p', file]).catch((error) => error)),
      )
      const errors = told.map(({ stdout }) => [...String(stdout).matchAll(/^.*error TS.*$/gm)].map(([line]) => line))
      assert.deepEqual(errors.slice(0, 2), [[], []], compiler)
      assert.equal(errors[2]?.length, WRONG.split('// wrong').length - 1, errors[2]?.join('\n'))
    }
    recordProof(PROOF, 'types', { compilers: versions })
    if (five === undefined) test.diagnostic(isFullProof ? 'npm does not bring TypeScript 5 here' : NOT_HERE)
  })

  it('runs in a runtime that has web standards and nothing of Node', async () => {
    const build = await rolldown({ input: path.join(client.packed, 'dist/index.js'), platform: 'neutral' })
    const { output } = await build.generate({ format: 'iife', name: 'client' })
    await build.close()
    const { fetch, Headers, Request, Response, URL, URLSearchParams, AbortController, AbortSignal } = globalThis
    const standards = { fetch, Headers, Request, Response, URL, URLSearchParams, AbortController, AbortSignal }
    const context = vm.createContext({ ...standards, crypto, performance, setTimeout, clearTimeout, told: {} })
    const program = `${output[0].code}
      const farebox = new client.Farebox({ baseUrl: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(customer.secret)} })
      farebox.call('tag_detail', { tag_name: 'cats' }).then(({ cost }) => { told.cost = cost.usd; told.process = typeof process })`
    await vm.runInContext(program, context)
    assert.deepEqual({ ...context.told }, { cost: '0.001450000', process: 'undefined' })
    recordProof(PROOF, 'a context without Node', { globals: Object.keys(standards).length + 4 })
  })

  for (const { name, packages, binary, args } of [
    { name: 'Bun', packages: ['bun'], binary: '@oven/bun-linux-x64/bin/bun', args: ['run'] },
    {
      name: 'Deno',
      packages: ['deno'],
      binary: '@deno/linux-x64-glibc/deno',
      args: ['run', '--allow-all', '--no-lock'],
    },
  ])
    it(`runs on ${name}`, { skip: isFullProof ? false : NOT_HERE }, async (test) => {
      const folder = bring(...packages)
      const program = folder && path.join(folder, 'node_modules', binary)
      if (program === undefined || !existsSync(program)) return test.skip(`npm does not bring ${name} here`)
      const [first] = examples
      const { stdout } = await run(program, [...args, first?.name ?? ''], { cwd: client.folder, timeout: LONGEST_MS })
      assert.match(stdout, /0\.\d{9} USD, \d+\.\d{9} left, request [0-9a-f-]{36}/)
      const version = execFileSync(program, ['--version'], { encoding: 'utf8' }).split('\n')[0]
      recordProof(PROOF, `the first example on ${name}`, { version })
    })
})

/** What somebody writes without any types but those of the web. */
const ALONE = `import { Farebox, type Result, type Usd } from '@farebox/client'
const farebox = new Farebox({ baseUrl: 'https://gateway.invalid', apiKey: 'k' })
export async function one(): Promise<Usd | null> {
  const answer: Result<{ results: { index: number }[] }> = await farebox.call('rerank', { query: 'a', documents: ['b'], top_n: 1 })
  const { data } = await farebox.call('generate_content', { model: 'm', contents: [] })
  const text: unknown = data.candidates
  for await (const { id } of farebox.requests.list()) console.log(id.length, text)
  return answer.cost
}
`

/** What the contract refuses does not compile. */
const WRONG = `import { Farebox } from '@farebox/client'
const farebox = new Farebox({ baseUrl: 'https://gateway.invalid', apiKey: 'k' })
await farebox.call('reranks', {}) // wrong
await farebox.call('rerank', { query: 'a' }) // wrong
await farebox.call('rerank', { query: 'a', documents: ['b'], max_chunks_per_doc: 3 }) // wrong
await farebox.call('chat_completions', { model: 'm', messages: [], stream: true }) // wrong
await farebox.quote('messages_count_tokens', { model: 'm', messages: [] }) // wrong
await farebox.call('tag_detail', { tag_name: 'x' }, { maxCostUsd: 0.1 }) // wrong
`
