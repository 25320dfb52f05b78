import type { Mail, SendMail } from '../storage/mail.ts'
import type { Query } from '../storage/transaction.ts'

/** Sends a letter where there is somebody to send it to; otherwise does the same work, and takes it back. */
export async function sendOrPretend(
  query: Query,
  sendMail: SendMail,
  { letter, isMeant }: { readonly letter: Mail; readonly isMeant: boolean },
): Promise<void> {
  await query('savepoint letter')
  await sendMail(query, letter)
  await query(isMeant ? 'release savepoint letter' : 'rollback to savepoint letter')
}
