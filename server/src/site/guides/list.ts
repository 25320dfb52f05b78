/** One document of docs/ as the website shows it. Its own first heading is its title. */
export type Listed = {
  /** The file in docs/ without its ending, which is its address too. */
  readonly name: string
  /** As it stands in lists. */
  readonly title: string
  readonly note: string
}

export type Readers = {
  readonly title: string
  readonly who: string
  readonly icon: 'right' | 'agent' | 'key' | 'turn' | 'search'
  readonly guides: readonly Listed[]
  /** Found behind what callers read. */
  readonly isForOperators?: true
}

const guide = (name: string, title: string, note: string): Listed => ({ name, title, note })

/** Which documents are guides, for whom, and in which order. */
export const GUIDES: readonly Readers[] = [
  {
    title: 'You call it',
    who: 'An app, a script, a notebook.',
    icon: 'right',
    guides: [
      guide('quick-start', 'Quick start', 'A key, a call, and what it cost'),
      guide('pricing', 'Pricing and holds', 'What a call costs, when it is paid, what happens when something breaks'),
      guide('idempotency', 'Idempotency and retries', 'Once, not twice, however often you send it'),
      guide('streams', 'Streams', 'Cost in the last frame; what you pay when you disconnect'),
      guide('tasks', 'Tasks', 'Calls that take minutes'),
      guide('models', 'Models', 'How models are called, limited and priced'),
      guide('limits', 'Limits', 'Requests, tokens and concurrent calls'),
      guide('requests', 'Records of requests', 'What is kept of a call, and of refusals'),
      guide('catalogue', 'Operations in brief', 'Every operation with its price and limits'),
      guide('members', 'Members of requests', 'Which are taken, priced or refused'),
      guide('contract', 'The contract', 'OpenAPI by its hash, and what counts as a change'),
      guide('errors', 'Errors and their fixes', 'Every code, with what to do'),
      guide('glossary', 'Glossary', 'Our words, with the usual terms for them'),
    ],
  },
  {
    title: 'You hand an agent a budget',
    who: 'Claude Code, Codex, or one of yours.',
    icon: 'agent',
    guides: [
      guide('agents', 'Agents', 'Connect one with nothing but the address'),
      guide('mandates', 'Mandates', 'Up to how much, on what, until when; approvals'),
      guide('links', 'Linked accounts', 'Acting for a user of a platform'),
      guide('tokens', 'Access tokens', 'What clients may do for a person'),
      guide('oauth', 'Authorization server', 'How clients get in'),
    ],
  },
  {
    title: 'You pay for it',
    who: 'The balance, the team, the statement.',
    icon: 'key',
    guides: [
      guide('usage', 'Usage reports', 'By model, key, end user or tag; to the nano'),
      guide('budgets', 'Budgets', 'For the account, a key, a request: hard ceilings'),
      guide('account-api', 'Account API', 'Keys, budgets, members, statement and usage by a program'),
      guide('keys', 'Keys', 'What a key may do: how much, how fast, for what, from where'),
      guide('people', 'People and members', 'Who may do what'),
    ],
  },
  {
    isForOperators: true,
    title: 'You run it',
    who: 'On your machines, under your name.',
    icon: 'turn',
    guides: [
      guide('operating', 'Operating', 'From nothing to a paid call; upstreams, prices, customers'),
      guide('configuration', 'Configuration', 'Every setting, its variable, its default and its bounds'),
      guide('cli', 'Command line', 'Every command of farebox with its options'),
      guide('metrics', 'Metrics', 'What a process measures, and what to do when it is high'),
      guide('listeners', 'Listeners', 'What listens where, and how it refuses'),
      guide('price-lists', 'Price lists', 'Models and prices from a file'),
      guide('mail', 'Mail', 'The mail server, and sign-in by an issuer'),
      guide('outbox', 'Outbox', 'Messages to others, retries and dead letters'),
      guide('outbound', 'Outbound', 'URLs that others give us, and egress'),
      guide('hostile-upstreams', 'When an upstream misbehaves', 'What it can do, and what that costs'),
    ],
  },
  {
    isForOperators: true,
    title: 'You check it, or change it',
    who: 'Before you trust it with money.',
    icon: 'search',
    guides: [
      guide('reliability', 'Reliability', 'What holds while things break'),
      guide('performance', 'Performance', 'What was measured, goals missed beside goals met'),
      guide('figures', 'Figures', 'How they are recorded and judged'),
      guide('sandbox', 'The sandbox', 'Simulated upstreams, from a seed'),
      guide('dependencies', 'Dependencies', 'Each with the reason why it is there'),
    ],
  },
]

export const DOCS_PATH = '/docs'

export const pathOfGuide = (name: string): string => `${DOCS_PATH}/${name}`
