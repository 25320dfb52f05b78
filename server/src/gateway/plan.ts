import type { NewTask } from '../calls/call.ts'
import type { Id } from '../kernel/ids.ts'
import type { ReplyRoom } from '../kernel/memory-budget.ts'
import type { Measured, Priced } from '../pricing/priced.ts'
import type { NamedEndUser } from '../protocols/end-user.ts'
import type { StreamReader } from '../protocols/protocol.ts'
import type { Answer, Incoming } from '../upstreams/adapters/adapter.ts'
import type { UpstreamKind } from '../upstreams/bindings.ts'
import type { OpenReply } from '../upstreams/transport.ts'
import type { MoneyAdvice } from '../wording/money-advice.ts'
import type { FittingOutput, TokenAdvice } from '../wording/token-advice.ts'
import type { Growth, GrowthPlan } from './growth.ts'
import type { OutputGuard } from './output-guard.ts'

/** How a call would run: made from what is asked for, before anything is held. What differs between endpoints is in here. */
export type Plan = Priced & {
  /** What is asked for, by the name under which operators know it: a model, or an operation that is none of a model's. */
  readonly sold: string
  /** The model by the name that the caller asked for, where it named one. */
  readonly model?: string | undefined
  /** For whom the body says that it is asked for. */
  readonly endUser?: NamedEndUser | undefined
  /** Whether it costs nobody anything, so that no usage report counts it. */
  readonly isFree?: boolean
  /** What is reserved of the limit of tokens a minute; 0 where none are counted. */
  readonly tokens: number
  /** What to do where that is more than the limit; nothing to say where it is what the request is made of. */
  readonly tokenAdvice?: TokenAdvice
  /** With which output limit it would reserve less; nothing to say where it has none. */
  readonly fittingOutput?: FittingOutput
  /** What to do where its hold is more than there is; nothing to say where its price does not hang on an output limit. */
  readonly moneyAdvice?: MoneyAdvice | undefined
  /** How its hold can grow with its answer; left out where all of it has to be held from the start. */
  readonly growth?: GrowthPlan | undefined
  /** How much of the process's memory the reply may take, reserved before the call begins. */
  readonly replyBytes: number
  /** What it can come to need by what is asked for: reserved in place of that where the request is large already. */
  readonly replyMostBytes: number
  /** What the caller is told of the plan itself. */
  readonly headers: Readonly<Record<string, string>>
  /** Asks one upstream after another, as long as nothing can have come of it. Never throws. */
  readonly send: (id: Id, room: ReplyRoom, growth?: Growth) => Promise<Sent>
  /** Reads from an answer how much was used; undefined where nobody can know. */
  readonly measure: (reply: Incoming) => Promise<Measured | undefined> | Measured | undefined
  /** What the caller is given of it, with no more tokens than are billed; undefined where it is not what was promised. */
  readonly answer: (reply: Incoming, measured?: Measured) => Answer | undefined
  /** The same once it is known what it cost, where the protocol has a place for that. */
  readonly withCost?: ((reply: Incoming, answer: Answer, cost: string) => Answer) | undefined
  /** Whether an answer is about our account with the upstream, and not about what the caller asked for. */
  readonly isAboutUs: (reply: Incoming) => boolean
  /** Of a call that takes minutes, and goes on when it has been answered. */
  readonly task?: TaskPlan
}

export type TaskPlan = {
  /** What is written with the call. */
  readonly begun: (id: Id) => NewTask
  /** Gives the call to whoever asks for its end. What the caller is told of it; undefined where the call ends now. */
  readonly handOver: (id: Id, sent: Exclude<Sent, { outcome: 'streaming' }>) => Promise<Answer | undefined>
}

/** A request to an upstream, or one that was not made. Times are of the process's own clock, in milliseconds. */
export type Attempt = {
  readonly slot: string
  /** By name, as operators know it. */
  readonly upstream: string
  readonly upstreamId: Id
  readonly outcome: 'answered' | 'not_sent' | 'unknown'
  readonly status: number | null
  readonly reason: string | null
  readonly beganMs: number
  readonly endedMs: number
}

/** Why a call went to the route that it went to: its conversation's own, a later one because that failed or had too much of it, or there was no other. */
export const ROUTE_REASONS = ['sticky', 'failover', 'spill', 'only'] as const
export type RouteReason = (typeof ROUTE_REASONS)[number]

/** By which of a model's routes a call went, and why. */
export type Routing = { readonly slot: string; readonly upstreamModel: string; readonly reason: RouteReason }

type SentBy = {
  readonly attempts: readonly Attempt[]
  readonly kind: UpstreamKind
  /** Left out of what is asked for by no routes of a model's. */
  readonly routing?: Routing
}

/** What came of asking. Every attempt is told, the last one of which decided. */
export type Sent = SentBy &
  (
    | { readonly outcome: 'answered'; readonly reply: Incoming }
    | {
        readonly outcome: 'streaming'
        readonly stream: OpenStream
        /** Is told where the upstream breaks the answer off. */
        readonly brokeOff?: () => void
      }
    | {
        readonly outcome: 'not_sent' | 'unknown'
        readonly failure: unknown
        /** What the caller owes for it all the same, where it was given up because the caller had left. */
        readonly owed?: () => Promise<Measured> | Measured
      }
  )

/** An answer that has begun, and how it is read as it passes. */
export type OpenStream = {
  readonly reply: OpenReply
  readonly reader: StreamReader
  /**
   * How much was used, by what the reader has seen. Undefined where nothing was delivered and nothing reported, unless that
   * is owed all the same: it came to its end, or was given up because the caller had left.
   */
  readonly measure: (deliveredText: string, isOwed: boolean) => Promise<Measured | undefined> | Measured | undefined
  /** What it has cost the upstream at the least, where nobody is charged for it. */
  readonly lost: () => Promise<Measured> | Measured
  readonly errorFrame: (body: string) => string
  /** What the caller is told of whom was asked. */
  readonly headers: Readonly<Record<string, string>>
  /** Tells when it has more output than was asked for. */
  readonly outputGuard: OutputGuard
  /** Whether the upstream stops counting when it is given up, so that nobody has to hear it out. */
  readonly stopsOnAbort: boolean
}
