import { z } from 'zod'
import type { AccountCall, AccountInProcess, AccountReply } from '../account/in-process.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { isMode, type Mode } from '../kernel/mode.ts'
import { ROLES } from '../kernel/role.ts'
import type { Page } from '../pages/page.ts'
import type { Asked, PageRoute } from '../pages/page-route.ts'
import type { SignedIn, Visits } from '../pages/visits.ts'
import { byPerson } from '../people/visitor.ts'
import type { Frame, Where } from './pages/frame.ts'

type Call = Omit<AccountCall, 'mode' | 'idempotencyKey'>

const workspaceShape = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(ROLES),
  /** Since when the operator has suspended it, and why; null where it is not. */
  suspended: z.object({ since: z.string().transform((text) => new Date(text)), reason: z.string() }).nullable(),
})
export type Workspace = Readonly<z.output<typeof workspaceShape>>

/** A request for a page of a workspace, from one of its members. */
export type ConsoleVisit = SignedIn & {
  readonly mode: Mode
  readonly workspace: Workspace
  /** All of the member's. */
  readonly workspaces: readonly Workspace[]
  /** What a form that is shown now brings back, so that it changes once. */
  readonly idempotencyKey: Id
  /** Asks the account API, and reads its answer by a form that the document shows. */
  readonly ask: <T>(form: z.ZodType<T>, call: Call) => Promise<T>
  /** Changes something by the account API, under the key that the form has brought. */
  readonly change: (call: Call) => Promise<AccountReply>
}

type Answer = (visit: ConsoleVisit) => Page | Promise<Page>

type Parts = {
  readonly visits: Visits
  readonly account: AccountInProcess
  readonly frame: Frame
  readonly ids: Ids
}

export const IDEMPOTENCY_KEY = 'idempotency_key'
const FIRST = '/console/:workspace/:mode'
const workspaceList = z.object({ data: z.array(workspaceShape) })

export type ConsoleVisits = ReturnType<typeof createConsoleVisits>

export function createConsoleVisits({ visits, account, frame, ids }: Parts) {
  function asking(visit: SignedIn, mode: Mode): Pick<ConsoleVisit, 'ask' | 'change'> {
    const { session, formToken, visitor, params, form } = visit
    const member = { personId: session.personId, by: byPerson(session.personId, visitor), formToken, granted: null }
    const send = (call: Call) =>
      account(
        { member, visitor },
        {
          ...call,
          params: { workspace_id: params.workspace ?? '', ...call.params },
          mode,
          idempotencyKey: form.get(IDEMPOTENCY_KEY) ?? '',
        },
      )
    return { change: send, ask: async (shape, call) => shape.parse((await send(call)).body) }
  }

  async function workspacesOf(visit: SignedIn): Promise<readonly Workspace[]> {
    const { ask } = asking(visit, 'test')
    return (await ask(workspaceList, { operationId: 'list_workspaces', query: { limit: '100' } })).data
  }

  const inWorkspace = (answer: Answer) => async (visit: SignedIn) => {
    const { workspace: id = '', mode = '' } = visit.params
    if (!isMode(mode)) throw new Fault('resource_not_found')
    const api = asking(visit, mode)
    const workspaces = await workspacesOf(visit)
    const listed = workspaces.find((one) => one.id === id)
    // Beyond those that a list has. To who is no member, it is as if it were not there.
    const workspace = listed ?? (await api.ask(workspaceShape, { operationId: 'get_workspace' }))
    return answer({ ...visit, mode, workspace, workspaces, idempotencyKey: ids.next(), ...api })
  }

  /**
   * While PostgreSQL can't be asked, the frame says so. Nothing is kept for it: a form goes back to whoever sent it. Only what asks PostgreSQL knows
   * that it did not answer, and says it; whatever else goes wrong is a mistake of ours, and is answered and logged as one.
   */
  function sheltered(route: PageRoute): PageRoute {
    return {
      ...route,
      async answer(asked) {
        try {
          return await route.answer(asked)
        } catch (error) {
          if (!(error instanceof Fault) || error.code !== 'billing_dependency_timeout') throw error
          return frame.outage(whereOf(asked), asked)
        }
      },
    }
  }

  return {
    /** The first page: where somebody is led who names no workspace. */
    home: (answer: (visit: SignedIn, workspaces: readonly Workspace[]) => Page | Promise<Page>) =>
      sheltered(visits.getSignedIn('/console', async (visit) => answer(visit, await workspacesOf(visit)))),
    get: (path: string, answer: Answer) => sheltered(visits.getSignedIn(FIRST + path, inWorkspace(answer))),
    post: (path: string, answer: Answer) => sheltered(visits.postSignedIn(FIRST + path, inWorkspace(answer))),
    /** Asks for a workspace that is not in the path. */
    askAt: (visit: SignedIn, workspaceId: Id, mode: Mode) =>
      asking({ ...visit, params: { workspace: workspaceId } }, mode).ask,
  }
}

function whereOf({ params: { workspace, mode } }: Asked): Where | null {
  return workspace !== undefined && mode !== undefined && isMode(mode) ? { workspaceId: workspace, mode } : null
}

export function pathIn({ workspace, mode }: Pick<ConsoleVisit, 'workspace' | 'mode'>, path = ''): string {
  return `/console/${workspace.id}/${mode}${path}`
}
