import type { Changes } from '../../harness/changes.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue } from '../../server/src/catalogue/operation.ts'
import { imaginedForecast, imaginedModel } from './one-more-operation.ts'

/** The real server with two operations more in its list. */
export const changes: Changes = () => ({
  catalogue: createCatalogue([...catalogue.operations, imaginedForecast, imaginedModel]),
})
