import type { PageRoute } from '../../http/page-routes.ts'
import { type Page, seeOther } from '../../http/pages/page.ts'
import { endGrantOnce, type ListedGrant, listGrants, setGrantBudget } from '../../identity/grants.ts'
import { byPerson } from '../../identity/people/visitor.ts'
import { type Id, isId } from '../../kernel/ids.ts'
import { type Nanos, nanos, ZERO } from '../../kernel/money.ts'
import { readBudget } from '../../ledger/balance.ts'
import { amountField, canPay, readAmount } from '../consent.ts'
import { anything, readForm } from '../forms.ts'
import type { Trouble } from '../pages/form.ts'
import { GRANT_NOTES, type GrantNote, grantsPage, type ShownGrant } from '../pages/grants.ts'
import { documentHostOf } from '../provider/documents.ts'
import type { SignedIn } from '../visits.ts'
import type { ConsentParts } from './consent.ts'

export const GRANTS_PATH = '/grants'

/** Where a person sees what they allow, and takes it back. */
export function grantRoutes(parts: ConsentParts): readonly PageRoute[] {
  const { people, pages, visits, server, pool } = parts
  const { states } = server

  async function shownOf(grant: ListedGrant, workspaces: ReadonlyMap<Id, string>): Promise<ShownGrant> {
    const state = grant.allowanceId === null ? undefined : await readBudget(pool, grant.allowanceId)
    const { id, clientName, clientId, mode, oauthScopes: scopes, createdAt, expiresAt, workspaceId } = grant
    return {
      ...{ id, clientName, documentHost: documentHostOf(clientId), mode, scopes, createdAt, expiresAt },
      workspace: workspaces.get(workspaceId) ?? 'A workspace that you have left',
      canPay: canPay({ scopes }),
      budget: state === undefined ? null : { ...state, left: atLeastNothing(state.amount - state.spent) },
    }
  }

  async function show(visit: SignedIn, status = 200, trouble?: Trouble): Promise<Page> {
    const { session, formToken, query } = visit
    const [all, workspaces] = await Promise.all([
      listGrants(pool, { personId: session.personId }),
      people.workspacesOf(session.personId),
    ])
    const names = new Map(workspaces.map(({ id, name }) => [id, name]))
    const grants = await Promise.all(all.filter(({ isActive }) => isActive).map((grant) => shownOf(grant, names)))
    const note = query.get('note') ?? ''
    return grantsPage(pages, {
      ...{ status, grants, formToken, email: session.email },
      ...(isNote(note) && { note }),
      ...(trouble !== undefined && { trouble }),
    })
  }

  /** One of the person's own, by what a form says; null for any other. */
  async function ownGrant({ session }: SignedIn, id: string): Promise<ListedGrant | null> {
    if (!isId(id)) return null
    const all = await listGrants(pool, { personId: session.personId })
    return all.find((grant) => grant.id === id && grant.isActive) ?? null
  }

  async function revoke(visit: SignedIn): Promise<Page> {
    const read = readForm(visit.form, { grant: anything })
    const grant = await ownGrant(visit, read.isGood ? read.fields.grant : '')
    // One that is over already is over, whoever ended it.
    if (grant !== null) {
      await endGrantOnce(pool, byPerson(visit.session.personId, visit.visitor), grant.id)
      await states.forgetGrant(grant.id)
    }
    return seeOther(`${GRANTS_PATH}?note=revoked`)
  }

  async function change(visit: SignedIn): Promise<Page> {
    const read = readForm(visit.form, { grant: anything, amount: amountField })
    if (!read.isGood)
      return show(visit, 400, { title: 'The amount was not changed', text: read.problems.amount ?? 'Try again.' })
    const grant = await ownGrant(visit, read.fields.grant)
    const amount = readAmount(read.fields.amount) ?? ZERO
    if (grant === null || !canPay({ scopes: grant.oauthScopes })) return seeOther(GRANTS_PATH)
    const by = byPerson(visit.session.personId, visit.visitor)
    await setGrantBudget(parts, by, grant.id, amount > ZERO ? { period: 'total', amount } : null)
    return seeOther(`${GRANTS_PATH}?note=amount`)
  }

  return [
    visits.getSignedIn(GRANTS_PATH, (visit) => show(visit)),
    visits.postSignedIn(`${GRANTS_PATH}/revoke`, revoke),
    visits.postSignedIn(`${GRANTS_PATH}/amount`, change),
  ]
}

function atLeastNothing(amount: bigint): Nanos {
  return amount > 0n ? nanos(amount) : ZERO
}

function isNote(text: string): text is GrantNote {
  return Object.hasOwn(GRANT_NOTES, text)
}
