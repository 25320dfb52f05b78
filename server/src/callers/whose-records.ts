import type pg from 'pg'
import { fromLedger } from '../api/from-ledger.ts'
import type { Caller } from '../identity/caller.ts'
import { mayReadAccount } from '../identity/scopes.ts'
import type { Id } from '../kernel/ids.ts'
import { credentialsOfAccount } from '../ledger/credentials-of-account.ts'

/** Whose tasks and records a caller may read: its own, and with a scope for it those of every key of its account. */
export function whoseRecords(
  pool: pg.Pool,
  { scopes, accountId, credentialId }: Caller,
): readonly Id[] | Promise<readonly Id[]> {
  if (scopes === null || !mayReadAccount(scopes)) return [credentialId]
  return fromLedger(credentialsOfAccount(pool, accountId))
}
