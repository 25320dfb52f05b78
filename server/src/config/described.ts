import { z } from 'zod'

/** What the schema of settings says of itself to people: docs/configuration.md is written from it. */

export type Kind = {
  /** What a value is, such as integer. */
  readonly type: string
  /** Which ones are taken; as an error says it behind "must be", where there is such an error. */
  readonly bounds: string
  /** It comes from the environment or from a file of its own alone. */
  readonly isSecret: boolean
}

type Sentences = {
  /** What the setting does. */
  readonly does: string
  /** What to do with it. */
  readonly advice: string
}

const kinds = z.registry<Kind>()
const sentences = z.registry<Sentences>()
const sections = z.registry<{ readonly about: string }>()

/** Says of a kind of values what it is. */
export function kind<T extends z.ZodType>(
  type: T,
  { isSecret = false, ...told }: Omit<Kind, 'isSecret'> & Partial<Kind>,
): T {
  kinds.add(type, { ...told, isSecret })
  return type
}

/** A setting with its sentences. */
export function setting<T extends z.ZodType>(type: T, does: string, advice: string): T {
  sentences.add(type, { does, advice })
  return type
}

/** Settings that have the beginning of their names in common. */
export function section<T extends z.ZodType>(type: T, about: string): T {
  sections.add(type, { about })
  return type
}

export type Leaf = { readonly path: string; readonly type: z.core.$ZodType }

/** Every setting of a schema, in its order. */
export function leavesOf(type: z.core.$ZodType, prefix = ''): readonly Leaf[] {
  const inner = unwrapped(type)
  if (!(inner instanceof z.ZodObject)) return [{ path: prefix, type }]
  return Object.entries(inner.shape).flatMap(([key, below]) =>
    leavesOf(below, prefix === '' ? key : `${prefix}.${key}`),
  )
}

function unwrapped(type: z.core.$ZodType): z.core.$ZodType {
  return type instanceof z.ZodPrefault || type instanceof z.ZodOptional ? unwrapped(type.unwrap()) : type
}

export function kindOf(type: z.core.$ZodType): Kind | undefined {
  return kinds.get(unwrapped(type))
}

/** What is said of all settings below it; undefined where nothing is. */
export function aboutOf(type: z.core.$ZodType): string | undefined {
  return sections.get(type)?.about
}

export type Setting = Kind &
  Sentences & {
    readonly path: string
    /** As it would be given; undefined where there is none. */
    readonly byDefault: unknown
    readonly isRequired: boolean
  }

/** A setting as people are told of it. Every one has to say what it does. */
export function describe({ path, type }: Leaf): Setting {
  const [told, said] = [kindOf(type), sentences.get(type)]
  if (told === undefined) throw new Error(`the setting ${path} does not say what its values are: give its type a kind`)
  if (said === undefined) throw new Error(`the setting ${path} does not say what it does: make it with setting()`)
  const byDefault = type instanceof z.ZodPrefault ? type.def.defaultValue : undefined
  const isRequired = !(type instanceof z.ZodPrefault || type instanceof z.ZodOptional)
  return { path, ...told, ...said, byDefault, isRequired }
}
