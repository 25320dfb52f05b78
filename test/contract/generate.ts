/** Requests that a contract describes, and requests that are nearly such: everything by a seed, so that each can be repeated. */
export type Random = {
  /** Below 1. */
  readonly part: () => number
  readonly chance: (probability: number) => boolean
  /** From 0 up to below a number. */
  readonly below: (limit: number) => number
  readonly pick: <T>(list: readonly T[]) => T
}

export function createRandom(seed: number): Random {
  let state = seed | 0
  const part = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(part() * limit)
  return {
    part,
    chance: (probability) => part() < probability,
    below,
    pick(list) {
      const found = list[below(list.length)]
      if (found === undefined) throw new Error('there is nothing to pick from')
      return found
    },
  }
}

type Schema = Readonly<Record<string, unknown>>

type Parts = { readonly random: Random; readonly resolved: (schema: unknown) => Schema }

const WORDS = ['a', 'cats', 'Hello', '123', 'a short story', 'ü', '2026-01', 'https://example.com/p/1', '日本']
const DEPTH = 7

/** A value that fits a schema, as far as a schema without its patterns says; undefined where nothing fits. */
export function valueFor(schema: unknown, parts: Parts, depth = 0): unknown {
  const { random, resolved } = parts
  const whole = merged(resolved(schema), parts)
  const { type, enum: values, nullable, not } = whole
  if (not !== undefined && Object.keys(Object(not)).length === 0) return undefined
  if (nullable === true && random.chance(0.05)) return null
  if (Array.isArray(values)) return random.pick(values)
  switch (type) {
    case 'string':
      return textFor(whole, random)
    case 'integer':
    case 'number':
      return numberFor(whole, random)
    case 'boolean':
      return random.chance(0.5)
    case 'array':
      return listFor(whole, parts, depth)
    case 'object':
      return objectFor(whole, parts, depth)
    default:
      if (whole.properties !== undefined) return objectFor(whole, parts, depth)
      return random.pick([random.pick(WORDS), random.below(10), true, {}, []])
  }
}

/** One of the choices, together with what stands beside them. */
function merged(schema: Schema, { random, resolved }: Parts): Schema {
  const { anyOf, oneOf, allOf, ...own } = schema
  const choices = [...listOf(anyOf), ...listOf(oneOf)].map(resolved).filter((one) => one.not === undefined)
  const chosen = choices.length === 0 ? [] : [random.pick(choices)]
  const parts = [...listOf(allOf).map(resolved), ...chosen]
  if (parts.length === 0) return own
  const all = parts.map((one) => merged(one, { random, resolved }))
  return Object.assign({}, ...all, own, {
    properties: Object.assign({}, ...all.map(({ properties }) => properties), own.properties),
    required: [...all, own].flatMap(({ required }) => listOf(required)),
  })
}

function textFor({ minLength = 0, maxLength = 200 }: Schema, random: Random): string {
  const word = random.chance(0.05) ? '' : random.pick(WORDS)
  return word.padEnd(Number(minLength), 'x').slice(0, Number(maxLength))
}

function numberFor({ minimum, maximum, exclusiveMinimum, type }: Schema, random: Random): number {
  const least = Number(minimum ?? exclusiveMinimum ?? 0) + (exclusiveMinimum === undefined ? 0 : 1)
  const most = Math.min(Number(maximum ?? least + 50), least + 1_000)
  const value = least + random.below(Math.max(1, most - least + 1))
  return type === 'number' && random.chance(0.3) ? value + 0.5 : value
}

function listFor({ items, minItems = 0, maxItems = 3 }: Schema, parts: Parts, depth: number): unknown[] {
  const length = depth > DEPTH ? Number(minItems) : Math.max(Number(minItems), parts.random.below(Number(maxItems) + 1))
  return Array.from({ length: Math.min(length, 3) }, () => valueFor(items ?? {}, parts, depth + 1)).filter(isThere)
}

function objectFor({ properties, required }: Schema, parts: Parts, depth: number): Record<string, unknown> {
  const names = listOf(required)
  const members = Object.entries(Object(properties))
    .filter(([name]) => names.includes(name) || (depth <= DEPTH && parts.random.chance(0.12)))
    .map(([name, schema]) => [name, valueFor(schema, parts, depth + 1)])
    .filter(([, value]) => value !== undefined)
  return Object.fromEntries(members)
}

const STRANGE = [null, '', -1, 0, 1e308, 0.1, 2 ** 53, true, [], {}, [[]], { a: { b: 1 } }, '\u0000', 'x'.repeat(3_000)]

/** A value that is not quite the one that it was. */
export function damaged(value: unknown, random: Random): unknown {
  if (Array.isArray(value) && value.length > 0 && random.chance(0.7)) {
    const at = random.below(value.length)
    return value.map((item, index) => (index === at ? damaged(item, random) : item))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return random.pick(STRANGE)
  const names = Object.keys(value)
  const [name = ''] = names.length === 0 ? [] : [random.pick(names)]
  switch (random.below(5)) {
    case 0:
      return Object.fromEntries(Object.entries(value).filter(([one]) => one !== name))
    case 1:
      return { ...value, [random.pick(['unknown', 'Model', '__proto__', 'stream_options', ' '])]: random.pick(STRANGE) }
    case 2:
      return { ...value, [name]: random.pick(STRANGE) }
    default:
      return { ...value, [name]: damaged(Object(value)[name], random) }
  }
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

const isThere = (value: unknown) => value !== undefined
