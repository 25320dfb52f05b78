import type pg from 'pg'
import type { Budget } from '../../server/src/budgets/budgets.ts'
import { setBudget } from '../../server/src/budgets/set-budgets.ts'
import { createKey } from '../../server/src/identity/keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../server/src/kernel/ids.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import type { By } from '../../server/src/storage/audit.ts'
import { createWorkspace, grantTier } from '../../server/src/workspaces/workspaces.ts'

export const ids = createIds({ clock: systemClock })
export const ACTOR: By = { actor: 'operator faults', origin: {} }

/** A customer of the workload: what is special about it is in its name. */
export type Person = {
  readonly name: Name
  readonly workspaceId: Id
  readonly accountId: Id
  readonly keys: Key[]
  /** Requests in a minute, for each of its keys. */
  readonly requestsPerMinute: number
  /** How many plain calls each of its clients makes at once. */
  readonly atOnce: number
  /** What it asks for when it asks for no stream; everything that is sold where it is left out. */
  readonly asksFor?: readonly string[]
  /** How likely a step of its clients makes a video. */
  readonly films: number
  /** How likely a step of its clients asks for a stream that holds more as it grows. */
  readonly grows: number
  /** Its payments by their entries, for refunds. */
  readonly payments: Id[]
  /** In USD, of all its spend, of each team and of each end user; left out for who says nothing of them. */
  readonly budgets?: Wanted['budgets']
}

export type Key = {
  readonly id: Id
  readonly secret: string
  /** When the operator's command that revoked it had answered. */
  revokedAtMs: number
  /** Whether an agent may spend by it. */
  readonly isApproved: boolean
}

const PEOPLE = {
  rich: { money: '1000', keys: [{}, {}], clients: 4, films: 0.04, grows: 0.05 },
  'rich too': { money: '1000', keys: [{}, {}], clients: 4, films: 0.04 },
  /** Nearly out of money: most of its calls are refused, and a top-up is spent at once. */
  poor: { money: '0.05', keys: [{}], clients: 3 },
  /** It has some streams at a time that grow, and money for fewer: they end where it does. */
  scant: { money: '0.02', keys: [{}], clients: 4, grows: 1 },
  /** Its keys have budgets that run out. */
  thrifty: {
    money: '100',
    keys: [
      { period: 'total', amount: usd('0.6') },
      { period: 'day', amount: usd('0.4') },
    ],
    clients: 2,
    films: 0.03,
    grows: 0.1,
  },
  /** Its keys may do little in a minute, and are asked for much at once. */
  limited: { money: '100', keys: [{}, {}], clients: 4, requestsPerMinute: 60, atOnce: 6, films: 0.1 },
  /** Its payments are taken back, and it owes. */
  refunded: { money: '0.2', keys: [{}], clients: 4 },
  /** Its keys are revoked and replaced. */
  rotating: { money: '100', keys: [{}, {}], clients: 3, films: 0.08 },
  /** It asks for much at once of what has a limit of its own, whatever the tier allows. */
  hasty: { money: '100', keys: [{}], clients: 1, atOnce: 8, asksFor: ['generate_content', 'image_generations'] },
  /** It makes videos above all, as many at once as its keys may. */
  filming: { money: '1000', keys: [{}, {}, {}, {}, {}, {}], clients: 4, films: 0.6 },
  /** It says whose spend its calls are, and has budgets for all of it, for each team and for each end user, which run out. */
  budgeted: {
    money: '100',
    keys: [{}, {}],
    clients: 4,
    grows: 0.1,
    budgets: { workspace: '0.6', team: '0.3', endUser: '0.2' },
  },
  /** It acts for users of a platform, through keys that they have linked their accounts to. */
  linked: { money: '100', keys: [{}, {}], clients: 3, atOnce: 2, asksFor: ['follow_user'] },
} as const satisfies Record<string, Wanted>

