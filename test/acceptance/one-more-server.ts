import { serve } from '../../harness/serve.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue } from '../../server/src/catalogue/operation.ts'
import { imaginedForecast, imaginedModel } from './one-more-operation.ts'

/** The real server as a program, with two operations more in its list. */
await serve({ catalogue: createCatalogue([...catalogue.operations, imaginedForecast, imaginedModel]) })
