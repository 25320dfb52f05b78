import { SANDBOX_LIMITS } from '../../harness/seed.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { SPOKEN } from '../../server/src/protocols/protocols.ts'
import { VENDOR_LIMITS, vendorOf } from '../acceptance/deviants/vendors.ts'
import { profileOf } from './deviants.ts'

/** Tokens in classes that do not overlap, as they are priced. */
export type Tokens = {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

/** A question to a model. */
export type Question = {
  readonly model: string
  readonly words: string
  readonly isStream: boolean
  readonly outputLimit?: number
  /** Whether the caller asks for the usage at the end of a stream, where the protocol leaves that to it. */
  readonly wantsUsage: boolean
  readonly pictures?: Pictures
}

/** How many pictures are asked for, and of which kind: what is left out is for the upstream to choose. */
export type Pictures = { readonly n: number; readonly size?: string; readonly quality?: string }

/** What a caller reads in a frame of a stream. */
export type Heard = {
  readonly text?: string
  readonly isEnd?: boolean
  readonly costNanos?: bigint
  /** An error, and whose request it says to be about. */
  readonly error?: { readonly code: string; readonly about: string }
}

/** How models are asked in one protocol, and what its upstream reports. One more is one more row. */
export type Speech = {
  readonly operation: string
  /** What a stream is sold as, where that is another operation. */
  readonly streamOperation?: string
  readonly path: (question: Question) => string
  readonly body: (question: Question) => Members
  /** The body as it reaches the upstream, by which its journal knows it. */
  readonly upstreamBody: (body: string, question: Question) => Buffer
  /** What the upstream has reported of a call, where it came to report all of it. */
  readonly reported: (entry: JournalEntry) => Tokens | undefined
  /** The tokens of the input by their classes, as far as they were reported. */
  readonly reportedInput: (entry: JournalEntry) => Omit<Tokens, 'output'> | undefined
  /** Whether an answer costs the hold that does not say what it used: nobody can count it. */
  readonly isUncountable?: boolean
}

/** One whose answers can come as streams, and what callers hear of those. */
export type StreamedSpeech = Speech & {
  readonly hear: (event: string, data: string) => Heard
  /** Whether every frame reports what has been used so far, so that nothing of a stream that breaks off is counted. */
  readonly reportsAsItGoes?: boolean
}

export type Members = Readonly<Record<string, unknown>>

export function passedOn(name: keyof typeof SPOKEN, body: string, model: string): Buffer {
  const request = { body: JSON.parse(body), rawBody: Buffer.from(body), headers: {} }
  const limits = vendorOf(model) === undefined ? SANDBOX_LIMITS : VENDOR_LIMITS
  return SPOKEN[name].protocol.ask(request, limits).bodyFor(model, profileOf(model, SPOKEN[name].by))
}

export function memberOf(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce(
    (inner, name) =>
      typeof inner === 'object' && inner !== null ? Object.getOwnPropertyDescriptor(inner, name)?.value : undefined,
    value,
  )
}

export function countOf(value: unknown, name: string): number {
  return Number(memberOf(value, name) ?? 0)
}
