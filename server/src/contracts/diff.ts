import { additive, breaking, type Change, narrower, wider } from './change.ts'
import { diffSchemas, isSame } from './diff-schemas.ts'
import { asObject, type FoundOperation, operationsIn, resolve } from './problems.ts'

/**
 * What changed from one contract to the next. Breaking is what a program that was written by the first may fail on; everything else
 * that is not mere wording is additive.
 */
export function diffContracts(before: unknown, after: unknown): readonly Change[] {
  const [olds, nows] = [byPlace(before), byPlace(after)]
  return [
    ...[...olds].flatMap(([place, old]) => {
      const now = nows.get(place)
      return now === undefined ? [breaking(place, 'is gone')] : diffOperations(old, now, [before, after])
    }),
    ...[...nows.keys()].filter((place) => !olds.has(place)).map((place) => additive(place, 'is new')),
  ]
}

/** Why a contract may not follow another one yet; undefined where it may. Whoever breaks callers says so by the first number of the version. */
export function refusalToFollow(before: unknown, after: unknown): string | undefined {
  const broken = diffContracts(before, after).filter(({ kind }) => kind === 'breaking')
  if (broken.length === 0 || majorOf(after) > majorOf(before)) return undefined
  const shown = broken.map(({ place, what }) => `  ${place} ${what}`).join('\n')
  return `These changes break callers, and the version is still ${versionOf(before)}:\n${shown}`
}

function versionOf(document: unknown): string {
  return String(asObject(asObject(document).info).version)
}

function majorOf(document: unknown): number {
  return Number.parseInt(versionOf(document), 10)
}

type Roots = readonly [before: unknown, after: unknown]

function byPlace(document: unknown): ReadonlyMap<string, FoundOperation> {
  return new Map(operationsIn(document).map((one) => [`${one.method.toUpperCase()} ${one.path}`, one]))
}

function diffOperations(
  { path, method, operation: old }: FoundOperation,
  { operation: now }: FoundOperation,
  roots: Roots,
) {
  const place = `${method.toUpperCase()} ${path}`
  const changes: Change[] = []
  if (old.operationId !== now.operationId)
    changes.push(breaking(place, `was called ${old.operationId}, is called ${now.operationId}`))
  if (!isSame(old.security, now.security)) changes.push(breaking(place, 'asks for another credential'))
  changes.push(...ofParameters(old, now, place, roots), ...ofBody(old, now, place, roots))
  return [...changes, ...ofResponses(old, now, place, roots)]
}

type Members = Readonly<Record<string, unknown>>

function ofParameters(old: Members, now: Members, place: string, roots: Roots): readonly Change[] {
  const [olds, nows] = [named(old.parameters), named(now.parameters)]
  const at = (name: string) => `${place} ${name}`
  return [
    ...[...olds].flatMap(([name, one]) => {
      const other = nows.get(name)
      if (other === undefined) return [breaking(at(name), 'is gone')]
      return [
        ...(one.required !== true && other.required === true ? [breaking(at(name), 'is required now')] : []),
        ...(one.required === true && other.required !== true ? [additive(at(name), 'is optional now')] : []),
        ...diffSchemas(one.schema, other.schema, { roots, direction: 'request', place: at(name), seen: new Set() }),
      ]
    }),
    ...[...nows]
      .filter(([name]) => !olds.has(name))
      .map(([name, { required }]) =>
        required === true ? breaking(at(name), 'is new, and required') : additive(at(name), 'is new'),
      ),
  ]
}

function named(parameters: unknown): ReadonlyMap<string, Members> {
  const list = Array.isArray(parameters) ? parameters.map(asObject) : []
  return new Map(list.map((one) => [`${one.in} ${one.name}`, one]))
}

function ofBody(old: Members, now: Members, place: string, roots: Roots): readonly Change[] {
  const [before, after] = [asObject(old.requestBody), asObject(now.requestBody)]
  const at = `${place} body`
  if (old.requestBody === undefined && now.requestBody === undefined) return []
  if (old.requestBody === undefined)
    return [after.required === true ? breaking(at, 'is required now') : additive(at, 'is new')]
  if (now.requestBody === undefined) return [breaking(at, 'is gone')]
  return [
    ...(before.required !== true && after.required === true ? [breaking(at, 'is required now')] : []),
    ...(before.required === true && after.required !== true ? [additive(at, 'is optional now')] : []),
    ...ofContent(before.content, after.content, { direction: 'request', place: at, roots }),
  ]
}

type Where = { readonly direction: 'request' | 'response'; readonly place: string; readonly roots: Roots }

function ofContent(before: unknown, after: unknown, { direction, place, roots }: Where): readonly Change[] {
  const [olds, nows] = [asObject(before), asObject(after)]
  return [
    ...Object.entries(olds).flatMap(([type, one]) =>
      Object.hasOwn(nows, type)
        ? diffSchemas(asObject(one).schema, asObject(nows[type]).schema, { roots, direction, place, seen: new Set() })
        : [narrower(direction, place, `is no ${type} any more`)],
    ),
    ...Object.keys(nows)
      .filter((type) => !Object.hasOwn(olds, type))
      .map((type) => wider(direction, place, `may be ${type} now`)),
  ]
}

function ofResponses(old: Members, now: Members, place: string, roots: Roots): readonly Change[] {
  const [olds, nows] = [asObject(old.responses), asObject(now.responses)]
  const at = (status: string) => `${place} ${status}`
  return [
    ...Object.entries(olds).flatMap(([status, one]) => {
      if (!Object.hasOwn(nows, status))
        return [isSuccess(status) ? breaking(at(status), 'is gone') : additive(at(status), 'is gone')]
      const [before, after] = [reached(one, roots[0]), reached(nows[status], roots[1])]
      return [
        ...ofHeaders(before, after, at(status)),
        ...ofContent(before.content, after.content, { direction: 'response', place: at(status), roots }),
      ]
    }),
    ...Object.keys(nows)
      .filter((status) => !Object.hasOwn(olds, status))
      // Whoever reads refusals meets new ones by their status; another success has another meaning.
      .map((status) => (isSuccess(status) ? breaking(at(status), 'is new') : additive(at(status), 'is new'))),
  ]
}

function ofHeaders(before: Members, after: Members, place: string): readonly Change[] {
  const [olds, nows] = [Object.keys(asObject(before.headers)), Object.keys(asObject(after.headers))]
  return [
    ...olds.filter((name) => !nows.includes(name)).map((name) => breaking(`${place} ${name}`, 'is gone')),
    ...nows.filter((name) => !olds.includes(name)).map((name) => additive(`${place} ${name}`, 'is new')),
  ]
}

function reached(value: unknown, root: unknown): Members {
  const { $ref } = asObject(value)
  return typeof $ref === 'string' ? asObject(resolve(root, $ref)) : asObject(value)
}

function isSuccess(status: string): boolean {
  return status.startsWith('2')
}
