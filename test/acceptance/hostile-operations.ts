import type { Operation } from '../../server/src/catalogue/operation.ts'
import { tagDetail } from '../../server/src/catalogue/operations/tag-detail.ts'

/** One that gives no quotes. */
export const unquotable: Operation = {
  ...tagDetail,
  id: 'unquotable',
  path: '/apis/v1/{reseller}/unquotable',
  quotable: false,
}
