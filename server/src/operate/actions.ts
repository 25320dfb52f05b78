import type { Action } from './action.ts'

type Group = { readonly summary: string; readonly load: () => Promise<readonly Action[]> }

/** What operators do, by the word that their commands begin with. A run loads what its own word needs. */
export const ACTIONS = {
  status: {
    summary: 'show the installation now',
    load: async () => (await import('./status.ts')).statusActions,
  },
  accounts: { summary: 'manage customer accounts', load: async () => (await import('./accounts.ts')).accounts },
  plans: { summary: 'manage customer plans', load: async () => (await import('./plans.ts')).plans },
  keys: { summary: "manage a customer's API keys", load: async () => (await import('./keys.ts')).keys },
  budgets: {
    summary: 'manage spending limits of a customer: of the account, a member, a tag or an end user',
    load: async () => (await import('./budgets.ts')).budgets,
  },
  grants: {
    summary: 'manage grants that people gave to OAuth clients',
    load: async () => (await import('./grants.ts')).grants,
  },
  credit: { summary: 'add credit, or reverse it', load: async () => (await import('./credit.ts')).credit },
  requests: {
    summary: 'find calls of all customers, and show all that is known of one',
    load: async () => (await import('./requests.ts')).requests,
  },
  charges: {
    summary: 'correct what calls were charged',
    load: async () => [(await import('./refund-charge.ts')).refund],
  },
  spend: { summary: 'report what customers were charged', load: async () => (await import('./spend.ts')).spend },
  quota: {
    summary: 'decide on quota requests: customers who ask for higher limits',
    load: async () => (await import('./quota.ts')).quota,
  },
  people: { summary: 'manage the people who can sign in', load: async () => (await import('./people.ts')).people },
  members: {
    summary: 'manage the members of a customer account',
    load: async () => (await import('./members.ts')).members,
  },
  prices: { summary: 'manage the prices of operations', load: async () => (await import('./prices.ts')).prices },
  models: { summary: 'manage the models that are sold', load: async () => (await import('./models.ts')).models },
  operations: {
    summary: 'manage which operations are sold',
    load: async () => (await import('./operations.ts')).operations,
  },
  categories: {
    summary: 'manage which categories of operations are sold',
    load: async () => (await import('./operations.ts')).categories,
  },
  upstreams: { summary: 'manage upstream providers', load: async () => (await import('./upstreams.ts')).upstreams },
  tasks: { summary: 'manage asynchronous tasks', load: async () => (await import('./tasks.ts')).tasks },
  ledger: {
    summary: 'verify and explain the ledger, and resolve unsettled calls',
    load: async () => (await import('./ledger.ts')).ledger,
  },
  losses: { summary: 'list losses and release routes', load: async () => (await import('./losses.ts')).losses },
  outbox: {
    summary: 'deliver messages that could not be delivered',
    load: async () => (await import('./outbox.ts')).outbox,
  },
  audit: { summary: 'list the audit log', load: async () => (await import('./audit.ts')).audit },
} as const satisfies Readonly<Record<string, Group>>

export type ActionGroup = keyof typeof ACTIONS
