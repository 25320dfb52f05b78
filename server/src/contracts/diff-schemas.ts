import { canonicalBytes } from './canonical.ts'
import { additive, breaking, type Change, type Direction, narrower, wider } from './change.ts'
import { asObject, resolve } from './problems.ts'

type Schema = Readonly<Record<string, unknown>>

type At = {
  readonly roots: readonly [before: unknown, after: unknown]
  readonly direction: Direction
  readonly place: string
  /** Pairs that were met already: a schema may hold itself, and stand in many places. Each is told of where it is met first. */
  readonly seen: Set<string>
}

/** What differs between two schemas, as far as programs notice. Words are no difference. */
export function diffSchemas(before: unknown, after: unknown, at: At): readonly Change[] {
  const pair = `${asObject(before).$ref} ${asObject(after).$ref}`
  if (pair !== NO_REFERENCES && at.seen.has(pair)) return []
  at.seen.add(pair)
  const [old, now] = [reached(before, at.roots[0]), reached(after, at.roots[1])]
  if (isRefused(old) || isRefused(now)) return ofRefusal(old, now, at)
  return [
    ...ofTypes(old, now, at),
    ...ofValues(old, now, at),
    ...ofBounds(old, now, at),
    ...ofNames(old, now, at),
    ...ofNested(old, now, at),
    ...ofChoices(old, now, at),
  ]
}

const NO_REFERENCES = 'undefined undefined'

function reached(schema: unknown, root: unknown): Schema {
  if (schema === true) return {}
  if (schema === false) return { not: {} }
  const { $ref } = asObject(schema)
  return typeof $ref === 'string' ? reached(resolve(root, $ref), root) : asObject(schema)
}

/** Nothing fits it. */
function isRefused({ not }: Schema): boolean {
  return not !== undefined && Object.keys(asObject(not)).length === 0
}

function ofRefusal(old: Schema, now: Schema, { direction, place }: At): readonly Change[] {
  if (isRefused(old) === isRefused(now)) return []
  return [isRefused(now) ? narrower(direction, place, 'is refused now') : wider(direction, place, 'is taken now')]
}

function ofTypes(old: Schema, now: Schema, { direction, place }: At): readonly Change[] {
  const changes: Change[] = []
  if (old.nullable !== true && now.nullable === true) changes.push(wider(direction, place, 'may be null now'))
  if (old.nullable === true && now.nullable !== true) changes.push(narrower(direction, place, 'is never null now'))
  if (old.type === now.type) return changes
  const what = `was ${old.type ?? 'anything'}, is ${now.type ?? 'anything'}`
  if (now.type === undefined || (old.type === 'integer' && now.type === 'number'))
    return [...changes, wider(direction, place, what)]
  if (old.type === undefined || (old.type === 'number' && now.type === 'integer'))
    return [...changes, narrower(direction, place, what)]
  return [...changes, breaking(place, what)]
}

function ofValues(old: Schema, now: Schema, { direction, place }: At): readonly Change[] {
  const [before, after] = [valuesOf(old), valuesOf(now)]
  if (before === undefined && after === undefined) return []
  if (before === undefined) return [narrower(direction, place, `is one of ${after?.join(', ')} now`)]
  if (after === undefined) return [wider(direction, place, 'is no longer one of a few values')]
  return [
    ...before.filter((one) => !after.includes(one)).map((one) => narrower(direction, place, `is never ${one} now`)),
    ...after.filter((one) => !before.includes(one)).map((one) => wider(direction, place, `may be ${one} now`)),
  ]
}

function valuesOf({ enum: values }: Schema): readonly string[] | undefined {
  return Array.isArray(values) ? values.map((value) => JSON.stringify(value)) : undefined
}

const LEAST = ['minimum', 'minLength', 'minItems', 'minProperties'] as const
const MOST = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const
const FORMS = ['pattern', 'format', 'multipleOf', 'uniqueItems', 'exclusiveMinimum', 'exclusiveMaximum'] as const

