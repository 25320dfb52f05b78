import type { Caller } from '../identity/caller.ts'
import type { Fault, FaultCode } from '../kernel/fault.ts'

/** Where a person looks after a mandate on the website. */
export const MANDATES_PATH = '/mandates'

type Who = Pick<Caller, 'workspaceId' | 'credentialId' | 'mode' | 'token'>
/** A page of the website, as the path that it has there. */
type PageOf = (who: Who, fault: Pick<Fault, 'code' | 'members'>) => string

const workspace: PageOf = ({ workspaceId, mode }) => `/console/${workspaceId}/${mode}`

/** Of the key, or of the mandate, by which somebody calls. */
const credential: PageOf = (who, fault) => {
  if (who.token === null) return `${workspace(who, fault)}/keys/${who.credentialId}`
  return who.token.mayCall ? mandate(who, fault) : '/grants'
}

const mandate: PageOf = ({ credentialId }) => `${MANDATES_PATH}/${credentialId}`

const budget: PageOf = (who, fault) => {
  const { budget_kind: kind = 'key' } = fault.members
  return kind === 'key' || kind === 'mandate' ? credential(who, fault) : workspace(who, fault)
}

/** What no page of ours mends is explained with what the caller can do. */
const explanation: PageOf = (_, { code }) => `/docs/errors#${code}`

const limit: PageOf = (who, fault) => (fault.members.limited_by === 'key' ? credential(who, fault) : '/docs/limits')

/** On which page of the website somebody mends what was refused for money, a right or a limit. */
const PAGES: Partial<Readonly<Record<FaultCode, PageOf>>> = {
  insufficient_balance: workspace,
  account_suspended: workspace,
  budget_exceeded: budget,
  budget_required: credential,
  approval_required: credential,
  approval_refused: credential,
  mandate_paused: credential,
  cost_cap_exceeded: explanation,
  forbidden: credential,
  address_not_allowed: credential,
  link_required: workspace,
  link_scope_missing: workspace,
  loss_ceiling_account: explanation,
  rate_limit_exceeded: limit,
  quota_exceeded: limit,
}

/** Refusals that the person who gave a mandate can do something about. */
const OF_MANDATE: ReadonlySet<FaultCode> = new Set([
  ...(['budget_exceeded', 'budget_required', 'approval_required', 'approval_refused', 'mandate_paused'] as const),
  'forbidden',
])

/** A refusal with the page where it is mended; as it is where none is, and where the installation has no website. */
export function withFix(siteUrl: string | undefined, who: Who, fault: Fault): Fault {
  const { code, members } = fault
  const page = PAGES[code]
  if (siteUrl === undefined || page === undefined || members.fix_url !== undefined) return fault
  return fault.with({
    members: {
      ...members,
      ...(isOfMandate(who, fault) && { mandate_url: `${siteUrl}${mandate(who, fault)}` }),
      fix_url: members.approval_url ?? `${siteUrl}${page(who, fault)}`,
    },
  })
}

/** Of budgets, the person can raise that of the mandate. Who may make no calls has no mandate, and no page of one. */
function isOfMandate({ token }: Who, { code, members: { budget_kind: kind = 'mandate' } }: Fault): boolean {
  return token?.mayCall === true && OF_MANDATE.has(code) && kind === 'mandate'
}
