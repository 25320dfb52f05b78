/**
 * The classes in which a model's usage has a price: the one table that usages of every protocol are read into, that prices are
 * written in, and that holds are bounded by.
 */
export const TOKEN_CLASSES = {
  input: { unit: 'input token' },
  output: { unit: 'output token' },
  cache_read: { unit: 'cache-read token', of: 'input' },
  cache_write: { unit: 'cache-write token', of: 'input' },
  cache_write_1h: { unit: 'one-hour cache-write token', of: 'cache_write' },
  input_audio: { unit: 'audio input token', of: 'input' },
  input_image: { unit: 'image input token', of: 'input' },
  cache_read_audio: { unit: 'audio cache-read token', of: 'cache_read' },
  output_audio: { unit: 'audio output token', of: 'output' },
  output_image: { unit: 'image output token', of: 'output' },
} as const satisfies Readonly<Record<string, { readonly unit: string; readonly of?: string }>>

export type TokenClass = keyof typeof TOKEN_CLASSES
export const TOKEN_CLASS_NAMES: readonly TokenClass[] = Object.keys(TOKEN_CLASSES).filter(isTokenClass)

/** Those of every price, in the order of its rates. Where a cache's is left out, it costs as input. */
export const PLAIN_CLASSES = ['input', 'output', 'cache_read', 'cache_write'] as const satisfies readonly TokenClass[]

/** Those that are a part of another class. Where a price has none for one, its tokens cost what that class costs. */
export const PART_CLASSES = {
  cache_write_1h: 'cache_write',
  input_audio: 'input',
  input_image: 'input',
  cache_read_audio: 'cache_read',
  output_audio: 'output',
  output_image: 'output',
} as const satisfies Readonly<Partial<Record<TokenClass, (typeof PLAIN_CLASSES)[number]>>>

export type PartClass = keyof typeof PART_CLASSES
export const PART_CLASS_NAMES: readonly PartClass[] = Object.keys(PART_CLASSES).filter(isPartClass)

/** Tools that an upstream runs and that have a price for each call. */
export const SERVER_TOOLS = ['web_search', 'web_fetch', 'file_search', 'code_interpreter', 'image_generation'] as const
/** As many calls of them one request may allow, all together. */
export const TOOL_CALLS_MOST = 1_000
export type ServerTool = (typeof SERVER_TOOLS)[number]

/** What protocols call the tier that the plain prices are of, beside `standard`. */
const STANDARD_NAMES: ReadonlySet<string> = new Set([
  'default',
  'standard',
  'standard_only',
  'unspecified',
  'on_demand',
])
export const STANDARD = 'standard'
/** The upstream chooses among its tiers. */
export const ANY_TIER = 'auto'

/** A tier by its one name here, in lower case. */
export function tierNamed(name: string): string {
  const lower = name.toLowerCase()
  return STANDARD_NAMES.has(lower) ? STANDARD : lower
}

/** What a request may need a price of, beyond plain tokens. */
export type Need = PartClass | 'long_context' | `tool:${ServerTool}` | `tier:${string}`

export function isTokenClass(name: string): name is TokenClass {
  return Object.hasOwn(TOKEN_CLASSES, name)
}

export function isPartClass(name: string): name is PartClass {
  return Object.hasOwn(PART_CLASSES, name)
}

export function isServerTool(name: string): name is ServerTool {
  return SERVER_TOOLS.some((one) => one === name)
}
