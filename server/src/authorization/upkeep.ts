import type pg from 'pg'
import { clientsWithGrants } from '../grants/grants.ts'
import type { Ids } from '../kernel/ids.ts'
import type { Seal } from '../kernel/seal.ts'
import { createClients } from './clients.ts'
import { createKeptDocuments } from './kept-documents.ts'
import { rotateSigningKeys } from './signing-keys.ts'
import { createStates } from './states.ts'

type Parts = { readonly pool: pg.Pool; readonly ids: Ids; readonly seal: Seal | null }

/** What a worker does for the authorization server. Any number of them may. */
export function createUpkeep({ pool, ids, seal }: Parts) {
  const [states, clients, documents] = [createStates({ pool }), createClients({ pool }), createKeptDocuments({ pool })]
  return {
    /** Forgets what has run out, and clients that nobody allowed or that nobody uses. How many rows that were. */
    async prune(): Promise<number> {
      const forgotten = [states.prune(), clients.prune((ids) => clientsWithGrants(pool, ids)), documents.prune()]
      return (await Promise.all(forgotten)).reduce((sum, count) => sum + count, 0)
    },
    async rotate(): Promise<void> {
      if (seal !== null) await rotateSigningKeys({ pool, ids, seal })
    },
  }
}

export type OauthUpkeep = ReturnType<typeof createUpkeep>
