import type pg from 'pg'
import type { Claim } from '../calls/call.ts'
import type { Operation } from '../catalogue/operation.ts'
import {
  type Approval,
  type AskedCall,
  askApproval,
  findApproval,
  giveBackApproval,
  type Reason,
  takeApproval,
  WAITING_MOST,
} from '../grants/approvals.ts'
import type { Caller } from '../identity/caller.ts'
import { Fault, unavailable } from '../kernel/fault.ts'
import type { Id, Ids } from '../kernel/ids.ts'
import { formatUsd, type Nanos, ZERO } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import { canonicalOf } from './canonical-request.ts'

/** Where a person decides about a call of a mandate, on the website. */
export const APPROVALS_PATH = '/approvals'
export const APPROVAL = 'approval'
/** Longer than any approval is good for, so that none is used again when its claim is forgotten. */
const KEPT_SECONDS = 24 * 3_600

type Asked = {
  readonly id: Id
  readonly caller: Caller
  readonly operation: Operation
  readonly model?: string
  readonly query: string
  readonly rawBody: Buffer | null
  readonly headers: (names: readonly string[]) => Readonly<Record<string, string>>
}

/** The person has to be asked for a call. Nobody is asked before the rest of it is looked at: it may have been made already. */
export class NotAsked extends Error {
  /** Lets the call wait for them. What its caller is told. */
  readonly ask: () => Promise<Fault>

  constructor(ask: () => Promise<Fault>) {
    super('the person has to be asked')
    this.ask = ask
  }
}

export type Mandates = {
  /**
   * What a call has to claim with its hold, where its person has allowed it; undefined where nobody has to be asked. Throws what its caller is told
   * where it waits or was refused, and a NotAsked where the person does not know of it yet.
   */
  readonly require: (call: Asked, most: Nanos) => Promise<Claim | undefined>
  /** Takes it for a call before that begins: it is for one execution. Throws where another call has it, and lets this one wait. */
  readonly take: (claim: Claim, call: Asked, most: Nanos) => Promise<void>
  /** Nobody was asked for the call that had it. */
  readonly giveBack: (claim: Claim, callId: Id) => Promise<void>
  /** Another call has it: what the caller of this one is told. */
  readonly spent: (call: Asked, most: Nanos) => Promise<Fault>
}

type Parts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  /** What people are shown is kept sealed. Null without a master key, where there are no pages either. */
  readonly seal: Seal | null
  /** Where people reach the pages. */
  readonly siteUrl: string
}

/** What an access token may spend without its person being asked. A key is asked for nothing of it. */
export function createMandates({ pool, ids, seal, siteUrl }: Parts): Mandates {
  async function find(call: AskedCall): Promise<Claim> {
    const known = await findApproval(pool, call)
    // A price that has risen since makes it another call.
    const isOfThis = known !== undefined && (known.state === 'refused' || known.most >= call.most)
    if (!isOfThis) throw new NotAsked(() => orUnavailable(() => ask(call)))
    if (known.state === 'allowed') return claimOf(known, call)
    throw required(call, known)
  }

  async function ask(call: AskedCall): Promise<Fault> {
    if (seal === null) throw new Fault('not_configured')
    return required(call, await askApproval({ pool, ids, seal }, call))
  }

  function required(call: AskedCall, approval: Approval | undefined): Fault {
    if (approval === undefined) return new Fault('approval_required', { detail: FULL, members: needs(call) })
    if (approval.state === 'refused') return new Fault('approval_refused', { members: needs(call) })
    const approvalUrl = `${siteUrl}${APPROVALS_PATH}/${approval.id}`
    const members = {
      ...needs(call),
      ...{ approval_id: approval.id, approval_url: approvalUrl, expires_at: approval.expiresAt.toISOString() },
    }
    return new Fault('approval_required', { members })
  }

  function askAnew(call: Asked, most: Nanos): Promise<Fault> {
    const asked = askedCall(call, most, whyAsked(call, most) ?? 'call_limit')
    return orUnavailable(() => ask(asked))
  }

  return {
    async require(call, most) {
      const reason = whyAsked(call, most)
      if (reason === undefined) return undefined
      const asked = askedCall(call, most, reason)
      return orUnavailable(() => find(asked))
    },

    async take({ key }, call, most) {
      if (await orUnavailable(() => takeApproval(pool, key, call.id))) return
      throw await askAnew(call, most)
    },

    async giveBack({ key }, callId) {
      // Where it can't be written, the person is asked once more.
      await giveBackApproval(pool, key, callId).catch(() => {})
    },

    spent: askAnew,
  }
}

const FULL = `Approval limit reached: ${WAITING_MOST} calls of this mandate already wait. Try again when some are decided.`

/** Why the person is asked for this call; undefined where they are not. */
function whyAsked({ caller: { token }, operation }: Asked, most: Nanos): Reason | undefined {
  if (token === null || most === ZERO) return undefined
  const { callLimit, asksHighCost } = token.mandate
  if (callLimit !== null && most > callLimit) return 'call_limit'
  return asksHighCost && operation.isHighCost === true ? 'high_cost' : undefined
}

function askedCall(call: Asked, most: Nanos, reason: Reason): AskedCall {
  const { id: requestId, caller, operation } = call
  return { grantId: caller.credentialId, operation: operation.id, ...canonicalOf(call), most, reason, requestId }
}

function needs({ most }: AskedCall): Record<string, string> {
  return { needed_usd: formatUsd(most) }
}

function claimOf({ id }: Approval, { digest }: AskedCall): Claim {
  const fingerprint = digest.toString('base64url')
  return { scope: APPROVAL, key: id, limit: 1, fingerprint, keepSeconds: KEPT_SECONDS, endsWithOwner: false }
}

/** That we can't look an approval up says nothing about it. */
async function orUnavailable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    throw error instanceof Fault || error instanceof NotAsked ? error : unavailable(error)
  }
}
