import { createHash } from 'node:crypto'
import { domainToASCII } from 'node:url'
import { z } from 'zod'
import type { Ids } from '../kernel/ids.ts'
import { ROLES } from '../kernel/role.ts'
import type { Seal } from '../kernel/seal.ts'
import { enqueue, type OutboxKind } from './outbox.ts'
import type { Query } from './transaction.ts'

/**
 * What is written to people: which letters there are and what each needs to know. Whoever changes something that a person is told of
 * sends one in the transaction of the change; `mail/` makes the words and delivers it. Sealed, because links in it sign somebody in.
 */
export const MAIL: OutboxKind = { name: 'mail', isSealed: true }

const TEXT_LIMIT = 300
const URL_LIMIT = 2_000

const text = z.string().max(TEXT_LIMIT)
const url = z.url({ protocol: /^https?$/ }).max(URL_LIMIT)
const time = z.iso.datetime()
const to = z.string().min(3).max(TEXT_LIMIT)

export const mail = z.discriminatedUnion('what', [
  /** Behind a sign-up: the link says that the mailbox is theirs. `credit` is an amount of USD, such as 2.00. */
  z.strictObject({ what: z.literal('verify'), to, link: url, until: time, credit: text.nullable() }),
  /** Behind a sign-up with an address that has an account: the page said the same as to anybody. */
  z.strictObject({
    ...{ what: z.literal('registered'), to, signInUrl: url, resetUrl: url },
    ...{ at: time, address: text },
  }),
  z.strictObject({ what: z.literal('reset'), to, link: url, until: time, at: time, address: text }),
  z.strictObject({ what: z.literal('password_changed'), to, at: time, address: text, resetUrl: url }),
  z.strictObject({
    ...{ what: z.literal('factor_changed'), to, isOn: z.boolean() },
    ...{ at: time, address: text, sessionsUrl: url },
  }),
  /** Wrong codes in a row by somebody who knows the password; `isOver` where it has to be another from now on. */
  z.strictObject({
    ...{ what: z.literal('factor_guessed'), to, failures: z.int(), isOver: z.boolean() },
    ...{ at: time, address: text, resetUrl: url },
  }),
  z.strictObject({
    ...{ what: z.literal('invitation'), to, workspace: text, by: z.strictObject({ name: text, email: text }) },
    ...{ role: z.enum(ROLES), link: url, until: time },
  }),
  /** To owners: somebody is an owner or an admin from now on. `by` is the name of who invited or raised them. */
  z.strictObject({
    ...{ what: z.literal('admin_added'), to, workspace: text, member: text, role: z.enum(ROLES), by: text },
    siteUrl: url,
  }),
  /** To owners: somebody is no member any more, and what became of the keys of theirs that worked. */
  z.strictObject({
    ...{ what: z.literal('member_removed'), to, workspace: text, member: text, by: text, siteUrl: url },
    ...{ keys: z.int(), became: z.enum(['revoked', 'kept', 'assigned']).nullable() },
  }),
  /** To owners: what a call was charged was given back, or a part of it. `amount` is of USD. */
  z.strictObject({
    ...{ what: z.literal('charge_refunded'), to, workspace: text, callId: text, amount: text, reason: text },
    siteUrl: url,
  }),
  /** To owners: a platform refuses the account that a key acts for. The next call tries once more. */
  z.strictObject({
    ...{ what: z.literal('link_refused'), to, workspace: text, account: text.nullable(), keyId: text },
    siteUrl: url,
  }),
  /** A client's refresh token came again after it had been used, so that its grant was ended. */
  z.strictObject({
    ...{ what: z.literal('grant_reused'), to, client: text, workspace: text },
    ...{ at: time, address: text, grantsUrl: url },
  }),
  /** A mandate is used to four fifths, or is over. Amounts are of USD, such as 4.001120500. */
  z.strictObject({
    ...{ what: z.literal('mandate_used'), to, client: text, workspace: text },
    ...{ isOver: z.boolean(), hasExpired: z.boolean(), amount: text, charged: text, held: text, left: text },
    ...{ endsAt: time.nullable(), mandateUrl: url },
  }),
  /** A budget is used to so many per cent. `budget` says whose, such as tag team=search; `period` is one of kernel/period.ts. */
  z.strictObject({
    ...{ what: z.literal('budget_used'), to, workspace: text, isTest: z.boolean(), budget: text, percent: z.int() },
    ...{ period: text, amount: text, charged: text, held: text, left: text, resetsAt: time.nullable() },
    siteUrl: url,
  }),
  /** The balance has fallen below what the operator calls low. */
  z.strictObject({ what: z.literal('balance_low'), to, workspace: text, balance: text, low: text, siteUrl: url }),
  /** To operators: a workspace asks for higher limits. */
  z.strictObject({
    ...{ what: z.literal('quota_asked'), to, workspace: text, workspaceId: text, requestId: text },
    ...{ requestsPerMinute: z.int(), tokensPerMinute: z.int(), targets: text, useCase: z.string().max(2_000) },
    siteUrl: url,
  }),
  /** To who asked. The limits of each key from then on; null where it was refused. */
  z.strictObject({
    ...{ what: z.literal('quota_decided'), to, workspace: text, isApproved: z.boolean(), note: z.string().max(2_000) },
    limits: z.strictObject({ requestsPerMinute: z.int(), tokensPerMinute: z.int(), concurrency: z.int() }).nullable(),
    siteUrl: url,
  }),
  /** To every member: an owner has asked to close the workspace. */
  z.strictObject({ what: z.literal('closure_asked'), to, workspace: text, closesAt: time, siteUrl: url }),
  z.strictObject({ what: z.literal('closure_canceled'), to, workspace: text, siteUrl: url }),
  z.strictObject({ what: z.literal('workspace_suspended'), to, workspace: text, reason: text, siteUrl: url }),
  z.strictObject({ what: z.literal('workspace_resumed'), to, workspace: text, reason: text, siteUrl: url }),
  z.strictObject({ what: z.literal('closure_done'), to, workspace: text, siteUrl: url }),
])
export type Mail = z.output<typeof mail>

