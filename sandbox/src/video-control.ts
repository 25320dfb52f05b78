import type { IncomingMessage, ServerResponse } from 'node:http'
import { isObject } from './json.ts'
import { jsonIn, readBody } from './read-body.ts'
import { sendJson } from './send-json.ts'
import type { VideoTasks } from './upstreams/video-tasks.ts'

export const VIDEO_CONTROL = '/control/video'
const LISTS: ReadonlySet<string> = new Set(['/tasks', '/polls', '/kept'])
const QUOTA_LIMIT = 1_000_000

type Visit = {
  readonly videos: VideoTasks
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: string
  readonly nowMs: () => number
}

/** What tests may know and say about video tasks, which no caller's text tells. */
export function answerVideoControl(visit: Visit): void {
  const { videos, request, response, path, query, nowMs } = visit
  const since = Number(new URLSearchParams(query).get('since') ?? 0)
  const part = path.slice(VIDEO_CONTROL.length)
  if (part === '') answerSummary(visit)
  else if (request.method !== 'GET' || !LISTS.has(part))
    sendJson(response, 404, { error: `GET ${VIDEO_CONTROL}/tasks, /polls and /kept is what there is.` })
  else if (part === '/kept') sendJson(response, 200, videos.kept())
  else if (!Number.isSafeInteger(since) || since < 0) sendJson(response, 400, { error: 'since is a whole number.' })
  else if (part === '/tasks') {
    const { items, next, lost } = videos.list(since, nowMs())
    sendJson(response, 200, { tasks: items, next, lost })
  } else {
    const { items, next, lost } = videos.polls(since)
    sendJson(response, 200, { polls: items, next, lost })
  }
}

function answerSummary({ videos, request, response, nowMs }: Visit): void {
  const summarize = () => sendJson(response, 200, videos.summary(nowMs()))
  if (request.method === 'DELETE') videos.clear()
  if (request.method !== 'POST') summarize()
  else
    readBody(request, (body) => {
      const quota = Buffer.isBuffer(body) ? quotaIn(jsonIn(body)) : undefined
      if (quota === undefined) sendJson(response, 400, { error: 'send { polls_per_second: a whole number or null }' })
      else {
        videos.limitPolls(quota)
        summarize()
      }
    })
}

function quotaIn(value: unknown): number | null | undefined {
  if (!isObject(value)) return undefined
  const { polls_per_second: quota } = value
  if (quota === null) return null
  return typeof quota === 'number' && Number.isSafeInteger(quota) && quota >= 0 && quota <= QUOTA_LIMIT
    ? quota
    : undefined
}
