import { hash } from 'node:crypto'
import type { Asked, Header, Reply } from '../upstream.ts'
import { fine, oauthError } from './platform-answer.ts'
import { isGood, revoke, type Session, type Tokens } from './platform-sessions.ts'

/** Codes become tokens, tokens become newer ones, and sessions end. */

const NOT_STORED: readonly Header[] = [['cache-control', 'no-store']]

export function token(asked: Asked): Reply {
  const { form, platform } = asked
  const delayMs = platform.knobs.token_delay_ms
  const reply = grant(form.get('grant_type'), asked)
  return delayMs === 0 ? reply : { ...reply, delivery: { ...reply.delivery, delayMs } }
}

/** A token that nobody has is as good as revoked, so that is no error (RFC 7009, 2.2). */
export function revocation({ form, platform }: Asked): Reply {
  const text = form.get('token')
  if (!text) return oauthError(400, 'invalid_request', 'Missing required parameter [token].')
  const secret = platform.sessions.find('access', text) ?? platform.sessions.find('refresh', text)
  const carryOut = () => {
    platform.count('revocations')
    if (secret) revoke(secret.session, 'client')
    return undefined
  }
  return { ...fine({ revoked: true }), carryOut }
}

function grant(type: string | null, asked: Asked): Reply {
  if (type === 'authorization_code') return exchange(asked)
  if (type === 'refresh_token') return spoiledRefresh(asked)
  if (!type) return oauthError(400, 'invalid_request', 'Missing required parameter [grant_type].')
  return oauthError(400, 'unsupported_grant_type', 'grant_type is authorization_code or refresh_token.')
}

function exchange(asked: Asked): Reply {
  const { form, platform, nowMs } = asked
  for (const name of ['code', 'redirect_uri', 'code_verifier'])
    if (!form.get(name)) return failedExchange('invalid_request', `Missing required parameter [${name}].`, asked)
  const secret = platform.sessions.find('code', form.get('code') ?? '')
  if (secret === undefined) return failedExchange('invalid_grant', 'Value passed for the code was invalid.', asked)
  const { session } = secret
  const wrong = wrongWithCode(session, form)
  if (secret.isSpent || wrong !== undefined || !isGood(secret, nowMs))
    return failedExchange('invalid_grant', wrong ?? 'Value passed for the code was invalid.', asked, () => {
      session.codeUses += 1
      if (!secret.isSpent) return
      platform.count('code_reuses')
      revoke(session, 'code_reuse')
    })
  return granted(session, asked, () => {
    session.codeUses += 1
    secret.isSpent = true
    platform.count('code_exchanges')
  })
}

/** The address must be the very same text, and the verifier the one whose hash came with the first step (RFC 7636, 4.6). */
function wrongWithCode({ redirectUri, challenge }: Session, form: URLSearchParams): string | undefined {
  if (form.get('redirect_uri') !== redirectUri) return 'Value passed for the redirect uri did not match.'
  const isVerified = hash('sha256', form.get('code_verifier') ?? '', 'base64url') === challenge
  return isVerified ? undefined : 'Value passed for the code verifier did not match the code challenge.'
}

function failedExchange(error: string, description: string, { platform }: Asked, also = () => {}): Reply {
  const carryOut = () => {
    platform.count('failed_exchanges')
    also()
    return undefined
  }
  return { ...oauthError(400, error, description), carryOut }
}

/** As tests have ordered it. One that fails or hangs does nothing; one that is cut has done it. */
function spoiledRefresh(asked: Asked): Reply {
  switch (asked.platform.takeRefreshFault()) {
    case undefined:
      return refresh(asked)
    case 'fails':
      return oauthError(500, 'server_error', 'Internal Server Error')
    case 'hangs':
      return { ...fine({}), delivery: { hang: 'headers' } }
    case 'cut':
      return { ...refresh(asked), delivery: { close: 'before-headers' } }
  }
}

function refresh(asked: Asked): Reply {
  const { form, platform, nowMs } = asked
  const text = form.get('refresh_token')
  const secret = text ? platform.sessions.find('refresh', text) : undefined
  if (secret && isGood(secret, nowMs))
    return granted(secret.session, asked, () => {
      secret.isSpent = true
      secret.session.refreshes += 1
      platform.count('refreshes')
    })
  const carryOut = () => {
    platform.count('failed_refreshes')
    if (!secret?.isSpent) return undefined
    platform.count('refresh_reuses')
    secret.session.refreshReuses += 1
    revoke(secret.session, 'refresh_reuse')
    return undefined
  }
  return text
    ? { ...oauthError(400, 'invalid_grant', 'Value passed for the token was invalid.'), carryOut }
    : { ...oauthError(400, 'invalid_request', 'Missing required parameter [refresh_token].'), carryOut }
}

function granted(session: Session, { platform, nowMs }: Asked, spend: () => void): Reply {
  const { sessions, knobs } = platform
  const tokens = sessions.drawTokens(session)
  const carryOut = () => {
    spend()
    sessions.give(session, tokens, nowMs + knobs.access_token_seconds * 1000)
    return undefined
  }
  return { ...fine(tokenBody(session, tokens, knobs.access_token_seconds), NOT_STORED), carryOut }
}

function tokenBody({ scopes }: Session, { access, refresh }: Tokens, expiresIn: number) {
  return {
    token_type: 'bearer',
    expires_in: expiresIn,
    access_token: access,
    scope: scopes.join(' '),
    ...(refresh !== undefined && { refresh_token: refresh }),
  }
}
