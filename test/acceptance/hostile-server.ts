import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Changes } from '../../harness/changes.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { createCatalogue, isSoldByUnit, type Operation } from '../../server/src/catalogue/operation.ts'
import { unquotable } from './hostile-operations.ts'

/**
 * The real server. Only what it sells is changed, where a test could not wait or could not ask otherwise:
 * upstreams have less time, and there is an operation that gives no quotes. Garbage is collected often where a test says so,
 * so that its memory shows what is kept and not what nobody has thrown away yet.
 */
export const changes: Changes = ({ TEST_TOTAL_MS: totalMs = '60000', TEST_COLLECT_EVERY_MS: collectEveryMs = '0' }) => {
  if (Number(collectEveryMs) > 0) {
    setFlagsFromString('--expose-gc')
    setInterval(runInNewContext('gc'), Number(collectEveryMs)).unref()
  }
  const inLessTime = (operation: Operation): Operation =>
    isSoldByUnit(operation)
      ? { ...operation, upstream: { ...operation.upstream, totalMs: Number(totalMs) } }
      : operation
  return { catalogue: createCatalogue([...catalogue.operations.map(inLessTime), unquotable]) }
}