/** Sends a letter where the transaction commits, and only then. */
export type SendMail = (query: Query, mail: Mail) => Promise<void>

type Parts = { readonly ids: Ids; readonly seal: Seal | null }

/** Somebody waits for their link. */
const AWAITED: readonly Mail['what'][] = ['verify', 'reset', 'invitation']
/** Of those that have not been sent yet the newest says all. None that a sign-up sends: it does the same work whoever has the address. */
const REPLACED: readonly Mail['what'][] = ['factor_changed', 'factor_guessed', 'password_changed']

/** By what a letter takes the place of one that waits; of members, those of one alone. Never in the clear. */
function noticeOf(letter: Mail): string | null {
  if (letter.what === 'admin_added')
    return `admin_added ${sha256(`${letter.workspace} ${letter.member}`).toString('hex')}`
  return REPLACED.includes(letter.what) ? letter.what : null
}

const sha256 = (text: string) => createHash('sha256').update(text).digest()

export function createSendMail(parts: Parts): SendMail {
  return async (query, letter) => {
    const payload = mail.parse(letter)
    const { what, to } = payload
    const notice = noticeOf(payload)
    await enqueue(query, parts, {
      ...{ kind: MAIL, destination: domainOf(to), payload, isAwaited: AWAITED.includes(what) },
      receiver: sha256(to.toLowerCase()),
      ...(notice !== null && { notice }),
    })
  }
}

const DESTINATION_LIMIT = 255

/** Operators see destinations, and need not know who is written to. */
function domainOf(address: string): string {
  const domain = domainToASCII(address.slice(address.lastIndexOf('@') + 1))
  return (domain === '' ? 'unknown' : domain).slice(0, DESTINATION_LIMIT)
}
