import type { Nanos } from '../kernel/money.ts'
import type { Rational } from '../kernel/rational.ts'
import type { ModelAsk, ReplyForm, Reported } from '../protocols/protocol.ts'
import type { ModelPrice } from './models.ts'
import type { Measured, Priced } from './priced.ts'
import type { Counts } from './terms.ts'

/** What a call of a model costs, before and after it. */
export type ModelPricing = Omit<Priced, 'isExact'> & {
  /** What is reserved of the limit of tokens a minute: the input by estimate, and all the output that was asked for. */
  readonly tokens: number
  /** Of an answer that came whole and is JSON; undefined where it gave nothing and does not say that it cost anything. */
  readonly ofReply: (reply: WholeReply) => Promise<Measured | undefined> | Measured | undefined
  /** Of one that is no JSON, by its text; undefined where that is packed. What it used is counted as far as that can be done. */
  readonly ofUnreadable: (text: string | undefined) => Promise<Measured> | Measured
  /** Of a stream, by what was reported and delivered. Undefined where that is nothing and the caller owes nothing for it. */
  readonly ofDelivered: (
    delivered: Delivered & {
      readonly isOwed: boolean
      /** Whether it came to the end that its upstream gave it, so that what was reported is about all of it. */
      readonly isWhole: boolean
    },
  ) => Promise<Measured | undefined> | Measured | undefined
  /** What it has cost the upstream at the least, where the caller got nothing. */
  readonly ofNothing: (reported: Reported) => Promise<Measured> | Measured
  readonly nothing: () => Measured
  /** What would be held for so many tokens of output in all, and for so many more of input; left out where output has no limit. */
  readonly heldFor?: (outputMost: number, moreInput: number) => Nanos
  /** The most of each unit with so many tokens of output in all; left out where output has no limit. */
  readonly mostWith?: (outputMost: number) => Counts
}

type Delivered = { readonly reported: Reported; readonly text: string }
export type WholeReply = Delivered & {
  readonly form: ReplyForm
  /** Of pictures, how many; of what has the form of an answer and no text that we know, what else may be text. */
  readonly json: unknown
  /** Whether it may have pictures or sound, where such were asked for. */
  readonly hasMedia: boolean
  /** The body as it came. */
  readonly raw: () => string
}

export type AskedOfModel = {
  readonly price: ModelPrice
  readonly ask: ModelAsk
  /** How many tokens of output are held for, of all choices together. */
  readonly outputMost: number
  readonly multiplier: Rational
}
