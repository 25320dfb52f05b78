import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { ROOT } from '../../harness/root.ts'
import { bareEnvironment } from '../house/run-farebox.ts'
import { type Block, blanksIn, isPrinted, withoutCommands } from './blocks.ts'
import { startReadersHouse } from './reader-house.ts'

/** Somebody who does what the papers say, one paper after the other, in one folder. */

export const LANGUAGES_RUN: readonly string[] = ['sh', 'ts', 'js', 'python', 'yaml', 'toml', 'http']
const BETWEEN = '=== the next block ==='
/** What tells of a refusal, in the forms of all our interfaces, or of a program that failed. */
const REFUSAL = /"error":|"status":[45]\d\d\b|Traceback/

export async function startReader() {
  const folder = mkdtempSync(path.join(tmpdir(), 'reader-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  fillFolder(folder)
  const house = await startReadersHouse(folder)
  const shell = await listenFor(house.farebox)
  after(() => shell.close())
  const env = {
    ...bareEnvironment(),
    ...house.variables,
    FAREBOX_SHELL: `http://127.0.0.1:${(shell.address() as AddressInfo).port}`,
    PATH: `${folder}/bin:${process.env.PATH}`,
  }

  /** Runs blocks of a paper in their order. Those of the shell share one, so that one knows what the one before it has set. */
  async function run(paper: string, blocks: readonly Block[], isLeft: (command: string) => boolean): Promise<void> {
    const filled = blocks.map((block) => ({ ...block, code: fill(paper, withoutCommands(block.code, isLeft)) }))
    for (const block of filled) if (block.language === 'yaml') keepPriceList(block)
    await runShell(filled.filter(({ language }) => language === 'sh'))
    for (const block of filled) {
      if (block.language === 'http') await askSandbox(block)
      if (block.language in PROGRAMS) requireSaid(block, await execute(programOf(block)))
    }
  }

  function fill(paper: string, code: string): string {
    const known = { ...house.blanks, ...house.blanksOf[paper] }
    const filled = Object.entries(known).reduce((text, [blank, value]) => text.replaceAll(blank, value), code)
    const left = blanksIn(filled)
    assert.deepEqual(left, [], `${paper}: there is no value for ${left.join(', ')}`)
    return filled
  }

  async function runShell(blocks: readonly Block[]): Promise<void> {
    if (blocks.length === 0) return
    const script = blocks.map(({ code }) => code).join(`\necho; echo '${BETWEEN}'\n`)
    writeFileSync(path.join(folder, 'paper.sh'), `set -euo pipefail\n${script}\n`)
    const outputs = (await execute(['bash', 'paper.sh'])).split(`\n${BETWEEN}\n`)
    for (const [at, block] of blocks.entries()) requireSaid(block, outputs[at] ?? '')
  }

  function programOf({ language, code, at }: Block): readonly string[] {
    const file = `program-${at}.${language}`
    writeFileSync(path.join(folder, file), code)
    return [...(PROGRAMS[language] ?? []), file]
  }

  async function execute([command = '', ...args]: readonly string[]): Promise<string> {
    const child = startChild(command, args, { cwd: folder, env })
    const { code } = await child.exited
    assert.equal(code, 0, `exit code ${code}:\n${child.output()}`)
    return child.output()
  }

  /** For the commands of its paper, which read it. */
  function keepPriceList({ paper, code }: Block): void {
    assert.match(code, /^format: farebox-prices/, `${paper}: nothing here reads this YAML`)
    writeFileSync(path.join(folder, 'prices.yaml'), code)
  }

  /** Each line is a request of the sandbox: method, path, and a body where it has one. The rest of it is what the paper says. */
  async function askSandbox({ code }: Block): Promise<void> {
    for (const line of code.split('\n')) {
      const [, method = '', at = '', body] = /^([A-Z]+) +(\S+)(?: +(\{.*\}))?/.exec(line) ?? []
      const answer = await fetch(house.sandboxUrl + at.replace(/=N$/, '=0'), {
        method,
        ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } }),
      })
      assert.ok(answer.status < 300, `${line}: ${answer.status} ${await answer.text()}`)
    }
  }

  return { run }
}

/** How a program of each language is run; that of TOML reads it, as those do whose settings it has. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  ts: [process.execPath],
  js: [process.execPath],
  python: ['python3'],
  toml: ['python3', '-c', "import sys, tomllib; print(tomllib.load(open(sys.argv[1], 'rb')))"],
}

function requireSaid({ paper, at, output }: Block, said: string): void {
  if (output !== undefined)
    assert.ok(isPrinted(output, said), `${paper}: block ${at} does not print\n${output}\nbut\n${said}`)
  if (!REFUSAL.test(output ?? '')) assert.doesNotMatch(said, REFUSAL, `${paper}: block ${at} was refused:\n${said}`)
}

/** What papers take for granted in the folder of their reader. */
function fillFolder(folder: string): void {
  const client = path.join(folder, 'node_modules/@farebox/client')
  mkdirSync(client, { recursive: true })
  writeFileSync(path.join(client, 'package.json'), '{"name":"@farebox/client","type":"module","exports":"./index.js"}')
  writeFileSync(
    path.join(client, 'index.js'),
    `export * from ${JSON.stringify(path.join(ROOT, 'client/src/index.ts'))}`,
  )
  for (const name of ['undici', '@modelcontextprotocol'])
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(folder, 'node_modules', name))
  symlinkSync(path.join(ROOT, 'examples'), path.join(folder, 'examples'))
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(path.join(folder, 'key'), 'sandbox-key\n')
  const price = { input_cost_per_token: 1.25e-6, output_cost_per_token: 1e-5, litellm_provider: 'openai', mode: 'chat' }
  const model = { ...price, max_input_tokens: 272_000, max_output_tokens: 128_000 }
  writeFileSync(path.join(folder, 'model_prices_and_context_window.json'), JSON.stringify({ 'gpt-5-sample': model }))
  mkdirSync(path.join(folder, 'bin'))
  const command = path.join(folder, 'bin/farebox')
  writeFileSync(command, FAREBOX)
  chmodSync(command, 0o755)
}

/** The command `farebox`, which has the program in a process that stays run it: to load it each time takes a second of a processor. */
const FAREBOX = `#!/bin/sh
printf '%s\\0' "$@" | curl --silent --fail-with-body --data-binary @- "$FAREBOX_SHELL"
`

type Farebox = Awaited<ReturnType<typeof startReadersHouse>>['farebox']

async function listenFor(farebox: Farebox) {
  const server = createServer(async (request, response) => {
    const words = await text(request)
    const { code, output, stdout } = await farebox(...words.split('\0').slice(0, -1))
    response.writeHead(code === 0 ? 200 : 500).end(code === 0 ? stdout : output)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
