import { Fault } from '../kernel/fault.ts'
import type { Query } from '../storage/transaction.ts'
import { splitAddress } from './mailbox.ts'
import type { PeopleSettings } from './parts.ts'

/** Who may sign up by themselves, as the operator has set it. Who is invited may besides, but is given no credit for it. */

type Settings = Pick<PeopleSettings, 'signUp' | 'domains'>

export function isOpenTo({ signUp, domains }: Settings, email: string): boolean {
  const [, domain] = splitAddress(email)
  return signUp === 'open' && (domains.length === 0 || domains.includes(domain))
}

/** Refuses addresses that may not sign up here, whether they have an account or not. */
export function requireOpen(settings: Settings, email: string): void {
  if (isOpenTo(settings, email)) return
  if (settings.signUp === 'closed') throw new Fault('sign_up_closed')
  throw new Fault('sign_up_closed', {
    detail: `Only addresses that end in ${settings.domains.join(', ')} can sign up.`,
  })
}

/** Whether an address is invited somewhere: by this very invitation, or by any. */
export async function hasInvitation(query: Query, { email, hash }: { email: string; hash?: Buffer }): Promise<boolean> {
  const { rows } = await query(
    `select from invitations where email = $1 and ($2::bytea is null or hash = $2) and decided_at is null
       and expires_at > clock_timestamp() limit 1`,
    [email, hash ?? null],
  )
  return rows.length > 0
}
