import { documentHostOf } from '../../authorization/documents.ts'
import { APPROVALS_PATH } from '../../gateway/mandates.ts'
import { decideApproval, lastMade, listApprovals, readApproval, readShown } from '../../grants/approvals.ts'
import { endGrantOnce, findGrant, type ListedGrant } from '../../grants/grants.ts'
import { changeMandate, type MandateTerms, pauseMandate, resumeMandate } from '../../grants/mandates.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { ZERO } from '../../kernel/money.ts'
import { readBudget } from '../../ledger/balance.ts'
import { listRequests } from '../../ledger/list-requests.ts'
import { spendByOperation } from '../../ledger/spend-by-operation.ts'
import type { Filled } from '../../pages/form.ts'
import { type Page, seeOther } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { anything, readForm } from '../../pages/read-form.ts'
import type { SignedIn } from '../../pages/visits.ts'
import { byPerson } from '../../people/visitor.ts'
import { MANDATES_PATH } from '../../wording/fix-page.ts'
import { budgetOf } from '../budget-of.ts'
import { canMakeKeys, canPay } from '../consent.ts'
import { endOf } from '../held-grants.ts'
import {
  DAY_MS,
  DEFAULTS,
  isSeen,
  mandateFields,
  mandateIn,
  SEEN,
  saidOf,
  sealOf,
  type Values,
  valuesOf,
} from '../mandate-form.ts'
import { approvalDonePage, approvalPage } from '../views/approval.ts'
import { MANDATE_NOTES, type MandateNote, mandatePage, noMandatePage, type ShownMandate } from '../views/mandate.ts'
import { waitingOf } from '../views/waiting-calls.ts'
import { dollars } from '../views/words.ts'
import type { ConsentParts } from './consent.ts'
import { GRANTS_PATH } from './grants.ts'

const LAST_CALLS = 6

type Own = { readonly grant: ListedGrant; readonly mandate: ShownMandate }
type Again = { readonly status?: number; readonly filled?: Filled; readonly wanted?: MandateTerms }

