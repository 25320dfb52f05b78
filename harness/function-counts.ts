import path from 'node:path'
import { ROOT } from './root.ts'

/** How often each function of server/src has run since it was last asked, by file and place. */
export type FunctionCounts = ReadonlyMap<string, number>

export type Counting = {
  /** Begins anew with every look. */
  readonly take: () => Promise<FunctionCounts>
  readonly stop: () => void
}

const SERVER = path.join(ROOT, 'server/src')
const DEADLINE_MS = 30_000

/** Counts in a process that was started with `--inspect`: V8 does it, and nothing of the server knows. */
export async function countFunctions(inspectorPort: number): Promise<Counting> {
  const targets = await fetch(`http://127.0.0.1:${inspectorPort}/json/list`, {
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const [target] = (await targets.json()) as readonly { readonly webSocketDebuggerUrl: string }[]
  if (target === undefined) throw new Error(`nothing can be inspected at port ${inspectorPort}`)
  const ask = await connectTo(target.webSocketDebuggerUrl)
  await ask('Profiler.enable')
  await ask('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return {
    take: async () => countsIn((await ask('Profiler.takePreciseCoverage')) as Coverage),
    stop: () => ask.close(),
  }
}

type Coverage = {
  readonly result: readonly {
    readonly url: string
    readonly functions: readonly {
      readonly functionName: string
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[]
    }[]
  }[]
}

function countsIn({ result }: Coverage): FunctionCounts {
  const counts = new Map<string, number>()
  for (const { url, functions } of result) {
    if (!url.startsWith(`file://${SERVER}/`)) continue
    const file = path.relative(SERVER, url.slice('file://'.length))
    for (const { functionName, ranges } of functions) {
      const [whole] = ranges
      // What runs once, when the file is loaded, has no name and begins where the file does.
      if (whole === undefined || whole.count === 0 || (functionName === '' && whole.startOffset === 0)) continue
      counts.set(`${file}:${whole.startOffset}:${functionName}`, whole.count)
    }
  }
  return counts
}

type Ask = {
  (method: string, params?: object): Promise<unknown>
  readonly close: () => void
}

type Message = { readonly id?: number; readonly result?: unknown; readonly error?: unknown }

async function connectTo(url: string): Promise<Ask> {
  const socket = new WebSocket(url)
  const waiting = new Map<number, (message: Message) => void>()
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(String(data)) as Message
    waiting.get(message.id ?? -1)?.(message)
    waiting.delete(message.id ?? -1)
  })
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve(), { once: true })
    socket.addEventListener('error', () => reject(new Error(`no inspector at ${url}`)), { once: true })
  })
  let last = 0
  const ask = (method: string, params: object = {}) =>
    new Promise<unknown>((resolve, reject) => {
      last += 1
      const timer = setTimeout(() => reject(new Error(`${method} took too long`)), DEADLINE_MS)
      waiting.set(last, ({ result, error }) => {
        clearTimeout(timer)
        if (error === undefined) resolve(result)
        else reject(new Error(`${method}: ${JSON.stringify(error)}`))
      })
      socket.send(JSON.stringify({ id: last, method, params }))
    })
  return Object.assign(ask, { close: () => socket.close() })
}