function ofBounds(old: Schema, now: Schema, { direction, place }: At): readonly Change[] {
  const changed = (name: string, isNarrower: boolean): Change => {
    const what = `${name} was ${old[name] ?? 'none'}, is ${now[name] ?? 'none'}`
    return isNarrower ? narrower(direction, place, what) : wider(direction, place, what)
  }
  const numberOf = (value: unknown, none: number) => (typeof value === 'number' ? value : none)
  const least = LEAST.map((name) => [name, numberOf(old[name], -Infinity), numberOf(now[name], -Infinity)] as const)
  const most = MOST.map((name) => [name, -numberOf(old[name], Infinity), -numberOf(now[name], Infinity)] as const)
  const bounds = [...least, ...most]
    .filter(([, before, after]) => before !== after)
    .map(([name, before, after]) => changed(name, after > before))
  const forms = FORMS.filter((name) => old[name] !== now[name]).map((name) => {
    if (old[name] !== undefined && now[name] !== undefined && typeof now[name] !== 'boolean')
      return breaking(place, `${name} was ${old[name]}, is ${now[name]}`)
    return changed(name, now[name] !== undefined && now[name] !== false)
  })
  return [...bounds, ...forms]
}

function ofNames(old: Schema, now: Schema, at: At): readonly Change[] {
  const { direction, place } = at
  const [before, after] = [asObject(old.properties), asObject(now.properties)]
  const [required, requiredNow] = [textsOf(old.required), textsOf(now.required)]
  const changes = [
    ...requiredNow
      .filter((one) => !required.includes(one))
      .map((one) => narrower(direction, `${place}.${one}`, 'is always there now')),
    ...required
      .filter((one) => !requiredNow.includes(one))
      .map((one) => wider(direction, `${place}.${one}`, 'may be left out now')),
  ]
  for (const [name, schema] of Object.entries(before))
    changes.push(
      ...(Object.hasOwn(after, name)
        ? diffSchemas(schema, after[name], { ...at, place: `${place}.${name}` })
        : [breaking(`${place}.${name}`, 'is gone')]),
    )
  for (const [name, schema] of Object.entries(after))
    if (!Object.hasOwn(before, name))
      changes.push(
        // What passed through unnamed before is refused by its name.
        isRefused(reached(schema, at.roots[1])) && !isRefused(reached(old.additionalProperties, at.roots[0]))
          ? narrower(direction, `${place}.${name}`, 'is refused now')
          : additive(`${place}.${name}`, 'is new'),
      )
  return changes
}

function ofNested(old: Schema, now: Schema, at: At): readonly Change[] {
  return ['items', 'additionalProperties'].flatMap((name) =>
    old[name] === undefined && now[name] === undefined
      ? []
      : diffSchemas(old[name] ?? {}, now[name] ?? {}, { ...at, place: `${at.place}${name === 'items' ? '[]' : '.*'}` }),
  )
}

/** Those that are the same are left out; the rest are compared by their titles, or in their order. */
function ofChoices(old: Schema, now: Schema, at: At): readonly Change[] {
  return ['anyOf', 'oneOf', 'allOf'].flatMap((name) => {
    const [before, after] = [listOf(old[name]), listOf(now[name])]
    if (before.length === 0 && after.length === 0) return []
    const more = name === 'allOf' ? narrower : wider
    const less = name === 'allOf' ? wider : narrower
    // Where there was no choice, anything fitted; more of them narrow it.
    if (before.length === 0) return [narrower(at.direction, at.place, `has ${name} now`)]
    if (after.length === 0) return [wider(at.direction, at.place, `has no ${name} now`)]
    const named = (list: readonly unknown[], root: unknown) =>
      new Map(list.map((one, index) => [labelOf(one, index, root), one]))
    const [olds, nows] = [named(before, at.roots[0]), named(after, at.roots[1])]
    return [
      ...[...olds].flatMap(([label, one]) =>
        nows.has(label)
          ? diffSchemas(one, nows.get(label), { ...at, place: `${at.place}(${label})` })
          : [less(at.direction, `${at.place}(${label})`, `is gone from ${name}`)],
      ),
      ...[...nows.keys()]
        .filter((label) => !olds.has(label))
        .map((label) => more(at.direction, `${at.place}(${label})`, `is new in ${name}`)),
    ]
  })
}

function labelOf(schema: unknown, index: number, root: unknown): string {
  const { $ref } = asObject(schema)
  if (typeof $ref === 'string') return $ref.split('/').at(-1) ?? $ref
  const { title } = reached(schema, root)
  return typeof title === 'string' ? title : String(index)
}

function textsOf(value: unknown): readonly string[] {
  return listOf(value).map(String)
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** Whether two values are the same bytes. */
export function isSame(a: unknown, b: unknown): boolean {
  return canonicalBytes(a ?? null).equals(canonicalBytes(b ?? null))
}
