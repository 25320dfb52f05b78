import assert from 'node:assert/strict'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { AGENTS, type Agent, newHome, promptFor, startProgram, writeFiles } from './agents.ts'

/**
 * The coding agents as clients of a server of tools: how each is told of it, signs in to it, and uses its tools, without anybody at the
 * keyboard. The model behind them says what a script tells it.
 */
export type McpClient = {
  readonly agent: Agent
  /** One that it does not know, so that it offers its tools plainly. */
  readonly model: string
  /** What its model writes to call tools of the server, one after the other. */
  readonly turns: (calls: readonly ToolCall[]) => readonly object[]
  /** The tools of the server that it may use without asking anybody. */
  readonly allowed: string
  /** The arguments by which it is told of a server, where it has a command for that. */
  readonly add: (server: McpServer) => readonly string[] | null
  /** What is added to its settings otherwise. */
  readonly setting: (server: McpServer) => { readonly file: string; readonly text: string } | null
  /** The arguments by which it signs in and prints where a person has to go; how it comes to a client id is its own to choose where none is named. */
  readonly login: (registration?: 'document' | 'registration') => readonly string[]
  /** By which it takes its client id from elsewhere than its maker's host. */
  readonly documentEnv: (url: string) => Readonly<Record<string, string>>
  /** Where it keeps its tokens, below its home. */
  readonly credentials: string
  readonly list: readonly string[]
  readonly logout: readonly string[]
}

export type ToolCall = { readonly name: string; readonly arguments: object }
/** Without a secret, it finds out by itself how to get a token. */
export type McpServer = { readonly url: string; readonly secret?: string; readonly clientId?: string }

const NAME = 'farebox'
const AGENT_KEY = 'FAREBOX_AGENT_KEY'
/** On any port, at the path that documents name. */
const CALLBACK = 'callback_url = "http://127.0.0.1/callback"'
const MODEL = 'sandbox/echo'
const DONE = { text: 'Done: {result}' }

const agentNamed = (name: string) => AGENTS.find((agent) => agent.name === name) ?? assert.fail(name)
const oneByOne = (calls: readonly ToolCall[], prefix = '') =>
  calls.map(({ name, arguments: given }) => ({ calls: [{ name: prefix + name, arguments: given }] }))

const claudeCode: McpClient = {
  agent: agentNamed('claude-code'),
  model: MODEL,
  turns(calls) {
    const names = [...new Set(calls.map(({ name }) => `mcp__${NAME}__${name}`))]
    // It keeps tools of servers from its model until that looks for them.
    const found = { name: 'ToolSearch', arguments: { query: `select:${names.join(',')}`, max_results: names.length } }
    return [{ calls: [found] }, ...oneByOne(calls, `mcp__${NAME}__`), DONE]
  },
  allowed: `mcp__${NAME}`,
  add: ({ url, secret }) => [
    ...['mcp', 'add', '--transport', 'http', '--scope', 'user', NAME, url],
    ...(secret === undefined ? [] : ['--header', `Authorization: Bearer ${secret}`]),
  ],
  setting: () => null,
  login: () => ['mcp', 'login', NAME, '--no-browser'],
  documentEnv: (url) => ({ MCP_OAUTH_CLIENT_METADATA_URL: url }),
  credentials: '.claude/.credentials.json',
  list: ['mcp', 'list'],
  logout: ['mcp', 'logout', NAME],
}

const codex: McpClient = {
  agent: agentNamed('codex'),
  model: MODEL,
  turns: (calls) => [...oneByOne(calls), DONE],
  allowed: '',
  add: () => null,
  setting: ({ url, secret, clientId }) => ({
    file: '.codex/config.toml',
    text: [
      '',
      `[mcp_servers.${NAME}]`,
      `url = "${url}"`,
      ...(secret === undefined ? [] : [`bearer_token_env_var = "${AGENT_KEY}"`]),
      ...(clientId === undefined ? [] : [`[mcp_servers.${NAME}.oauth]`, `client_id = "${clientId}"`, CALLBACK]),
      '',
    ].join('\n'),
  }),
  login: (registration) => [
    ...['mcp', 'login', NAME, '--no-browser'],
    // By itself it would take its maker's document, wherever the server takes any; another one is a client id among its settings.
    ...(registration === 'registration' ? ['--oauth-client-registration', 'dcr'] : []),
  ],
  documentEnv: () => ({}),
  credentials: '.codex/.credentials.json',
  list: ['mcp', 'list'],
  logout: ['mcp', 'logout', NAME],
}

