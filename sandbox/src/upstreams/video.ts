import { STATUS_CODES } from 'node:http'
import { type Bill, priceClassOf } from '../bill.ts'
import type { JsonObject } from '../json.ts'
import { hashOf, Random } from '../random.ts'
import type { Asked, Knobs, Reply, Upstream } from '../upstream.ts'
import {
  type Course,
  cancelFault,
  endedAtMs,
  pollFault,
  type RequestFault,
  startedAtMs,
  stateAt,
  USUAL_COURSE,
} from './video-course.ts'
import { addressOf, fileAt, isFile } from './video-file.ts'
import { type Job, jobIn } from './video-job.ts'
import type { VideoTask } from './video-task.ts'
import { uuidOf } from './video-tasks.ts'
import { usageOf } from './video-usage.ts'

const CREATE = /^\/services\/aigc\/(?:video-generation|image2video)\/video-synthesis$/
const TASK = /^\/tasks\/([^/]+?)(\/cancel)?$/
/** The word in the middle is the vendor's; any will do. */
const ASYNC_HEADER = /^x-[a-z0-9]+-async$/
/** The vendor gives its times without a zone; these are of one that callers are not likely to guess. */
const TIME_ZONE_MS = 8 * 3_600_000
const CODES: Readonly<Record<number, string>> = {
  401: 'InvalidApiKey',
  403: 'AccessDenied',
  408: 'RequestTimeOut',
  413: 'BadRequest.TooLarge',
  429: 'Throttling',
}

/** Videos take minutes, so what is made is a task, which is asked about until it has ended. */
export const video: Upstream = {
  name: 'video',
  methodOf: (path) => (CREATE.test(path) || path.endsWith('/cancel') ? 'POST' : 'GET'),
  credentials: [{ header: 'authorization', scheme: 'bearer' }],
  has: (path) => CREATE.test(path) || TASK.test(path) || isFile(path),
  isOpen: isFile,
  answer(asked) {
    if (CREATE.test(asked.path)) return create(asked)
    if (isFile(asked.path)) return file(asked)
    const [, id = '', isCancel] = TASK.exec(asked.path) ?? []
    return { ...(isCancel ? cancel(id, asked) : poll(id, asked)), taskId: id }
  },
  errorBody: (status, message, asked) => errorBody(codeOf(status), message, asked),
}

function create(asked: Asked): Reply {
  if (!Object.entries(asked.headers).some(([name, value]) => ASYNC_HEADER.test(name) && value === 'enable'))
    return refused(403, 'AccessDenied', 'current user api does not support synchronous calls', asked)
  const job = jobIn(asked.body)
  if ('wrong' in job) return refused(400, 'InvalidParameter', job.wrong, asked)
  const id = asked.videos.nextId(asked.seed, asked.nowMs)
  const remade = ({ course }: Knobs): Reply => ({
    status: 200,
    body: {
      output: { task_id: id, task_status: course?.startsRunning ? 'RUNNING' : 'PENDING' },
      request_id: requestId(asked, id),
    },
    tokens: null,
    isBilled: true,
    bill: billOf(job, { ...USUAL_COURSE, ...course }),
    about: { model: job.model, isStreamed: false, inputTokens: 0 },
  })
  return { ...remade({}), remade, carryOut: (knobs) => make(id, job, knobs, asked) }
}

/** What the task comes to if nobody cancels it. */
function billOf({ model, seconds, sr, count }: Job, course: Course): Bill {
  const made = course.ends === 'succeeded' ? (course.videoSeconds ?? seconds) : 0
  const charged = course.ends === 'canceled' ? (course.canceledSeconds ?? 0) : made
  return { price_class: priceClassOf(model), seconds: charged * count, sr: course.usageSr ?? sr }
}

function make(id: string, job: Job, { course: unusual }: Knobs, { videos, headers, nowMs }: Asked): string {
  const course = unusual ? { ...USUAL_COURSE, ...unusual } : USUAL_COURSE
  const seconds = course.videoSeconds ?? job.seconds
  const sr = course.usageSr ?? job.sr
  const called = headers['x-request-id']
  const requestId = typeof called === 'string' ? called : null
  videos.add({ id, job: { ...job, seconds, sr }, course, createdAtMs: nowMs, requestId })
  return id
}

