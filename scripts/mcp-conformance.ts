import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer, request } from 'node:http'
import path from 'node:path'
import { startChild } from '../harness/child.ts'
import { type Judged, judgeOutput } from '../harness/mcp-checks.ts'
import { writeProof } from '../harness/proof-file.ts'
import { ROOT } from '../harness/root.ts'
import { scriptArguments } from '../harness/script-arguments.ts'

/**
 * `node scripts/mcp-conformance.ts [--record]`: runs the scenarios of the official suite that apply to a server of tools against the
 * development stack, for both versions of the protocol, and says of the others why they do not apply. Fails where one that applies does.
 */
const { values: flags } = scriptArguments(
  'Usage: node scripts/mcp-conformance.ts [--record]: the scenarios of the official suite that apply to a server of tools.',
  { record: { type: 'boolean', default: false } },
)
const FOLDER = path.join(ROOT, 'test/mcp/suite')
const PROGRAM = path.join(FOLDER, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const VERSIONS = ['2025-11-25', '2026-07-28']
const SCENARIO_MS = 120_000

/** By the beginning of their names, the longer first. The suite wants a server with tools, prompts and resources of its own making. */
const REASONS: readonly (readonly [string, string])[] = [
  ['tools-call', "calls tools of the suite's own making (test_simple_text and others), which a product does not have"],
  ['json-schema-2020-12', "looks for a tool of the suite's own making (json_schema_2020_12_tool)"],
  ['http-custom-header', "calls a tool of the suite's own making, with headers that it declares for its arguments"],
  ['server-sse', "calls a tool of the suite's own making, and resumes streams: answers come whole here"],
  ['server-session-lifecycle', 'there are no sessions: every message is answered by itself'],
  ['elicitation', 'nothing is asked of a client'],
  ['input-required-result', 'nothing is asked of a client'],
  ['tasks', 'tasks of the protocol are an extension; videos are tasks of ours, polled by operations'],
  ['resources', 'there are no resources'],
  ['sep-2164', 'there are no resources'],
  ['sep-2640', 'skills are an extension'],
  ['prompts', 'there are no prompts'],
  ['completion', 'there are no prompts or resources whose arguments could be completed'],
  ['logging', 'no log messages are sent to clients'],
]

type Scenario = { readonly name: string; readonly versions: readonly string[] }
type Ran = Judged & { readonly scenario: string; readonly version: string }

if (!existsSync(PROGRAM)) execFileSync('npm', ['ci', '--no-workspaces'], { cwd: FOLDER, stdio: 'pipe' })
let addresses: (found: { mcp_url: string; agent_key: string }) => void = () => {}
const ready = new Promise<{ mcp_url: string; agent_key: string }>((resolve) => {
  addresses = resolve
})
const dev = startChild(process.execPath, [path.join(ROOT, 'scripts/dev.ts'), '--json'], {
  onLine: (line) => line.startsWith('{"base_url"') && addresses(JSON.parse(line)),
})
try {
  const { mcp_url, agent_key } = await Promise.race([
    ready,
    dev.exited.then(() => Promise.reject(new Error(dev.output()))),
  ])
  const scenarios = listed()
  const ran: Ran[] = []
  const proxy = await startProxy(mcp_url, agent_key)
  for (const { name, versions } of scenarios.filter((one) => reasonOf(one.name) === undefined))
    for (const version of VERSIONS.filter((one) => versions.includes(one))) {
      ran.push(await runScenario(proxy.url, name, version))
      console.log(`${ran.at(-1)?.passed ? 'ok    ' : 'FAILED'} ${name} ${version} ${ran.at(-1)?.summary}`)
    }
  proxy.close()
  const others = scenarios.flatMap(({ name }) => {
    const reason = reasonOf(name)
    return reason === undefined ? [] : [{ scenario: name, reason }]
  })
  for (const { scenario, reason } of others) console.log(`-      ${scenario}: ${reason}`)
  if (flags.record) record(ran, others)
  if (ran.some(({ passed }) => !passed)) process.exitCode = 1
} finally {
  await dev.stop()
}

/** What the suite has for servers. */
function listed(): readonly Scenario[] {
  const text = execFileSync(process.execPath, [PROGRAM, 'list', '--server'], { encoding: 'utf8' })
  return [...text.matchAll(/^ +- (\S+) \[([^\]]+)\]$/gm)].map(([, name = '', versions = '']) => ({
    name,
    versions: versions.split(','),
  }))
}

function reasonOf(name: string): string | undefined {
  return REASONS.find(([start]) => name.startsWith(start))?.[1]
}

function runScenario(url: string, scenario: string, version: string): Promise<Ran> {
  const args = [PROGRAM, 'server', '--url', url, '--scenario', scenario, '--spec-version', version]
  return new Promise((resolve) => {
    execFile(process.execPath, args, { cwd: FOLDER, timeout: SCENARIO_MS }, (error, told, errors) => {
      const output = told + errors
      const judged = judgeOutput(output, error !== null)
      if (!judged.passed) console.error(output)
      resolve({ scenario, version, ...judged })
    })
  })
}

/** The suite knows no credentials of a server: they are added on the way. Whatever else it sends stays as it is. */
async function startProxy(target: string, secret: string) {
  const { host, port, hostname, pathname } = new URL(target)
  const server = createServer((asked, answer) => {
    const own = asked.headers.host
    const isOwn = own === `127.0.0.1:${here}` || own === `localhost:${here}`
    const headers = { ...asked.headers, authorization: `Bearer ${secret}`, ...(isOwn && { host }) }
    if (headers.origin === `http://127.0.0.1:${here}` || headers.origin === `http://localhost:${here}`)
      headers.origin = `http://${host}`
    const passed = request({ hostname, port, path: asked.url, method: asked.method, headers }, (told) => {
      answer.writeHead(told.statusCode ?? 502, told.headers)
      told.pipe(answer)
    })
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const here = typeof address === 'object' && address !== null ? address.port : 0
  return { url: `http://127.0.0.1:${here}${pathname}`, close: () => server.close() }
}

function record(ran: readonly Ran[], others: readonly { readonly scenario: string; readonly reason: string }[]): void {
  writeProof('mcp-conformance', {
    program: 'scripts/mcp-conformance.ts',
    versions: { suite: '0.2.0-alpha.12' },
    shown: { ran, do_not_apply: others },
  })
}
