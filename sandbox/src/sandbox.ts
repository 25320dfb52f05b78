import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { Control } from './control.ts'
import type { Hung } from './deliver.ts'
import { deviantAt } from './deviants.ts'
import { createExchanges, finish } from './exchange.ts'
import { Journal } from './journal.ts'
import { answerMail, isMailPath } from './mail/answer-mail.ts'
import { Mailbox } from './mail/mailbox.ts'
import { OPENID, OpenidProvider } from './openid/openid.ts'
import { answerPlatformControl, PLATFORM_CONTROL } from './platform-control.ts'
import { jsonIn, readBody } from './read-body.ts'
import { answerReplay, REPLAY, type Replays } from './replay.ts'
import { sendJson } from './send-json.ts'
import { Platform } from './upstreams/platform-state.ts'
import type { VideoTask } from './upstreams/video-task.ts'
import { VideoTasks } from './upstreams/video-tasks.ts'
import { upstreamAt } from './upstreams.ts'
import { answerVideoControl, VIDEO_CONTROL } from './video-control.ts'

export type Sandbox = {
  readonly server: Server
  /** The mail that was received, by whoever receives it. */
  readonly mailbox: Mailbox
  /** Lets answers under way finish for a moment; those that hang are let go at once. */
  readonly close: () => Promise<void>
}

type Options = {
  readonly seed?: number
  readonly nowMs?: () => number
  /** The video tasks of an earlier life, as control gives them. */
  readonly videoTasks?: readonly VideoTask[]
  /** What vendors were recorded to answer. */
  readonly replays?: Replays
}

const NO_REPLAYS: Replays = new Map()
const CONNECTIONS_LIMIT = 20_000
/** Longer than any pool keeps an idle connection, so that it is never the sandbox that closes one under a request. */
const KEEP_ALIVE_MS = 120_000
const GRACE_MS = 2000
const IDLE_LOOK_MS = 20

/** The simulated upstreams: each vendor's wire format under a prefix of its own, with a journal of what was asked. */
export function createSandbox(options: Options = {}): Sandbox {
  const { seed = 1, nowMs = Date.now, videoTasks = [], replays = NO_REPLAYS } = options
  const journal = new Journal()
  const control = new Control()
  const videos = new VideoTasks()
  videos.goOnWith(videoTasks)
  const platform = new Platform()
  const mailbox = new Mailbox()
  const openid = new OpenidProvider(nowMs)
  const hung: Hung = new Set()
  const exchange = createExchanges({ control, videos, platform, hung, seed, nowMs })

  const server = createServer((request, response) => {
    const [path, query] = targetOf(request)
    if (path === '/livez') sendJson(response, 200, { ok: true })
    else if (path === '/journal') answerJournal(journal, request, response, query)
    else if (path === '/control') answerControl(control, request, response)
    else if (isMailPath(path)) answerMail({ mailbox, request, response, path, query })
    else if (path.startsWith(`${OPENID}/`)) openid.answer({ request, response, path, query })
    else if (path.startsWith(VIDEO_CONTROL)) answerVideoControl({ videos, request, response, path, query, nowMs })
    else if (path.startsWith(PLATFORM_CONTROL))
      answerPlatformControl({ platform, request, response, path, query, nowMs })
    else if (path.startsWith(REPLAY)) {
      const entry = journal.open(request, path, query)
      answerReplay(replays, { request, response, entry, path, query, hung })
    } else askUpstream(request, response, path, query)
  })

  function askUpstream(request: IncomingMessage, response: ServerResponse, path: string, query: string): void {
    const entry = journal.open(request, path, query)
    const deviant = deviantAt(path)
    if (typeof deviant === 'string') {
      finish(response, entry, 404, { error: deviant }, 'refused')
      return
    }
    const { deviance } = deviant
    const place = upstreamAt(deviant.rest)
    entry.deviant = deviance.words
    entry.upstream = place?.upstream.name ?? null
    if (place?.upstream.has(place.rest))
      exchange({ request, response, entry, upstream: place.upstream, path: place.rest, query, deviance })
    else finish(response, entry, 404, { error: `The sandbox has no upstream at ${path}.` })
  }
  server.maxConnections = CONNECTIONS_LIMIT
  server.keepAliveTimeout = KEEP_ALIVE_MS

  async function close(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const response of hung) response.destroy()
    // A connection whose answer ends only now would be kept alive for the next request, which will not come.
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS)
    const grace = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    await closed
    clearInterval(idle)
    clearTimeout(grace)
  }

  return { server, mailbox, close }
}

function targetOf({ url = '/' }: IncomingMessage): [path: string, query: string] {
  const at = url.indexOf('?')
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)]
}

function answerJournal(journal: Journal, request: IncomingMessage, response: ServerResponse, query: string): void {
  const since = Number(new URLSearchParams(query).get('since') ?? 0)
  if (request.method === 'DELETE') {
    journal.empty()
    sendJson(response, 200, { ok: true })
  } else if (request.method !== 'GET') sendJson(response, 405, { error: 'GET reads the journal, DELETE empties it.' })
  else if (!Number.isSafeInteger(since) || since < 0) sendJson(response, 400, { error: 'since is a whole number.' })
  else sendJson(response, 200, journal.read(since))
}

function answerControl(control: Control, request: IncomingMessage, response: ServerResponse): void {
  if (request.method === 'DELETE') control.clear()
  if (request.method !== 'POST') sendJson(response, 200, { faults: control.waiting() })
  else
    readBody(request, (body) => {
      const wrong = typeof body === 'string' ? `the body is ${body}` : control.add(jsonIn(body))
      if (wrong === undefined) sendJson(response, 200, { faults: control.waiting() })
      else sendJson(response, 400, { error: wrong })
    })
}
