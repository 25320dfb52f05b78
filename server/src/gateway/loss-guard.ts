import type { LossWatch } from '../calls/loss-ceilings.ts'
import type { LossWindow, ReachedCeiling } from '../calls/loss-sums.ts'
import { Fault } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { shortUsd } from '../kernel/money.ts'
import type { Binding } from '../upstreams/bindings.ts'

/** Where a call goes, as operators read it: what is sold, the slot that is asked, and the mode. */
export function lossRoute(sold: string, { slot, mode }: Pick<Binding, 'slot' | 'mode'>): string {
  return `${sold}@${slot}:${mode}`
}

/** Who wants to be served, and with what: a model, or an operation that is none of a model's. */
type Wanted = { readonly accountId: Id; readonly sold: string }

/** Leaves out upstreams whose ceiling on loss is reached for the account; throws where that leaves none. */
export type LossGuard = <T extends { readonly binding: Pick<Binding, 'slot' | 'mode'> }>(
  targets: readonly T[],
  wanted: Wanted,
) => readonly T[]

export function createLossGuard({ isQuiet, find }: Pick<LossWatch, 'isQuiet' | 'find'>): LossGuard {
  return (targets, { accountId, sold }) => {
    if (isQuiet()) return targets
    const reached: ReachedCeiling[] = []
    const left = targets.filter(({ binding }) => {
      const found = find(accountId, lossRoute(sold, binding))
      if (found !== undefined) reached.push(found)
      return found === undefined
    })
    const refused = reached.find((one) => one.accountId !== null) ?? reached[0]
    if (left.length === 0 && refused !== undefined) throw refusalOf(sold, refused)
    return left
  }
}

/** A window ends by and by, or an operator ends it; nobody knows when. */
const ROUTE_RETRY_SECONDS = 60

/** They move on: what was lost before no longer counts. */
const WINDOWS: Readonly<Record<LossWindow, string>> = { hour: '60 minutes', day: '24 hours' }

function refusalOf(sold: string, { accountId, window, ceiling }: ReachedCeiling): Fault {
  const detail = `The limit for ${sold} is ${shortUsd(ceiling)} USD within ${WINDOWS[window]}.`
  if (accountId !== null) return new Fault('loss_ceiling_account', { detail })
  return new Fault('loss_ceiling_route', { detail, retryAfterSeconds: ROUTE_RETRY_SECONDS })
}
