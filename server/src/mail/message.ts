import type { SendMailOptions } from 'nodemailer'
import type { Id } from '../kernel/ids.ts'
import { isMailAddress } from '../kernel/mail-address.ts'
import type { Mail } from '../storage/mail.ts'
import { type Brand, htmlOf, LOGO_CID, textOf } from './letter.ts'
import { letterOf } from './letters.ts'

export type Sender = { readonly name: string; readonly address: string }

type Parts = { readonly id: Id; readonly createdAt: Date; readonly from: Sender; readonly brand?: Brand }

/**
 * A letter as it is handed to nodemailer: to one address, from ours, with the headers that are named here and no others. The same at
 * each attempt: who has it already knows it by its Message-ID. Null where the address is none.
 */
export function messageOf(mail: Mail, { id, createdAt, from, brand }: Parts): SendMailOptions | null {
  if (!isMailAddress(mail.to)) return null
  const letter = letterOf(mail)
  return {
    envelope: { from: { address: from.address }, to: { address: mail.to } },
    from: { name: from.name, address: from.address },
    to: { address: mail.to },
    subject: letter.subject,
    messageId: `<${id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    date: createdAt,
    // Nobody's holiday note answers it.
    headers: { 'Auto-Submitted': 'auto-generated' },
    text: textOf(letter, brand),
    html: htmlOf(letter, brand),
    ...(brand?.logo && { attachments: [{ filename: brand.logo.name, content: brand.logo.bytes, cid: LOGO_CID }] }),
    xMailer: false,
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}
