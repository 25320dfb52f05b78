import type { Deviance } from './deviants.ts'
import { isObject, type JsonObject } from './json.ts'

/** The parameters of a query as the vendor reads them. */
export function parametersOf(query: string, deviance: Deviance): URLSearchParams {
  const { foldsCase, mergesBrackets, splitsAtSemicolons, readsDotsAsUnderscores } = deviance
  const separated = splitsAtSemicolons ? query.replaceAll(';', '&') : query
  const isLoose = foldsCase || mergesBrackets || readsDotsAsUnderscores
  return isLoose ? new LooseParameters(separated, deviance) : new URLSearchParams(separated)
}

/** Finds a parameter by any spelling that the vendor takes for its name; of several the last counts. */
class LooseParameters extends URLSearchParams {
  readonly #deviance: Deviance

  constructor(query: string, deviance: Deviance) {
    super(query)
    this.#deviance = deviance
  }

  override get(name: string): string | null {
    return this.getAll(name).at(-1) ?? null
  }

  override getAll(name: string): string[] {
    const wanted = this.#folded(name)
    const values: string[] = []
    for (const [written, value] of this) if (this.#folded(written) === wanted) values.push(value)
    return values
  }

  override has(name: string): boolean {
    return this.getAll(name).length > 0
  }

  #folded(name: string): string {
    const { foldsCase, mergesBrackets, readsDotsAsUnderscores } = this.#deviance
    let folded = foldsCase ? name.toLowerCase() : name
    if (mergesBrackets) folded = folded.replace(/\[\d*\]$/, '')
    if (readsDotsAsUnderscores) folded = folded.trim().replaceAll(/[. ]/g, '_')
    return folded
  }
}

/** What is nested deeper is left as it is; no member that a vendor reads is. */
const DEPTH_LIMIT = 100

/** A JSON value as a vendor reads it that folds case: every object in it has each member under any spelling. */
export function foldedJson(value: unknown, depth = 0): unknown {
  if (depth > DEPTH_LIMIT) return value
  if (Array.isArray(value)) return value.map((item) => foldedJson(item, depth + 1))
  return isObject(value) ? foldedObject(value, depth) : value
}

function foldedObject(object: JsonObject, depth: number): JsonObject {
  const members = new Map<string, readonly [name: string, value: unknown]>()
  for (const [name, value] of Object.entries(object))
    members.set(name.toLowerCase(), [name, foldedJson(value, depth + 1)])
  const spelt = (name: string | symbol) =>
    typeof name === 'string' ? (members.get(name.toLowerCase())?.[0] ?? name) : name
  return new Proxy<JsonObject>(Object.fromEntries(members.values()), {
    get: (target, name) => Reflect.get(target, spelt(name)),
    has: (target, name) => Reflect.has(target, spelt(name)),
    getOwnPropertyDescriptor: (target, name) => Reflect.getOwnPropertyDescriptor(target, spelt(name)),
  })
}
