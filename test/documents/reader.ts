import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { after } from 'node:test'
import { startChild } from '../../harness/child.ts'
import { processesWith } from '../../harness/processes.ts'
import { ROOT } from '../../harness/root.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { readPriceList } from '../../server/src/pricing/price-list/format.ts'
import { bareEnvironment } from '../house/run-farebox.ts'
import {
  addressesElsewhere,
  type Block,
  blanksIn,
  commandsOf,
  isPrinted,
  isSilent,
  unheard,
  withoutCommands,
} from './blocks.ts'
import { startReadersHouse } from './reader-house.ts'

/** Somebody who does what the papers say, one paper after the other, in one folder. */

export const LANGUAGES_RUN: readonly string[] = ['sh', 'ts', 'js', 'python', 'yaml', 'toml', 'http']
/** What asks others than this machine is refused a connection: nothing listens on that port. */
const NOBODY = 'http://127.0.0.1:1'
const NO_NETWORK = { http_proxy: NOBODY, https_proxy: NOBODY, all_proxy: NOBODY, no_proxy: '127.0.0.1,localhost' }
/** What tells of a refusal, in the forms of all our interfaces, or of a program that failed. */
const REFUSAL = /"error":|"status":[45]\d\d\b|Traceback/

export async function startReader() {
  const folder = mkdtempSync(path.join(tmpdir(), 'reader-'))
  after(() => rmSync(folder, { recursive: true, force: true }))
  fillFolder(folder)
  const house = await startReadersHouse(folder)
  const shell = await listenFor(house.farebox)
  after(() => shell.close())
  /** By which what a block started is found, whoever is its parent by then. */
  const mark = `READERS_FOLDER=${folder}`
  const env = {
    ...bareEnvironment(),
    ...house.variables,
    READERS_FOLDER: folder,
    ...NO_NETWORK,
    FAREBOX_SHELL: `http://127.0.0.1:${(shell.address() as AddressInfo).port}`,
    PATH: `${folder}/bin:${process.env.PATH}`,
  }

  /** Runs blocks of a paper in their order. Those of the shell share one, so that one knows what the one before it has set. */
  async function run(
    paper: string,
    blocks: readonly Block[],
    isLeft: (command: string) => boolean,
    patienceMs = PATIENCE_MS,
  ): Promise<void> {
    const filled = blocks.map((block) => ({ ...block, code: fill(paper, withoutCommands(block.code, isLeft)) }))
    for (const block of filled) requireRunnable(block)
    for (const block of filled) if (block.language === 'yaml') keepPriceList(block)
    const customer = { ...env, ...(await house.customerOf(paper)) }
    const isOfShell = ({ language, code }: Block) => language === 'sh' && commandsOf(code).length > 0
    await runScript(filled.filter(isOfShell), customer, patienceMs)
    for (const block of filled) {
      if (block.language === 'http') await askSandbox(block)
      if (block.language in PROGRAMS) await runScript([{ ...block, code: programOf(block) }], customer, patienceMs)
    }
  }

  function fill(paper: string, code: string): string {
    const known = { ...house.blanks, ...house.blanksOf[paper] }
    const filled = Object.entries(known).reduce((text, [blank, value]) => text.replaceAll(blank, value), code)
    const left = blanksIn(filled)
    assert.deepEqual(left, [], `${paper}: there is no value for ${left.join(', ')}`)
    return filled
  }

  /** Runs blocks in one shell. What each prints goes to a file of its own, and each that came to its end leaves a file, too. */
  async function runScript(blocks: readonly Block[], env: NodeJS.ProcessEnv, patienceMs: number): Promise<void> {
    if (blocks.length === 0) return
    const script = mkdtempSync(path.join(folder, 'script-'))
    const fileOf = ({ at }: Block, kind: 'said' | 'ended') => path.join(script, `${at}.${kind}`)
    const saidBy = (block: Block) => {
      assert.ok(existsSync(fileOf(block, 'ended')), `${block.paper}: block ${block.at} did not come to its end`)
      return readFileSync(fileOf(block, 'said'), 'utf8')
    }
    const lines = blocks.flatMap((block) => [
      `exec > '${fileOf(block, 'said')}' 2>&1`,
      block.code,
      `: > '${fileOf(block, 'ended')}'`,
    ])
    writeFileSync(path.join(script, 'all.sh'), ['set -euo pipefail', ...lines, ''].join('\n'))
    const code = await execute(['bash', path.join(script, 'all.sh')], env, patienceMs)
    const begun = blocks.map((block) => fileOf(block, 'said')).filter((file) => existsSync(file))
    assert.equal(code, 0, `exit code ${code}:\n${begun.map((file) => readFileSync(file, 'utf8')).join('\n')}`)
    for (const block of blocks) requireSaid(block, saidBy(block))
  }

  /** The command that runs a program. */
  function programOf({ language, code, at }: Block): string {
    const file = `program-${at}.${language}`
    writeFileSync(path.join(folder, file), code)
    return [...(PROGRAMS[language] ?? []), file].map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ')
  }

  async function execute([command = '', ...args]: readonly string[], env: NodeJS.ProcessEnv, patienceMs: number) {
    const child = startChild(command, args, { cwd: folder, env })
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      void child.kill()
    }, patienceMs)
    const { code } = await child.exited
    clearTimeout(timer)
    for (const { pid } of processesWith(mark)) endIfThere(pid)
    await until(() => processesWith(mark).length === 0, PATIENCE_MS, 'that nothing is left in the background')
    assert.ok(!isLate, `has not ended after ${patienceMs} ms`)
    return code
  }

  /** For the commands of its paper, which read it. */
  function keepPriceList({ paper, code }: Block): void {
    assert.match(code, /^format: farebox-prices/, `${paper}: nothing here reads this YAML`)
    readPriceList(Buffer.from(code))
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

  return { run, mark }
}

/** How a program of each language is run; that of TOML reads it, as those do whose settings it has. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  ts: [process.execPath],
  js: [process.execPath],
  python: ['python3'],
  toml: ['python3', '-c', "import sys, tomllib; print(tomllib.load(open(sys.argv[1], 'rb')))"],
}

function endIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself since we looked.
  }
}

function requireRunnable({ paper, at, language, code }: Block): void {
  if (language === 'sh') assert.deepEqual(unheard(code), [], `${paper}: block ${at}: farebox would not notice it here`)
  if (language !== 'yaml') assert.deepEqual(addressesElsewhere(code), [], `${paper}: block ${at} asks others`)
}

function requireSaid({ paper, at, code, output }: Block, said: string): void {
  if (!commandsOf(code).every(isSilent)) assert.notEqual(said.trim(), '', `${paper}: block ${at} prints nothing`)
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
