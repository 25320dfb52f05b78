import type { Version } from '../../harness/versions.ts'
import { type Layout, pin } from '../load/cores.ts'
import { type Installation, startInstallation } from '../load/installation.ts'
import { send } from '../load/load.ts'
import { startProgram } from '../load/programs.ts'
import { CHAT, portOf } from '../load/stage.ts'
import { createStarted } from '../load/started.ts'
import type { Send } from '../load/window.ts'

/** Who is measured: the version at hand, the one that it is compared with, and the proxy that does nothing. */
export type Side = 'new' | 'old' | 'bare'

export type Sides = {
  /** Sends calls to one of them, all of which pass them on to the same upstream. */
  readonly to: (side: Side) => Send
  /** Moves everybody to other cores. */
  readonly arrange: (layout: Layout) => void
  readonly stop: () => Promise<void>
}

/** Two versions, each with a PostgreSQL of its own, beside the bare proxy. */
export async function startSides(versions: Readonly<Record<'new' | 'old', Version>>, callers: number): Promise<Sides> {
  const started = createStarted()
  return started.orStop(async () => {
    const upstream = started.keep(await startProgram('others', 'upstream.ts', []))
    const bare = started.keep(await startProgram('server', 'bare-proxy.ts', [`http://127.0.0.1:${upstream.port}`]))
    const wanted = { callers, protocols: ['openai'], upstreamPort: upstream.port }
    const ours = {
      new: started.keep(await startInstallation({ ...wanted, version: versions.new })),
      old: started.keep(await startInstallation({ ...wanted, version: versions.old })),
    }
    let layout: Layout = 'shared'
    return {
      to: (side) => {
        const { postgres, secretsFile } = side === 'bare' ? ours.new : ours[side]
        const server = side === 'bare' ? bare : serverOf(ours[side])
        const pids = { server: [server.pid], postgres: [postgres.pid()], upstream: [upstream.pid] }
        const chat = { path: '/v1/chat/completions', headers: '', body: CHAT, port: server.port, secretsFile, pids }
        return (window) => send({ ...chat, ...window }, layout)
      },
      arrange(wantedLayout) {
        layout = wantedLayout
        pin('others', upstream.pid, layout)
        pin('server', bare.pid, layout)
        for (const one of [ours.new, ours.old]) {
          pin('postgres', one.postgres.pid(), layout)
          pin('server', serverOf(one).pid, layout)
        }
      },
      stop: started.stop,
    }
  })
}

function serverOf({ gateways }: Installation): { readonly pid: number; readonly port: number } {
  const [gateway] = gateways
  if (gateway === undefined) throw new Error('an installation has no process')
  return { pid: gateway.pid, port: portOf(gateway.url) }
}
