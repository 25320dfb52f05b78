import { existsSync, readFileSync } from 'node:fs'
import { parse as parseYaml } from 'yaml'
import { nearest } from '../kernel/nearest.ts'
import { Secret } from '../kernel/secret.ts'

/** Where settings come from: farebox.yaml, variables of the environment, and files with one secret each. */

export type Environment = Readonly<Record<string, string | undefined>>

/** The settings that there are. What is none of them is refused. */
export type Known = { readonly paths: readonly string[]; readonly secretPaths: readonly string[] }

type Sources = {
  readonly values: Readonly<Record<string, unknown>>
  /** One line for each, saying what to change. */
  readonly problems: readonly string[]
}

const PREFIX = 'FAREBOX_'
const FILE_VARIABLE = `${PREFIX}CONFIG`
const DEFAULT_FILE = 'farebox.yaml'
/**
 * Kubernetes puts these into every container for a service that is called farebox, whether anybody wants them or not;
 * they are no settings, and must not keep us from starting. No setting of ours is called like them.
 */
const SERVICE_LINK =
  /^FAREBOX_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/

/** Programs of callers read these (examples/). Whoever has them in a terminal must be able to start us there too. */
const CALLERS_VARIABLES: ReadonlySet<string> = new Set(['FAREBOX_URL', 'FAREBOX_KEY'])

export const variableOf = (path: string) => PREFIX + path.replaceAll('.', '_').toUpperCase()

/** Later ones win: the file, the environment, what the command line says. */
export function readSources(known: Known, env: Environment, overrides: Readonly<Record<string, string>>): Sources {
  const problems: string[] = []
  const values = new Map<string, unknown>([
    ...readFile(known, env, problems),
    ...readVariables(known, env, problems),
    ...Object.entries(overrides),
  ])
  const secrets = readSecrets(known, env, values, problems)
  return { values: nest(new Map([...values, ...secrets])), problems }
}

function readFile({ paths, secretPaths }: Known, env: Environment, problems: string[]): Map<string, unknown> {
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
  if (content !== null && (typeof content !== 'object' || Array.isArray(content))) {
    problems.push(
      `${file} is ${kindOf(content)}: write settings by their names, such as log: and below it "level: warn"`,
    )
    return new Map()
  }
  const values = flatten(content ?? {})
  for (const [path, value] of values) {
    // A section whose every line is commented out reads as nothing at all.
    if (value === null && paths.some((known) => known.startsWith(`${path}.`))) {
      values.delete(path)
      continue
    }
    const below = paths.filter((known) => known.startsWith(`${path}.`)).map((known) => known.slice(path.length + 1))
    if (below.length > 0 && !paths.includes(path))
      problems.push(
        `${path} in ${file} is ${kindOf(value)}: write its settings below it, each as "name: value" (${shown(below)})`,
      )
    else if (secretPaths.includes(path))
      problems.push(
        `${path} stands in ${file} in the clear: move it to a file of its own and name that as ${path}_file`,
      )
    else if (!paths.includes(path) && !secretPaths.includes(path.replace(/_file$/, '')))
      problems.push(`${path} in ${file} is not a setting${hintFor(path, paths)}: correct or remove it`)
    else continue
    values.delete(path)
  }
  return values
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'string' ? 'a text' : `a ${typeof value}`
}

const SHOWN = 4

function shown(names: readonly string[]): string {
  return names.length > SHOWN ? `${names.slice(0, SHOWN).join(', ')} and others` : names.join(', ')
}

function readVariables({ paths, secretPaths }: Known, env: Environment, problems: string[]): Map<string, unknown> {
  const known = new Map(
    [...paths, ...secretPaths.map((path) => `${path}_file`)].map((path) => [variableOf(path), path]),
  )
  const values = new Map<string, unknown>()
  for (const [name, value] of Object.entries(env)) {
    if (!name.startsWith(PREFIX) || name === FILE_VARIABLE || value === undefined) continue
    if (SERVICE_LINK.test(name) || CALLERS_VARIABLES.has(name)) continue
    const path = known.get(name)
    if (path === undefined)
      problems.push(`${name} is not a setting${hintFor(name, [...known.keys()])}: correct or unset it`)
    else values.set(path, value)
  }
  return values
}

function readSecrets(
  { secretPaths }: Known,
  env: Environment,
  values: Map<string, unknown>,
  problems: string[],
): Map<string, Secret> {
  const secrets = new Map<string, Secret>()
  for (const path of secretPaths) {
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

type Nested = { [name: string]: unknown }

function nest(values: ReadonlyMap<string, unknown>): Nested {
  const root: Nested = { database: {} }
  for (const [path, value] of values) {
    const sections = path.split('.')
    const key = sections.pop() ?? ''
    const section = sections.reduce((outer: Nested, name) => {
      const inner = outer[name]
      if (isNested(inner)) return inner
      const made: Nested = {}
      outer[name] = made
      return made
    }, root)
    section[key] = value
  }
  return root
}

function isNested(value: unknown): value is Nested {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Secret)
}

/** A hint for a mistyped name. */
function hintFor(name: string, known: readonly string[]): string {
  const near = nearest(name, known)
  return near === undefined ? '' : ` (did you mean ${near}?)`
}
