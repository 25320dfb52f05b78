import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { type Child, startChild } from '../../harness/child.ts'

/**
 * The coding agents that people use, as they come from npm: which version, how they are pointed at a gateway, and the task that
 * each does here. None of them is a dependency: they are 785 MB together, and are fetched into a folder of their own.
 */
export type Agent = {
  readonly name: string
  readonly version: string
  readonly packages: readonly string[]
  /** What the model says, turn by turn. Which tools there are depends on whether the agent knows the model. */
  readonly tasks: readonly Task[]
  /** How it is started, with a model behind the gateway, whatever it is to do. */
  readonly program: (at: Folder, model: string) => Program
  /** The arguments by which it does what it is told, with the tools that it may use without asking anybody. */
  readonly ask: (prompt: string, tools: string) => readonly string[]
  /** What it said last, of all that it printed. */
  readonly said: (output: string) => string
}

export type Task = { readonly model: string; readonly turns: readonly object[] }
export type Folder = {
  readonly binaries: string
  readonly home: string
  readonly url: string
  readonly secret: string
}
export type Program = {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** By their names below its home. */
  readonly files?: Readonly<Record<string, string>>
}

export const CONTENT = 'Hello from a model.\n'
export const FILE = 'hello.txt'
const SHELL = `printf '${CONTENT.replace('\n', '\\n')}' > ${FILE}`
const DONE = { text: 'Done: {result}' }
/** A name that no agent knows. */
const STRANGE = 'sandbox/echo'

const CLAUDE_TURNS = [
  { text: 'I write the file.', calls: [{ name: 'Write', arguments: { file_path: FILE, content: CONTENT } }] },
  { calls: [{ name: 'Bash', arguments: { command: `cat ${FILE}`, description: 'Show the file' } }] },
  DONE,
]

const claudeCode: Agent = {
  name: 'claude-code',
  version: '2.1.325',
  // The second holds the program itself; the first would copy it from there with a script, and scripts are not run.
  packages: ['@anthropic-ai/claude-code', `@anthropic-ai/claude-code-${process.platform}-${process.arch}`],
  tasks: [
    { model: STRANGE, turns: CLAUDE_TURNS },
    { model: 'claude-opus-5-5', turns: CLAUDE_TURNS },
  ],
  program: ({ binaries, url, secret }, model) => ({
    command: path.join(binaries, `@anthropic-ai/claude-code-${process.platform}-${process.arch}`, 'claude'),
    args: [],
    env: {
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_AUTH_TOKEN: secret,
      ANTHROPIC_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
    },
  }),
  ask: (prompt, tools) => ['-p', prompt, '--allowedTools', tools, '--output-format', 'json'],
  said: (output) => Object(JSON.parse(lineWith(output, '"type":"result"'))).result,
}

const codexTurns = (tool: string, written: (command: string) => unknown) => [
  { text: 'I write the file.', calls: [{ name: tool, arguments: written(SHELL) }] },
  { calls: [{ name: tool, arguments: written(`cat ${FILE}`) }] },
  DONE,
]

const codex: Agent = {
  name: 'codex',
  version: '0.166.0',
  packages: ['@openai/codex'],
  tasks: [
    { model: STRANGE, turns: codexTurns('exec_command', (cmd) => ({ cmd })) },
    // The models that it knows are given one tool that runs programs, in which the others are functions.
    {
      model: 'gpt-6.1-sol',
      turns: codexTurns('exec', (cmd) => `text(await tools.exec_command({ cmd: ${JSON.stringify(cmd)} }))`),
    },
  ],
  program: ({ binaries, home, url, secret }, model) => ({
    command: process.execPath,
    args: [path.join(binaries, '@openai/codex/bin/codex.js')],
    env: { CODEX_HOME: path.join(home, '.codex'), FAREBOX_KEY: secret },
    files: {
      '.codex/config.toml': [
        `model = "${model}"`,
        'model_provider = "farebox"',
        'web_search = "disabled"',
        'check_for_update_on_startup = false',
        '[model_providers.farebox]',
        'name = "farebox"',
        `base_url = "${url}/v1"`,
        'env_key = "FAREBOX_KEY"',
        'wire_api = "responses"',
        '[analytics]',
        'enabled = false',
        '[features]',
        'apps = false',
        'plugins = false',
        'remote_plugin = false',
      ].join('\n'),
    },
  }),
  ask: (prompt) => ['exec', '--skip-git-repo-check', '--json', '--dangerously-bypass-approvals-and-sandbox', prompt],
  said(output) {
    const items = output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => Object(Object(JSON.parse(line)).item))
    return items.findLast(({ type }) => type === 'agent_message')?.text ?? ''
  },
}

