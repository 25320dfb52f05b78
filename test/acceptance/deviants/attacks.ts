import type { Random } from '../../../sandbox/src/random.ts'
import type { Draft, Json, Kind } from './draft.ts'

/** A request changed so that a vendor may read more in it than we do; as text where JSON could not say it. */
export type Attack = { readonly name: string; readonly draft: Draft; readonly text?: string }

/** One of the attacks that make sense for a kind of request. */
export function attacked(kind: Kind, draft: Draft, random: Random): Attack {
  const { body } = draft
  if (body === undefined) return { name: 'query', draft: { ...draft, query: looseQuery(kind, draft.query, random) } }
  const [name, change] = random.pick(kind === 'rerank' ? RERANK : BODIES)
  const changed = change(body, random)
  if (typeof changed === 'string') return { name, draft, text: changed }
  if (name === 'beta') return { name, draft: { ...draft, headers: { ...draft.headers, ...headersOf(random) } } }
  if (name === 'query') return { name, draft: { ...draft, query: withQuery(draft.query, random) } }
  return { name, draft: { ...draft, body: changed } }
}

type Change = readonly [name: string, change: (body: Json, random: Random) => Json | string]

const BODIES: readonly [Change, ...Change[]] = [
  ['other case', otherCase],
  ['other case', otherCase],
  ['other case', otherCase],
  ['unknown member', (body, random) => ({ ...body, ...random.pick(UNKNOWN) })],
  ['unknown member', (body, random) => ({ ...body, ...random.pick(UNKNOWN) })],
  ['unknown member below', (body, random) => below(body, random, random.pick(UNKNOWN))],
  ['named twice', namedTwice],
  ['tool with Type', withSearch],
  ['long cache', longCache],
  ['sound', withSound],
  ['many choices', (body, random) => ({ ...body, n: random.pick([64, 128, 129, 1_000, 1.5, '2', -1]) })],
  ['odd limit', oddLimit],
  ['both limits', bothLimits],
  ['beta', (body) => body],
  ['query', (body) => body],
]

const RERANK: readonly [Change, ...Change[]] = [
  ['large model', (body) => ({ ...body, model: 'rerank-large' })],
  ['instruction', (body, random) => ({ ...body, [random.pick(INSTRUCTIONS)]: 'word '.repeat(200) })],
  ['other case', otherCase],
  ['named twice', namedTwice],
  ['unknown member', (body, random) => ({ ...body, ...random.pick(UNKNOWN) })],
]
const INSTRUCTIONS = ['instruction', 'Instruction', 'instruct', 'query_instruction', 'INSTRUCT'] as const

const UNKNOWN: readonly [Json, ...Json[]] = [
  { provider: { order: ['a'] } },
  { preset: 'long' },
  { extra_body: { max_tokens: 3_900, max_completion_tokens: 3_900, num_retries: 5 } },
  { api_base: 'http://127.0.0.1:9' },
  { num_retries: 9 },
  { n_predict: 3_900 },
  { max_output_tokens: 3_900 },
  { thinking_budget: 3_900 },
  { min_tokens: 3_900 },
  { web_search_options: {} },
  { service_tier: 'priority' },
  { format: 'xml' },
  { model_: 'a-large' },
  { something: 1 },
]

/** One more member beside any other, at any depth, of the same name but for its case. */
function otherCase(body: Json, random: Random): Json {
  return below(body, random, (object) => {
    const names = Object.keys(object)
    const name = names[random.between(0, names.length - 1)]
    if (name === undefined) return {}
    return { [respelt(name, random)]: dearer(object[name], random) }
  })
}

function respelt(name: string, random: Random): string {
  const first = name.slice(0, 1).toUpperCase() + name.slice(1)
  return random.pick([name.toUpperCase(), first, name.toLowerCase(), name.replaceAll('_', ''), ` ${name}`])
}

/** What one would rather have. */
function dearer(value: unknown, random: Random): unknown {
  if (typeof value === 'number') return value * 100
  if (typeof value === 'boolean') return !value
  if (typeof value === 'string') return random.pick([`${value}-large`, 'web_search', '1h', '1080P', 'high', value])
  return value
}

type More = Json | ((object: Json) => Json)

/** The body with more members in one of its objects. */
function below(body: Json, random: Random, more: More): Json {
  const objects = objectsIn(body)
  const chosen = objects[random.between(0, objects.length - 1)]
  const changed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(changed)
    if (!isJson(value)) return value
    const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, changed(member)]))
    return value === chosen ? { ...members, ...(typeof more === 'function' ? more(value) : more) } : members
  }
  return Object(changed(body))
}

