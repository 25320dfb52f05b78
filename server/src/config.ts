import type { z } from 'zod'
import { BODY_MOST_BYTES, MIB, MODEL_BODY_MOST_BYTES } from './config/bytes.ts'
import { kindOf, leavesOf } from './config/described.ts'
import { RESERVED_SEGMENTS } from './config/reserved-segments.ts'
import { settings } from './config/settings.ts'
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

/** Names that are no words of a path there. */
const OTHER_NAMES = ['provider', 'deep_research', 'deep_research_upstream']
/** Words of our own below /v1. */
export const RESERVED_MODEL_SEGMENTS = [
  ...['chat', 'responses', 'messages', 'models', 'embeddings', 'images', 'rerank'],
  ...['usage', 'balance', 'requests'],
]

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
    yield [
      ['http', 'headers_timeout_ms'],
      'is longer than http.request_timeout_ms, and headers are part of the request: lower it, or raise http.request_timeout_ms',
    ]
  }
  const isBehindTls = [http.public_url, http.site_url, http.mcp_url].some((url) => url?.startsWith('https:'))
  if (isBehindTls && http.trusted_proxies === undefined)
    yield [
      ['http', 'trusted_proxies'],
      'is missing: an https URL means a proxy in front, and behind one that is not listed everybody has the same address. List its networks, or say none',
    ]
  if (http.cors_origins.includes('*') && http.cors_origins.length > 1) {
    yield [['http', 'cors_origins'], 'names * and others: * means every origin, so leave out one or the other']
  }
  for (const window of ['hour', 'day'] as const) {
    const [account, route] = [loss[`account_${window}_usd`], loss[`route_${window}_usd`]]
    if (account !== null && route !== null && route < CONTRIBUTORS_LEAST * account)
      yield [['loss', `route_${window}_usd`], `is less than three times loss.account_${window}_usd: raise it`]
  }
  if (http.drain_pause_ms > http.drain_ms) {
    yield [
      ['http', 'drain_pause_ms'],
      'is longer than http.drain_ms, of which it is a part: lower it, or raise http.drain_ms',
    ]
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
const LEAVES = leavesOf(settings)
const PATHS = LEAVES.map(({ path }) => path)
const SECRET_PATHS = LEAVES.filter(({ type }) => kindOf(type)?.isSecret === true).map(({ path }) => path)

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
