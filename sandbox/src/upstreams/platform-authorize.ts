import type { Asked, Reply } from '../upstream.ts'
import { page, redirection } from './platform-answer.ts'
import { CLIENT_ID } from './platform-client.ts'
import { consentPage, errorPage } from './platform-pages.ts'
import type { Permission } from './platform-sessions.ts'
import { isUsername, userNamed } from './platform-user.ts'

/** The page on which a user lets an app in or not. */

const PARAMETERS = [
  'response_type',
  'client_id',
  'redirect_uri',
  'scope',
  'state',
  'code_challenge',
  'code_challenge_method',
] as const
const STATE_LIMIT = 500
const SCOPES_LIMIT = 50
/** A SHA-256 hash in base64url. */
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/
const SCOPE = /^[\w.:-]{1,64}$/
const COOKIE = /(?:^|;\s*)sandbox_user=([^;]*)/

export function authorize(asked: Asked): Reply {
  const sent = asked.method === 'GET' ? asked.parameters : asked.form
  const permission = permissionIn(sent, asked)
  if (typeof permission === 'string') return page(400, errorPage(permission))
  return asked.method === 'GET' ? consent(permission, sent) : decided(permission, sent, asked)
}

function consent({ user, scopes }: Permission, sent: URLSearchParams): Reply {
  const hidden: [string, string][] = [['sandbox_user', user.username]]
  for (const name of PARAMETERS) {
    const value = sent.get(name)
    if (value !== null) hidden.push([name, value])
  }
  return page(200, consentPage({ app: CLIENT_ID, user, scopes, hidden }))
}

function decided(permission: Permission, sent: URLSearchParams, { platform, nowMs }: Asked): Reply {
  const { redirectUri } = permission
  const state = sent.get('state')
  switch (sent.get('decision')) {
    case 'allow': {
      const code = platform.sessions.draw('code')
      const carryOut = () => {
        platform.sessions.begin(permission, code, nowMs, nowMs + platform.knobs.code_seconds * 1000)
        platform.count('authorizations')
        return undefined
      }
      return { ...redirection(withParameters(redirectUri, { code, state })), carryOut }
    }
    case 'deny': {
      const carryOut = () => {
        platform.count('denials')
        return undefined
      }
      return { ...redirection(withParameters(redirectUri, { error: 'access_denied', state })), carryOut }
    }
    default:
      return page(400, errorPage('decision must be allow or deny.'))
  }
}

/** What the app asks for, or what is wrong with it, which only the user is told: an address in doubt gets nothing. */
function permissionIn(sent: URLSearchParams, asked: Asked): Permission | string {
  const redirectUri = sent.get('redirect_uri') ?? ''
  const challenge = sent.get('code_challenge') ?? ''
  const scopes = (sent.get('scope') ?? '').split(' ').filter((scope) => scope !== '')
  const username = usernameOf(sent, asked)
  if (sent.get('response_type') !== 'code') return 'response_type must be code.'
  if (sent.get('client_id') !== CLIENT_ID) return 'client_id is not that of an app.'
  if (!isAddress(redirectUri)) return 'redirect_uri must be an address with http or https and without a fragment.'
  if (sent.get('code_challenge_method') !== 'S256') return 'code_challenge_method must be S256.'
  if (!S256_CHALLENGE.test(challenge)) return 'code_challenge must be a SHA-256 hash in base64url.'
  if ((sent.get('state') ?? '').length > STATE_LIMIT) return `state must not exceed ${STATE_LIMIT} characters.`
  if (scopes.length === 0 || scopes.length > SCOPES_LIMIT || !scopes.every((scope) => SCOPE.test(scope)))
    return 'scope must name scopes, with blanks between them.'
  if (!isUsername(username)) return 'sandbox_user must be a name of letters, digits and underscores.'
  return { user: userNamed(username, asked.seed), scopes: [...new Set(scopes)], redirectUri, challenge }
}

/** The sandbox has no passwords: whoever says a name is signed in as that. */
function usernameOf(sent: URLSearchParams, { headers, platform }: Asked): string {
  return sent.get('sandbox_user') ?? COOKIE.exec(headers.cookie ?? '')?.[1] ?? platform.knobs.user
}

function isAddress(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && !text.includes('#')
}

/** Beside those that the address has already. */
function withParameters(address: string, parameters: Readonly<Record<string, string | null>>): string {
  const url = new URL(address)
  for (const [name, value] of Object.entries(parameters)) if (value !== null) url.searchParams.append(name, value)
  return url.href
}