export const MCP_CLIENTS: readonly McpClient[] = [claudeCode, codex]

/** Finds an operation and calls it. */
export const PAID_TASK: readonly ToolCall[] = [
  { name: 'search', arguments: { query: 'how often is a hashtag used' } },
  { name: 'use', arguments: { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 0.01 } },
]

type Where = {
  readonly binaries: string
  /** Where the model is, and the key by which it is paid. */
  readonly url: string
  readonly secret: string
  /** Sees whom else it asks, and lets none through. */
  readonly proxyUrl: string
  readonly env?: Readonly<Record<string, string>>
}

/** A client on somebody's machine, which keeps what it knows from one run to the next. */
export type Desk = {
  /** Tells it of a server. */
  readonly connect: (server: McpServer) => Promise<void>
  /** Has it do something, and returns what it printed; it must succeed. */
  readonly run: (args: readonly string[]) => Promise<string>
  /** Has its model call tools of the server; what it said last. */
  readonly use: (what: string, calls: readonly ToolCall[]) => Promise<string>
  /** Begins to sign in; where the person has to go, and what it says once the browser came back to it. */
  readonly login: (args?: readonly string[]) => Promise<Login>
  /** Spoils the access token that it keeps, so that it has to be renewed. */
  readonly spoilToken: () => Promise<void>
  readonly remove: () => Promise<void>
}
export type Login = { readonly authorizeUrl: URL; readonly done: Promise<string> }

const WORK_MS = 180_000
/** Followed by something else, so that it has been printed to its end. */
const AUTHORIZE = /https?:\/\/[\w.:-]+\/oauth\/authorize\?[\w.~%&=+-]+(?=[^\w.~%&=+-])/

export async function openDesk(client: McpClient, where: Where): Promise<Desk> {
  const { agent, model } = client
  const { home, cwd, remove } = await newHome()
  const { binaries, url, secret, proxyUrl, env = {} } = where
  const pointed = agent.program({ binaries, home, url, secret }, model)
  const settings: Record<string, string> = { ...pointed.env, ...env }
  await writeFiles(home, pointed)

  const start = (args: readonly string[], isInTerminal = false) =>
    startProgram({ ...pointed, env: settings }, args, { home, cwd, proxyUrl, isInTerminal })

  /** What it printed, once it has ended well. */
  async function ended(child: ReturnType<typeof start>): Promise<string> {
    const timer = setTimeout(() => child.kill(), WORK_MS)
    const { code } = await child.exited
    clearTimeout(timer)
    assert.equal(code, 0, child.output())
    return child.output()
  }

  const run = (args: readonly string[]) => ended(start(args))
  return {
    run,
    remove,
    async connect(server) {
      if (server.secret !== undefined) settings[AGENT_KEY] = server.secret
      const setting = client.setting(server)
      const add = client.add(server)
      if (setting !== null) await appendFile(path.join(home, setting.file), setting.text)
      if (add !== null) await run(add)
    },
    use: async (what, calls) => agent.said(await run(agent.ask(promptFor(what, client.turns(calls)), client.allowed))),
    async spoilToken() {
      const file = path.join(home, client.credentials)
      const kept = await readFile(file, 'utf8')
      const spoilt = kept.replaceAll(/fb_at_\w+/g, 'fb_at_gone')
      assert.notEqual(spoilt, kept, 'it keeps no token there')
      // The one looks at what it is answered, the other at the time alone.
      await writeFile(
        file,
        spoilt.replaceAll(/("expires_at": ?)\d+/g, (_, name) => `${name}1`),
      )
    },
    async login(args = client.login()) {
      const child = start(args, true)
      await until(() => child.hasExited() || AUTHORIZE.test(child.output()), PATIENCE_MS, 'where a person has to go')
      const [found] = AUTHORIZE.exec(child.output()) ?? assert.fail(child.output())
      return { authorizeUrl: new URL(found), done: ended(child) }
    },
  }
}
