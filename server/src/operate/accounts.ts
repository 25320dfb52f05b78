import { z } from 'zod'
import { formatUsd, nanos } from '../kernel/money.ts'
import { giveTestCredit } from '../ledger/test-credit.ts'
import { tellOwners } from '../people/owner-notices.ts'
import { inTransaction, OpenTransaction, type Query } from '../storage/transaction.ts'
import { cancelClosure } from '../workspaces/closures.ts'
import type { LockedWorkspace } from '../workspaces/stops.ts'
import { resumeWorkspace, suspendWorkspace } from '../workspaces/suspensions.ts'
import {
  createWorkspace,
  findWorkspace,
  grantTier,
  type ListedWorkspace,
  listCustomerPlans,
  listWorkspaces,
  setCustomerPlan,
  showWorkspace,
  type TierGrant,
} from '../workspaces/workspaces.ts'
import { accountLines, readAccount } from './account-view.ts'
import { action, field, type OperatorParts } from './action.ts'
import {
  accountField,
  afterField,
  idOf,
  LISTED,
  NOBODY_TOLD,
  nameOf,
  numberMessage,
  reasonOf,
  TOKENS_LIMIT,
  unknown,
} from './fields.ts'
import { type Limits, limitFields, limitsLine } from './limits.ts'

const create = action({
  name: 'accounts create',
  summary: 'create a customer account: a workspace with separate live and test money',
  effect: 'writes',
  positional: [],
  input: z.object({
    name: field('name', 'name of the account', nameOf),
    email: field('address', 'e-mail address of its owner (default: no owner)', emailOf).optional(),
  }),
  run: ({ pool, ids, by, clock, settings }, { name, email }) =>
    inTransaction(pool, async (query) => {
      const owner = email === undefined ? {} : { ownerEmail: email }
      const workspace = await createWorkspace({ pool: new OpenTransaction(query), ids }, by, { name, ...owner })
      const gift = { accountId: workspace.testAccountId, amount: settings.testCredit, nowMs: clock.nowMs() }
      await giveTestCredit(query, by, gift)
      return workspace
    }),
  lines: ({ id, liveAccountId, testAccountId }) => [
    `Account ${id} created.`,
    `Its money in the ledger: live ${liveAccountId}, test ${testAccountId}`,
    `Next: farebox keys create ${id}`,
  ],
})

const list = action({
  name: 'accounts list',
  summary: 'list customer accounts with their balances, newest first',
  effect: 'reads',
  positional: [],
  input: z.object({
    name: field('part', 'only accounts whose name contains this (default: all)', String).default(''),
    after: afterField('accounts'),
  }),
  run: ({ pool }, { name, after = null }) => listWorkspaces(pool, { name, after, most: LISTED }),
  lines: (accounts) => [
    ...(accounts.length === 0 ? ['No accounts found. To create one: farebox accounts create --name <name>'] : []),
    ...accounts.map(lineOf),
    ...(accounts.length === LISTED ? [`More: farebox accounts list --after ${accounts.at(-1)?.id}`] : []),
  ],
})

function lineOf({ id, name, suspendedAt, tier, plan, keys, live, test }: ListedWorkspace): string {
  const owes = live.debt > 0n ? `  owes ${formatUsd(nanos(live.debt))} USD` : ''
  return [
    ...[
      id,
      name,
      ...(suspendedAt === null ? [] : ['suspended']),
      tier,
      ...(plan === 'standard' ? [] : [`plan ${plan}`]),
      `${keys} ${keys === 1 ? 'key' : 'keys'}`,
    ],
    `${formatUsd(nanos(live.free))} USD${owes}`,
    `${formatUsd(nanos(test.free))} test`,
  ].join('  ')
}

const show = action({
  name: 'accounts show',
  summary: 'show a customer account: balance, tier, plan, own prices and keys',
  effect: 'reads',
  positional: ['account'],
  input: z.object({ account: field('account', 'id of the account', (text) => idOf(text)) }),
  run: ({ pool }, { account }) => readAccount(pool, account).catch(unknown(`account ${account}`)),
  lines: accountLines,
})

const TIERS = ['growth', 'enterprise', 'earned'] as const
const NEEDED = ', required for enterprise'

const tier = action({
  name: 'accounts tier',
  summary: 'raise the limits of a customer above those earned by payments: each limit is the better of both',
  effect: 'writes',
  positional: ['account', 'tier'],
  input: z.object({
    account: accountField(),
    tier: field('tier', 'growth, enterprise, or earned to return to the earned tier', tierOf),
    ...limitFields({ rpm: NEEDED, tpm: NEEDED, concurrency: NEEDED }),
  }),
  async run({ pool, ids, by }, { account, tier: wanted, ...limits }) {
    await grantTier({ pool, ids }, by, account, grantOf(wanted, limits)).catch(unknown(`account ${account}`))
    return showWorkspace(pool, account)
  },
  lines: ({ id, tier: inForce, limits }, { tier: wanted }) => {
    const how = wanted === 'earned' ? ', which its payments have earned' : ''
    return [`Account ${id} is on the tier ${inForce}${how}. Each key has ${limitsLine(limits)}.`]
  },
})

