import { Fault } from '../kernel/fault.ts'
import type { Query } from '../storage/transaction.ts'

/** Whoever changes a model waits for who does, also where it is not there yet, and for who changes many. */
export async function lockName(query: Query, id: string): Promise<void> {
  await query("select pg_advisory_xact_lock_shared(hashtext('models'))")
  await query("select pg_advisory_xact_lock(hashtext('model ' || $1))", [id])
}

/** Whoever changes many models is alone with all of them: one lock for each would fill PostgreSQL's table of locks. */
export async function lockAllNames(query: Query): Promise<void> {
  await query("select pg_advisory_xact_lock(hashtext('models'))")
}

export async function requireModel(query: Query, id: string): Promise<void> {
  await lockName(query, id)
  const { rows } = await query('select from models where id = $1 for share', [id])
  if (rows.length === 0) throw noSuchModel(id)
}

export function noSuchModel(id: string): Fault {
  return new Fault('resource_not_found', { detail: `There is no model ${JSON.stringify(id)}.` })
}
