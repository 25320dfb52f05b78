import { Provider } from 'oidc-provider'
import type pg from 'pg'
import { hasAllowed } from '../grants/grants.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { createCookies } from '../pages/cookies.ts'
import type { Pages } from '../pages/page.ts'
import type { Attempts } from '../people/attempts.ts'
import { sessionOf } from '../people/sessions.ts'
import type { Query } from '../storage/transaction.ts'
import type { Log } from '../telemetry/log.ts'
import { buildProvider } from './build-provider.ts'
import { createClients } from './clients.ts'
import { createConfiguration } from './configuration.ts'
import { createDocuments, documentHostOf, isUnanswered } from './documents.ts'
import { createGrantBook } from './grant-book.ts'
import { createKeepHere } from './keep-here.ts'
import { createKeptDocuments } from './kept-documents.ts'
import { type ClientDocument, createKnownDocuments } from './known-documents.ts'
import { takeOne } from './limits.ts'
import { type Refused, refusedPage } from './refused-page.ts'
import { visitorOfRequest } from './request-notes.ts'
import { createResources } from './resources.ts'
import { readSigningKeys, type SigningKey } from './signing-keys.ts'
import { createStates } from './states.ts'

export type AuthorizationServerParts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly log: Pick<Log, 'error' | 'warn'>
  /** Signing keys are kept under it. */
  readonly seal: Seal
  /** The issuer: where people reach the pages, without a slash at its end. */
  readonly siteUrl: string
  readonly baseUrl: string | undefined
  readonly mcpUrl: string | undefined
  /** Asks for clients' documents; null where egress is closed. */
  readonly outbound: Pick<Outbound, 'send'> | null
  readonly attempts: Pick<Attempts, 'take' | 'giveBack'>
  /** By which operators ask what a token is; null where they may not. */
  readonly introspectionSecret: Secret | null
  /** Documents of clients that the operator brings along. */
  readonly clientDocuments: readonly ClientDocument[]
  readonly tellReuse: (query: Query, grantId: Id, address: string) => Promise<void>
}

export type AuthorizationServer = ReturnType<typeof createAuthorizationServer>

/** How long keys are believed to be those of before. They are published for longer before they sign. */
const KEYS_KNOWN_MS = 60_000

/** The authorization server of this installation. What it knows is in PostgreSQL, so that any number of processes are one. */
export function createAuthorizationServer(parts: AuthorizationServerParts, pages: Pages) {
  const { pool, siteUrl, baseUrl, mcpUrl, outbound, attempts, clock, log } = parts
  const resources = createResources({ siteUrl, baseUrl, mcpUrl })
  const states = createStates({ pool })
  const clients = createClients({ pool })
  const documents = createKeptDocuments({ pool })
  const broughtAlong = createKnownDocuments(parts.clientDocuments)
  const takeDocument = () => takeOne(attempts, 'document', visitorOfRequest(Provider.ctx?.req))
  const grants = createGrantBook({ pool, states, resources, attempts, tellReuse: parts.tellReuse })
  const shared = {
    ...{ issuer: siteUrl, states, clients, grants, resources },
    documents:
      outbound === null
        ? null
        : createDocuments({ outbound, kept: documents, clock, known: broughtAlong, takeOne: takeDocument }),
    operatorSecret: parts.introspectionSecret?.reveal() ?? null,
    renderError: createRenderError(pages, log),
  }

  const cookies = createCookies({ isSecure: siteUrl.startsWith('https:') })

  async function isAllowed(clientId: string, cookie: string): Promise<boolean> {
    const session = await sessionOf(pool, cookies.tokenIn(cookie, 'session') ?? '')
    return session?.isComplete === true && (await hasAllowed(pool, session.personId, clientId))
  }

  const keepHere = createKeepHere({ isAllowed, render: shared.renderError })

  function build(keys: readonly SigningKey[]): Provider {
    const configuration = createConfiguration({ ...shared, keys })
    return buildProvider({ issuer: siteUrl, configuration, clients, keepHere, log })
  }

  let known: { readonly provider: Provider; readonly kids: string; readonly atMs: number } | undefined
  let reading: Promise<Provider> | undefined

  async function read(): Promise<Provider> {
    const keys = await readSigningKeys(parts)
    const kids = keys.map(({ kid }) => kid).join(' ')
    const provider = known?.kids === kids ? known.provider : build(keys)
    known = { provider, kids, atMs: clock.monotonicMs() }
    return provider
  }

  /** The library with the keys of now. Many at once wait for one look. */
  async function provider(): Promise<Provider> {
    if (known !== undefined && clock.monotonicMs() - known.atMs < KEYS_KNOWN_MS) return known.provider
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  return { provider, resources, states, clients, documents, grants, siteUrl, attempts }
}

type Rendered = { status: number; body: unknown; set(headers: Record<string, string>): void }

/** What fails without a place to send the person back to is a page of ours. */
function createRenderError(pages: Pages, log: Pick<Log, 'warn'>) {
  return (ctx: Rendered, out: Refused, error?: Error): void => {
    const unreached = isUnanswered(error) ? documentHostOf(String(Provider.ctx?.oidc.params?.client_id)) : null
    if (unreached !== null)
      log.warn("an app was refused because the host of its document can't be reached from here", {
        host: unreached,
        error,
      })
    const { headers, body } = refusedPage(pages, { ...out, ...(unreached !== null && { unreached }) })
    ctx.set({ ...headers })
    ctx.body = body
  }
}
