import type pg from 'pg'
import { Secret } from '../../server/src/kernel/secret.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { type Installation, MODEL, startInstallation } from './installation.ts'
import { type Load, type LoadReport, send } from './load.ts'
import { type PeerName, type StartedPeer, startPeer } from './peers.ts'
import { type Listening, startProgram } from './programs.ts'
import { createStarted } from './started.ts'

/** Whom the load is sent to: our gateway, its tools for agents, the bare proxy, or a peer. All pass it on to the same upstream. */
export type Target = 'ours' | 'agent' | 'bare' | PeerName

/** Everything that a measurement needs, each a process of its own: an installation of ours, the upstream, and the others. */
export type Stage = Installation & {
  readonly pool: pg.Pool
  readonly upstream: Listening
  /** Sends a load to one of the targets, and tells what it cost whom. */
  readonly send: (target: Target, load: Wanted) => Promise<LoadReport>
}

export type Wanted = Pick<Load, 'connections' | 'rate' | 'warmUpMs' | 'measureMs'> & {
  readonly body?: string
  readonly path?: string
  /** Beside those of the target, as they go over the wire, each with its line end. */
  readonly headers?: string
  /** Which of our processes, where there are several. */
  readonly gateway?: number
  /** Other callers than those that the stage has. */
  readonly secretsFile?: string
}

/** How a target is reached, and whose CPU counts. */
type Reached = Pick<Listening, 'port'> &
  Partial<Pick<StartedPeer, 'headers' | 'bodyOf'>> & { readonly pids: readonly number[] }

type Options = {
  readonly callers: number
  readonly processes?: number
  readonly peers?: readonly PeerName[]
  readonly env?: Readonly<Record<string, string>>
  /** How long after each other the events of a stream come. */
  readonly everyMs?: number
}

/** A chat completion of a kilobyte, as a client would write it. */
export const CHAT = JSON.stringify({
  model: MODEL,
  messages: [
    { role: 'system', content: 'You are a helpful assistant who answers in one sentence. '.repeat(4).trim() },
    {
      role: 'user',
      content: 'Tell me about the quick brown fox and the lazy dog that it jumps over. '.repeat(9).trim(),
    },
  ],
  max_tokens: 500,
  temperature: 0.7,
})

/** The same, streamed: it is answered by so many events. */
export function streamedChat(events: number): string {
  return CHAT.replace(
    /"max_tokens":\d+/,
    `"stream":true,"stream_options":{"include_usage":true},"max_tokens":${events}`,
  )
}

/** The same in Responses. */
export function streamedResponse(events: number): string {
  const { model, messages, temperature } = JSON.parse(CHAT)
  return JSON.stringify({ model, input: messages, temperature, stream: true, store: false, max_output_tokens: events })
}

export async function startStage(options: Options): Promise<Stage> {
  const { callers, processes = 1, peers = [], env = {}, everyMs = 5 } = options
  const started = createStarted()
  return started.orStop(async () => {
    const upstream = started.keep(await startProgram('others', 'upstream.ts', [String(everyMs)]))
    const protocols = ['openai', 'openai_responses']
    const wanted = { callers, processes, env, protocols, upstreamPort: upstream.port }
    const installation = started.keep(await startInstallation(wanted))
    const { gateways, postgres, secretsFile } = installation
    const pools = createPools({ url: new Secret(postgres.url()), log: silentLog })
    started.onStop(() => pools.close())
    const bare = started.keep(await startProgram('server', 'bare-proxy.ts', [`http://127.0.0.1:${upstream.port}`]))
    const running = new Map<Target, StartedPeer>()
    for (const name of peers) running.set(name, started.keep(await startPeer(name, upstream.port)))

    const reach = (target: Target, gateway: number): Reached => {
      const ours = gateways.map(({ pid }) => pid)
      if (target === 'ours') return { port: portOf(gateways[gateway]?.url), pids: ours }
      if (target === 'agent') return { port: portOf(gateways[gateway]?.agentUrl), pids: ours }
      const { pid, ...other } = target === 'bare' ? bare : (running.get(target) ?? missing(target))
      return { ...other, pids: [pid] }
    }
    return {
      ...installation,
      upstream,
      pool: pools.rest,
      send(target, { body = CHAT, path = '/v1/chat/completions', headers: more = '', gateway = 0, ...load }) {
        const { port, pids, headers = '', bodyOf } = reach(target, gateway)
        return send({
          path,
          headers: headers + more,
          body: bodyOf?.(body) ?? body,
          port,
          secretsFile,
          ...load,
          pids: { server: pids, postgres: [postgres.pid()], upstream: [upstream.pid] },
        })
      },
      stop: started.stop,
    }
  })
}

function missing(target: Target): never {
  throw new Error(`${target} was not started`)
}

/** Of a listener that the process may not have. */
export function portOf(url: string | undefined): number {
  return url ? Number(new URL(url).port) : 0
}
