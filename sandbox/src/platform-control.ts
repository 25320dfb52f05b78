import type { IncomingMessage, ServerResponse } from 'node:http'
import { isObject } from './json.ts'
import { jsonIn, readBody } from './read-body.ts'
import { sendJson } from './send-json.ts'
import { KNOB_LIMITS, type NumberKnob, type Platform, type PlatformKnobs } from './upstreams/platform-state.ts'
import { isUsername } from './upstreams/platform-user.ts'

export const PLATFORM_CONTROL = '/control/platform'

type Visit = {
  readonly platform: Platform
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: string
  readonly nowMs: () => number
}

type Order = { readonly knobs: Partial<PlatformKnobs>; readonly expires: boolean; readonly revokes: string | undefined }

/** What tests may know and say about the platform's sessions, which no caller's text tells. */
export function answerPlatformControl(visit: Visit): void {
  const { platform, request, response, path, query } = visit
  const since = Number(new URLSearchParams(query).get('since') ?? 0)
  const part = path.slice(PLATFORM_CONTROL.length)
  if (part === '') answerSummary(visit)
  else if (request.method !== 'GET' || (part !== '/sessions' && part !== '/follows'))
    sendJson(response, 404, {
      error: `GET ${PLATFORM_CONTROL}/sessions and ${PLATFORM_CONTROL}/follows is what there is.`,
    })
  else if (!Number.isSafeInteger(since) || since < 0) sendJson(response, 400, { error: 'since is a whole number.' })
  else if (part === '/sessions') {
    const { items, next, lost } = platform.sessions.list(since)
    sendJson(response, 200, { sessions: items, next, lost })
  } else {
    const { items, next, lost } = platform.follows.list(since)
    sendJson(response, 200, { follows: items, next, lost })
  }
}

function answerSummary({ platform, request, response, nowMs }: Visit): void {
  const summarize = () => sendJson(response, 200, platform.summary())
  if (request.method === 'DELETE') platform.clear()
  if (request.method !== 'POST') summarize()
  else
    readBody(request, (body) => {
      const order = Buffer.isBuffer(body) ? orderIn(jsonIn(body)) : 'send JSON'
      if (typeof order === 'string') sendJson(response, 400, { error: order })
      else {
        obey(order, platform, nowMs())
        summarize()
      }
    })
}

function obey({ knobs, expires, revokes }: Order, platform: Platform, nowMs: number): void {
  platform.turn(knobs)
  if (expires) platform.sessions.expireAccessTokens(nowMs)
  if (revokes !== undefined) platform.sessions.revokeUser(revokes)
}

/** An order as it came over HTTP, or what is wrong with it. */
function orderIn(value: unknown): Order | string {
  if (!isObject(value)) return 'send an object, such as { access_token_seconds: 5 }'
  const { user, revoke_user: revokes, expire_access_tokens: expires = false, ...numbers } = value
  const knobs: Partial<PlatformKnobs> = {}
  for (const [name, number] of Object.entries(numbers)) {
    if (!isNumberKnob(name)) return `there is no knob ${name}`
    if (!isCount(number, KNOB_LIMITS[name])) return `${name} is a whole number from 0 to ${KNOB_LIMITS[name]}`
    knobs[name] = number
  }
  if (typeof expires !== 'boolean') return 'expire_access_tokens is true or false'
  if (user !== undefined) {
    if (!isUsername(user)) return 'user is a name of letters, digits and underscores'
    knobs.user = user
  }
  if (revokes !== undefined && !isUsername(revokes)) return 'revoke_user is the name of a user'
  return { knobs, expires, revokes }
}

function isNumberKnob(name: string): name is NumberKnob {
  return Object.hasOwn(KNOB_LIMITS, name)
}

function isCount(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= most
}
