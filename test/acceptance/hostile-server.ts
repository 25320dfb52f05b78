import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { serve } from '../../harness/serve.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue, isSoldByUnit, type Operation } from '../../server/src/catalogue/operation.ts'
import { unquotable } from './hostile-operations.ts'

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

const inLessTime = (operation: Operation): Operation =>
  isSoldByUnit(operation) ? { ...operation, upstream: { ...operation.upstream, totalMs: TOTAL_MS } } : operation

await serve({ catalogue: createCatalogue([...catalogue.operations.map(inLessTime), unquotable]) })
