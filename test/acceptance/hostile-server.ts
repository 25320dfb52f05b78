import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { startApp } from '../../server/src/app.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue, type Operation } from '../../server/src/catalogue/operation.ts'
import { tagDetail } from '../../server/src/catalogue/operations/tag-detail.ts'
import { loadConfig } from '../../server/src/config.ts'
import { createLog } from '../../server/src/telemetry/log.ts'
import { secretsOf } from '../../server/src/telemetry/scrubber.ts'

/**
 * The real server as a program. Only what it sells is changed, where a test could not wait or could not ask otherwise:
 * upstreams have less time, and there is an operation that gives no quotes. Garbage is collected often where a test says so,
 * so that its memory shows what is kept and not what nobody has thrown away yet.
 */
const TOTAL_MS = Number(process.env.TEST_TOTAL_MS ?? 60_000)

const COLLECT_EVERY_MS = Number(process.env.TEST_COLLECT_EVERY_MS ?? 0)

if (COLLECT_EVERY_MS > 0) {
  setFlagsFromString('--expose-gc')
  setInterval(runInNewContext('gc'), COLLECT_EVERY_MS).unref()
}

const inLessTime = (operation: Operation): Operation => ({
  ...operation,
  upstream: { ...operation.upstream, totalMs: TOTAL_MS },
})
const unquotable: Operation = {
  ...tagDetail,
  id: 'unquotable',
  path: '/apis/v1/{reseller}/unquotable',
  quotable: false,
}

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
  catalogue: createCatalogue([...catalogue.operations.map(inLessTime), unquotable]),
})
process.stdout.write(`${JSON.stringify({ ready: true, ...app.addresses })}\n`)
await once(told.signal, 'abort')
await app.stop()
process.exit()
