import {
  EMBEDDING_PRICE,
  IMAGE_PRICES,
  IMAGE_TOKENS_PRICE,
  SANDBOX_LIMITS,
  SANDBOX_PRICE,
  VIDEO_PRICES,
  VIDEO_SECONDS_MOST,
} from '../../../harness/seed.ts'
import type { UpstreamName } from '../../../sandbox/src/upstream.ts'
import { createSeal } from '../../../server/src/kernel/seal.ts'
import { Secret } from '../../../server/src/kernel/secret.ts'
import { saveModel, saveRoute, setModelPrice } from '../../../server/src/pricing/configure-models.ts'
import type { RouteProfile } from '../../../server/src/protocols/route-profile.ts'
import { listUpstreams, removeUpstream, saveUpstream } from '../../../server/src/upstreams/configure.ts'
import { type Installation, ids } from '../installation.ts'
import { ALL_PROTOCOLS, type Protocol, UPSTREAMS, upstreamOf } from '../models/streams.ts'

/** A vendor that deviates, and what its routes say of it. */
export type Vendor = {
  /** Of its models and slots. */
  readonly name: string
  readonly words: readonly string[]
  readonly profiles: Readonly<Partial<Record<Protocol, Partial<RouteProfile>>>>
  /** The protocols in which its routes do not say how it limits output, be it that nothing could. */
  readonly isWrongIn: readonly Protocol[]
}

type Told = Partial<Omit<Vendor, 'name' | 'words'>>

function vendor(name: string, words: readonly string[] = [name], { profiles = {}, isWrongIn = [] }: Told = {}): Vendor {
  return { name, words, profiles, isWrongIn }
}

/** Every word of the sandbox that makes sense to a model, alone and with others, by routes that know of it and that do not. */
export const VENDORS: readonly [Vendor, ...Vendor[]] = [
  vendor('honest', []),
  vendor('ignores-max-tokens', undefined, {
    profiles: { openai: { outputLimit: 'max_completion_tokens' } },
    // That protocol has no other limit.
    isWrongIn: ['anthropic'],
  }),
  vendor('ignores-max-completion-tokens', undefined, { profiles: { openai: { outputLimit: 'max_tokens' } } }),
  vendor('folds-and-ignores-max-tokens', ['folds-case', 'ignores-max-tokens'], {
    profiles: { openai: { outputLimit: 'max_completion_tokens' } },
    isWrongIn: ['anthropic'],
  }),
  vendor('ignores-max-tokens-unknown', ['ignores-max-tokens'], { isWrongIn: ['openai', 'anthropic'] }),
  vendor('ignores-max-completion-tokens-unknown', ['ignores-max-completion-tokens'], { isWrongIn: ['openai'] }),
  vendor('ignores-max-output-tokens', undefined, { isWrongIn: ['gemini', 'openai_responses'] }),
  vendor('ignores-limits', undefined, { isWrongIn: ALL_PROTOCOLS }),
  vendor('folds-case'),
  vendor('folds-and-knows-extras', ['folds-case', 'knows-extras']),
  vendor('knows-extras'),
  vendor('knows-extras-passed', ['knows-extras'], {
    profiles: forAll({ unknown: 'pass' }),
  }),
  vendor('reasoning-apart', undefined, {
    profiles: { openai: { reasoning: 'apart' }, openai_responses: { reasoning: 'apart' } },
  }),
  vendor('reasoning-apart-unknown', ['reasoning-apart']),
  vendor('over-reports'),
  vendor('under-reports'),
  vendor('large-replies', ['large-replies=100000']),
  vendor('slow-first-byte', ['slow-first-byte=20']),
  vendor('unreadable'),
  vendor('stops-on-abort', undefined, { profiles: forAll({ abort: 'stops' }) }),
  vendor('stops-on-abort-unknown', ['stops-on-abort']),
  vendor('keeps-running-on-abort'),
  vendor('keeps-running-on-abort-unknown', ['keeps-running-on-abort'], { profiles: forAll({ abort: 'stops' }) }),
]

/**
 * Its streams hold more as they grow. One that meets the ceiling waits with what has come, and what its vendor makes in that time is in no
 * hold: so its routes are none that say how much a hold buys.
 */
export const GROWING: Vendor = vendor('grows', ['stops-on-abort'], {
  profiles: forAll({ abort: 'stops', output: 'seen', tokenBytes: 3 }),
  isWrongIn: ALL_PROTOCOLS,
})

