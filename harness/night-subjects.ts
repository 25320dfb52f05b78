/**
 * What tests of the night are about: files and folders of server/src. A test that starts an installation runs nearly all of
 * the server, and would join the gate of every change. It joins those of its subject. A change elsewhere that breaks it breaks an
 * installation, which the gate's own tests see, or is seen by the next night. A test that is not here is about all that it reaches;
 * so is every test about FOUNDATION.
 */
export const FOUNDATION: readonly string[] = ['app', 'app.ts', 'main.ts', 'config', 'kernel']

const MONEY = ['calls', 'ledger', 'limits', 'storage'] as const
const CALLS = [...MONEY, 'gateway', 'wording', 'upstreams', 'pricing', 'protocols'] as const
const CREDENTIALS = ['workspaces', 'budgets', 'identity', 'grants'] as const
const SIGN_IN = [...CREDENTIALS, 'people', 'authorization', 'people-pages', 'pages'] as const
const PEOPLE = [...SIGN_IN, 'notices', 'mail', 'outbox'] as const
const AGENTS = [...SIGN_IN, 'agent'] as const

/** By the beginning of a test's path; the longest decides. */
export const SUBJECTS: Readonly<Record<string, readonly string[]>> = {
  'bench/': ['calls', 'gateway', 'tasks', 'telemetry'],
  'test/acceptance/hostile': ['gateway', 'upstreams', 'protocols', 'outbound'],
  'test/acceptance/links/browser': ['links', 'http/link-page.ts', 'pages', 'people-pages'],
  'test/acceptance/links/rotation': ['links', 'storage', 'mail', 'outbox', 'cli/rotate.ts', 'cli/secrets.ts'],
  'test/acceptance/loss-ceiling': ['calls', 'ledger', 'gateway', 'upstreams', 'pricing'],
  'test/acceptance/models/': ['gateway', 'upstreams', 'protocols', 'limits', 'calls', 'wire'],
  'test/acceptance/tasks/': [...MONEY, 'tasks', 'upstreams', 'outbox'],
  'test/account/exports': ['account', 'ledger', 'wire'],
  'test/account/list-plans': ['account', 'ledger', ...CREDENTIALS, 'people', 'storage'],
  'test/agents/': AGENTS,
  'test/budgets/': [...MONEY, ...CREDENTIALS, 'notices'],
  'test/client/': ['contracts', 'http', 'wire', 'gateway', 'protocols'],
  'test/console/': ['console', 'account', 'pages', 'people-pages'],
  'test/deploy/': ['cli', 'storage/migrations.ts'],
  'test/edge/': ['http', 'wire', 'pages', 'gateway', 'upstreams'],
  'test/examples/': [...AGENTS, 'catalogue', 'http', 'wire', 'contracts'],
  'test/faults/': [...CALLS, 'tasks', 'outbox', ...CREDENTIALS],
  'test/house/audit-kills': ['cli', 'storage', ...CREDENTIALS, 'people'],
  'test/house/bench': ['calls', 'gateway'],
  'test/house/dev': ['cli', 'site', 'catalogue', 'contracts'],
  'test/house/new-operation': ['catalogue', 'contracts', 'site'],
  'test/house/operating': ['cli', 'storage', 'telemetry'],
  'test/house/terminal': ['cli', 'telemetry'],
  'test/identity/': ['limits', 'calls', ...CREDENTIALS, 'storage'],
  'test/ledger/': MONEY,
  'test/mandates/': [...AGENTS, 'calls', 'storage'],
  'test/oauth/': [...PEOPLE, 'agent'],
  'test/outside/': ['http', 'gateway', 'contracts', 'agent', 'links', 'tasks'],
  'test/outside/attacks': [...PEOPLE, 'account', 'http', 'links', 'limits', 'gateway', 'protocols'],
  'test/people/': PEOPLE,
  'test/planted/': [...CALLS, ...CREDENTIALS],
  'test/site/': ['site', 'pages', 'contracts', 'catalogue', 'http'],
  'test/storage/': ['storage'],
}

const SERVER = 'server/src/'

export function isSubject(test: string, file: string): boolean {
  if (!file.startsWith(SERVER)) return true
  const inServer = file.slice(SERVER.length)
  const subjects = subjectsOf(test)
  return subjects === undefined || [...FOUNDATION, ...subjects].some((place) => isWithin(inServer, place))
}

function subjectsOf(test: string): readonly string[] | undefined {
  const [longest] = Object.entries(SUBJECTS)
    .filter(([beginning]) => test.startsWith(beginning))
    .toSorted(([a], [b]) => b.length - a.length)
  return longest?.[1]
}

function isWithin(file: string, place: string): boolean {
  return file === place || file.startsWith(`${place}/`)
}