/** Where a person looks after what they let a client spend, and decides about single calls of it. */
export function mandateRoutes(parts: ConsentParts): readonly PageRoute[] {
  const { people, pages, visits, server, pool, seal, offer } = parts

  /** One of the person's own that is active and can pay; null for any other, whoever's it is. */
  async function ownMandate(visit: SignedIn, id: string): Promise<Own | null> {
    const own = await anyMandate(visit, id)
    return own?.mandate.endedAt === null ? own : null
  }

  /** Also one that has ended, as long as the person is in the workspace that paid. */
  async function anyMandate({ session }: SignedIn, id: string): Promise<Own | null> {
    const grant = isId(id) ? await findGrant(pool, id) : null
    if (grant === null || grant.personId !== session.personId || !canPay({ scopes: grant.oauthScopes })) return null
    const workspaces = await people.workspacesOf(session.personId)
    if (!grant.isActive && workspaces.every((one) => one.id !== grant.workspaceId)) return null
    const state = grant.allowanceId === null ? undefined : await readBudget(pool, grant.allowanceId)
    const { clientName, clientId, mode, createdAt, isPaused } = grant
    const mandate = {
      ...{ id: grant.id, clientName, documentHost: documentHostOf(clientId), mode, createdAt, isPaused },
      endedAt: endOf(grant),
      canMakeKeys: canMakeKeys({ scopes: grant.oauthScopes }),
      workspace: workspaces.find((one) => one.id === grant.workspaceId)?.name ?? 'A workspace that you have left',
      lacksTerms: grant.terms.scopes === null || (grant.terms.rates.requestsPerMinute ?? null) === null,
      terms: termsOf(grant),
      budget: budgetOf(grant, state) ?? { amount: ZERO, spent: ZERO, held: ZERO, left: ZERO },
    }
    return { grant, mandate }
  }

  async function show(visit: SignedIn, { grant, mandate }: Own, again: Again = {}): Promise<Page> {
    const { session, formToken, query, browser } = visit
    const { status = 200, filled = {}, wanted } = again
    const untilMs = Date.now() + DAY_MS
    const [spends, last, approvals] = await Promise.all([
      spendByOperation(pool, grant.id, grant.createdAt),
      listRequests(pool, { credentialIds: [grant.id], sinceMs: grant.createdAt.getTime(), untilMs, limit: LAST_CALLS }),
      listApprovals(pool, [grant.id]),
    ])
    const values: Values = filled.values ?? valuesOf(mandate.terms, offer, amountText)
    const note = query.get('note') ?? ''
    return mandatePage(pages, {
      ...{ mandate, email: session.email, formToken, offer, spends, last: last.rows, values, status, filled },
      waiting: waitingOf(approvals, [grant]),
      wanted: wanted === undefined ? null : { terms: wanted, seal: sealOfChange(browser, grant, wanted, values) },
      ...(isNote(note) && { note }),
    })
  }

  async function change(visit: SignedIn, own: Own): Promise<Page> {
    const { form, browser, session, visitor } = visit
    const values = Object.fromEntries(form)
    const read = readForm(form, { [SEEN]: anything, ...mandateFields() })
    if (!read.isGood) return show(visit, own, { status: 400, filled: { values, problems: read.problems } })
    const { expiresAt: until } = own.mandate.terms
    const wanted = await mandateIn(values, { offer, now: new Date(), until })
    if (!wanted.isGood) return show(visit, own, { status: 400, filled: { values, problems: wanted.problems } })
    const { terms } = wanted
    if (!isSeen(form, sealOfChange(browser, own.grant, terms, values)))
      return show(visit, own, { filled: { values }, wanted: terms })
    await changeMandate(parts, byPerson(session.personId, visitor), own.grant.id, terms)
    return seeOther(`${MANDATES_PATH}/${own.grant.id}?note=changed`)
  }

  const byVisitor = ({ session, visitor }: SignedIn) => byPerson(session.personId, visitor)

  async function pause(visit: SignedIn, { grant: { id } }: Own): Promise<Page> {
    await pauseMandate(parts, byVisitor(visit), id)
    return seeOther(`${MANDATES_PATH}/${id}?note=paused`)
  }

  async function resume(visit: SignedIn, { grant: { id } }: Own): Promise<Page> {
    await resumeMandate(parts, byVisitor(visit), id)
    return seeOther(`${MANDATES_PATH}/${id}?note=resumed`)
  }

  async function end(visit: SignedIn, { grant: { id } }: Own): Promise<Page> {
    await endGrantOnce(pool, byVisitor(visit), id)
    await server.states.forgetGrant(id)
    return seeOther(`${GRANTS_PATH}?note=revoked`)
  }

  /** A call that waits for this very person; null for any other. */
  async function ownApproval(visit: SignedIn) {
    const { id = '' } = visit.params
    const approval = isId(id) ? await readApproval(pool, id) : undefined
    const own = approval && (await ownMandate(visit, approval.grantId))
    return approval === undefined || own === null || own === undefined ? null : { approval, ...own }
  }

  async function showApproval(visit: SignedIn): Promise<Page> {
    const found = await ownApproval(visit)
    if (found === null) return approvalDonePage(pages, 'over')
    const { approval, mandate } = found
    const { id, state, grantId } = approval
    if (state !== 'waiting') return approvalDonePage(pages, state, grantId)
    const [shown, madeAt] = await Promise.all([readShown(pool, seal, id), lastMade(pool, id)])
    // It was decided about in this very moment.
    if (shown === undefined) return approvalDonePage(pages, 'over', grantId)
    const { formToken, session } = visit
    const summary = offer.summaryOf(approval.operation)
    return approvalPage(pages, { formToken, approval, shown, madeAt, mandate, email: session.email, summary })
  }

  async function decide(visit: SignedIn): Promise<Page> {
    const read = readForm(visit.form, { decision: anything })
    const { decision } = read.isGood ? read.fields : { decision: '' }
    if (decision !== 'once' && decision !== 'refuse') throw new Fault('invalid_request')
    const found = await ownApproval(visit)
    if (found === null) return approvalDonePage(pages, 'over')
    const { id } = found.approval
    const isAllowed = decision === 'once'
    await decideApproval(pool, byVisitor(visit), { id, personId: visit.session.personId, isAllowed })
    // Whatever was decided first is what the page says.
    return seeOther(`${APPROVALS_PATH}/${id}`)
  }

  type Answer = (visit: SignedIn, own: Own) => Promise<Page>
  const withMandate = (find: typeof ownMandate, answer: Answer) => async (visit: SignedIn) => {
    const own = await find(visit, visit.params.id ?? '')
    return own === null ? noMandatePage(pages) : answer(visit, own)
  }
  const withOwn = (answer: Answer) => withMandate(ownMandate, answer)

  return [
    visits.getSignedIn(
      `${MANDATES_PATH}/:id`,
      withMandate(anyMandate, (visit, own) => show(visit, own)),
    ),
    visits.postSignedIn(`${MANDATES_PATH}/:id/terms`, withOwn(change)),
    visits.postSignedIn(`${MANDATES_PATH}/:id/pause`, withOwn(pause)),
    visits.postSignedIn(`${MANDATES_PATH}/:id/resume`, withOwn(resume)),
    visits.postSignedIn(`${MANDATES_PATH}/:id/end`, withOwn(end)),
    visits.getSignedIn(`${APPROVALS_PATH}/:id`, showApproval),
    visits.postSignedIn(`${APPROVALS_PATH}/:id`, decide),
  ]
}

/** Beyond what anybody chooses, for a grant that has no end of its own. */
const NO_END = new Date('2100-01-01T00:00:00Z')

function termsOf({ budget, terms, asks, expiresAt }: ListedGrant): MandateTerms {
  return {
    amount: budget?.amount ?? ZERO,
    requestsPerMinute: terms.rates.requestsPerMinute ?? Number(DEFAULTS.rate),
    scopes: terms.scopes ?? [],
    asks,
    expiresAt: expiresAt ?? NO_END,
  }
}

function sealOfChange(browser: string, { id }: ListedGrant, terms: MandateTerms, values: Values): string {
  return sealOf(browser, [id, ...saidOf(terms, values)])
}

/** As somebody types it. */
const amountText: Parameters<typeof valuesOf>[2] = (amount) => dollars(amount).slice(1)

function isNote(text: string): text is MandateNote {
  return Object.hasOwn(MANDATE_NOTES, text)
}
