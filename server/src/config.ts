import { existsSync, readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { parse as parseYaml } from 'yaml'
import { z } from 'zod'
import { CONTRIBUTORS_LEAST } from './kernel/contributors.ts'
import { leastBudgetFor } from './kernel/memory-budget.ts'
import { type Nanos, usd, ZERO } from './kernel/money.ts'
import { isMasterKey } from './kernel/seal.ts'
import { Secret } from './kernel/secret.ts'

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

type Environment = Readonly<Record<string, string | undefined>>

const PREFIX = 'FAREBOX_'
const FILE_VARIABLE = `${PREFIX}CONFIG`
const DEFAULT_FILE = 'farebox.yaml'
/**
 * Kubernetes puts these into every container for a service that is called farebox, whether anybody wants them or not;
 * they are no settings, and must not keep us from starting. No setting of ours is called like them.
 */
const SERVICE_LINK =
  /^FAREBOX_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/
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

const ROLES = ['gateway', 'agent', 'site', 'admin', 'worker'] as const

const fromText = <T extends z.ZodType>(read: (text: string) => unknown, type: T) =>
  z.preprocess((value) => (typeof value === 'string' ? read(value) : value), type)

const integer = (least: number, most: number) => {
  const error = `must be a whole number from ${least} to ${most}`
  return fromText(
    (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text),
    z.int({ error }).min(least, { error }).max(most, { error }),
  )
}

const list = <T extends z.ZodType>(item: T) =>
  fromText(
    (text) =>
      text
        .split(',')
        .map((part) => part.trim())
        .filter((part) => part !== ''),
    z.array(item).max(100),
  )

const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')], {
  error: 'must be true or false',
})

const CEILING = 'must be an amount of USD above 0, such as 5 or 0.50, or none for no ceiling'
const ceiling = z.union([z.string(), z.number()], { error: CEILING }).transform((value, context): Nanos | null => {
  if (value === 'none') return null
  try {
    const amount = usd(String(value))
    if (amount > ZERO) return amount
  } catch {
    // Told below, as for what is not above 0.
  }
  context.addIssue({ code: 'custom', message: CEILING })
  return z.NEVER
})

const secret = () => z.instanceof(Secret, { error: 'is missing' })

const postgresUrl = secret().refine((url) => isPostgresUrl(url.reveal()), {
  error: 'is not the address of a PostgreSQL (in a password, write what is neither letter nor digit as %40 for @)',
})

const masterKey = secret().refine(isMasterKey, {
  error: 'must be 32 bytes in base64: make one with openssl rand -base64 32',
})

const address = z
  .string()
  .regex(/^(\[[0-9a-f:]+\]|[A-Za-z0-9.-]+):\d{1,5}$/, { error: 'must be host:port, such as 127.0.0.1:8700' })
  .transform((text) => {
    const colon = text.lastIndexOf(':')
    return { host: text.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(text.slice(colon + 1)) }
  })
  .refine(({ port }) => port <= 65_535, { error: 'must have a port of at most 65535' })

const segment = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, { error: 'must be lower-case letters, digits, _ and -, as in a path' })

const segments = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}(\/[a-z0-9][a-z0-9_-]{0,62}){0,7}$/, { error: 'must be a path without its slash' })

const network = z.string().refine(isNetwork, { error: 'must be an address or a network, such as 10.0.0.0/8' })

const origin = z.string().refine((text) => text === '*' || isOrigin(text), {
  error: 'must be an origin, such as https://app.example.com, or *',
})

const publicOrigin = z
  .string()
  .refine(isPublicOrigin, { error: 'must be an origin with https, such as https://api.example.com' })

