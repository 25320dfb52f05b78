import { documentHostOf } from '../../authorization/documents.ts'
import { listApprovals } from '../../grants/approvals.ts'
import { endGrantOnce, findGrant, type ListedGrant, listGrants } from '../../grants/grants.ts'
import { countKeysOfGrants, revokeKeysOfGrant } from '../../grants/keys-of-grants.ts'
import { type Id, isId } from '../../kernel/ids.ts'
import { type BudgetState, readBudgets } from '../../ledger/balance.ts'
import type { Trouble } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, readForm } from '../../pages/read-form.ts'
import type { SignedIn } from '../../pages/visits.ts'
import { byPerson } from '../../people/visitor.ts'
import { budgetOf } from '../budget-of.ts'
import { canMakeKeys, canPay } from '../consent.ts'
import { endOf } from '../held-grants.ts'
import { type EndedMandate, GRANT_NOTES, type GrantNote, grantsPage, type ShownGrant } from '../views/grants.ts'
import { waitingOf } from '../views/waiting-calls.ts'
import type { ConsentParts } from './consent.ts'

export const GRANTS_PATH = '/grants'

/** Where a person sees what they allow, and takes it back. */
export function grantRoutes(parts: ConsentParts): readonly PageRoute[] {
  const { people, pages, visits, server, pool } = parts
  const { states } = server

  type Known = {
    readonly workspace: string | undefined
    readonly state: BudgetState | undefined
    readonly keys: number
  }

  function shownOf(grant: ListedGrant, { workspace, state, keys }: Known): ShownGrant {
    const { id, clientName, clientId, mode, oauthScopes: scopes, createdAt, expiresAt } = grant
    return {
      ...{ id, clientName, documentHost: documentHostOf(clientId), mode, scopes, createdAt, expiresAt },
      workspace: workspace ?? 'A workspace that you have left',
      ...{ canPay: canPay({ scopes }), canMakeKeys: canMakeKeys({ scopes }), keys },
      isPaused: grant.isPaused,
      budget: budgetOf(grant, state),
    }
  }

  async function show(visit: SignedIn, status = 200, trouble?: Trouble): Promise<Page> {
    const { session, formToken, query } = visit
    const [all, workspaces] = await Promise.all([
      listGrants(pool, { personId: session.personId }),
      people.workspacesOf(session.personId),
    ])
    const active = all.filter(({ isActive }) => isActive)
    const names = new Map(workspaces.map(({ id, name }) => [id, name]))
    const budgets = await readBudgets(
      pool,
      active.flatMap(({ allowanceId }) => allowanceId ?? []),
    )
    const keys = await countKeysOfGrants(
      pool,
      active.map(({ id }) => id),
    )
    const grants = active.map((grant) =>
      shownOf(grant, {
        workspace: names.get(grant.workspaceId),
        state: budgets.get(grant.allowanceId ?? ''),
        keys: keys.get(grant.id) ?? 0,
      }),
    )
    const waiting = await listApprovals(
      pool,
      active.map(({ id }) => id),
    )
    const note = query.get('note') ?? ''
    return grantsPage(pages, {
      ...{
        status,
        grants,
        ended: endedAmong(all, names),
        formToken,
        email: session.email,
        waiting: waitingOf(waiting, active),
      },
      ...(isNote(note) && { note }),
      ...(trouble !== undefined && { trouble }),
    })
  }

  /** One of the person's own, by what a form says; null for any other. */
  async function ownGrant({ session }: SignedIn, id: string): Promise<ListedGrant | null> {
    const grant = isId(id) ? await findGrant(pool, id) : null
    return grant?.isActive === true && grant.personId === session.personId ? grant : null
  }

  async function revoke(visit: SignedIn): Promise<Page> {
    const read = readForm(visit.form, { grant: anything, keys: anything })
    const grant = await ownGrant(visit, read.isGood ? read.fields.grant : '')
    // One that is over already is over, whoever ended it.
    if (grant !== null) {
      const by = byPerson(visit.session.personId, visit.visitor)
      const endsKeys = read.isGood && read.fields.keys === 'yes'
      await endGrantOnce(pool, by, grant.id, async (query) => {
        if (endsKeys) await revokeKeysOfGrant(query, by, grant.id)
      })
      await states.forgetGrant(grant.id)
    }
    return seeOther(`${GRANTS_PATH}?note=revoked`)
  }

  return [visits.getSignedIn(GRANTS_PATH, (visit) => show(visit)), visits.postSignedIn(`${GRANTS_PATH}/revoke`, revoke)]
}

function isNote(text: string): text is GrantNote {
  return Object.hasOwn(GRANT_NOTES, text)
}

const ENDED_SHOWN = 20

/** Mandates that have ended, the newest first: what they spent stays to be seen in the workspace that paid. */
function endedAmong(all: readonly ListedGrant[], names: ReadonlyMap<Id, string>): readonly EndedMandate[] {
  return all
    .filter(
      ({ isActive, oauthScopes: scopes, workspaceId }) => !isActive && canPay({ scopes }) && names.has(workspaceId),
    )
    .slice(0, ENDED_SHOWN)
    .map((grant) => {
      const { id, clientName, mode, workspaceId, createdAt } = grant
      return { id, clientName, mode, workspace: names.get(workspaceId) ?? '', endedAt: endOf(grant) ?? createdAt }
    })
}
