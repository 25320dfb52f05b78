import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../../server/src/config.ts'
import { createPools } from '../../server/src/storage/pools.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'
import { DEFAULT_LIMITS } from '../../server/src/wire/limits.ts'

const { database, http } = loadConfig({ FAREBOX_DATABASE_URL: 'postgres://db.invalid/x' })

describe('the defaults of the configuration', () => {
  it('are those with which the edge is tested', () => {
    const { bodyBytes, headerBytes, jsonDepth, headersTimeoutMs, requestTimeoutMs, connections } = DEFAULT_LIMITS
    assert.deepEqual(
      [bodyBytes, headerBytes, jsonDepth, headersTimeoutMs, requestTimeoutMs, connections],
      [
        http.body_bytes,
        http.header_bytes,
        http.json_depth,
        http.headers_timeout_ms,
        http.request_timeout_ms,
        http.connections,
      ],
    )
  })

  it('are those with which storage is tested', async () => {
    const pools = createPools({ url: database.url, log: silentLog })
    assert.deepEqual(
      [pools.money.options.max, pools.rest.options.max],
      [database.money_connections, database.rest_connections],
    )
    await pools.close()
  })
})
