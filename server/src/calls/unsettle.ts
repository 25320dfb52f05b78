import type { Id } from '../kernel/ids.ts'
import { encodeArray } from './columns.ts'
import type { Statement } from './query.ts'

/** Marks those of these calls as unsettled that are open and this process's own: nobody knows what became of them. */
export function unsettleStatement(ids: readonly Id[], ownerId: Id): Statement {
  return {
    name: 'mark_unsettled',
    text: 'select id from mark_unsettled(ids => $1, of => $2)',
    values: [encodeArray('uuid[]', ids), ownerId],
  }
}
