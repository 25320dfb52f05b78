import type { Id } from '../kernel/ids.ts'
import { type Nanos, usd, ZERO } from '../kernel/money.ts'

/** How operators write ids, amounts and reasons. */

/** Any UUID: entries that the ledger makes by itself have ids of another version than ours. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function idOf(text: string, advice = ''): Id {
  const id = text.toLowerCase()
  if (!UUID.test(id)) throw new Error(`${JSON.stringify(text)} is not an id${advice}`)
  return id
}

export function amountOf(text: string): Nanos {
  const amount = usd(text)
  if (amount <= ZERO) throw new Error('an amount must be more than 0 USD')
  return amount
}

const REASON_LIMIT = 300

export function reasonOf(text: string): string {
  const reason = text.trim()
  if (reason === '' || reason.length > REASON_LIMIT)
    throw new Error(`a reason must have from 1 to ${REASON_LIMIT} characters`)
  return reason
}
