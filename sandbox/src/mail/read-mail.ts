import { type AddressObject, simpleParser } from 'mailparser'
import type { Correspondent, ReceivedMail } from './received-mail.ts'

type Read = Omit<ReceivedMail, 'n' | 'at_ms' | 'envelope' | 'acknowledged'>

const LINK = /https?:\/\/[^\s<>"]+/g

/** Reads a message as a reader of mail would. */
export async function readMail(raw: Buffer): Promise<Read> {
  const {
    messageId,
    from,
    to,
    subject,
    headerLines,
    text = '',
    html,
  } = await simpleParser(raw, { skipTextToHtml: true })
  return {
    message_id: messageId ?? null,
    from: addressesIn(from),
    to: addressesIn(to),
    subject: subject ?? '',
    headers: headerLines.map(({ key, line }) => [key, line] as const),
    text,
    html: typeof html === 'string' ? html : null,
    links: [...new Set(text.match(LINK) ?? [])],
    bytes: raw.length,
  }
}

function addressesIn(header: AddressObject | AddressObject[] | undefined): readonly Correspondent[] {
  return [header ?? []]
    .flat()
    .flatMap(({ value }) => value)
    .map(({ name, address = '' }) => ({ name, address }))
}
