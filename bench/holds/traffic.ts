import type pg from 'pg'
import { Random } from '../../sandbox/src/random.ts'
import { createKey } from '../../server/src/identity/keys.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import type { By } from '../../server/src/storage/audit.ts'
import { createWorkspace, grantTier } from '../../server/src/workspaces/workspaces.ts'

/** Traffic like that of coding agents: all of it asks for far more output than it uses. */
export const ASKED_TOKENS = 32_000
const ANSWERS = { from: 100, to: 2_000 }
const WORDS = 'Read the file and say what is wrong with it. '.repeat(20)
/** A piece of text so often, as a model writes that is quick. */
const PACE = 'sandbox:delta-bytes=60 sandbox:delta-ms=5'

export const ids = createIds({ clock: systemClock })
const BENCH: By = { actor: 'service bench', origin: {} }

export type Holding = 'full' | 'growing'

export type Caller = { readonly secret: string; readonly accountId: string }

const NO_LIMITS = { requestsPerMinute: 1_000_000, tokensPerMinute: 1_000_000_000, concurrency: 1_000 }

/** Somebody with promotional money, of the free tier or without a limit that is in the way. */
export async function makeCaller(pool: pg.Pool, money: string, tier: 'free' | 'unlimited'): Promise<Caller> {
  const workspace = await createWorkspace({ pool, ids }, BENCH, { name: 'bench' })
  const { id: workspaceId, testAccountId: accountId } = workspace
  if (tier === 'unlimited')
    await grantTier({ pool, ids }, BENCH, workspaceId, { tier: 'enterprise', limits: NO_LIMITS })
  await creditAccount(pool, { entryId: ids.next(), accountId, kind: 'promotion', amount: nanos(usd(money)) })
  const { secret } = await createKey({ pool, ids }, BENCH, { workspaceId, mode: 'test', name: 'bench' })
  return { secret: secret.reveal(), accountId }
}

/** How much output each of many calls has. */
export function answersOf(seed: number, count: number): readonly number[] {
  const random = new Random(seed)
  return Array.from({ length: count }, () => random.between(ANSWERS.from, ANSWERS.to))
}

export type Heard = 'whole' | 'cut' | 'refused'

type Question = { readonly url: string; readonly model: string; readonly answer: number; readonly holding: Holding }

/** One call, and what became of it. What is refused is not tried again. */
export async function ask({ secret }: Caller, { url, model, answer, holding }: Question, pace = PACE): Promise<Heard> {
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${secret}`,
      'content-type': 'application/json',
      'x-farebox-hold': holding,
    },
    body: JSON.stringify({
      model,
      stream: true,
      max_tokens: ASKED_TOKENS,
      messages: [{ role: 'user', content: `${WORDS} sandbox:output-tokens=${answer} ${pace}` }],
    }),
  })
  const text = await reply.text()
  if (reply.status === 402 || reply.status === 429) return 'refused'
  if (reply.status !== 200) throw new Error(`${reply.status}: ${text.slice(0, 300)}`)
  return text.includes('"ended_by"') ? 'cut' : 'whole'
}

/** All of them in their order, so many at once. */
export async function sendAll<T>(items: readonly T[], atOnce: number, send: (item: T) => Promise<Heard>) {
  const heard = { whole: 0, cut: 0, refused: 0 }
  const rest = items.values()
  const worker = async () => {
    for (const item of rest) heard[await send(item)] += 1
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return heard
}
