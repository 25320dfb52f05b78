import { z } from 'zod'
import { invalidRequest } from '../kernel/fault.ts'
import { readAddress } from '../people/mailbox.ts'
import type { Form } from './form-data.ts'
import { FORM_TOKEN } from './form-token.ts'
import { RETURN_TO } from './return-to.ts'

type Fields = Readonly<Record<string, z.ZodType<string, string>>>
type Good<F extends Fields> = z.output<z.ZodObject<F, z.core.$strict>>

/** What was filled in, as it may be used; or what is wrong with it, by field. */
export type Read<F extends Fields> =
  | { readonly isGood: true; readonly fields: Good<F> }
  | { readonly isGood: false; readonly problems: Readonly<Record<string, string>> }

/** Reads a form that has just these fields, beside those that every form of ours has. A box that is not ticked is not sent. */
export function readForm<F extends Fields>(form: Form, fields: F): Read<F> {
  const given = [...form].filter(([name]) => name !== FORM_TOKEN && name !== RETURN_TO)
  const blank = Object.keys(fields).map((name) => [name, ''] as const)
  const { success, data, error } = z.strictObject(fields).safeParse(Object.fromEntries([...blank, ...given]))
  if (success) return { isGood: true, fields: data }
  if (error.issues.some(({ code }) => code === 'unrecognized_keys'))
    throw invalidRequest('The form has an unknown field. Open the page again and send the form once more.')
  // The first that is wrong with a field is enough to be told at once; fields are told in the order of the form.
  const problems = Object.keys(fields).flatMap((name) => {
    const issue = error.issues.find(({ path }) => path[0] === name)
    return issue === undefined ? [] : [[name, issue.message] as const]
  })
  return { isGood: false, problems: Object.fromEntries(problems) }
}

const NAME_LIMIT = 100
/** Controls, and what turns around the text that follows it. */
const NOT_SHOWN = /[\p{Cc}\u2028\u2029\u202A-\u202E\u2066-\u2069]/u

export const personName = z
  .string()
  .trim()
  .min(1, 'Enter your name.')
  .refine((name) => [...name].length <= NAME_LIMIT, {
    error: `It is longer than ${NAME_LIMIT} characters.`,
    abort: true,
  })
  .refine((name) => !NOT_SHOWN.test(name), 'It has characters that can’t be shown. Remove them.')

const WHOLE = 'Enter the whole address, such as mira@harbour.example.'

/** An address as it is kept: in lower case. */
export const emailAddress = z
  .string()
  .trim()
  .min(1, 'Enter your e-mail address.')
  .transform((typed, context) => {
    const address = readAddress(typed)
    if (address !== null) return address
    context.addIssue({ code: 'custom', message: whatIsWrong(typed) })
    return z.NEVER
  })

function whatIsWrong(typed: string): string {
  const at = typed.lastIndexOf('@')
  if (at === -1) return `There is no @ in it. ${WHOLE}`
  if (at === 0) return `There is nothing before the @. ${WHOLE}`
  if (!typed.slice(at + 1).includes('.')) return `There is no domain after the @. ${WHOLE}`
  return `Mail can’t be sent to this address. ${WHOLE}`
}

const SHORTEST = 12
const LONGEST = 200

/** One that is chosen. Characters are counted as they are kept. */
export const newPassword = z.string().superRefine((password, context) => {
  const characters = [...password.normalize('NFKC')].length
  const say = (message: string) => context.addIssue({ code: 'custom', message })
  if (characters === 0) say('Choose a password.')
  else if (characters < SHORTEST)
    say(`It has ${characters} ${characters === 1 ? 'character' : 'characters'} and needs at least ${SHORTEST}.`)
  else if (characters > LONGEST) say(`It has ${characters} characters; the limit is ${LONGEST}.`)
})

/** One that is compared: whatever is typed is right or wrong. */
export const password = z.string().min(1, 'Enter your password.')

/** What an authenticator shows. */
export const factorCode = z
  .string()
  .transform((typed) => typed.replaceAll(/\s/g, ''))
  .refine((code) => /^\d{6}$/.test(code), 'The code has six digits, such as 418 207.')

const RECOVERY_LIMIT = 40

export const recoveryCode = z
  .string()
  .trim()
  .min(1, 'Enter one of your recovery codes.')
  .max(RECOVERY_LIMIT, 'It is longer than a recovery code.')

/** A hidden field, or the value of a button: whatever it has, we wrote it. */
export const anything = z.string()
