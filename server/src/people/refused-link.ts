import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import type { Query } from '../storage/transaction.ts'
import { type Notices, tellOwners } from './owner-notices.ts'

type RefusedLink = {
  /** Of the key or the grant that acts for it. */
  readonly credentialId: Id
  /** Its name on the platform, where it is known. */
  readonly username: string | null
}

const row = z.object({ id: z.string(), name: z.string() })

/** Writes to the owners of the workspace whose linked account its platform refuses, in the transaction that marks it. */
export function createTellRefusedLink(notices: NonNullable<Notices>) {
  return async (query: Query, { credentialId, username }: RefusedLink): Promise<void> => {
    const { rows } = await query('select id, name from workspaces where id = workspace_of(one => $1)', [credentialId])
    const { id: workspaceId, name: workspace } = row.parse(rows[0])
    const letter = { what: 'link_refused', workspace, account: username, keyId: credentialId } as const
    await tellOwners(query, notices, { workspaceId, letter })
  }
}
