import { PATHS } from '../../authorization/configuration.ts'
import { OAUTH_LIMITS } from '../../authorization/limits.ts'
import { html } from '../../kernel/html.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, readForm } from '../../pages/read-form.ts'
import type { SignedIn } from '../../pages/visits.ts'
import { networkKey } from '../../people/attempts.ts'
import { hashOf } from '../../people/tokens.ts'
import type { Asking } from '../consent.ts'
import { orLater } from '../refusals.ts'
import { authTimeOf, mustSignInAgain, signInAgain } from '../sign-in-again.ts'
import { readUserCode, shownUserCode } from '../user-code.ts'
import { consentPage } from '../views/consent.ts'
import { deviceDonePage, devicePage } from '../views/device.ts'
import { type ConsentParts, describeAsking, settle, whatIsKnown } from './consent.ts'

const DEVICE = PATHS.code_verification
const DECIDE = `${DEVICE}/decide`
const NO_CODE = 'This code is not valid, or has expired. Check your device: a code works for ten minutes.'

/** Where a person lets in what has no browser. A code can be guessed, so only who is signed in may try, and not often. */
export function deviceRoutes(parts: ConsentParts): readonly PageRoute[] {
  const { pages, visits, server } = parts
  const { states, attempts } = server

  function ask({ formToken, session }: SignedIn, status = 200, filled: Filled<'user_code'> = {}): Page {
    return devicePage(pages, { formToken, email: session.email, status, filled })
  }

  /** What the device with this code asks for, or the page where the person signs in once more first. Every look counts as a guess. */
  async function askedBy({ session, visitor }: SignedIn, code: string | null): Promise<Asking | Page | null> {
    await attempts.take([
      { limit: OAUTH_LIMITS.userCode, key: hashOf(session.personId) },
      { limit: OAUTH_LIMITS.userCodeFromNetwork, key: networkKey(visitor) },
    ])
    const state = code === null ? null : await states.findByUserCode(code)
    if (state === null) return null
    const { payload } = state
    const params = new Map(Object.entries(Object(payload.params)))
    if (mustSignInAgain({ params, askedAt: state.createdAt }, session)) return signInAgain(DEVICE)
    return describeAsking(server, {
      ...{ clientId: String(payload.clientId), clientName: String(payload.clientName), redirectUri: null },
      ...{ scope: params.get('scope'), resource: params.get('resource') },
    })
  }

  async function show(visit: SignedIn, asking: Asking, code: string, status = 200, filled: Filled = {}): Promise<Page> {
    const { formToken } = visit
    const also = html`<input type="hidden" name="user_code" value="${code}"><p class="fb-hint grant__code">Your device shows <b class="fb-code">${shownUserCode(code)}</b>.</p>`
    return consentPage(pages, {
      ...{ path: DECIDE, formToken, asking, status, filled, also },
      ...(await whatIsKnown(parts, visit, asking, filled)),
    })
  }

  async function decide(visit: SignedIn, code: string): Promise<Page> {
    const over = () => ask(visit, 400, { problems: { user_code: NO_CODE } })
    const asking = await askedBy(visit, code)
    if (asking === null) return over()
    if (!('client' in asking)) return asking
    const denied = { error: 'access_denied', errorDescription: 'not allowed' }
    return settle(parts, visit, {
      ...{ asking, over, form: new Map([...visit.form].filter(([name]) => name !== 'user_code')) },
      show: (status, filled) => show(visit, asking, code, status, filled),
      denied: async () => ((await states.decide(code, denied, null)) ? deviceDonePage(pages, false) : null),
      allowed: () => deviceDonePage(pages, true),
      answer(query, grantId, accountId) {
        const by = { accountId, grantId, authTime: authTimeOf(visit.session) }
        return states.decide(code, { ...by, ...decisionOf(asking) }, grantId, query)
      },
    })
  }

  const orWait = (visit: SignedIn, work: () => Promise<Page>) =>
    orLater(work, (status, trouble) => ask(visit, status, { trouble }))

  return [
    // Whatever a link says, the person types the code: a link that fills it in lets in the device of whoever sent the link.
    visits.getSignedIn(DEVICE, (visit) => ask(visit)),
    visits.postSignedIn(DEVICE, (visit) =>
      orWait(visit, async () => {
        const read = readForm(visit.form, { user_code: anything })
        const typed = read.isGood ? read.fields.user_code : ''
        const code = readUserCode(typed)
        const asking = await askedBy(visit, code)
        if (code === null || asking === null)
          return ask(visit, 400, { values: { user_code: typed }, problems: { user_code: NO_CODE } })
        return 'client' in asking ? show(visit, asking, code) : asking
      }),
    ),
    visits.postSignedIn(DECIDE, (visit) => {
      const code = readUserCode(visit.form.get('user_code') ?? '')
      return code === null ? seeOther(DEVICE) : orWait(visit, () => decide(visit, code))
    }),
  ]
}

/** What the library reads of a decision when the device asks again. */
function decisionOf({ scopes, audiences }: Asking) {
  return { scope: scopes.join(' '), resource: audiences.length === 1 ? audiences[0] : audiences }
}