export type Name = keyof typeof PEOPLE
type Wanted = {
  readonly money: string
  readonly keys: readonly Partial<Budget>[]
  readonly clients: number
  readonly requestsPerMinute?: number
  readonly atOnce?: number
  readonly asksFor?: readonly string[]
  readonly films?: number
  readonly grows?: number
  readonly budgets?: Readonly<Record<'workspace' | 'team' | 'endUser', string>>
}

/** Requests in a minute that nobody makes. */
export const NO_LIMIT = 1_000_000

export const CLIENTS: Readonly<Record<Name, number>> = Object.fromEntries(
  Object.entries(PEOPLE).map(([name, { clients }]) => [name, clients]),
) as Record<Name, number>

export async function makePeople(pool: pg.Pool): Promise<readonly Person[]> {
  const people: Person[] = []
  for (const [name, wanted] of Object.entries(PEOPLE)) people.push(await makePerson(pool, name as Name, wanted))
  return people
}

async function makePerson(pool: pg.Pool, name: Name, wanted: Wanted): Promise<Person> {
  const { money, requestsPerMinute = NO_LIMIT, atOnce = 1, asksFor, films = 0, grows = 0 } = wanted
  const { id: workspaceId, testAccountId: accountId } = await createWorkspace({ pool, ids }, ACTOR, { name })
  await setRate(pool, workspaceId, requestsPerMinute)
  const entryId = ids.next()
  await creditAccount(pool, { entryId, accountId, kind: 'payment', amount: usd(money) })
  const person: Person = {
    ...{ name, workspaceId, accountId, requestsPerMinute, atOnce, films, grows },
    ...(asksFor && { asksFor }),
    ...(wanted.budgets && { budgets: wanted.budgets }),
    keys: [],
    payments: [entryId],
  }
  for (const { period, amount } of wanted.keys) {
    const budget = period === undefined || amount === undefined ? undefined : { period, amount }
    person.keys.push(await makeKey(pool, workspaceId, budget))
  }
  if (wanted.budgets !== undefined) await setBudgets(pool, workspaceId, wanted.budgets)
  return person
}

async function setBudgets(pool: pg.Pool, workspaceId: Id, amounts: NonNullable<Wanted['budgets']>): Promise<void> {
  for (const [kind, subject, amount] of [
    ['workspace', '', amounts.workspace],
    ['tag', 'team=*', amounts.team],
    ['end_user', '*', amounts.endUser],
  ] as const) {
    const budget = { period: 'total', amount: usd(amount) } as const
    await setBudget({ pool }, ACTOR, { workspaceId, mode: 'test', kind, subject, label: subject, budget })
  }
}

/** Lifts a limit for what is read after the run, too. */
export async function setRate(pool: pg.Pool, workspaceId: Id, requestsPerMinute = NO_LIMIT): Promise<void> {
  const limits = { requestsPerMinute, tokensPerMinute: 1_000_000_000, concurrency: 1_000 }
  await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'enterprise', limits })
}

/** With a budget, a key is one that agents may have: everything at any rate that its tier has. */
const APPROVED = {
  scopes: ['models', 'video', 'social', 'finance', 'traffic'],
  rates: { requestsPerMinute: NO_LIMIT },
}

export async function makeKey(pool: pg.Pool, workspaceId: Id, budget?: Budget): Promise<Key> {
  const wanted = { workspaceId, mode: 'test', name: 'key', ...(budget && { budget, ...APPROVED }) } as const
  const { id, secret } = await createKey({ pool, ids }, ACTOR, wanted)
  const isApproved = budget !== undefined
  return { id, secret: secret.reveal(), revokedAtMs: Number.POSITIVE_INFINITY, isApproved }
}

/** Each key is used from an address of its own, as HAProxy would tell: who fails to authenticate is limited by it. */
export function addressOf({ id }: Key): string {
  const digits = id.replaceAll('-', '').slice(-6)
  return `10.${[0, 2, 4].map((at) => Number.parseInt(digits.slice(at, at + 2), 16)).join('.')}`
}
