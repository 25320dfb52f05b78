import { ZERO } from '../../kernel/money.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { emailAddress, password, readForm } from '../../pages/read-form.ts'
import type { Visit } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { HOME, letIn } from '../signed-in.ts'
import { SIGN_IN_NOTES, type SignInNote, signInPage } from '../views/sign-in.ts'
import { signOutPage } from '../views/sign-out.ts'

/** The same for an address that nobody has, one that is not verified, and a wrong password. */
const WRONG = {
  title: 'Email or password is wrong',
  text: 'Check both. If you have just created the account, open the link in your mail first.',
}

export function signInRoutes(parts: RouteParts): readonly PageRoute[] {
  const { people, pages, visits, cookies, settings } = parts

  function show(
    visit: Visit,
    shown: { status?: number; filled?: Filled<'email' | 'password'>; note?: SignInNote } = {},
  ) {
    const { formToken, returnTo } = visit
    const { issuer, isSignUpOpen, credit } = settings
    const rest = { issuer, isSignUpOpen, hasCredit: credit > ZERO }
    return signInPage(pages, { formToken, returnTo, ...rest, ...shown })
  }

  async function enter(visit: Visit): Promise<Page> {
    const values = { email: visit.form.get('email') ?? '' }
    const read = readForm(visit.form, { email: emailAddress, password })
    if (!read.isGood) return show(visit, { status: 400, filled: { values, problems: read.problems } })
    const remembered = cookies.tokenIn(visit.cookie, 'remembered')
    return orLater(
      async () => {
        const wanted = { ...read.fields, ...(remembered !== undefined && { remembered }) }
        const signedIn = await people.signIn(visit.visitor, wanted)
        if (signedIn === null) return show(visit, { status: 400, filled: { values, trouble: WRONG } })
        return letIn(parts, visit, signedIn)
      },
      (status, trouble) => show(visit, { status, filled: { values, trouble } }),
    )
  }

  return [
    visits.get('/sign-in', (visit) => {
      const note = noteIn(visit)
      if (visit.session?.isComplete === true && note !== 'again' && note !== 'change')
        return seeOther(visit.returnTo ?? HOME)
      // Who has just verified an address need not write it again.
      const email = cookies.textIn(visit.cookie, 'mail')
      return show(visit, { ...(email !== undefined && { filled: { values: { email } } }), ...(note && { note }) })
    }),
    visits.post('/sign-in', enter),
    visits.get('/sign-out', ({ session, formToken }) =>
      session === null ? seeOther('/sign-in') : signOutPage(pages, { formToken, email: session.email }),
    ),
    visits.post('/sign-out', async ({ session, visitor }) => {
      if (session !== null) await people.endSession(session.personId, session.id, visitor)
      return seeOther('/sign-in?note=signed-out', cookies.removeSession())
    }),
  ]
}

function noteIn({ query }: Visit): SignInNote | undefined {
  const note = query.get('note') ?? ''
  return isNote(note) ? note : undefined
}

function isNote(text: string): text is SignInNote {
  return Object.hasOwn(SIGN_IN_NOTES, text)
}
