import { Fault } from '../../kernel/fault.ts'
import { ZERO } from '../../kernel/money.ts'
import { Secret } from '../../kernel/secret.ts'
import type { Trouble } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { parseReturnTo } from '../../pages/return-to.ts'
import type { Visit } from '../../pages/visits.ts'
import { newToken } from '../../people/tokens.ts'
import type { Log } from '../../telemetry/log.ts'
import { type Issuer, IssuerRefusal } from '../issuer.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { letIn } from '../signed-in.ts'
import { signInPage } from '../views/sign-in.ts'

export const ISSUER_PATH = '/sign-in/issuer'
export const ISSUER_CALLBACK = `${ISSUER_PATH}/callback`

/** For as long as somebody may take to sign in there. */
const BEGUN_SECONDS = 10 * 60
/** A longer one would not fit into a cookie, and is left out. */
const WAY_LIMIT = 400

/** The issuer that the operator has configured. */
export type SignInIssuer = {
  readonly issuer: Issuer
  /** What people know it as. */
  readonly name: string
  readonly log: Pick<Log, 'warn'>
}

/**
 * Sign-in by the issuer that the operator trusts. What a sign-in was begun with is a cookie: only the browser that was sent there can
 * finish, and only once.
 */
export function issuerRoutes(parts: RouteParts, { issuer, name, log }: SignInIssuer): readonly PageRoute[] {
  const { people, pages, visits, cookies, settings } = parts
  const over = [cookies.remove('issuer'), cookies.remove('way')]

  function refuse({ formToken, returnTo }: Visit, status: number, trouble: Trouble): Page {
    const { isSignUpOpen, credit } = settings
    const shown = { issuer: settings.issuer, isSignUpOpen, hasCredit: credit > ZERO, filled: { trouble } }
    return { ...signInPage(pages, { formToken, returnTo, status, ...shown }), cookies: over }
  }

  /** Does what has to be asked of the issuer; the form is shown again with what went wrong. */
  async function orRefuse(visit: Visit, work: () => Promise<Page>): Promise<Page> {
    try {
      return await orLater(work, (status, trouble) => refuse(visit, status, trouble))
    } catch (error) {
      if (error instanceof Fault && error.code === 'sign_up_closed')
        return refuse(visit, 403, { title: 'You have no account here', text: 'Ask the operator for one.' })
      if (!(error instanceof IssuerRefusal)) throw error
      if (error.reason !== 'denied')
        log.warn('a sign-in by the issuer was refused', { reason: error.reason, topic: error.code })
      return refuse(visit, error.reason === 'unreachable' ? 503 : 403, troubleOf(error, name))
    }
  }

  async function begin(visit: Visit): Promise<Page> {
    const { secret } = newToken()
    const { returnTo = '' } = visit
    const age = { seconds: BEGUN_SECONDS }
    const way =
      returnTo === '' || returnTo.length > WAY_LIMIT ? cookies.remove('way') : cookies.putText('way', returnTo, age)
    return seeOther(await issuer.begin(secret), [cookies.put('issuer', secret, age), way])
  }

  async function finish(visit: Visit): Promise<Page> {
    const begun = cookies.tokenIn(visit.cookie, 'issuer')
    if (begun === undefined) return refuse(visit, 400, NOT_BEGUN)
    const claims = await issuer.finish(new Secret(begun), visit.query)
    const signedIn = await people.signInByIssuer(visit.visitor, claims)
    if (signedIn === null) return refuse(visit, 403, notVerified(name))
    const page = await letIn(parts, visit, signedIn)
    return { ...page, cookies: [...(page.cookies ?? []), ...over] }
  }

  return [
    visits.get(ISSUER_PATH, (visit) => orRefuse(visit, () => begin(visit))),
    visits.get(ISSUER_CALLBACK, (visit) => {
      const led = { ...visit, returnTo: parseReturnTo(cookies.textIn(visit.cookie, 'way')) }
      return orRefuse(led, () => finish(led))
    }),
  ]
}

const NOT_BEGUN: Trouble = {
  title: 'The sign-in could not be completed',
  text: 'It was started in another browser, or too long ago. Try again.',
}

function notVerified(name: string): Trouble {
  return {
    title: 'Your address is not verified',
    text: `${name} does not confirm that your address is yours. Verify it there, or sign in with a password.`,
  }
}

function troubleOf({ reason }: IssuerRefusal, name: string): Trouble {
  if (reason === 'denied') return { title: 'You were not signed in', text: `${name} reports that it was refused.` }
  if (reason === 'unreachable') return { title: `${name} cannot be reached`, text: 'Try again, or use a password.' }
  return {
    title: 'The sign-in is not valid',
    text: `The answer of ${name} is not valid. Nothing was changed. Try again.`,
  }
}