function poll(id: string, asked: Asked): Reply {
  const { videos, nowMs } = asked
  const task = videos.get(id)
  const nth = task?.polls ?? 0
  if (videos.poll(id, nowMs)) return refused(429, 'Throttling.RateQuota', 'Requests rate limit exceeded.', asked)
  const usage =
    task && stateAt(task, nowMs) !== 'UNKNOWN' ? usageOf(task, nowMs, asked.deviance.reportedTimes) : undefined
  const output = task ? outputOf(task, asked) : { task_id: id, task_status: 'UNKNOWN' }
  const reply = fine({ request_id: requestId(asked, id), output, ...(usage !== undefined && { usage }) })
  return task ? spoiled(reply, pollFault(task.course, nth), asked) : reply
}

function cancel(id: string, asked: Asked): Reply {
  const { videos, nowMs } = asked
  const task = videos.get(id)
  const fault = task && cancelFault(task.course, task.cancels)
  if (task) task.cancels += 1
  if (task === undefined || stateAt(task, nowMs) !== 'PENDING')
    return spoiled(refused(400, 'UnsupportedOperation', 'Only a PENDING task can be canceled.', asked), fault, asked)
  const carryOut = () => {
    task.canceledAtMs = nowMs
    return undefined
  }
  return spoiled({ ...fine({ request_id: requestId(asked, id) }), carryOut }, fault, asked)
}

function file(asked: Asked): Reply {
  const found = fileAt(asked)
  if (found === 'expired') return refused(403, 'AccessDenied', 'Request has expired.', asked)
  if (found === 'forged') return refused(403, 'SignatureDoesNotMatch', 'The signature does not match.', asked)
  return { ...fine({}), content: { type: 'video/mp4', bytes: found } }
}

/** The members that an answer has depend on how far the task has come. */
function outputOf(task: VideoTask, asked: Asked): JsonObject {
  const { id, course, createdAtMs, job } = task
  const state = stateAt(task, asked.nowMs)
  if (state === 'UNKNOWN') return { task_id: id, task_status: state }
  const startedMs = startedAtMs(task, asked.nowMs)
  const endedMs = endedAtMs(task, asked.nowMs)
  return {
    task_id: id,
    task_status: state,
    submit_time: timeOf(createdAtMs),
    ...(startedMs !== undefined && { scheduled_time: timeOf(startedMs) }),
    ...(endedMs !== undefined && { end_time: timeOf(endedMs) }),
    ...(state === 'FAILED' && { code: course.failCode, message: course.failMessage }),
    ...(state === 'SUCCEEDED' && endedMs !== undefined && { video_url: addressOf(task, endedMs, asked) }),
    ...(state === 'SUCCEEDED' && job.prompt !== undefined && { orig_prompt: job.prompt }),
  }
}

/** An answer as the directives of the task would have it. One that fails or hangs does nothing; one that is cut has done it. */
function spoiled(reply: Reply, fault: RequestFault | undefined, asked: Asked): Reply {
  switch (fault) {
    case undefined:
      return reply
    case 'throttled':
      return refused(429, 'Throttling', 'Requests throttling triggered.', asked)
    case 'fails':
      return refused(500, 'InternalError', STATUS_CODES[500] ?? '', asked)
    case 'garbage':
      return { ...reply, content: { type: 'application/json', bytes: '{"output": [oops, \u0000\u0001 }]' } }
    case 'hangs':
      return { ...fine({}), delivery: { hang: 'headers' } }
    case 'cut':
      return { ...reply, delivery: { close: 'before-headers' } }
  }
}

function fine(body: JsonObject): Reply {
  return { status: 200, body, tokens: null, isBilled: false }
}

function refused(status: number, code: string, message: string, asked: Asked): Reply {
  return { status, body: errorBody(code, message, asked), tokens: null, isBilled: false }
}

function errorBody(code: string, message: string, asked: Asked): JsonObject {
  return { code, message, request_id: requestId(asked, code) }
}

function codeOf(status: number): string {
  return CODES[status] ?? (status < 500 ? 'InvalidParameter' : 'InternalError')
}

function requestId({ seed, path, nowMs }: Asked, about: string): string {
  return uuidOf(new Random(hashOf(seed, 'request', path, about, String(nowMs))).hex(32))
}

/** `2026-11-15 04:20:00.123` */
function timeOf(atMs: number): string {
  return new Date(atMs + TIME_ZONE_MS).toISOString().slice(0, 23).replace('T', ' ')
}