function forAll(profile: Partial<RouteProfile>): Vendor['profiles'] {
  return Object.fromEntries(ALL_PROTOCOLS.map((protocol) => [protocol, profile]))
}

/** An operation that has one upstream at a time is asked at each of these in turn. */
export const DATA_WORDS: readonly (readonly string[])[] = [
  ['folds-case', 'loose-queries'],
  ['over-reports', 'unreadable'],
  ['under-reports', 'merges-brackets'],
  ['folds-case', 'dots-are-underscores', 'large-replies=50000'],
  ['splits-at-semicolons', 'slow-first-byte=10'],
]
export const DATA_SLOTS = ['rerank', 'traffic', 'comments', 'reseller'] as const

/** Low where a caller says nothing, so that it matters whether an upstream heeds it. */
export const OUTPUT_CAP = 300
/** No answer of a vendor is longer, whatever it ignores, but those that never end. */
export const OUTPUT_MOST = 4_000
export const VENDOR_LIMITS = { ...SANDBOX_LIMITS, outputCap: OUTPUT_CAP, outputMost: OUTPUT_MOST }
const SHORT = { contextWindow: 8_192, outputCap: 1, outputMost: 1, tokenizer: 'bytes_3' } as const
const PICTURES = { contextWindow: 32_000, outputCap: 6_240, outputMost: 6_240, tokenizer: 'bytes_3' } as const
const VIDEOS = { ...SHORT, outputMost: VIDEO_SECONDS_MOST } as const

/** The models of a vendor: `<name>/<kind>`. */
const KINDS = [
  ['embedding', SHORT, 'openai', 'openai_embeddings', EMBEDDING_PRICE],
  ['vector', SHORT, 'gemini', 'gemini_embeddings', EMBEDDING_PRICE],
  ['picture', PICTURES, 'openai', 'openai_images', { images: IMAGE_PRICES }],
  ['picture-by-token', PICTURES, 'openai', 'openai_images', IMAGE_TOKENS_PRICE],
  ['video', VIDEOS, 'video', 'video', { videos: VIDEO_PRICES }],
] as const

type World = Pick<Installation, 'pool' | 'masterKey'> & {
  readonly sandbox: Pick<Installation['sandbox'], 'url' | 'deviant'>
}

/** Puts the models of a vendor on sale, at the prices of the vendor itself. */
export async function saveVendor(world: World, { name, words, profiles }: Vendor): Promise<void> {
  const { pool } = world
  for (const upstream of [...UPSTREAMS, 'video'] as const)
    await addUpstream(world, `${name}.${upstream}`, upstream, words)
  const id = `${name}/chat`
  await saveModel({ pool }, { id, ...VENDOR_LIMITS })
  await setModelPrice({ pool }, { model: id, ...SANDBOX_PRICE })
  for (const protocol of ALL_PROTOCOLS)
    await saveRoute(
      { pool, ids },
      { model: id, slot: `${name}.${upstreamOf(protocol)}`, protocol, profile: profiles[protocol] },
    )
  for (const [kind, limits, upstream, protocol, price] of KINDS) {
    const model = `${name}/${kind}`
    await saveModel({ pool }, { id: model, ...limits })
    await setModelPrice({ pool }, { model, ...price })
    await saveRoute({ pool, ids }, { model, slot: `${name}.${upstream}`, protocol })
  }
}

async function addUpstream(
  { pool, masterKey, sandbox }: World,
  slot: string,
  upstream: UpstreamName,
  words: readonly string[],
): Promise<void> {
  const baseUrl = words.length === 0 ? `${sandbox.url}/${upstream}` : sandbox.deviant(upstream, ...words)
  const seal = createSeal({ current: masterKey })
  const credential = new Secret('sandbox-key')
  await saveUpstream({ pool, ids, seal }, { slot, mode: 'test', kind: 'native', baseUrl, credential })
}

/** Has the data operations and rerankings ask vendors of these words from now on. */
export async function bindData(world: World, words: readonly string[]): Promise<void> {
  for (const slot of DATA_SLOTS) {
    for (const { id } of await listUpstreams(world, slot)) await removeUpstream(world, id)
    await addUpstream(world, slot, slot, words)
  }
}

/** Whose model it is; undefined where it is none of theirs. */
export function vendorOf(model: string): Vendor | undefined {
  return [...VENDORS, GROWING].find(({ name }) => model.startsWith(`${name}/`))
}
