import { z } from 'zod'
import { DeliveryFailure } from '../outbox/deliverer.ts'

const failure = z.object({
  code: z
    .string()
    .regex(/^E[A-Z]{2,30}$/)
    .catch('unknown error'),
  command: z.string().optional().catch(undefined),
  responseCode: z.int().optional().catch(undefined),
  response: z.string().catch(''),
})

/** Where a server judges who is written to, and what. Before that it judges us, which an operator can mend. */
const JUDGED = ['RCPT TO', 'DATA']

/**
 * Why a letter was not taken, in words for operators. Servers repeat addresses in what they say, so that only their codes are kept. It
 * is final where the letter itself is refused for good; not where our account is, or our sender.
 */
export function refusalIn(error: unknown): DeliveryFailure {
  const { code, command = '', responseCode, response } = failure.parse(error instanceof Error ? { ...error } : {})
  if (responseCode === undefined)
    return new DeliveryFailure(`the mail server could not be reached, or broke off: ${code}`)
  const where = COMMANDS.find((known) => command.startsWith(known)) ?? 'the start'
  const [, enhanced] = /^\d{3}[ -]([245]\.\d{1,3}\.\d{1,3})\b/.exec(response) ?? []
  const answer = [responseCode, ...(enhanced === undefined ? [] : [enhanced])].join(' ')
  const isFinal = responseCode >= 500 && responseCode !== 503 && JUDGED.includes(where)
  return new DeliveryFailure(`the mail server answered ${answer} at ${where}`, { isFinal })
}

const COMMANDS = ['EHLO', 'HELO', 'STARTTLS', 'AUTH', 'MAIL FROM', 'RCPT TO', 'DATA']
