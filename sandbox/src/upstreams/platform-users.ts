import { isObject } from '../json.ts'
import type { Asked, Credential, Header, Reply } from '../upstream.ts'
import { fine, problem } from './platform-answer.ts'
import { isGood, type Session } from './platform-sessions.ts'

/** What an app may ask and do in the name of the user whose token it has. */

const TARGET = /^[0-9]{1,19}$/
const ME_SCOPES = ['tweet.read', 'users.read']
const FOLLOW_SCOPES = ['follows.write', 'tweet.read', 'users.read']

export function userCredential(asked: Asked): Credential {
  if (asked.headers.authorization === undefined) return 'missing'
  return sessionOf(asked) ? 'right' : 'wrong'
}

export function me(asked: Asked): Reply {
  return allowed(asked, ME_SCOPES, ({ user: { id, name, username } }) => {
    const carryOut = () => {
      asked.platform.count('me')
      return undefined
    }
    return { ...fine({ data: { id, name, username } }), carryOut }
  })
}

export function follow(userId: string, asked: Asked): Reply {
  return allowed(asked, FOLLOW_SCOPES, (session) => {
    if (asked.platform.takeFollowRefusal()) return problem(401, 'Unauthorized', 'Unauthorized')
    return session.user.id === userId
      ? limited(session, asked)
      : problem(403, 'Forbidden', 'The id must be that of the authenticated user.')
  })
}

function allowed(asked: Asked, needed: readonly string[], answer: (session: Session) => Reply): Reply {
  const session = sessionOf(asked)
  if (session === undefined) return problem(401, 'Unauthorized', 'Unauthorized')
  const missing = needed.filter((scope) => !session.scopes.includes(scope))
  if (missing.length > 0) return problem(403, 'Forbidden', `The token lacks the scope ${missing.join(' and ')}.`)
  return answer(session)
}

function limited({ user }: Session, asked: Asked): Reply {
  const { platform, nowMs } = asked
  const { used, endsAtMs } = platform.follows.quarterOf(user.id, nowMs)
  const left = platform.knobs.follow_limit - used
  const headers = rateHeaders(platform.knobs.follow_limit, Math.max(0, left - 1), endsAtMs)
  if (left <= 0)
    return {
      ...problem(429, 'Too Many Requests', 'Too Many Requests', headers),
      carryOut() {
        platform.count('follows_over')
        return undefined
      },
    }
  const target = targetIn(asked.body)
  const carryOut = () => {
    platform.follows.useQuota(user.id, nowMs)
    if (target === undefined) return undefined
    platform.count('follows')
    const requestId = asked.headers['x-request-id']
    platform.follows.add(user, {
      at_ms: nowMs,
      target_user_id: target,
      pending_follow: isProtected(target),
      request_id: typeof requestId === 'string' ? requestId : null,
    })
    return undefined
  }
  return target === undefined
    ? {
        ...problem(400, 'Invalid Request', 'Send { target_user_id } with 1 to 19 digits, and no more.', headers),
        carryOut,
      }
    : { ...fine({ data: { following: true, pending_follow: isProtected(target) } }, headers), isBilled: true, carryOut }
}

/** Whoever is protected must agree first. */
function isProtected(target: string): boolean {
  return target.endsWith('9')
}

function targetIn(body: unknown): string | undefined {
  if (!isObject(body) || Object.keys(body).length !== 1) return undefined
  const { target_user_id: target } = body
  return typeof target === 'string' && TARGET.test(target) ? target : undefined
}

function rateHeaders(limit: number, remaining: number, endsAtMs: number): Header[] {
  return [
    ['x-rate-limit-limit', String(limit)],
    ['x-rate-limit-remaining', String(remaining)],
    ['x-rate-limit-reset', String(Math.ceil(endsAtMs / 1000))],
  ]
}

function sessionOf({ headers, platform, nowMs }: Asked): Session | undefined {
  const [, text = ''] = /^Bearer (\S+)$/i.exec(headers.authorization ?? '') ?? []
  const secret = platform.sessions.find('access', text)
  return secret && isGood(secret, nowMs) ? secret.session : undefined
}
