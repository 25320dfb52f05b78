import type { Changes } from '../../harness/changes.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue } from '../../server/src/catalogue/operation.ts'
import { tagDetail } from '../../server/src/catalogue/operations/tag-detail.ts'

/** The real server. It sells something under a name that a route beside the catalogue has, so that no contract is sound. */
const twice = { ...tagDetail, id: 'get_usage', path: '/apis/v1/{reseller}/usage' }

export const changes: Changes = () => ({ catalogue: createCatalogue([...catalogue.operations, twice]) })
