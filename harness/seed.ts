import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { ANSWERS } from '../sandbox/src/answers.ts'
import { systemClock } from '../server/src/kernel/clock.ts'
import { createIds } from '../server/src/kernel/ids.ts'
import { usd } from '../server/src/kernel/money.ts'
import { createSeal } from '../server/src/kernel/seal.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { creditAccount } from '../server/src/ledger/credit.ts'
import { type NewModelPrice, saveModel, saveRoute, setModelPrice } from '../server/src/pricing/configure-models.ts'
import type { By } from '../server/src/storage/audit.ts'
import { saveUpstream } from '../server/src/upstreams/configure.ts'
import { createWorkspace, grantTier } from '../server/src/workspaces/workspaces.ts'

/** A master key for an installation that lives as long as a test or an afternoon. */
export function makeMasterKey(): Secret {
  return new Secret(randomBytes(32).toString('base64'))
}

const ids = createIds({ clock: systemClock })
const ACTOR: By = { actor: 'operator seed', origin: {} }

type Slot = { readonly prefix: string; readonly kind: 'native' | 'managed' }

const OWN_SLOTS: Readonly<Record<string, Slot>> = {
  rerank: { prefix: '/rerank', kind: 'native' },
  reseller: { prefix: '/reseller', kind: 'managed' },
  comments: { prefix: '/comments', kind: 'native' },
  quotes: { prefix: '/quotes', kind: 'native' },
  traffic: { prefix: '/traffic', kind: 'native' },
  deep_research: { prefix: '/deep_research', kind: 'native' },
  openai: { prefix: '/openai', kind: 'native' },
  anthropic: { prefix: '/anthropic', kind: 'native' },
  gemini: { prefix: '/gemini', kind: 'native' },
  video: { prefix: '/video', kind: 'native' },
  social_a_account: { prefix: '/platform/2', kind: 'native' },
}

/** The sandbox's upstreams by the slots that operations ask. One that is made of answers has the name of its slot. */
const SLOTS: ReadonlyMap<string, Slot> = new Map([
  ...ANSWERS.map(({ upstream }) => [upstream, { prefix: `/${upstream}`, kind: 'native' }] as const),
  ...Object.entries(OWN_SLOTS),
])

/** Below which path the sandbox has what a slot is bound to; undefined where it has nothing for it. */
export function sandboxPrefixOf(slot: string): string | undefined {
  return SLOTS.get(slot)?.prefix
}

/** The sandbox's upstream that a slot is bound to; undefined where it has none for it. */
export function upstreamOf(slot: string): string | undefined {
  return sandboxPrefixOf(slot)?.split('/')[1]
}

type Parts = { readonly pool: pg.Pool; readonly masterKey: Secret; readonly sandboxUrl: string }

/** The sandbox's models, each of which answers in a way of its own. All are asked in all protocols, at the same price. */
export const SANDBOX_MODELS = [
  'sandbox/echo',
  'sandbox/text',
  'sandbox/long',
  'sandbox/slow',
  'sandbox/cut-mid-stream',
  'sandbox/no-usage',
  'sandbox/zero-usage',
  'sandbox/429',
  'sandbox/500',
  'sandbox/overloaded',
  'sandbox/error-mid-stream',
  'sandbox/no-end',
  'sandbox/garbage-frame',
  'sandbox/hang',
  'sandbox/tools',
  'sandbox/checksum',
] as const

/** Those that fail. */
const FOR_TESTS: ReadonlySet<string> = new Set(
  [
    ...['cut-mid-stream', 'no-usage', 'zero-usage', '429', '500', 'overloaded', 'error-mid-stream', 'no-end'],
    ...['garbage-frame', 'hang', 'checksum'],
  ].map((name) => `sandbox/${name}`),
)

/** Sold by nobody: it has no price. */
export const UNPRICED_MODEL = 'sandbox/unpriced'
export const OPENAI_ONLY_MODEL = 'sandbox/openai-only'
/** What the two models above are upstream. */
const ORDINARY = 'sandbox/text'

/** USD for a million tokens. */
export const SANDBOX_PRICE = { input: '0.50', output: '2.00', cacheRead: '0.05', cacheWrite: '0.625' } as const
export const SANDBOX_LIMITS = {
  contextWindow: 200_000,
  outputCap: 4_096,
  outputMost: 64_000,
  partTokens: { image: 256 },
  tokenizer: 'bytes_3',
} as const

/** Those of conversations, and the slots whose upstreams speak them: one vendor has two. */
export const CONVERSATION_SLOTS = {
  openai: 'openai',
  openai_responses: 'openai',
  anthropic: 'anthropic',
  gemini: 'gemini',
} as const
export type ConversationProtocol = keyof typeof CONVERSATION_SLOTS
export const CONVERSATION_PROTOCOLS = ['openai', 'openai_responses', 'anthropic', 'gemini'] as const

type SeededModel = {
  readonly id: string
  readonly upstreamModel?: string
  readonly protocols?: readonly ConversationProtocol[]
  readonly price?: Omit<NewModelPrice, 'model'> | null
}