function tierOf(text: string): (typeof TIERS)[number] {
  const found = TIERS.find((one) => one === text)
  if (found === undefined)
    throw new Error(`there is no tier ${JSON.stringify(text)} to set: use growth, enterprise or earned`)
  return found
}

function grantOf(wanted: (typeof TIERS)[number], { rpm, tpm, concurrency }: Limits): TierGrant {
  if (wanted !== 'enterprise') {
    if (rpm !== undefined || tpm !== undefined || concurrency !== undefined)
      throw new Error(`--rpm, --tpm and --concurrency are only for enterprise: ${wanted} has fixed limits`)
    return { tier: wanted }
  }
  const limits = {
    requestsPerMinute: needed('--rpm', rpm),
    tokensPerMinute: needed('--tpm', tpm, TOKENS_LIMIT),
    concurrency: needed('--concurrency', concurrency),
  }
  return { tier: wanted, limits }
}

function needed(option: string, number: number | undefined, most?: number): number {
  if (number === undefined) throw new Error(`${option} ${numberMessage(most)}`)
  return number
}

const plan = action({
  name: 'accounts plan',
  summary: "assign a plan to a customer: it multiplies the prices of the reseller's operations",
  effect: 'writes',
  positional: ['account', 'plan'],
  input: z.object({ account: accountField(), plan: field('plan', 'name of the plan: see farebox plans list', String) }),
  async run({ pool, ids, by }, { account, plan: wanted }) {
    await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    const plans = await listCustomerPlans(pool)
    if (!plans.some(({ id }) => id === wanted))
      throw new Error(
        `there is no plan ${JSON.stringify(wanted)}. Plans: ${plans.map(({ id }) => id).join(', ')}. To add one: farebox plans set`,
      )
    await setCustomerPlan({ pool, ids }, by, account, wanted)
    return { id: account, plan: wanted }
  },
  lines: ({ id, plan: set }) => [`Account ${id} is on the plan ${set}.`],
})

const stopInput = z.object({
  account: accountField(),
  reason: field('text', 'why: the owners are told, and the audit log has it', reasonOf),
})

type StopInput = z.output<typeof stopInput>

/** Suspends or resumes, and tells the owners in the same transaction. */
async function change(
  what: 'workspace_suspended' | 'workspace_resumed',
  { pool, by, letters: lettersOf }: OperatorParts,
  { account, reason }: StopInput,
) {
  const letters = await lettersOf()
  const tell = async (query: Query, { id, name }: LockedWorkspace) =>
    letters === null ? 0 : tellOwners(query, letters, { workspaceId: id, letter: { what, workspace: name, reason } })
  const work = what === 'workspace_suspended' ? suspendWorkspace : resumeWorkspace
  const told = await work({ pool, tell }, by, account, reason).catch(unknown(`account ${account}`))
  return { id: account, reason, isChanged: told !== null, told: told ?? 0 }
}

const toldLines = (told: number) =>
  told === 0 ? ['Nobody was told: there is no owner, or letters are not set up.'] : []

const suspend = action({
  name: 'accounts suspend',
  summary:
    'suspend a customer: calls, agents, new keys, grants and invitations are refused at once; tasks go on; members read and export, and the owners are told',
  effect: 'writes',
  positional: ['account'],
  input: stopInput,
  run: (parts, input) => change('workspace_suspended', parts, input),
  lines: ({ id, isChanged, told }) =>
    isChanged
      ? [`Account ${id} is suspended: calls are refused. To end it: farebox accounts resume ${id}`, ...toldLines(told)]
      : [`Account ${id} is already suspended for this reason. Nothing was changed.`],
})

const resume = action({
  name: 'accounts resume',
  summary: 'end the suspension of a customer: calls are accepted again, and the owners are told',
  effect: 'writes',
  positional: ['account'],
  input: stopInput,
  run: (parts, input) => change('workspace_resumed', parts, input),
  lines: ({ id, isChanged, told }) =>
    isChanged
      ? [`Account ${id} is no longer suspended.`, ...toldLines(told)]
      : [`Account ${id} is not suspended. Nothing was changed.`],
})

const cancel = action({
  name: 'accounts cancel-closure',
  summary: 'cancel the closure that an owner has asked for, within its grace period; calls are accepted again',
  effect: 'writes',
  positional: ['account'],
  input: z.object({ account: accountField() }),
  async run({ pool, by, letters }, { account }) {
    const { sendMail = null, siteUrl = '' } = (await letters()) ?? {}
    await cancelClosure({ pool, sendMail, siteUrl }, by, account)
    return { id: account, isTold: sendMail !== null }
  },
  lines: ({ id, isTold }) => [
    `The closure of account ${id} is canceled: calls are accepted again, unless it is suspended.`,
    ...(isTold ? [] : [NOBODY_TOLD]),
  ],
})

function emailOf(text: string): string {
  if (text.length > 320 || !/^[^\s@]+@[^\s@]+$/.test(text))
    throw new Error(`${JSON.stringify(text)} is not an e-mail address`)
  return text
}

export const accounts = [create, list, show, tier, plan, suspend, resume, cancel]
