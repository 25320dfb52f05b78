import { type Account, type Sums, sumsOf } from './account.ts'

/** What changed an account's sums beside holds and charges: written down by looking at them before and after. */
export type Entry = Omit<Sums, 'held' | 'lapsed'> & {
  readonly accountId: string
  readonly kind: string
  readonly overrun: bigint
  readonly corrects: string | null
}

/** What of the model entries are made in. */
type Books = { readonly accounts: Map<string, Account>; readonly entries: Map<string, Entry> }

type Heading = {
  readonly id?: string
  readonly kind: string
  readonly overrun?: bigint
  readonly corrects?: string
}

/** Makes a change to an account and enters it. */
export function enter(model: Books, accountId: string, heading: Heading, change: (account: Account) => void): Entry {
  const { id = `${heading.kind} ${model.entries.size}`, kind, overrun = 0n, corrects = null } = heading
  const account = accountOf(model, accountId)
  const before = sumsOf(account)
  change(account)
  const after = sumsOf(account)
  const entry = {
    accountId,
    kind,
    credited: after.credited - before.credited,
    charged: after.charged - before.charged,
    promo: after.promo - before.promo,
    debt: after.debt - before.debt,
    overrun,
    corrects,
  }
  model.entries.set(id, entry)
  return entry
}

export function correctionsOf(model: Books, id: string): [id: string, entry: Entry][] {
  return [...model.entries].filter(([, { corrects }]) => corrects === id)
}

export function accountOf(model: Books, id: string): Account {
  const account = model.accounts.get(id)
  if (account === undefined) throw new Error(`no account ${id}`)
  return account
}
