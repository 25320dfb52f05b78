import type pg from 'pg'
import { CONSENT_PATH, COOKIES, PATHS } from '../../authorization/configuration.ts'
import { isBegunBy } from '../../authorization/deciding-browser.ts'
import { documentHostOf } from '../../authorization/documents.ts'
import { destinationOf } from '../../authorization/redirects.ts'
import type { AuthorizationServer } from '../../authorization/server.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Id, Ids } from '../../kernel/ids.ts'
import type { Mode } from '../../kernel/mode.ts'
import { ZERO } from '../../kernel/money.ts'
import type { Seal } from '../../kernel/seal.ts'
import { cookieIn } from '../../pages/cookies.ts'
import type { Filled } from '../../pages/form.ts'
import type { Form } from '../../pages/form-data.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { SignedIn } from '../../pages/visits.ts'
import { markOf } from '../../people/tokens.ts'
import type { Query } from '../../storage/transaction.ts'
import { moneyOfWorkspaces, type WorkspaceMoney } from '../../workspaces/workspaces.ts'
import { type Asking, allow, mayBeFor, readDecision, sealOfDecision, wantedOf } from '../consent.ts'
import { readHeldGrants } from '../held-grants.ts'
import { defaultValues, isSeen, type Values } from '../mandate-form.ts'
import type { Offer } from '../offer.ts'
import type { RouteParts } from '../parts.ts'
import { authTimeOf, mustSignInAgain, signInAgain } from '../sign-in-again.ts'
import { askedNoMorePage, consentPage } from '../views/consent.ts'

export type ConsentParts = Pick<RouteParts, 'people' | 'pages' | 'visits' | 'cookies'> & {
  readonly server: AuthorizationServer
  readonly pool: pg.Pool
  readonly ids: Ids
  /** What people read of calls that wait is kept under it. */
  readonly seal: Seal
  /** What there is to allow. */
  readonly offer: Offer
}

const UID = /^[A-Za-z0-9_-]{20,64}$/

/** Where a person decides what a client asks for. Only the browser that the client sent here can. */
export function consentRoutes(parts: ConsentParts): readonly PageRoute[] {
  const { pages, visits, cookies, server } = parts
  const { states } = server

  /** What is asked for, if it is this browser's to answer; null otherwise. A page where the person has to sign in once more first. */
  async function askedOf({ params: { uid = '' }, cookie, session, path }: SignedIn): Promise<Asking | Page | null> {
    if (!UID.test(uid) || cookieIn(cookie, COOKIES.interaction) !== uid) return null
    const state = await states.find('Interaction', uid)
    if (state === null || state.consumedAt !== null || !isBegunBy(cookies, cookie, state.payload)) return null
    const params = new Map(Object.entries(Object(state.payload.params)))
    if (mustSignInAgain({ params, askedAt: state.createdAt }, session)) return signInAgain(path)
    return describeAsking(server, {
      ...{ clientId: String(params.get('client_id')), clientName: String(state.payload.clientName) },
      redirectUri: String(params.get('redirect_uri')),
      ...{ scope: params.get('scope'), resource: params.get('resource') },
    })
  }

  async function show(visit: SignedIn, asking: Asking, status = 200, filled: Filled = {}): Promise<Page> {
    const { path, formToken } = visit
    const known = await whatIsKnown(parts, visit, asking, filled)
    return consentPage(pages, { path, formToken, asking, status, filled, isFollowed: true, ...known })
  }

  function decide(visit: SignedIn, asking: Asking): Promise<Page> {
    const { uid = '' } = visit.params
    const back = seeOther(`${PATHS.authorization}/${uid}`)
    const decidedBy = markOf(visit.sessionToken)
    return settle(parts, visit, {
      ...{ asking, form: visit.form },
      show: (status, filled) => show(visit, asking, status, filled),
      over: () => askedNoMorePage(pages),
      async denied() {
        const result = { error: 'access_denied', error_description: 'not allowed' }
        return (await states.answer(uid, { result, decidedBy })) ? back : null
      },
      allowed: () => back,
      answer(query, grantId, accountId) {
        const login = { accountId, ts: authTimeOf(visit.session) }
        return states.answer(uid, { result: { login, consent: { grantId } }, decidedBy }, query)
      },
    })
  }

  const orOver = (answer: (visit: SignedIn, asking: Asking) => Promise<Page>) => async (visit: SignedIn) => {
    const asking = await askedOf(visit)
    if (asking === null) return askedNoMorePage(pages)
    return 'client' in asking ? answer(visit, asking) : asking
  }

  return [
    visits.getSignedIn(
      `${CONSENT_PATH}/:uid`,
      orOver((visit, asking) => show(visit, asking)),
    ),
    visits.postSignedIn(`${CONSENT_PATH}/:uid`, orOver(decide)),
  ]
}

