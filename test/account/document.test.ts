import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startGateway } from '../../harness/gateways.ts'
import { accountContractHere } from '../../harness/recorded-contract.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { lint } from '../contract/linter.ts'

const database = await freshDatabase()
const gateway = await startGateway({
  databaseUrl: database.url,
  env: { FAREBOX_LOG_LEVEL: 'error', FAREBOX_ROLES: 'site' },
})
after(() => gateway.stop())

const document = Object(await (await fetch(`${gateway.siteUrl}/account/v1/openapi.json`)).json())

describe('the document of the account API', () => {
  it('is served as it is recorded: OpenAPI 3.0.3 of a version of its own', () => {
    const here = JSON.parse(accountContractHere().bytes.toString('utf8'))
    assert.deepEqual(document, here)
    assert.deepEqual([document.openapi, document.info.version], ['3.0.3', '1.0.0'])
  })

  it('says of every change that it takes an Idempotency-Key, and of every update that it takes If-Match', () => {
    for (const [path, methods] of Object.entries(Object(document.paths)))
      for (const [method, operation] of Object.entries(Object(methods))) {
        const named = (Object(operation).parameters ?? []).map((one: unknown) => Object(one).name)
        const isOpen = path.endsWith('/revoke-secret') || path.endsWith('/ticket')
        assert.equal(named.includes('Idempotency-Key'), method !== 'get' && !isOpen, `${method} ${path}`)
        const isUpdate = method === 'patch' || (path.endsWith('/closure') && method !== 'get')
        assert.equal(named.includes('If-Match'), isUpdate, `${method} ${path}`)
      }
  })

  it('has a place for webhooks, and says that they are not available yet', () => {
    const place = Object(document.paths)['/account/v1/workspaces/{workspace_id}/webhooks'].get
    assert.deepEqual([place['x-definition'], place.tags], ['pending', ['webhooks']])
    assert.match(place.summary, /not available yet/)
  })

  it('is clean to the linter of Redocly', async () =>
    assert.deepEqual(await lint(accountContractHere().bytes), { errors: 0, warnings: 0 }))

  it('refuses what is not there as a problem', async () => {
    const told = await fetch(`${gateway.siteUrl}/account/v1/nothing`)
    assert.deepEqual([told.status, told.headers.get('content-type')], [404, 'application/problem+json; charset=utf-8'])
  })
})