const httpOrigin = z.string().refine((text) => /^https?:/.test(text) && isOrigin(text), {
  error: 'must be an origin, such as https://issuer.example.com or http://10.0.0.7:8080',
})

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
      // Beyond 16 MiB, what is done with a body besides parsing it would take a long turn of the event loop.
      body_bytes: integer(1_024, BODY_MOST_BYTES).prefault(MIB),
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
      mcp_url: z
        .string()
        .refine((text) => URL.canParse(text) && isPublicOrigin(new URL(text).origin) && isPlainUrl(new URL(text)), {
          error: 'must be a URL with https, such as https://mcp.example.com/mcp',
        })
        .optional(),
      // Names beside addresses, localhost and single words under which operators reach their listener.
      admin_hosts: list(
        z.string().regex(/^[a-z0-9.-]{1,253}$/, { error: 'must be names in lower case, such as metrics.example.com' }),
      ).prefault([]),
    })
    .prefault({}),
  // What requests, replies and unread answers may take together, beside what the program itself needs.
  memory: z.strictObject({ budget_bytes: integer(MIB, 65_536 * MIB).prefault(384 * MIB) }).prefault({}),
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
    })
    .prefault({}),
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
  const { roles, secrets, listen, http, memory, names, loss } = config
  if (roles.length === 0) yield [['roles'], 'names no role: name at least one']
  if (secrets.previous_master_key !== undefined && secrets.master_key === undefined)
    yield [['secrets', 'previous_master_key'], 'is given without secrets.master_key: give the current one too']
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
  const leastBudget = leastBudgetFor(http.body_bytes)
  if (memory.budget_bytes < leastBudget && http.body_bytes <= BODY_MOST_BYTES) {
    const least = `at least ${Math.ceil(leastBudget / MIB)} MiB for bodies of http.body_bytes and the largest replies`
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
const SECRET_PATHS = ['database.url', 'secrets.master_key', 'secrets.previous_master_key']
const PATHS: readonly string[] = Object.entries(settings.shape).flatMap(([name, part]) => {
  const inner = part instanceof z.ZodPrefault ? part.unwrap() : part
  return inner instanceof z.ZodObject ? Object.keys(inner.shape).map((key) => `${name}.${key}`) : [name]
})

const variableOf = (path: string) => PREFIX + path.replaceAll('.', '_').toUpperCase()

export function loadConfig(env: Environment = process.env, overrides: Readonly<Record<string, string>> = {}): Config {
  const problems: string[] = []
  const values = new Map<string, unknown>([
    ...readFile(env, problems),
    ...readVariables(env, problems),
    ...Object.entries(overrides),
  ])
  const secrets = readSecrets(env, values, problems)
  const parsed = schema.safeParse(nest(new Map([...values, ...secrets])))
  if (!parsed.success) {
    problems.push(
      ...parsed.error.issues
        .map(({ path, message }) => describe(path.map(String), message, problems))
        .filter((line) => line !== ''),
    )
  }
  if (problems.length > 0 || !parsed.success) throw new ConfigError(problems)
  return parsed.data
}

function describe(path: readonly string[], message: string, told: readonly string[]): string {
  const known = PATHS.find((one) => path.join('.') === one || path.join('.').startsWith(`${one}.`)) ?? path.join('.')
  const line = `${known} (${variableOf(known)}) ${message}${known === 'database.url' ? ': set it to postgres://user:password@host:5432/database' : ''}`
  // A secret that could not be read was told of already, with the reason.
  return told.some((other) => other.startsWith(`${known} `)) ? '' : line
}

function readFile(env: Environment, problems: string[]): Map<string, unknown> {
  const file = env[FILE_VARIABLE] ?? DEFAULT_FILE
  if (!existsSync(file)) {
    if (env[FILE_VARIABLE] !== undefined)
      problems.push(`${FILE_VARIABLE} names ${file}, which does not exist: correct the path`)
    return new Map()
  }
  let content: unknown
  try {
    content = parseYaml(readFileSync(file, 'utf8'), { maxAliasCount: 10 })
  } catch (error) {
    problems.push(`${file} is not valid YAML: ${error instanceof Error ? error.message.split('\n')[0] : 'unreadable'}`)
    return new Map()
  }
  const values = flatten(content ?? {})
  for (const [path, value] of values) {
    // A section whose every line is commented out reads as nothing at all.
    if (value === null && PATHS.some((known) => known.startsWith(`${path}.`))) {
      values.delete(path)
      continue
    }
    if (SECRET_PATHS.includes(path))
      problems.push(
        `${path} stands in ${file} in the clear: move it to a file of its own and name that as ${path}_file`,
      )
    else if (!PATHS.includes(path) && !SECRET_PATHS.includes(path.replace(/_file$/, '')))
      problems.push(`${path} in ${file} is not a setting${nearest(path, PATHS)}: correct or remove it`)
    else continue
    values.delete(path)
  }
  return values
}

function readVariables(env: Environment, problems: string[]): Map<string, unknown> {
  const known = new Map(
    [...PATHS, ...SECRET_PATHS.map((path) => `${path}_file`)].map((path) => [variableOf(path), path]),
  )
  const values = new Map<string, unknown>()
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || name === FILE_VARIABLE || value === undefined || SERVICE_LINK.test(name)) continue
    const path = known.get(name)
    if (path === undefined)
      problems.push(`${name} is not a setting${nearest(name, [...known.keys()])}: correct or unset it`)
    else values.set(path, value)
  }
  return values
}

