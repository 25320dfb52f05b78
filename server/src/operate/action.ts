import type pg from 'pg'
import { z } from 'zod'
import type { LossCeilings } from '../calls/loss-sums.ts'
import type { Clock } from '../kernel/clock.ts'
import { FAULTS, Fault } from '../kernel/fault.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Seal } from '../kernel/seal.ts'
import type { Secret } from '../kernel/secret.ts'
import type { By } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'

/** What actions use of the settings. */
export type OperatorSettings = {
  readonly testCredit: Nanos
  readonly lossCeilings: LossCeilings
  readonly rerankModels: readonly string[]
  readonly siteUrl: string | undefined
  /** Those that quotes may be sealed with; none without a master key. */
  readonly quoteKeys: readonly Secret[]
}

export type Letters = { readonly sendMail: SendMail; readonly siteUrl: string }

/** What an action works with, whoever offers it. */
export type OperatorParts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  readonly clock: Clock
  readonly by: By
  readonly settings: OperatorSettings
  /** Null without a master key; throws where it does not open what is stored. */
  readonly seal: () => Promise<Seal | null>
  /** Null where nobody can be written to: letters need a master key and a website. */
  readonly letters: () => Promise<Letters | null>
  /** Says something to the operator before the action has ended. */
  readonly say: (line: string) => void
}

/** Something that an operator does. It is said once: the command line, its help and its document follow from it. */
export type Action<Input extends z.ZodObject = z.ZodObject, Result extends object = object> = {
  /** As it is written on the command line: `charges refund`. */
  readonly name: string
  readonly summary: string
  /** One that writes leaves a row in the audit log, in the transaction of the change. */
  readonly effect: 'reads' | 'writes'
  /** Members of the input that are given by their place; the others are options. Each has a description. */
  readonly positional: readonly (keyof Input['shape'] & string)[]
  readonly input: Input
  /** A list is printed for programs as one JSON object per line: `resultAsJson`. */
  readonly run: (parts: OperatorParts, input: z.output<Input>) => Promise<Result>
  /** The result for people. */
  readonly lines: (result: Result, input: z.output<Input>) => readonly string[]
}

/** Checks that the parts of an action fit each other, and forgets their types: whoever offers it reads the input by its schema. */
export function action<Input extends z.ZodObject, Result extends object>(one: Action<Input, Result>): Action {
  return one as unknown as Action
}

/** What an operator writes for a member of an input; `shown` is what stands for it in help. */
type Source = 'argument' | 'file' | 'standard input'

type FieldOptions = { readonly from?: Source }

/**
 * A member of an input, read from a text. A refusal that begins with "must" follows the name of the member. A member that is no argument is secret: the command
 * line reads it from a file or from standard input, because other users of the machine can read arguments.
 */
export function field<T>(shown: string, description: string, read: (text: string) => T, options: FieldOptions = {}) {
  return z
    .string()
    .transform((text, context) => readOr(context, () => read(text)))
    .meta({ shown, description, from: options.from ?? 'argument' })
}

/** A member that may be given more than once. */
export function listField<T>(shown: string, description: string, read: (texts: readonly string[]) => T) {
  return z
    .array(z.string())
    .transform((texts, context) => readOr(context, () => read(texts)))
    .meta({ shown, description, isList: true })
}

function readOr<T>(context: z.core.$RefinementCtx, read: () => T): T {
  try {
    return read()
  } catch (error) {
    context.addIssue(problemText(error))
    return z.NEVER
  }
}

/** What is wrong, without what a caller of the API is told first, which says nothing to an operator. */
export function problemText(error: unknown): string {
  if (!(error instanceof Error)) return 'failed for an unknown reason'
  const general = error instanceof Fault ? `${FAULTS[error.code].text} ` : ''
  return general !== '' && error.message.startsWith(general) ? error.message.slice(general.length) : error.message
}

/** A member that is there or not. */
export function flag(description: string) {
  return z.boolean().default(false).meta({ description })
}
