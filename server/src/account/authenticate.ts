import type pg from 'pg'
import type { ApiRequest } from '../api/request.ts'
import { findAccessToken } from '../grants/access-tokens.ts'
import { findGrant } from '../grants/grants.ts'
import { type FailuresByAddress, tryFrom } from '../identity/failures-by-address.ts'
import { parseCredential } from '../identity/key-format.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { Secret } from '../kernel/secret.ts'
import type { People } from '../people/people.ts'
import { byPerson } from '../people/visitor.ts'
import type { By } from '../storage/audit.ts'

/** Who asks: a person, by a browser in which they have signed in, or by a client that they let act for one workspace in one mode. */
export type Member = {
  readonly personId: Id
  readonly by: By
  /** What a script of ours has to send back; null for a client. */
  readonly formToken: string | null
  /** Null for a person's own browser, which sees all of their workspaces. */
  readonly granted: { readonly grantId: Id; readonly workspaceId: Id; readonly mode: Mode } | null
}

/** How browsers are known; made where the pages are. */
export type Browser = {
  readonly sessionTokenIn: (cookie: string | undefined) => string | undefined
  readonly formTokenOf: (sessionToken: string) => string
  readonly isOurs: (sent: {
    readonly cookie: string | undefined
    readonly origin: string | undefined
    readonly fetchSite: string | undefined
    readonly formToken: string | undefined
    readonly host: string
  }) => boolean
}

type Parts = {
  readonly pool: pg.Pool
  readonly people: Pick<People, 'sessionOf'>
  readonly browser: Browser
  readonly failures: FailuresByAddress
  /** The resource that tokens have to be for; null where nobody issues any. */
  readonly audience: string | null
}

export type Authenticate = (asked: ApiRequest, isWrite: boolean) => Promise<Member>

export const FORM_TOKEN_HEADER = 'X-Form-Token'
const NO_ORIGIN = {
  detail: 'The header Origin is missing: send the address of this website there, as browsers do.',
}
const BEARER = /^Bearer +(\S+)$/i

/** Finds out who asks. A token is looked at before a cookie: who sends one means it. */
export function createAuthenticate({ pool, people, browser, failures, audience }: Parts): Authenticate {
  async function byToken(asked: ApiRequest, text: string, isWrite: boolean): Promise<Member> {
    const parsed = parseCredential(new Secret(text))
    if (parsed?.kind !== 'at' || audience === null) throw wrongToken(audience)
    const { address } = asked.visitor
    const { token, grant } = await tryFrom(failures, address, () => findToken(parsed, address))
    const { networks } = grant.terms
    if (networks !== null && !networks.has(address)) throw new Fault('address_not_allowed')
    if (grant.isPaused) throw new Fault('mandate_paused')
    const scope = isWrite ? 'account.manage' : 'account.read'
    if (!token.scopes.some((one) => one === scope || one === 'account.manage'))
      throw new Fault('forbidden', { detail: `The access token needs the scope ${scope}.` })
    const { personId, workspaceId } = token
    const granted = { grantId: token.grantId, workspaceId, mode: grant.mode }
    const by = byPerson(personId, asked.visitor)
    return {
      ...{ personId, granted, formToken: null },
      by: { ...by, origin: { ...by.origin, grant: token.grantId } },
    }
  }

  async function findToken({ hash, id }: { readonly hash: Buffer; readonly id: Id }, address: string) {
    const token = await findAccessToken(pool, hash)
    const grant = token === null || token.audience !== audience ? null : await findGrant(pool, token.grantId)
    if (token !== null && grant !== null && token.grantId === id) return { token, grant }
    failures.note(address)
    throw wrongToken(audience)
  }

  async function bySession(asked: ApiRequest, isWrite: boolean): Promise<Member> {
    const cookie = asked.header('cookie')
    const sessionToken = browser.sessionTokenIn(cookie)
    const session = sessionToken === undefined ? null : await people.sessionOf(sessionToken)
    if (session?.isComplete !== true || sessionToken === undefined) throw new Fault('sign_in_required')
    const sent = { origin: asked.header('origin'), fetchSite: asked.header('sec-fetch-site') }
    const formToken = asked.header(FORM_TOKEN_HEADER.toLowerCase())
    if (isWrite && !browser.isOurs({ ...sent, cookie, formToken, host: asked.header('host') ?? '' }))
      throw new Fault('cross_site_refused', formToken !== undefined && sent.origin === undefined ? NO_ORIGIN : {})
    const { personId } = session
    return {
      ...{ personId, granted: null, formToken: browser.formTokenOf(sessionToken) },
      by: byPerson(personId, asked.visitor),
    }
  }

  return (asked, isWrite) => {
    const authorization = asked.header('authorization')
    if (authorization === undefined) return bySession(asked, isWrite)
    return byToken(asked, BEARER.exec(authorization)?.[1] ?? ' ', isWrite)
  }
}

/** That of another mode is not there for a client. */
export function requireOwnMode({ granted }: Member, mode: Mode): void {
  if (granted !== null && granted.mode !== mode) throw new Fault('resource_not_found')
}

function wrongToken(audience: string | null): Fault {
  const detail =
    audience === null
      ? 'This installation issues no access tokens for the account API: sign in instead.'
      : `The account API takes access tokens for the resource ${audience}, not API keys.`
  return new Fault('invalid_credential', { detail })
}
