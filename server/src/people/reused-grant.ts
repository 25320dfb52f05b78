import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { SendMail } from '../storage/mail.ts'
import type { Query } from '../storage/transaction.ts'

type Parts = {
  readonly sendMail: SendMail
  /** Where people see what they allow. */
  readonly grantsUrl: string
}

const row = z.object({ email: z.string(), client: z.string(), workspace: z.string(), at: z.date() })
const TEXT_LIMIT = 200

/** Writes to the person whose grant was ended because its token came again, in the transaction that ends it. */
export function createTellReuse({ sendMail, grantsUrl }: Parts) {
  return async (query: Query, grantId: Id, address: string): Promise<void> => {
    const { rows } = await query(
      `select email, client_name as client, workspaces.name as workspace, clock_timestamp() as at
       from grants join people on people.id = person_id join workspaces on workspaces.id = workspace_id where grants.id = $1`,
      [grantId],
    )
    const { email: to, client, workspace, at } = row.parse(rows[0])
    const names = { client: client.slice(0, TEXT_LIMIT), workspace: workspace.slice(0, TEXT_LIMIT) }
    const letter = { ...names, at: at.toISOString(), address: address || 'an unknown address', grantsUrl }
    await sendMail(query, { what: 'grant_reused', to, ...letter })
  }
}
