import { once } from 'node:events'
import { startApp } from '../../server/src/app.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue } from '../../server/src/catalogue/operation.ts'
import { loadConfig } from '../../server/src/config.ts'
import { createLog } from '../../server/src/telemetry/log.ts'
import { secretsOf } from '../../server/src/telemetry/scrubber.ts'
import { weatherForecast, weatherModel } from './one-more-operation.ts'

/** The real server as a program, with two operations more in its list. */
const config = loadConfig()
const log = createLog({
  level: config.log.level,
  write: (line) => process.stdout.write(line),
  secrets: secretsOf(config.database.url),
})
const told = new AbortController()
process.once('SIGTERM', () => told.abort())
const app = await startApp(config, {
  log,
  cancel: told.signal,
  catalogue: createCatalogue([...catalogue.operations, weatherForecast, weatherModel]),
})
process.stdout.write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
await once(told.signal, 'abort')
await app.stop()
process.exit()
