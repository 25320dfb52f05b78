import type pg from 'pg'
import { z } from 'zod'
import type { Ids } from '../kernel/ids.ts'
import type { By } from '../storage/audit.ts'
import type { SendMail } from '../storage/mail.ts'

/** What an action works with, whoever offers it. */
export type OperatorParts = {
  readonly pool: pg.Pool
  readonly ids: Ids
  readonly by: By
  /** Null where nobody can be written to: letters need a master key and a website. */
  readonly letters: { readonly sendMail: SendMail; readonly siteUrl: string } | null
}

/** A result that a program reads: amounts are texts of USD, times are ISO 8601. */
export type Told = { readonly [name: string]: Json }
type Json = string | number | boolean | null | readonly Json[] | Told

/**
 * Something that an operator does. It is said once: the command line, its help and its document follow from it.
 */
export type Action<Input extends z.ZodObject = z.ZodObject, Result extends Told = Told> = {
  /** As it is written on the command line: `charges refund`. */
  readonly name: string
  readonly summary: string
  /** One that writes leaves a row in the audit log, in the transaction of the change. */
  readonly effect: 'reads' | 'writes'
  /** Members of the input that are given by their place; the others are options. Each has a description. */
  readonly words: readonly (keyof Input['shape'] & string)[]
  readonly input: Input
  readonly run: (parts: OperatorParts, input: z.output<Input>) => Promise<Result>
  /** The result for people. */
  readonly lines: (result: Result) => readonly string[]
}

/** Checks that the parts of an action fit each other, and forgets their types: whoever offers it reads the input by its schema. */
export function action<Input extends z.ZodObject, Result extends Told>(one: Action<Input, Result>): Action {
  return one as unknown as Action
}

/** A member of an input, read from what somebody writes; `shown` is what stands for it in help. */
export function field<T>(shown: string, description: string, read: (text: string) => T) {
  return z
    .string()
    .transform((text, context): T => {
      try {
        return read(text)
      } catch (error) {
        context.addIssue(error instanceof Error ? error.message : String(error))
        return z.NEVER
      }
    })
    .meta({ shown, description })
}

/** A member that is there or not. */
export function flag(description: string) {
  return z.boolean().default(false).meta({ description })
}
