import { type Benchmark, type Metric, metric } from '../bench.ts'
import type { LoadReport } from '../load/load.ts'
import { CHAT, type Stage, startStage, type Wanted } from '../load/stage.ts'
import { estimated } from '../paired.ts'

const CALLERS = 1_000
const CONNECTIONS = 50
const FULL = { rounds: 9, measureMs: 4_000, warmUps: 8, warmUpMs: 4_000 }
const REDUCED = { rounds: 1, measureMs: 500, warmUps: 1, warmUpMs: 500 }
const SETTLE_MS = 300

const MODERN = '2026-07-28'
const ACCEPT = 'Accept: application/json, text/event-stream\r\n'
const envelope = {
  'io.modelcontextprotocol/protocolVersion': MODERN,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
}
const given = { operation_id: 'chat_completions', arguments: JSON.parse(CHAT), max_price_usd: 1 }
const useWith = (meta?: object) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'use', arguments: given, ...(meta && { _meta: meta }) },
  })
const modernHeaders = `${ACCEPT}MCP-Protocol-Version: ${MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: use\r\n`

/** The same call by each way. One has a trace in it, which is left to the protocol's library: what that costs is the difference. */
const WAYS = {
  http: { target: 'ours' },
  modern: { target: 'agent', path: '/mcp', headers: modernHeaders, body: useWith(envelope) },
  legacy: { target: 'agent', path: '/mcp', headers: `${ACCEPT}MCP-Protocol-Version: 2025-11-25\r\n`, body: useWith() },
  library: {
    target: 'agent',
    path: '/mcp',
    headers: modernHeaders,
    body: useWith({ ...envelope, traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }),
  },
} as const satisfies Record<string, Partial<Wanted> & { target: 'ours' | 'agent' }>
type Way = keyof typeof WAYS
const NAMES = Object.keys(WAYS) as readonly Way[]

/** What a call of a tool costs beside the same call over HTTP: CPU of the gateway for each, in turns. */
export const run: Benchmark = async (progress, { reduced, rounds: wanted }) => {
  const { rounds, measureMs, warmUps, warmUpMs } = { ...(reduced ? REDUCED : FULL), ...(wanted && { rounds: wanted }) }
  const stage = await startStage({ callers: CALLERS })
  try {
    // What an agent needs to spend; calls over HTTP have it as well.
    await stage.pool.query(`update api_keys set requests_per_minute = 1000000000, scopes = '{models}'`)
    for (let at = 0; at < warmUps; at += 1) for (const way of NAMES) await send(stage, way, 100, warmUpMs)
    const measured: Readonly<Record<Way, number>>[] = []
    for (let at = 1; at <= rounds; at += 1) {
      measured.push(await round(stage, measureMs))
      const told = NAMES.map((way) => `${way} ${measured.at(-1)?.[way].toFixed(0)} µs`)
      progress(`round ${at} of ${rounds}: ${told.join(', ')}`)
    }
    return metricsOf(measured)
  } finally {
    await stage.stop()
  }
}

async function round(stage: Stage, measureMs: number): Promise<Readonly<Record<Way, number>>> {
  const costs = { http: 0, modern: 0, legacy: 0, library: 0 }
  for (const way of NAMES) {
    const before = await charges(stage)
    const { cpuUs, answered } = await send(stage, way, SETTLE_MS, measureMs)
    // A refusal of a tool is an answer too, and a cheap one.
    if ((await charges(stage)) - before < answered) throw new Error(`not every call of ${way} was charged`)
    costs[way] = (cpuUs.server ?? 0) / answered
  }
  return costs
}

async function charges(stage: Stage): Promise<number> {
  const { rows } = await stage.pool.query('select count(*)::integer as count from charges')
  return Number(rows[0]?.count)
}

async function send(stage: Stage, way: Way, warmUpMs: number, measureMs: number): Promise<LoadReport> {
  const { target, ...wanted } = WAYS[way]
  const report = await stage.send(target, { ...wanted, connections: CONNECTIONS, warmUpMs, measureMs })
  if (report.refused > 0 || report.broken > 0)
    throw new Error(`${report.refused} were refused, ${report.broken} broken`)
  return report
}

function metricsOf(rounds: readonly Readonly<Record<Way, number>>[]): Metric[] {
  const beside = (way: Way) => rounds.map((one) => one[way] / one.http)
  return [
    ...estimated('use_cpu_ratio_http', beside('modern'), '×', { goal: '<= 1.5' }),
    ...estimated('use_cpu_ratio_http_2025', beside('legacy'), '×', { goal: '<= 1.5' }),
    ...estimated('library_cpu_ratio_http', beside('library'), '×'),
    ...NAMES.map((way) => metric(`${way}_us`, Math.min(...rounds.map((one) => one[way])), 'µs CPU')),
  ]
}
