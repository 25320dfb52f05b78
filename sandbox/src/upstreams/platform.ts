import type { JsonObject } from '../json.ts'
import type { Asked, Upstream } from '../upstream.ts'
import { PROBLEM_TYPE, problemBody } from './platform-answer.ts'
import { authorize } from './platform-authorize.ts'
import { clientCredential } from './platform-client.ts'
import { revocation, token } from './platform-token.ts'
import { follow, me, userCredential } from './platform-users.ts'

const AUTHORIZE = '/i/oauth2/authorize'
const TOKEN = '/2/oauth2/token'
const REVOKE = '/2/oauth2/revoke'
const ME = '/2/users/me'
const FOLLOWING = /^\/2\/users\/([0-9]{1,19})\/following$/
const OAUTH_ERRORS: Readonly<Record<number, string>> = {
  401: 'invalid_client',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

/** A social platform where users let an app act in their name: OAuth 2.0 with a code and PKCE. */
export const platform: Upstream = {
  name: 'platform',
  methodOf: (path) => (path === AUTHORIZE ? 'either' : path === ME ? 'GET' : 'POST'),
  credentials: [],
  credentialOf(asked) {
    if (asked.path === AUTHORIZE) return 'missing'
    return isOauth(asked) ? clientCredential(asked.headers) : userCredential(asked)
  },
  has: (path) => [AUTHORIZE, TOKEN, REVOKE, ME].includes(path) || FOLLOWING.test(path),
  isOpen: (path) => path === AUTHORIZE,
  answer(asked) {
    switch (asked.path) {
      case AUTHORIZE:
        return authorize(asked)
      case TOKEN:
        return token(asked)
      case REVOKE:
        return revocation(asked)
      case ME:
        return me(asked)
      default:
        return follow(FOLLOWING.exec(asked.path)?.[1] ?? '', asked)
    }
  },
  errorBody: (status, message, asked) =>
    isOauth(asked) ? oauthBody(status, message) : problemBody(status, message, message),
  errorType: (asked) => (isOauth(asked) ? 'application/json' : PROBLEM_TYPE),
}

function isOauth({ path }: Asked): boolean {
  return path === TOKEN || path === REVOKE
}

function oauthBody(status: number, message: string): JsonObject {
  return {
    error: OAUTH_ERRORS[status] ?? (status < 500 ? 'invalid_request' : 'server_error'),
    error_description: message,
  }
}
