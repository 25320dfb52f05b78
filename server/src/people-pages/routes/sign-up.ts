import { Fault } from '../../kernel/fault.ts'
import { ZERO } from '../../kernel/money.ts'
import { TOKEN } from '../../pages/cookies.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { emailAddress, newPassword, personName, readForm } from '../../pages/read-form.ts'
import { parseReturnTo, withReturnTo } from '../../pages/return-to.ts'
import type { Visit } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { letIn } from '../signed-in.ts'
import { linkOverPage } from '../views/link-over.ts'
import { signUpClosedPage, signUpPage } from '../views/sign-up.ts'
import { lookIntoMailPage, verifyPage } from '../views/verify.ts'
import { dollars } from '../views/words.ts'

/** Where somebody is led who has verified on another device than that on which they began, and has to be told how to go on there. */
const ELSEWHERE = '/sessions?note=elsewhere'
/** As long as a link that is sent works. */
const MAIL_SECONDS = 30 * 60
const NOT_HERE = 'Sign-up is limited to certain e-mail domains. Use an address at one of them, or ask the operator.'
const NOT_INVITED = 'Your invitation is for another address, or has expired.'
const INVITATION = /^\/invitations\/(?<token>[A-Za-z0-9_-]{43})$/

/** Whoever comes from an invitation is on the way back to it. With it, its address signs up where sign-up is closed to others. */
function invitationIn({ returnTo = '' }: Visit): string | undefined {
  return INVITATION.exec(returnTo)?.groups?.token
}

export function signUpRoutes(parts: RouteParts): readonly PageRoute[] {
  const { people, pages, visits, cookies, settings } = parts
  const { issuer, isSignUpOpen, missing } = settings

  function show({ formToken, returnTo }: Visit, filled?: Filled<'name' | 'email' | 'password'>, status = 200): Page {
    return signUpPage(pages, { formToken, returnTo, issuer, status, ...(filled !== undefined && { filled }) })
  }

  async function create(visit: Visit): Promise<Page> {
    const { form, visitor, browser, returnTo } = visit
    const invitation = invitationIn(visit)
    const values = { name: form.get('name') ?? '', email: form.get('email') ?? '' }
    const read = readForm(form, { name: personName, email: emailAddress, password: newPassword })
    if (!read.isGood) return show(visit, { values, problems: read.problems }, 400)
    return orLater(
      async () => {
        try {
          await people.signUp(visitor, { ...read.fields, invitation, browser })
        } catch (error) {
          if (!(error instanceof Fault) || error.code !== 'sign_up_closed') throw error
          const problem = invitation === undefined ? NOT_HERE : NOT_INVITED
          return show(visit, { values, problems: { email: problem } }, 403)
        }
        return seeOther(withReturnTo('/verify', returnTo), [
          cookies.putText('mail', read.fields.email, { seconds: MAIL_SECONDS }),
          returnTo === undefined ? cookies.remove('way') : cookies.putText('way', returnTo, { seconds: MAIL_SECONDS }),
        ])
      },
      (status, trouble) => show(visit, { values, trouble }, status),
    )
  }

  const isOpenTo = (visit: Visit) => isSignUpOpen || (missing.length === 0 && invitationIn(visit) !== undefined)
  const closed = () => signUpClosedPage(pages, { missing, issuer })
  return [
    visits.get('/sign-up', (visit) => (isOpenTo(visit) ? show(visit) : closed())),
    visits.post('/sign-up', (visit) => (isOpenTo(visit) ? create(visit) : closed())),
    ...verifyRoutes(parts),
  ]
}

function verifyRoutes(parts: RouteParts): readonly PageRoute[] {
  const { people, pages, visits, cookies, settings } = parts
  // Who is invited where sign-up is closed is given none.
  const credit = settings.isSignUpOpen && settings.credit > ZERO ? dollars(settings.credit) : null
  type Shown = { status?: number; filled?: Filled<'email'>; wasSentAgain?: boolean }

  function waiting({ formToken, returnTo, cookie }: Visit, shown: Shown = {}): Page {
    const email = cookies.textIn(cookie, 'mail') ?? null
    return lookIntoMailPage(pages, { formToken, returnTo, email, credit, ...shown })
  }

  async function sendAgain(visit: Visit): Promise<Page> {
    const known = cookies.textIn(visit.cookie, 'mail')
    const typed = visit.form.get('email') ?? known ?? ''
    const read = readForm(new Map([...visit.form, ['email', typed]]), { email: emailAddress })
    const values = { email: typed }
    if (!read.isGood) return waiting(visit, { status: 400, filled: { values, problems: read.problems } })
    return orLater(
      async () => {
        await people.resendVerification(visit.visitor, read.fields.email)
        return seeOther(withReturnTo('/verify?note=again', visit.returnTo), [
          cookies.putText('mail', read.fields.email, { seconds: MAIL_SECONDS }),
        ])
      },
      (status, trouble) => waiting(visit, { status, filled: { values, trouble } }),
    )
  }

  /** They are where they were going: the browser need not know any more. */
  const ending = (page: Page): Page => ({ ...page, cookies: [...(page.cookies ?? []), cookies.remove('way')] })

  const { missing, issuer } = settings
  const isClosed = missing.length > 0
  const closed = () => signUpClosedPage(pages, { missing, issuer })
  return [
    visits.get(
      '/verify',
      isClosed ? closed : (visit) => waiting(visit, { wasSentAgain: visit.query.get('note') === 'again' }),
    ),
    visits.post('/verify', isClosed ? closed : sendAgain),
    visits.get('/verify/:token', async ({ params: { token = '' }, path, formToken, visitor }) => {
      const found = TOKEN.test(token) ? await people.readVerification(token, visitor) : null
      return found === null ? linkOverPage(pages, 'verify') : verifyPage(pages, { formToken, path, email: found.email })
    }),
    visits.post('/verify/:token', async (visit) => {
      const { params, visitor, browser, cookie } = visit
      const { token = '' } = params
      const verified = TOKEN.test(token) ? await people.verify(visitor, token, browser) : null
      if (verified === null) return linkOverPage(pages, 'verify')
      const { choose, signedIn } = verified
      // The link in the mail does not say where they were on their way to; the browser does.
      const returnTo = parseReturnTo(cookies.textIn(cookie, 'way'))
      if (signedIn !== null) return ending(await letIn(parts, { ...visit, returnTo }, signedIn))
      if (choose === null) return seeOther('/sign-in?note=verified')
      return seeOther(withReturnTo(`/reset/${choose.reveal()}`, ELSEWHERE))
    }),
  ]
}