function objectsIn(value: unknown): Json[] {
  if (Array.isArray(value)) return value.flatMap(objectsIn)
  return isJson(value) ? [value, ...Object.values(value).flatMap(objectsIn)] : []
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The same name once more, perhaps in escapes, which parsers take for one. */
function namedTwice(body: Json, random: Random): string {
  const names = Object.keys(body)
  const name = names[random.between(0, names.length - 1)] ?? 'model'
  const spelling = random.chance(0.5) ? name : escaped(name)
  const more = `"${spelling}":${JSON.stringify(dearer(body[name], random))}`
  const text = JSON.stringify(body)
  return random.chance(0.5) ? `{${more},${text.slice(1)}` : `${text.slice(0, -1)},${more}}`
}

const escaped = (name: string) =>
  [...name].map((letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')

function withSearch(body: Json, random: Random): Json {
  const tool = random.pick<Json>([
    { type: 'function', Type: 'web_search', function: { name: 'f' } },
    { type: 'web_search', name: 'web_search' },
    { type: 'web_search_20250305', name: 'web_search' },
    { name: 'f', input_schema: { type: 'object' }, TYPE: 'web_search_20250305' },
    { functionDeclarations: [{ name: 'f' }], GoogleSearch: {} },
    { google_search: {} },
  ])
  return { ...body, tools: [tool] }
}

function longCache(body: Json, random: Random): Json {
  const cache_control = random.pick<Json>([
    { type: 'ephemeral', ttl: '1h' },
    { type: 'ephemeral', ttl: '5m', TTL: '1h' },
    { type: 'ephemeral', Ttl: '1h' },
    { type: 'ephemeral', ttl: ['1h'] },
  ])
  // Vendors cache no short prompts.
  const text = 'word '.repeat(700)
  return random.chance(0.5)
    ? { ...body, system: [{ type: 'text', text }], cache_control }
    : { ...body, system: [{ type: 'text', text, cache_control }] }
}

function withSound(body: Json, random: Random): Json {
  const sound = { type: 'input_audio', input_audio: { data: 'AAAA'.repeat(50), format: 'wav' } }
  const inline = { inlineData: { mimeType: 'audio/wav', data: 'AAAA'.repeat(50) } }
  const loud = { inlineData: { mimeType: random.pick(['Audio/WAV', ' audio/wav', 'image/png']), data: 'AAAA' } }
  if ('input' in body) return { ...body, input: [{ role: 'user', content: [sound] }] }
  return 'contents' in body
    ? { ...body, contents: [{ role: 'user', parts: [random.chance(0.5) ? inline : loud] }] }
    : { ...body, messages: [{ role: 'user', content: [random.chance(0.5) ? sound : { ...sound, type: 'file' }] }] }
}

const LIMIT_NAMES = ['max_tokens', 'max_completion_tokens', 'maxOutputTokens', 'max_output_tokens'] as const

function oddLimit(body: Json, random: Random): Json {
  const value = random.pick<unknown>([0, -1, 1.5, '10', 1e9, null, [10], { value: 10 }, true])
  return withLimits(body, { [random.pick(LIMIT_NAMES)]: value })
}

function bothLimits(body: Json, random: Random): Json {
  const [one, other] = [random.between(1, 20), random.between(1, 3_900)]
  return withLimits(
    body,
    'contents' in body
      ? { maxOutputTokens: one, max_output_tokens: other }
      : { max_tokens: one, max_completion_tokens: random.pick<number | null>([other, null]) },
  )
}

function withLimits(body: Json, limits: Json): Json {
  const { generationConfig } = body
  return isJson(generationConfig)
    ? { ...body, generationConfig: { ...generationConfig, ...limits } }
    : { ...body, ...limits }
}

function headersOf(random: Random): Readonly<Record<string, string>> {
  return random.pick<Readonly<Record<string, string>>>([
    { 'openai-beta': 'fast=v1' },
    { 'anthropic-beta': 'context-1m-2025-08-07' },
    { 'anthropic-beta': 'fast-mode-2026-02-01' },
    { 'anthropic-beta': 'extended-cache-ttl-2025-04-11,compact-2026-01-12' },
  ])
}

function withQuery(query: string, random: Random): string {
  return [query, random.pick(['format=xml', 'max_tokens=3900', 'n=9', 'Alt=json'])]
    .filter((part) => part !== '')
    .join('&')
}

const TRAFFIC = ['metrics=visits,page_views,bounce_rate', 'start_date=2020-01', 'end_date=2026-12', 'granularity=daily']
const COMMENTS = ['include_replies=true']
const ANY = ['format=xml', 'cursor=', 'country=DE']

/** A parameter in one of the spellings that servers differ about, or hidden in the value of another. */
function looseQuery(kind: Kind, query: string, random: Random): string {
  const own = kind === 'traffic' ? TRAFFIC : kind === 'comments' ? COMMENTS : []
  const all = [...own, ...own, ...ANY]
  const [name = '', value = ''] = (all[random.between(0, all.length - 1)] ?? '').split('=')
  const spelt = random.pick([
    name,
    `${name}[]`,
    `${name}[0]`,
    `${name}%5B%5D`,
    name.replaceAll('_', '.'),
    name.replaceAll('_', '%20'),
    name.replaceAll('_', '+'),
    name.toUpperCase(),
    `+${name}`,
    `%20${name}`,
    `%${name.charCodeAt(0).toString(16)}${name.slice(1)}`,
  ])
  const separator = random.pick(['&', '&', ';', '%3B', '%3b', '&a=1;', '&;'])
  return random.chance(0.8) ? `${query}${separator}${spelt}=${value}` : `${spelt}=${value}${separator}${query}`
}
