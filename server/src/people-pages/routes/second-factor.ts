import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, factorCode, readForm, recoveryCode } from '../../pages/read-form.ts'
import { withReturnTo } from '../../pages/return-to.ts'
import type { Visit } from '../../pages/visits.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { HOME, REMEMBERED_SECONDS, sessionCookies } from '../signed-in.ts'
import { recoveryPage, secondFactorPage } from '../views/second-factor.ts'
import { clockOf } from '../views/words.ts'

const WRONG_CODE = 'This code is not the current one, or was already used. Wait for the next one.'
const WRONG_RECOVERY = 'This code was already used, or is not one of yours.'

/** A visit whose password was right and whose second factor is missing. */
type Waiting = Visit & { readonly session: NonNullable<Visit['session']>; readonly sessionToken: string }

export function secondFactorRoutes({ people, pages, visits, cookies }: RouteParts): readonly PageRoute[] {
  /** Whoever has no password behind them is led to that first, and whoever has both is through. */
  function waiting(answer: (visit: Waiting) => Page | Promise<Page>) {
    return (visit: Visit) => {
      const { session, sessionToken, returnTo } = visit
      if (session === null || sessionToken === undefined) return seeOther(withReturnTo('/sign-in', returnTo))
      if (session.isComplete) return seeOther(returnTo ?? HOME)
      return answer({ ...visit, session, sessionToken })
    }
  }

  type Proof = { readonly code: string } | { readonly recovery: string }
  type Passing = {
    readonly proof: Proof
    readonly mustRemember: boolean
    /** What is said where it is wrong, with how often it can be tried again. */
    readonly wrong: (more: string) => Page
    readonly later: (status: number, filled: Filled) => Page
  }

  function pass(visit: Waiting, { proof, mustRemember, wrong, later }: Passing): Promise<Page> {
    return orLater(
      async () => {
        const passed = await people.passSecondFactor(visit.sessionToken, proof, visit.visitor)
        if (passed === null) return wrong(moreTries(await people.codesLeftToTry(visit.sessionToken, proof)))
        const remembered = mustRemember ? await passed.remember() : null
        return seeOther(visit.returnTo ?? HOME, [
          ...(await sessionCookies({ people, cookies }, passed.session)),
          ...(remembered === null ? [] : [cookies.put('remembered', remembered, { seconds: REMEMBERED_SECONDS })]),
        ])
      },
      (status, trouble) => later(status, { trouble }),
    )
  }

  function showCode({ formToken, returnTo, session }: Waiting, status = 200, filled: Filled<'code'> = {}): Page {
    return secondFactorPage(pages, { formToken, returnTo, email: session.email, status, filled })
  }

  function showRecovery(
    { formToken, returnTo, session }: Waiting,
    status = 200,
    filled: Filled<'recovery'> = {},
  ): Page {
    return recoveryPage(pages, { formToken, returnTo, email: session.email, status, filled })
  }

  return [
    visits.get(
      '/second-factor',
      waiting((visit) => showCode(visit)),
    ),
    visits.post(
      '/second-factor',
      waiting((visit) => {
        const read = readForm(visit.form, { code: factorCode, remember: anything })
        if (!read.isGood) return showCode(visit, 400, { problems: read.problems })
        const { code, remember } = read.fields
        return pass(visit, {
          proof: { code },
          mustRemember: remember === 'yes',
          wrong: (more) => showCode(visit, 400, { problems: { code: `${WRONG_CODE} ${more}` } }),
          later: (status, filled) => showCode(visit, status, filled),
        })
      }),
    ),
    visits.get(
      '/recovery',
      waiting((visit) => showRecovery(visit)),
    ),
    visits.post(
      '/recovery',
      waiting((visit) => {
        const read = readForm(visit.form, { recovery: recoveryCode })
        if (!read.isGood) return showRecovery(visit, 400, { problems: read.problems })
        return pass(visit, {
          proof: { recovery: read.fields.recovery },
          mustRemember: false,
          wrong: (more) => showRecovery(visit, 400, { problems: { recovery: `${WRONG_RECOVERY} ${more}` } }),
          later: (status, filled) => showRecovery(visit, status, filled),
        })
      }),
    ),
  ]
}

function moreTries({ left, until }: { readonly left: number; readonly until: Date | null }): string {
  return until === null
    ? ''
    : `${left === 0 ? 'No' : left} more ${left === 1 ? 'try' : 'tries'} until ${clockOf(until)}.`
}