function readSecrets(env: Environment, values: Map<string, unknown>, problems: string[]): Map<string, Secret> {
  const secrets = new Map<string, Secret>()
  for (const path of SECRET_PATHS) {
    const name = `${path} (${variableOf(path)})`
    const file = values.get(`${path}_file`)
    const direct = values.get(path) ?? env[variableOf(path)]
    values.delete(`${path}_file`)
    values.delete(path)
    if (file !== undefined && direct !== undefined)
      problems.push(`${name} is given both directly and by file: keep one`)
    else if (file !== undefined || direct !== undefined) {
      const text = file === undefined ? direct : readSecretFile(file, name, problems)
      if (text === undefined) continue
      if (typeof text !== 'string' || text.trim() === '') problems.push(`${name} is empty: give it a value`)
      else secrets.set(path, new Secret(text.trim()))
    }
  }
  return secrets
}

function readSecretFile(file: unknown, name: string, problems: string[]): string | undefined {
  try {
    return readFileSync(String(file), 'utf8')
  } catch {
    problems.push(`${name} names a file that can't be read: check its path and permissions`)
    return undefined
  }
}

function flatten(value: unknown, prefix = ''): Map<string, unknown> {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return new Map([[prefix, value]])
  return new Map(
    Object.entries(value).flatMap(([key, inner]) => [...flatten(inner, prefix === '' ? key : `${prefix}.${key}`)]),
  )
}

function nest(values: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const root: Record<string, unknown> = { database: {} }
  for (const [path, value] of values) {
    const [section = '', key] = path.split('.')
    if (key === undefined) root[section] = value
    else root[section] = { ...(root[section] as Record<string, unknown> | undefined), [key]: value }
  }
  return root
}

/** A hint for a mistyped name: the known one that shares the most pairs of letters. */
function nearest(name: string, known: readonly string[]): string {
  const pairs = (text: string) => new Set(Array.from({ length: text.length - 1 }, (_, at) => text.slice(at, at + 2)))
  const own = pairs(name)
  const likeness = (other: string) =>
    (2 * [...pairs(other)].filter((pair) => own.has(pair)).length) / (own.size + pairs(other).size)
  const best = known.map((other) => ({ other, score: likeness(other) })).sort((a, b) => b.score - a.score)[0]
  return best !== undefined && best.score > 0.6 ? ` (did you mean ${best.other}?)` : ''
}

function isNetwork(text: string): boolean {
  const [host = '', bits] = text.split('/')
  const family = isIP(host)
  if (family === 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return false
  try {
    new BlockList().addSubnet(host, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
    return true
  } catch {
    return false
  }
}

function isPostgresUrl(text: string): boolean {
  const url = URL.parse(text)
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) return false
  // The host of a socket in a folder can stand in the query alone.
  return url.hostname !== '' || (url.searchParams.get('host') ?? '') !== ''
}

/** Nobody may read on the way what people and their programs send. On this machine nobody is on the way. */
function isPublicOrigin(text: string): boolean {
  return isOrigin(text) && /^https:|^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(:|$)/.test(text)
}

function isPlainUrl({ username, password, search, hash }: URL): boolean {
  return username + password + search + hash === ''
}

function isOrigin(text: string): boolean {
  return URL.canParse(text) && new URL(text).origin === text
}
