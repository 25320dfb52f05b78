import type { Deviance } from '../../deviants.ts'
import type { JsonObject } from '../../json.ts'
import type { Asked, Knobs } from '../../upstream.ts'
import type { Choice } from './answer.ts'
import type { CacheUse } from './prefixes.ts'
import type { Question } from './question.ts'
import type { Frame } from './stream.ts'

/** What a vendor has counted before any directive says otherwise. */
export type Counted = {
  readonly inputTokens: number
  /** Of the input. */
  readonly audioTokens: number
  readonly cache: CacheUse
  readonly outputTokens: number
  /** Of the output. */
  readonly reasoningTokens: number
  readonly webSearches: number
  /** The service tier that was asked for, where it is one that costs otherwise. */
  readonly tier: string | undefined
}

/** An answer that a protocol has only to write down. */
export type Answer = {
  readonly question: Question
  readonly choices: readonly Choice[]
  /** Undefined where the vendor does not tell. */
  readonly usage: JsonObject | undefined
  /** How much of what was said so far is told, for a vendor that does so as it goes. */
  readonly toldTimes: number
  readonly deltaBytes: number
  /** Calls of tools that the vendor ran. */
  readonly calls: Readonly<Record<string, number>>
  readonly tier: string | undefined
  readonly asked: Asked
}

type Report = { readonly usage: JsonObject; readonly inputTokens: number }

/** How a protocol writes things down. */
export type Dialect = {
  readonly overloadedStatus: number
  /** Whether what was thought is part of the answer, or only counted. */
  readonly showsReasoning: boolean
  readonly errorBody: (status: number, message: string, asked: Asked) => JsonObject
  /** The figures as the vendor reports them, and all input tokens that this comes to. */
  readonly report: (counted: Counted, knobs: Knobs, deviance: Deviance) => Report
  readonly body: (answer: Answer) => JsonObject
  readonly frames: (answer: Answer) => Iterable<Frame>
  readonly errorFrame: (asked: Asked) => string
  readonly garbageFrame: string
}
