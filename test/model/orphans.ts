import { type Model, type ModelSettlement, settle } from './ledger-model.ts'

/** What becomes of the calls of processes that die. */

/** A process that dies takes nothing with it: its holds stay, and so does what they hold. */
export function die(model: Model, ownerId: string): void {
  model.owners.set(ownerId, { lives: false })
}

export function live(model: Model, ownerId: string): void {
  model.owners.set(ownerId, { lives: true })
}

/** Calls of dead processes are unsettled. Their money stays held; slots that end with their process are free. */
export function sweep(model: Model, atUs: bigint): string[] {
  const orphans = [...model.holds].filter(
    ([, { ownerId, unsettledAtUs }]) => unsettledAtUs === null && model.owners.get(ownerId)?.lives === false,
  )
  for (const [id, hold] of orphans) {
    hold.unsettledAtUs = atUs
    for (const [set, places] of model.claims) {
      model.claims.set(
        set,
        places.filter((place) => place.callId !== id || !place.endsWithOwner),
      )
    }
  }
  return orphans.map(([id]) => id)
}

/** Ends an unsettled call by what an operator knows of it. Undefined where the call is not unsettled. */
export function resolve(
  model: Model,
  id: string,
  amount: bigint | null,
  atUs: bigint,
): Omit<ModelSettlement, 'free' | 'left'> | undefined {
  const hold = model.holds.get(id)
  if (hold === undefined || hold.unsettledAtUs === null) return undefined
  const ended = settle(model, { id, accountId: hold.call.accountId, amount, forgiven: false, tokensUsed: 0 }, atUs)
  return { outcome: ended.outcome, charged: ended.amount, overrun: ended.overrun }
}

/** Voids what has been unsettled for too long. Its bound is the operator's loss. */
export function resolveOverdue(model: Model, afterSeconds: number, atUs: bigint): { id: string; overrun: bigint }[] {
  const oldestUs = atUs - BigInt(afterSeconds) * 1_000_000n
  const due = [...model.holds].filter(([, { unsettledAtUs }]) => unsettledAtUs !== null && unsettledAtUs < oldestUs)
  return due.map(([id, { call, amount }]) => {
    const ending = { id, accountId: call.accountId, amount, forgiven: true, tokensUsed: 0 }
    return { id, overrun: settle(model, ending, atUs).overrun }
  })
}
