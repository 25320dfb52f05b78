/**
 * An account's money in the model. Promotional credit is kept grant by grant and taken from them at once, whenever it is
 * spent, lost or expired, so that whoever counts it later, or in sums, can be compared with this.
 */
export type Account = {
  active: boolean
  credited: bigint
  debt: bigint
  charged: bigint
  held: bigint
  /** Promotional credit that has expired while calls held it. */
  lapsed: bigint
  readonly grants: Grant[]
}

export type Grant = { readonly id: string; remaining: bigint; expiresAtUs: bigint }

export type Sums = Record<'credited' | 'debt' | 'charged' | 'held' | 'promo' | 'lapsed', bigint>

export function newAccount(): Account {
  return { active: true, credited: 0n, debt: 0n, charged: 0n, held: 0n, lapsed: 0n, grants: [] }
}

export function freeOf({ credited, debt, charged, held }: Account): bigint {
  return credited + debt - charged - held
}

/** What promotional credit is left: what has not expired, and what calls still hold of what has. */
export function promoOf({ grants, lapsed }: Account): bigint {
  return sum(grants.map(({ remaining }) => remaining)) + lapsed
}

export function sumsOf(account: Account): Sums {
  const { credited, debt, charged, held, lapsed } = account
  return { credited, debt, charged, held, promo: promoOf(account), lapsed }
}

/**
 * Charges, and answers how much of it promotional credit paid. It is spent before anything else, and of it what expires
 * first: what has expired already, and is there only because calls hold it, before the grants.
 */
export function spend(account: Account, amount: bigint): bigint {
  account.charged += amount
  const ofLapsed = smaller(account.lapsed, amount)
  account.lapsed -= ofLapsed
  return ofLapsed + takeFrom(inOrderOfExpiry(account), amount - ofLapsed)
}

/**
 * Whatever is free pays debt. Promotional credit that it was paid with is gone: first of the grant whose money just came,
 * then of those that expire first. What has lapsed is spoken for by its expiry and goes last.
 */
export function payDebt(account: Account, incoming: readonly Grant[] = []): bigint {
  const paid = smaller(account.debt, freeOf(account))
  account.debt -= paid
  const lost = promoOf(account) - unspentOf(account)
  if (lost > 0n) account.lapsed -= lost - takeFrom([...incoming, ...inOrderOfExpiry(account)], lost)
  return paid
}

/** Takes what lapsed, as far as a call has just released it. Answers how much. */
export function takeLapsed(account: Account, released: bigint): bigint {
  const taken = smaller(account.lapsed, released)
  account.lapsed -= taken
  account.credited -= taken
  return taken
}

/** Takes what is left of grants that have expired: what is free now, the rest lapses. Answers how many grants those were. */
export function expireGrants(account: Account, atUs: bigint): number {
  const due = account.grants.filter(({ remaining, expiresAtUs }) => remaining > 0n && expiresAtUs <= atUs)
  const free = freeOf(account)
  const expired = takeFrom(due, promoOf(account))
  const taken = smaller(expired, free)
  account.credited -= taken
  account.lapsed += expired - taken
  return due.length
}

/** What the account itself has and has not spent: what it owes is not its own. */
export function unspentOf({ credited, charged }: Account): bigint {
  return credited > charged ? credited - charged : 0n
}

export function inOrderOfExpiry({ grants }: Account): Grant[] {
  return grants.toSorted((a, b) => compare(a.expiresAtUs, b.expiresAtUs) || compare(a.id, b.id))
}

function takeFrom(grants: readonly Grant[], most: bigint): bigint {
  let left = most
  for (const grant of grants) {
    const taken = smaller(grant.remaining, left)
    grant.remaining -= taken
    left -= taken
  }
  return most - left
}

export function smaller(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

export function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, amount) => total + amount, 0n)
}

function compare<T extends bigint | string>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}
