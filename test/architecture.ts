import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import path from 'node:path'
import { parseSync } from 'oxc-parser'

/**
 * Who may import whom in server/src. A folder may import those of the lines above its own, never one beside it; the pipeline passes values
 * between neighbours instead. Several folders in one place of a line are a wing: each may import those before it.
 */
export const LAYERS: readonly (readonly (string | readonly string[])[])[] = [
  ['kernel'],
  ['telemetry'],
  ['catalogue'],
  ['protocols'],
  ['storage'],
  [
    ['workspaces', 'budgets', 'identity', 'grants', 'people'],
    'limits',
    'ledger',
    'links',
    'outbox',
    'upstreams',
    'processes',
  ],
  ['outbound'],
  ['pricing'],
  ['calls'],
  ['wording'],
  ['gateway'],
  ['tasks', 'contracts'],
  ['wire', 'pages', ['api', 'callers']],
  ['http'],
  [['authorization', 'people-pages'], 'agent', 'site', 'account', 'admin', 'notices', 'mail', 'operate'],
  ['console'],
  ['jobs'],
  ['cli'],
  ['app'],
  ['app.ts'],
  ['main.ts'],
]

/** Which folders may name a table in SQL: its owner first. Stored functions touch most of them, and belong to nobody. */
export const TABLES: Readonly<Record<string, readonly string[]>> = {
  schema_migrations: ['storage'],
  contracts: ['contracts'],
  sales_snapshots: ['site'],
  change_log: ['storage'],
  outbox: ['outbox', 'storage'],
  workspaces: ['workspaces', 'budgets', 'identity', 'grants', 'people', 'links'],
  members: ['people', 'workspaces', 'budgets', 'identity', 'grants'],
  people: ['people', 'workspaces', 'budgets', 'identity', 'grants'],
  person_identities: ['people'],
  sign_up_credits: ['people'],
  browser_sessions: ['people'],
  remembered_browsers: ['people'],
  recovery_codes: ['people'],
  mailed_links: ['people'],
  invitations: ['people'],
  door_attempts: ['people'],
  account_writes: ['people'],
  quota_requests: ['people'],
  closures: ['workspaces', 'people'],
  exports: ['workspaces', 'people'],
  plans: ['workspaces', 'identity'],
  api_keys: ['identity', 'workspaces', 'budgets', 'grants', 'people', 'links'],
  grants: ['grants', 'identity', 'people', 'links'],
  access_tokens: ['grants', 'identity'],
  approvals: ['grants'],
  oauth_clients: ['authorization'],
  oauth_documents: ['authorization'],
  oauth_states: ['authorization'],
  signing_keys: ['authorization'],
  credentials: ['identity', 'workspaces', 'budgets', 'grants', 'people', 'ledger', 'links', 'calls'],
  audit: ['storage'],
  accounts: ['ledger', 'workspaces', 'budgets', 'identity', 'grants', 'people', 'tasks', 'calls'],
  allowances: ['ledger', 'budgets', 'identity', 'grants'],
  budgets: ['budgets', 'identity', 'people', 'ledger'],
  budget_notices: ['budgets'],
  balance_notices: ['budgets'],
  end_users: ['budgets', 'people'],
  end_user_counts: [],
  allowance_periods: ['ledger'],
  kept_periods: ['ledger'],
  group_windows: [],
  charges: ['ledger', 'calls'],
  entries: ['ledger'],
  entry_notes: ['ledger'],
  promotions: ['ledger'],
  usage_sums: ['ledger'],
  usage_totals: ['ledger'],
  usage_kept: ['ledger'],
  usage_combined: ['ledger'],
  usage_tail: ['ledger', 'calls'],
  dropped_allowances: ['ledger'],
  dropped_charges: ['ledger'],
  dropped_days: ['ledger'],
  holds: ['calls', 'ledger', 'tasks'],
  claims: ['calls', 'ledger'],
  owners: ['calls', 'processes'],
  process_reports: ['processes', 'calls'],
  losses: ['calls', 'ledger'],
  loss_releases: ['calls'],
  windows: [],
  upstreams: ['upstreams', 'pricing', 'tasks'],
  upstream_quotas: [],
  upstream_polls: [],
  link_sessions: ['links', 'upstreams'],
  link_attempts: ['links'],
  models: ['pricing'],
  switched_off: ['pricing'],
  model_routes: ['pricing'],
  model_prices: ['pricing'],
  price_versions: ['pricing'],
  account_prices: ['pricing'],
  request_records: ['gateway', 'ledger'],
  refusals: ['gateway'],
  refused_calls: ['gateway'],
  tasks: ['tasks', 'calls', 'ledger', 'upstreams'],
}