/**
 * What the page says of the person who decides, of what the client has from them already, and of what they would allow by the values that
 * the form has.
 */
export async function whatIsKnown(
  { people, pool, offer }: ConsentParts,
  { session, browser }: SignedIn,
  asking: Asking,
  { values: given, problems = {} }: Filled,
) {
  const { personId, email } = session
  const all = await people.workspacesOf(personId)
  const asked = { personId, clientId: asking.client.id, workspaces: all, asked: asking.audiences }
  const held = await readHeldGrants(pool, asked)
  const workspaces = mayBeFor(asking, all)
  const ids = workspaces.map(({ id }) => id)
  const money = await moneyOfWorkspaces(pool, ids)
  const values: Values = given ?? {
    ...defaultValues(offer),
    ...{ workspace: ids[0] ?? '', mode: modeWithMoney(money.get(ids[0] ?? '')) },
    replace: held.some(({ isReplaceable }) => isReplaceable) ? 'yes' : '',
  }
  const wanted = await wantedOf(values, asking, offer)
  // What can't be read is not what is allowed.
  const decided = 'problems' in wanted || Object.keys(problems).length > 0 ? null : wanted
  const seal = decided && sealOfDecision(browser, asking, decided)
  return { email, workspaces, held, offer, values, decided, seal, money }
}

/** Live where there is any, and where there is nothing at all. */
function modeWithMoney(money: WorkspaceMoney | undefined): Mode {
  return money !== undefined && money.live <= ZERO && money.test > ZERO ? 'test' : 'live'
}

type Settling = {
  readonly asking: Asking
  readonly form: Form
  /** The page again, with what is wrong. */
  readonly show: (status: number, filled: Filled) => Promise<Page>
  /** There is nothing left to decide. */
  readonly over: () => Page
  /** Tells the client that it was not allowed; null where it was answered before. */
  readonly denied: () => Promise<Page | null>
  readonly allowed: () => Page
  /** Answers the client, in the transaction of the grant; false where it was answered before. */
  readonly answer: (query: Query, grantId: Id, personId: Id) => Promise<boolean>
}

/** What comes of a person's decision, wherever a client asked for it. */
export async function settle(parts: ConsentParts, visit: SignedIn, settling: Settling): Promise<Page> {
  const { asking, form, show, over } = settling
  const { session, visitor, browser } = visit
  const values = Object.fromEntries(form)
  const read = await readDecision(form, asking, parts.offer)
  if (!read.isAllowed) return (await settling.denied()) ?? over()
  if (read.problems !== null) return show(400, { values, problems: read.problems })
  const { decided } = read
  // To who may not allow it there, a workspace is as if it were not there.
  const own = mayBeFor(asking, await parts.people.workspacesOf(session.personId))
  if (!own.some(({ id }) => id === decided.workspace)) throw new Fault('resource_not_found')
  // Whatever stands in the form, what counts is what its sentence said.
  if (!isSeen(form, sealOfDecision(browser, asking, decided))) return show(200, { values, isChanged: true })
  const { id, documentHost } = asking.client
  const { clients, documents } = parts.server
  const confirm = async (query: Query) => {
    if (documentHost === null) return clients.confirm(query, id)
    await documents.confirm(query, id)
    return true
  }
  const { personId } = session
  try {
    const deciding = { asking, personId, visitor, decided }
    const isAnswered = await allow(
      parts,
      deciding,
      async (query, grantId) => (await confirm(query)) && settling.answer(query, grantId, personId),
    )
    return isAnswered ? settling.allowed() : over()
  } catch (error) {
    if (!(error instanceof Fault) || (error.status !== 403 && error.status !== 429)) throw error
    return show(error.status, { values, trouble: { title: 'This can’t be allowed', text: error.message } })
  }
}

type Request = {
  readonly clientId: string
  /** As it was when the client asked. */
  readonly clientName: string
  readonly redirectUri: string | null
  readonly scope: unknown
  readonly resource: unknown
}

/** Null where the client is no more. */
export async function describeAsking(server: AuthorizationServer, request: Request): Promise<Asking | null> {
  const { clientId, clientName, redirectUri, scope, resource } = request
  const { resources, clients } = server
  const documentHost = documentHostOf(clientId)
  if (documentHost === null && (await clients.find(clientId)) === null) return null
  return {
    client: { id: clientId, name: clientName, documentHost },
    destination: redirectUri === null ? null : destinationOf(redirectUri),
    // Other scopes mean nothing there, and are not what is decided about.
    ...resources.asked(resource, scope),
  }
}