export const AGENTS: readonly Agent[] = [claudeCode, codex]

/** What an agent is told, with what the model will say to it. */
export function promptFor(what: string, turns: readonly object[]): string {
  return `${what} sandbox:script=${Buffer.from(JSON.stringify(turns)).toString('base64url')}`
}

function lineWith(output: string, word: string): string {
  return output.split('\n').find((line) => line.includes(word)) ?? assert.fail(output)
}

/** A folder with the agents in it; one that HARNESS_AGENTS names is kept for the next time. */
export async function installAgents(): Promise<{ readonly binaries: string; readonly remove: () => Promise<void> }> {
  const kept = process.env.HARNESS_AGENTS
  const folder = kept ?? (await mkdtemp(path.join(tmpdir(), 'agents-')))
  const packages = AGENTS.flatMap(({ packages, version }) => packages.map((name) => `${name}@${version}`))
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'package.json'), '{"private":true}\n')
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline']
  await promisify(execFile)('npm', ['install', ...options, ...packages], { cwd: folder })
  return {
    binaries: path.join(folder, 'node_modules'),
    remove: async () => (kept === undefined ? rm(folder, { recursive: true, force: true }) : undefined),
  }
}

const WORK_MS = 120_000

export type Work = { readonly said: string; readonly written: string }

/** Has an agent do its task in an empty folder of its own. Whatever it asks beside the gateway goes to the proxy. */
export async function work(agent: Agent, task: Task, at: Omit<Folder, 'home'>, proxyUrl: string): Promise<Work> {
  const { home, cwd, remove } = await newHome()
  const program = agent.program({ ...at, home }, task.model)
  await writeFiles(home, program)
  const asked = agent.ask(promptFor(`Create ${FILE}.`, task.turns), 'Write,Bash')
  const child = startProgram(program, asked, { home, cwd, proxyUrl })
  const timer = setTimeout(() => child.kill(), WORK_MS)
  const { code } = await child.exited
  clearTimeout(timer)
  const written = await readFile(path.join(cwd, FILE), 'utf8').catch(() => '')
  await remove()
  assert.equal(code, 0, child.output())
  return { said: agent.said(child.output()), written }
}

export type Home = { readonly home: string; readonly cwd: string; readonly remove: () => Promise<void> }

/** A person's folder on a machine, with an empty one to work in. */
export async function newHome(): Promise<Home> {
  const home = await mkdtemp(path.join(tmpdir(), 'agent-home-'))
  const cwd = path.join(home, 'work')
  await mkdir(cwd)
  return { home, cwd, remove: () => rm(home, { recursive: true, force: true }) }
}

export async function writeFiles(home: string, { files = {} }: Program): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(home, name)), { recursive: true })
    await writeFile(path.join(home, name), content)
  }
}

type Place = Pick<Home, 'home' | 'cwd'> & {
  readonly proxyUrl: string
  /** Whether it takes itself to be in a terminal, in which somebody may type. */
  readonly isInTerminal?: boolean
}

export function startProgram({ command, args, env }: Program, more: readonly string[], place: Place): Child {
  const { home, cwd, proxyUrl, isInTerminal = false } = place
  const proxied = { HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl, NO_PROXY: '127.0.0.1' }
  const line = [command, ...args, ...more]
  const [program = '', ...rest] = isInTerminal ? inTerminal(line) : line
  return startChild(program, rest, {
    ...{ cwd, keepsInput: isInTerminal },
    env: { PATH: process.env.PATH, HOME: home, ...proxied, ...env },
  })
}

function inTerminal(line: readonly string[]): readonly string[] {
  const quoted = line.map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
  return ['script', '--quiet', '--flush', '--return', '--command', quoted.join(' '), '/dev/null']
}
