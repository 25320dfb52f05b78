import { Fault } from '../../kernel/fault.ts'
import { type Id, isId } from '../../kernel/ids.ts'
import { may } from '../../kernel/role.ts'
import type { Filled, Trouble } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, newPassword, password, readForm } from '../../pages/read-form.ts'
import type { SignedIn } from '../../pages/visits.ts'
import { keysDecisionIn } from '../../people/member-keys.ts'
import type { RouteParts } from '../parts.ts'
import { orLater } from '../refusals.ts'
import { HOME } from '../signed-in.ts'
import { ACCOUNT_NOTES, type AccountNote, accountPage } from '../views/account.ts'
import { leavePage } from '../views/leave.ts'
import { changePasswordPage } from '../views/password.ts'

type Parts = RouteParts & {
  /** Whether apps can be let in here. */
  readonly hasGrants: boolean
}

export function accountRoutes({ people, pages, visits, cookies, hasGrants }: Parts): readonly PageRoute[] {
  async function show(visit: SignedIn, shown: { status?: number; trouble?: Trouble } = {}): Promise<Page> {
    const { session, formToken, query } = visit
    const [sessions, workspaces] = await Promise.all([
      people.listSessions(session.personId),
      people.workspacesOf(session.personId),
    ])
    const note = query.get('note') ?? ''
    return accountPage(pages, {
      ...{ formToken, sessions, workspaces, person: session, thisSession: session.id, hasGrants },
      ...(isNote(note) && { note }),
      ...shown,
    })
  }

  async function leave(visit: SignedIn): Promise<Page> {
    const read = readForm(visit.form, { workspace: anything, keys: anything })
    const { workspace: id = '', keys = '' } = read.isGood ? read.fields : {}
    if (!isId(id)) throw new Fault('invalid_request')
    try {
      await people.leave(visit.session.personId, id, visit.visitor, keysDecisionIn(keys))
    } catch (error) {
      if (error instanceof Fault && error.code === 'member_has_keys') return askOfKeys(visit, id)
      if (!(error instanceof Fault) || error.code !== 'last_owner') throw error
      return show(visit, {
        status: error.status,
        trouble: { title: 'You can’t leave this workspace', text: error.message },
      })
    }
    return seeOther('/sessions?note=left')
  }

  async function askOfKeys({ session: { personId }, formToken }: SignedIn, workspaceId: Id): Promise<Page> {
    const workspace = (await people.workspacesOf(personId)).find(({ id }) => id === workspaceId)
    if (workspace === undefined) throw new Fault('resource_not_found')
    const keys = await people.keysOfMember(workspaceId, workspace.memberId)
    return leavePage(pages, { formToken, workspace, keys, mayKeep: may(workspace.role, 'workspace.manage') })
  }

  return [
    visits.getSignedIn('/sessions', (visit) => show(visit)),
    visits.postSignedIn('/sessions/end', async ({ form, visitor, session }) => {
      const read = readForm(form, { session: anything })
      const id = read.isGood ? read.fields.session : ''
      // One that is over already is over, whoever ended it.
      if (isId(id)) await people.endSession(session.personId, id, visitor)
      return seeOther('/sessions?note=ended')
    }),
    visits.postSignedIn('/sessions/end-all', async ({ visitor, session }) => {
      await people.endAllSessions(session.personId, visitor)
      return seeOther('/sign-in?note=signed-out-everywhere', [...cookies.removeSession(), cookies.remove('remembered')])
    }),
    visits.postSignedIn('/sessions/leave', leave),
    visits.postSignedIn('/sessions/workspace', async ({ visitor, session: { personId, name } }) => {
      const workspaces = await people.workspacesOf(personId)
      if (workspaces.length === 0) await people.createWorkspace(personId, `${name}'s workspace`, visitor)
      return seeOther(HOME)
    }),
    ...passwordRoutes({ people, pages, visits }),
  ]
}

const WRONG_PASSWORD = 'This is not your current password.'

function passwordRoutes({
  people,
  pages,
  visits,
}: Pick<RouteParts, 'people' | 'pages' | 'visits'>): readonly PageRoute[] {
  function show({ formToken, session }: SignedIn, status = 200, filled: Filled<'old' | 'password'> = {}): Page {
    return changePasswordPage(pages, { formToken, email: session.email, status, filled })
  }

  return [
    visits.getSignedIn('/account/password', (visit) => show(visit)),
    visits.postSignedIn('/account/password', (visit) => {
      const read = readForm(visit.form, { email: anything, old: password, password: newPassword })
      if (!read.isGood) return show(visit, 400, { problems: read.problems })
      const { old, password: chosen } = read.fields
      return orLater(
        async () => {
          const { visitor, session } = visit
          const change = { old, new: chosen, sessionId: session.id }
          const isChanged = await people.changePassword(session.personId, change, visitor)
          return isChanged
            ? seeOther('/sessions?note=password')
            : show(visit, 400, { problems: { old: WRONG_PASSWORD } })
        },
        (status, trouble) => show(visit, status, { trouble }),
      )
    }),
  ]
}

function isNote(text: string): text is AccountNote {
  return Object.hasOwn(ACCOUNT_NOTES, text)
}