/** Packages that only some folders may know, so that they can be replaced there. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  fastify: ['http'],
  nodemailer: ['mail'],
  'oidc-provider': ['authorization'],
}

/** What single operations make. Folders that serve every operation alike do not know the word. */
const MADE_BY_ONE = { word: /video/i, unknownTo: ['calls', 'tasks'] }

/** Configuration reaches everybody else as values. */
const MAY_IMPORT_CONFIG = ['app.ts', 'app', 'cli', 'main.ts']
const CONFIG = 'config.ts'
/** What config.ts consists of, which nobody else knows. */
const CONFIG_PARTS = 'config'

/** Ways around this law: `process` is a global whose env is looked for, and `require` can name anything. */
const HIDDEN_DOORS = ['node:process', 'process', 'node:module', 'module']

export type Report = { readonly files: readonly string[]; readonly violations: readonly string[] }

/** Reads every source file under `root` (a server/src) and says which imports break the law. */
export function inspectServer(root: string, dependencies: readonly string[]): Report {
  return { files: filesIn(root), violations: sourcesIn(root).flatMap((file) => violationsIn(root, file, dependencies)) }
}

function violationsIn(root: string, file: string, dependencies: readonly string[]): string[] {
  const text = readFileSync(path.join(root, file), 'utf8')
  const from = partOf(file)
  const broken = importsOf(file, text)
    .map((target) => {
      if (target === undefined) throw new Error(`${file} imports something that is only known when it runs`)
      return reasonAgainst(from, file, target, dependencies)
    })
    .filter((reason) => reason !== undefined)
  for (const table of tablesIn(file, text))
    if (!(TABLES[table] ?? []).includes(from)) broken.push(`${from} may not name the table ${table}`)
  const [word] = MADE_BY_ONE.unknownTo.includes(from) ? (MADE_BY_ONE.word.exec(text) ?? []) : []
  if (word !== undefined) broken.push(`${from} may not say ${word}: what a task makes is its operation's`)
  if (rankOf(from) === -1 && from !== CONFIG && from !== CONFIG_PARTS)
    broken.push(`${from} is not in the table of layers`)
  if (from !== CONFIG && /\bprocess\s*(\.|\[\s*['"])\s*env\b/.test(text))
    broken.push('reads process.env, which only config.ts may')
  return broken.map((reason) => `${file}: ${reason}`)
}

function reasonAgainst(
  from: string,
  file: string,
  target: string,
  dependencies: readonly string[],
): string | undefined {
  if (HIDDEN_DOORS.includes(target)) return `imports ${target}, by which the environment or any module can be reached`
  if (!target.startsWith('.')) {
    const name = target.startsWith('@') ? target.split('/').slice(0, 2).join('/') : (target.split('/')[0] ?? target)
    const known = target.startsWith('node:')
      ? builtinModules.includes(target.slice(5)) || target === 'node:test'
      : dependencies.includes(name)
    if (!known) return `imports ${target}, which server/package.json does not list`
    return PACKAGES[name]?.includes(from) === false ? `${from} may not import ${name}` : undefined
  }
  const resolved = path.normalize(path.join(path.dirname(file), target))
  if (resolved.startsWith('..')) return `imports ${target}, outside server/src`
  const to = partOf(resolved)
  if (from === to) return undefined
  if (to === CONFIG_PARTS) return from === CONFIG ? undefined : `${from} may not import what config.ts consists of`
  if (to === CONFIG) return MAY_IMPORT_CONFIG.includes(from) ? undefined : `${from} may not read config.ts`
  if (from === CONFIG || from === CONFIG_PARTS)
    return to === 'kernel' ? undefined : `config.ts may import kernel alone, not ${to}`
  return mayImport(from, to) ? undefined : `${from} may not import ${to}`
}

/** The folder of server/src that a file belongs to, or the file itself at the top. */
function partOf(file: string): string {
  return file.split(path.sep)[0] ?? file
}

function rankOf(part: string): number {
  return LAYERS.findIndex((layer) => layer.flat().includes(part))
}

function mayImport(from: string, to: string): boolean {
  const [low, high] = [rankOf(to), rankOf(from)]
  if (low === -1 || low !== high) return low !== -1 && low < high
  const wing = LAYERS[low]?.find((place) => typeof place !== 'string' && place.includes(from)) ?? []
  return wing.includes(to) && wing.indexOf(to) < wing.indexOf(from)
}

/** Files of some folders that import each other, directly or around corners: each a circle, in the order of their names. */
export function circlesIn(root: string, folders: readonly string[]): readonly (readonly string[])[] {
  const files = folders.flatMap((folder) => sourcesIn(path.join(root, folder)).map((file) => path.join(folder, file)))
  const importsOfFile = new Map(
    files.map((file) => [
      file,
      importsOf(file, readFileSync(path.join(root, file), 'utf8')).flatMap((target) =>
        target?.startsWith('.') ? [path.normalize(path.join(path.dirname(file), target))] : [],
      ),
    ]),
  )
  const reach = (from: string): ReadonlySet<string> => {
    const reached = new Set<string>()
    const open = [from]
    for (let file = open.pop(); file !== undefined; file = open.pop())
      for (const target of importsOfFile.get(file) ?? [])
        if (!reached.has(target)) {
          reached.add(target)
          open.push(target)
        }
    return reached
  }
  const reached = new Map(files.map((file) => [file, reach(file)]))
  const circles = files
    .filter((file) => reached.get(file)?.has(file))
    .map((file) => files.filter((other) => reached.get(file)?.has(other) && reached.get(other)?.has(file)).join(' '))
  return [...new Set(circles)].map((circle) => circle.split(' '))
}

export function sourcesIn(root: string): string[] {
  return filesIn(root).filter((file) => !file.endsWith('.test.ts'))
}

function filesIn(root: string): string[] {
  return (
    readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.[cm]?[jt]sx?$/.test(entry.name))
      .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
      // A bench installs packages below its own folder.
      .filter((file) => !file.split(path.sep).includes('node_modules'))
      .sort()
  )
}

/** The tables that stand behind a verb of SQL in a string of the file. */
function tablesIn(file: string, text: string): readonly string[] {
  const named = stringsOf(parseSync(file, text).program).flatMap((string) => [...string.matchAll(NAMED_IN_SQL)])
  return [...new Set(named.map(([, table]) => table ?? ''))].filter((table) => Object.hasOwn(TABLES, table))
}

const NAMED_IN_SQL = /\b(?:from|join|into|update|table|using)\s+(?:only\s+)?(\w+)/gi

/** Every string and every piece of a template below a node of the syntax tree. */
function stringsOf(node: unknown): string[] {
  if (typeof node !== 'object' || node === null) return []
  if ('type' in node && node.type === 'TemplateElement' && 'value' in node) return stringsIn(node.value)
  if ('type' in node && node.type === 'Literal' && 'value' in node) return stringsIn(node.value)
  return Object.values(node).flatMap(stringsOf)
}

function stringsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null && 'raw' in value ? [String(value.raw)] : []
}

/** Every way to name a module: import, import type, export … from, import(). Undefined where it is only known when it runs. */
function importsOf(file: string, text: string): (string | undefined)[] {
  const { module, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file} does not parse: ${errors[0]?.message}`)
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) => {
    const [, , quoted] = /^(['"`])([^'"`$]+)\1$/.exec(text.slice(start, end)) ?? []
    return quoted
  })
  const reexports = module.staticExports.flatMap(({ entries }) =>
    entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []),
  )
  return [...module.staticImports.map(({ moduleRequest }) => moduleRequest.value), ...reexports, ...dynamic]
}
