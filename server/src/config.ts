import { z } from 'zod'
import {
  address,
  amount,
  ceiling,
  domain,
  flag,
  httpOrigin,
  integer,
  list,
  longSecret,
  masterKey,
  network,
  openidIssuer,
  origin,
  postgresUrl,
  publicOrigin,
  publicUrl,
  segment,
  segments,
  sender,
  smtpUrl,
} from './config/kinds.ts'
import { accent, link, logo, siteName, support } from './config/label.ts'
import { type Environment, readSources, variableOf } from './config/sources.ts'
import { CONTRIBUTORS_LEAST } from './kernel/contributors.ts'
import { largestRequestWithin, leastBudgetFor } from './kernel/memory-budget.ts'

/**
 * The only reader of the environment. Every setting has a place in farebox.yaml, such as `http.body_bytes`, and a name
 * in the environment, such as FAREBOX_HTTP_BODY_BYTES, which wins. Secrets come from the environment or from a file of
 * their own (`database.url_file`, FAREBOX_DATABASE_URL_FILE), never from farebox.yaml itself.
 */
export type Config = z.infer<typeof schema>

export class ConfigError extends Error {
  /** One line for each problem, saying what to change. */
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** Words of our own below /apis/v1. */
const RESERVED_SEGMENTS = ['services', 'financial']
/** Names that are no words of a path there. */
const OTHER_NAMES = ['provider', 'deep_research', 'deep_research_upstream']
/** Words of our own below /v1. */
export const RESERVED_MODEL_SEGMENTS = [
  ...['chat', 'responses', 'messages', 'models', 'embeddings', 'images', 'rerank'],
  ...['usage', 'balance', 'requests'],
]

const MIB = 1_048_576
const BODY_MOST_BYTES = 16 * MIB
const MODEL_BODY_MOST_BYTES = 32 * MIB

const ROLES = ['gateway', 'agent', 'site', 'admin', 'worker'] as const

const settings = z.strictObject({
  roles: list(z.enum(ROLES, { error: `must be among ${ROLES.join(', ')}` })).prefault([...ROLES]),
  database: z.strictObject({
    url: postgresUrl,
    money_connections: integer(1, 64).prefault(4),
    rest_connections: integer(1, 64).prefault(8),
  }),
  secrets: z.strictObject({ master_key: masterKey.optional(), previous_master_key: masterKey.optional() }).prefault({}),
  listen: z
    .strictObject({
      gateway: address.prefault('127.0.0.1:8700'),
      site: address.prefault('127.0.0.1:8702'),
      agent: address.prefault('127.0.0.1:8703'),
      admin: address.prefault('127.0.0.1:8709'),
    })
    .prefault({}),
  http: z
    .strictObject({
      // Beyond 16 MiB, what operations that are no model's do with a body would take a long turn of the event loop.
      body_bytes: integer(1_024, BODY_MOST_BYTES).prefault(MIB),
      // Of calls of models, which have pictures and long conversations. What the budget of memory has room for, where left out.
      model_body_bytes: integer(1_024, MODEL_BODY_MOST_BYTES).optional(),
      header_bytes: integer(4_096, 65_536).prefault(16_384),
      json_depth: integer(8, 512).prefault(64),
      headers_timeout_ms: integer(1_000, 60_000).prefault(10_000),
      request_timeout_ms: integer(1_000, 600_000).prefault(60_000),
      connections: integer(10, 100_000).prefault(10_000),
      cors_origins: list(origin).prefault([]),
      trusted_proxies: list(network).prefault([]),
      drain_ms: integer(0, 600_000).prefault(60_000),
      drain_pause_ms: integer(0, 60_000).prefault(0),
      abandoned_stream_ms: integer(0, 600_000).prefault(30_000),
      // Under which callers and their users reach the gateway; needed where users link accounts.
      public_url: publicOrigin.optional(),
      // Under which people reach the website; without it, only this machine does.
      site_url: publicOrigin.optional(),
      // Under which agents reach their tools; without it, only this machine does.
      mcp_url: publicUrl.optional(),
      // Names beside addresses, localhost and single words under which operators reach their listener.
      admin_hosts: list(
        z.string().regex(/^[a-z0-9._-]{1,253}$/, { error: 'must be names in lower case, such as metrics.example.com' }),
      ).prefault([]),
    })
    .prefault({}),
  // What requests, replies and unread answers may take together, beside what the program itself needs.
  memory: z.strictObject({ budget_bytes: integer(MIB, 65_536 * MIB).prefault(448 * MIB) }).prefault({}),
  names: z
    .strictObject({
      provider: z
        .string()
        .regex(/^[A-Za-z][A-Za-z0-9]{0,31}$/, { error: 'must be one word of letters and digits' })
        .prefault('Farebox'),
      social_a: segment.prefault('social_a'),
      social_b: segment.prefault('social_b'),
      social_c: segment.prefault('social_c'),
      reseller: segment.prefault('reseller'),
      traffic_analytics: segment.prefault('traffic_analytics'),
      deep_research: segments.prefault('deep-research/search'),
      deep_research_upstream: segments.prefault('search'),
    })
    .prefault({}),
  // Names of rerank models that callers may ask for beside the default; all are sold at the one price of reranking.
  rerank: z.strictObject({ models: list(z.string().min(1).max(200)).prefault([]) }).prefault({}),
  // How much evidenced loss is borne before calls are refused: docs/hostile-upstreams.md.
  loss: z
    .strictObject({
      account_hour_usd: ceiling.prefault('5'),
      account_day_usd: ceiling.prefault('20'),
      route_hour_usd: ceiling.prefault('50'),
      route_day_usd: ceiling.prefault('200'),
    })
    .prefault({}),
  // Addresses that strangers give us: docs/outbound.md.
  outbound: z
    .strictObject({
      access: z.enum(['public', 'listed', 'none'], { error: 'must be public, listed or none' }).prefault('public'),
      allowed_origins: list(httpOrigin).prefault([]),
      refused_networks: list(network).prefault([]),
    })
    .prefault({}),
  // Who may have an account, and by what they sign in: docs/mail.md.
  people: z
    .strictObject({
      sign_up: z.enum(['open', 'closed'], { error: 'must be open or closed' }).prefault('open'),
      // Only addresses of these domains may sign up; none: all may.
      domains: list(domain).prefault([]),
      // Promotional credit for the first workspace of a mailbox.
      credit: amount.prefault('2'),
      issuer: openidIssuer.optional(),
    })
    .prefault({}),
  // How clients are let in: docs/oauth.md.
  oauth: z.strictObject({ introspection_secret: longSecret.optional() }).prefault({}),
  // By which people are written to: docs/mail.md.
  mail: z.strictObject({ url: smtpUrl.optional(), from: sender.optional() }).prefault({}),
  // Under whose name and in whose colours pages are shown: docs/operating.md.
  site: z
    .strictObject({
      // names.provider, where left out.
      name: siteName.optional(),
      logo: logo.optional(),
      accent_light: accent('light').optional(),
      accent_dark: accent('dark').optional(),
      terms_url: link.optional(),
      privacy_url: link.optional(),
      imprint_url: link.optional(),
      support: support.optional(),
    })
    .prefault({}),
  // For how long a contract can be read by its hash once no process serves it any more: docs/contract.md.
  contract: z.strictObject({ kept_days: integer(1, 3_650).prefault(365) }).prefault({}),
  // For how long what the worker last saw of what is sold counts as fresh: docs/contract.md.
  sales: z.strictObject({ fresh_seconds: integer(2, 86_400).prefault(300) }).prefault({}),
  links: z.strictObject({ offline_access: flag.prefault(false) }).prefault({}),
  log: z
    .strictObject({
      level: z
        .enum(['info', 'warn', 'error', 'silent'], { error: 'must be info, warn, error or silent' })
        .prefault('info'),
    })
    .prefault({}),
})

const schema = settings.superRefine((config, context) => {
  for (const [path, message] of contradictions(config)) context.addIssue({ code: 'custom', path, message })
})

/** Values that are fine by themselves and wrong together. */
function* contradictions(config: z.infer<typeof settings>): Generator<[path: string[], message: string]> {
  const { roles, secrets, listen, http, memory, names, loss, mail, people, site } = config
  if (roles.length === 0) yield [['roles'], 'names no role: name at least one']
  if (secrets.previous_master_key !== undefined && secrets.master_key === undefined)
    yield [['secrets', 'previous_master_key'], 'is given without secrets.master_key: give the current one too']
  if (mail.url !== undefined && mail.from === undefined)
    yield [['mail', 'from'], 'is missing: who writes, such as no-reply@example.com']
  if (people.issuer !== undefined && http.site_url === undefined)
    yield [['people', 'issuer', 'url'], 'is given without http.site_url, to which people come back: give that too']
  for (const [given, other] of [
    ['accent_light', 'accent_dark'],
    ['accent_dark', 'accent_light'],
  ] as const)
    if (site[given] !== undefined && site[other] === undefined)
      yield [['site', other], `is missing: site.${given} is given, and pages have both schemes`]
  const listeners = Object.entries(listen).filter(([, { port }]) => port !== 0)
  for (const [index, [name, { host, port }]] of listeners.entries()) {
    const twin = listeners.slice(0, index).find(([, other]) => other.host === host && other.port === port)
    if (twin) yield [['listen', name], `is the same as listen.${twin[0]}: give each a listener of its own`]
  }
  if (http.headers_timeout_ms > http.request_timeout_ms) {
    yield [['http', 'headers_timeout_ms'], 'is longer than http.request_timeout_ms: headers are part of the request']
  }
  if (http.cors_origins.includes('*') && http.cors_origins.length > 1) {
    yield [['http', 'cors_origins'], 'names * and others: * means every origin, so leave out one or the other']
  }
  for (const window of ['hour', 'day'] as const) {
    const [account, route] = [loss[`account_${window}_usd`], loss[`route_${window}_usd`]]
    if (account !== null && route !== null && route < CONTRIBUTORS_LEAST * account)
      yield [['loss', `route_${window}_usd`], `is less than three times loss.account_${window}_usd: raise it`]
  }
  if (http.drain_pause_ms > http.drain_ms) {
    yield [['http', 'drain_pause_ms'], 'is longer than http.drain_ms, of which it is a part']
  }
  const { body_bytes, model_body_bytes = body_bytes } = http
  const leastBudget = leastBudgetFor(Math.max(body_bytes, model_body_bytes))
  if (memory.budget_bytes < leastBudget && body_bytes <= BODY_MOST_BYTES && model_body_bytes <= MODEL_BODY_MOST_BYTES) {
    const name = model_body_bytes > body_bytes ? 'http.model_body_bytes' : 'http.body_bytes'
    const least = `at least ${Math.ceil(leastBudget / MIB)} MiB for bodies of ${name} and the largest replies`
    yield [['memory', 'budget_bytes'], `must be ${least}`]
  }
  const segments = Object.entries(names).filter(([name]) => !OTHER_NAMES.includes(name))
  for (const [index, [name, value]] of segments.entries()) {
    const twin = segments.slice(0, index).find(([, other]) => other === value)
    if (twin) yield [['names', name], `is the same as names.${twin[0]}: their paths would collide`]
    if (RESERVED_SEGMENTS.includes(value)) yield [['names', name], reserved(value)]
  }
  const [first = ''] = names.deep_research.split('/')
  if (RESERVED_MODEL_SEGMENTS.includes(first)) yield [['names', 'deep_research'], reserved(first)]
}

function reserved(segment: string): string {
  return `begins with "${segment}", a path that the service itself uses: choose another`
}

/** Every setting's path; what is named nowhere here is refused. */
const PATHS = pathsIn(settings)
const SECRET_PATHS = [
  ...['database.url', 'secrets.master_key', 'secrets.previous_master_key'],
  ...['mail.url', 'people.issuer.client_secret', 'oauth.introspection_secret'],
]

function pathsIn(type: z.core.$ZodType, prefix = ''): readonly string[] {
  if (type instanceof z.ZodPrefault || type instanceof z.ZodOptional) return pathsIn(type.unwrap(), prefix)
  if (!(type instanceof z.ZodObject)) return [prefix]
  return Object.entries(type.shape).flatMap(([key, inner]) => pathsIn(inner, prefix === '' ? key : `${prefix}.${key}`))
}

export function loadConfig(env: Environment = process.env, overrides: Readonly<Record<string, string>> = {}): Config {
  const { values, problems } = readSources({ paths: PATHS, secretPaths: SECRET_PATHS }, env, overrides)
  const parsed = schema.safeParse(values)
  const told = parsed.success
    ? []
    : parsed.error.issues
        .map(({ path, message }) => describe(path.map(String), inWords(message), problems))
        .filter((line) => line !== '')
  if (problems.length > 0 || !parsed.success) throw new ConfigError([...problems, ...told])
  return parsed.data
}

/** What a value is that is of another kind than its setting: a list, as a rule, where one value is meant. */
function inWords(message: string): string {
  const [, expected, received] = /^Invalid input: expected (\w+), received (\w+)$/.exec(message) ?? []
  if (expected === undefined || received === undefined) return message
  const kind = (name: string) => KINDS[name] ?? `a ${name}`
  return `must be ${kind(expected)}, and is ${kind(received)}`
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'a text',
  array: 'a list',
  object: 'a section with settings of its own',
  null: 'empty',
}

function describe(path: readonly string[], message: string, told: readonly string[]): string {
  const known = PATHS.find((one) => path.join('.') === one || path.join('.').startsWith(`${one}.`)) ?? path.join('.')
  const line = `${known} (${variableOf(known)}) ${message}${known === 'database.url' ? ': set it to postgres://user:password@host:5432/database' : ''}`
  // A secret that could not be read was told of already, with the reason.
  return told.some((other) => other.startsWith(`${known} `)) ? '' : line
}

/** npx starts a shell that starts us, and dies of a SIGTERM without passing it on: nobody would stop us then. */
export function isStartedByNpx({ npm_command: command }: Environment = process.env): boolean {
  return command === 'exec'
}

/** What an operator has to configure before people can have accounts: mail reaches them, links lead back, secrets can be kept. */
export function missingForPeople({ mail, http, secrets }: Config): readonly string[] {
  const needed = { 'mail.url': mail.url, 'http.site_url': http.site_url, 'secrets.master_key': secrets.master_key }
  return Object.entries(needed).flatMap(([path, value]) => (value === undefined ? [path] : []))
}

/** The most that a call of a model may have as its body: as it is set, or what vendors take as far as the memory has room for it. */
export function modelBodyBytes({ http, memory }: Pick<Config, 'http' | 'memory'>): number {
  const { body_bytes, model_body_bytes } = http
  if (model_body_bytes !== undefined) return model_body_bytes
  return Math.max(body_bytes, Math.min(MODEL_BODY_MOST_BYTES, largestRequestWithin(memory.budget_bytes)))
}