/** Makes a model as the sandbox has it. */
export async function seedModel(pool: pg.Pool, model: SeededModel): Promise<void> {
  const { id, upstreamModel = id, protocols = CONVERSATION_PROTOCOLS, price = SANDBOX_PRICE } = model
  await saveModel({ pool }, { id, ...SANDBOX_LIMITS, ...(FOR_TESTS.has(id) && { ownedBy: 'tests' }) })
  for (const protocol of protocols)
    await saveRoute({ pool, ids }, { model: id, slot: CONVERSATION_SLOTS[protocol], protocol, upstreamModel })
  if (price !== null) await setModelPrice({ pool }, { model: id, ...price })
}

/** Of the models that make no conversation. All are upstream at the slot of the chat's protocol; this one speaks two. */
export const EMBEDDING_MODEL = 'sandbox/embedding'
export const EMBEDDING_PRICE = { input: '0.10', output: '0' } as const
/** By the piece. */
export const IMAGE_MODEL = 'sandbox/image'
export const IMAGE_PRICES = {
  'auto/auto': '0.042',
  '1024x1024/low': '0.011',
  '1024x1024/medium': '0.042',
  '1024x1024/high': '0.167',
  '1536x1024/low': '0.016',
  '1536x1024/high': '0.25',
} as const
/** By the token. */
export const IMAGE_TOKENS_MODEL = 'sandbox/image-tokens'
export const IMAGE_TOKENS_PRICE = { input: '5', output: '40', cacheRead: '1.25' } as const
const VECTORS = { contextWindow: 8_192, outputCap: 1, outputMost: 1, tokenizer: 'bytes_3' } as const
const PICTURES = { contextWindow: 32_000, outputCap: 6_240, outputMost: 6_240, tokenizer: 'bytes_3' } as const

/** By the second. */
export const VIDEO_MODEL = 'sandbox/video'
export const VIDEO_PRICES = { '480P': '0.05', '720P': '0.10', '1080P': '0.15' } as const
/** Of a video, in seconds: what is made of no more than that. */
export const VIDEO_SECONDS_MOST = 15
const VIDEOS = { contextWindow: 1_000, outputCap: 5, outputMost: VIDEO_SECONDS_MOST, tokenizer: 'bytes_3' } as const

/** Makes the models that give vectors, pictures and videos. */
async function seedOtherModels(pool: pg.Pool): Promise<void> {
  for (const [id, limits, slot, protocol, price] of [
    [EMBEDDING_MODEL, VECTORS, 'openai', 'openai_embeddings', EMBEDDING_PRICE],
    [IMAGE_MODEL, PICTURES, 'openai', 'openai_images', { images: IMAGE_PRICES }],
    [IMAGE_TOKENS_MODEL, PICTURES, 'openai', 'openai_images', IMAGE_TOKENS_PRICE],
    [VIDEO_MODEL, VIDEOS, 'video', 'video', { videos: VIDEO_PRICES, providerVideos: { '720P': '0.04' } }],
  ] as const) {
    await saveModel({ pool }, { id, ...limits })
    await saveRoute({ pool, ids }, { model: id, slot, protocol })
    await setModelPrice({ pool }, { model: id, ...price })
  }
  await saveRoute({ pool, ids }, { model: EMBEDDING_MODEL, slot: 'gemini', protocol: 'gemini_embeddings' })
}

/** Makes all models of the sandbox. They are found where the slots of their protocols have upstreams. */
export async function seedModels(pool: pg.Pool): Promise<void> {
  // One after the other: at once, each would wait for a connection behind all the others.
  for (const id of SANDBOX_MODELS) await seedModel(pool, { id })
  await seedModel(pool, { id: UNPRICED_MODEL, upstreamModel: ORDINARY, price: null })
  await seedModel(pool, { id: OPENAI_ONLY_MODEL, upstreamModel: ORDINARY, protocols: ['openai'] })
  await seedOtherModels(pool)
}

/** How the sandbox's platform knows us, and where it asks its users. */
function clientOf(sandboxUrl: string) {
  return { id: 'sandbox-client', authorizeUrl: `${sandboxUrl}/platform/i/oauth2/authorize` }
}

/** Points every slot of test mode at a sandbox, and makes the models that it has. */
export async function bindSandbox({ pool, masterKey, sandboxUrl }: Parts): Promise<void> {
  const seal = createSeal({ current: masterKey })
  for (const [slot, { prefix, kind }] of SLOTS)
    await saveUpstream(
      { pool, ids, seal },
      {
        ...{ slot, mode: 'test', baseUrl: sandboxUrl + prefix, kind },
        ...(slot === 'social_a_account'
          ? { credential: new Secret('sandbox-client-secret'), client: clientOf(sandboxUrl) }
          : { credential: new Secret('sandbox-key') }),
      },
    )
  await seedModels(pool)
}

/** A workspace with test money, and limits that nobody meets by hand. */
export async function seedWorkspace(pool: pg.Pool): Promise<string> {
  const { id: workspaceId, testAccountId } = await createWorkspace({ pool, ids }, ACTOR, { name: 'Development' })
  await grantTier({ pool, ids }, ACTOR, workspaceId, { tier: 'growth' })
  await creditAccount(pool, { entryId: ids.next(), accountId: testAccountId, kind: 'payment', amount: usd('100') })
  return workspaceId
}
