import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { z } from 'zod'
import { startGateway } from '../../harness/gateways.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { ACCOUNT_PREFIX } from '../../server/src/account/route.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { ask, codeOf, makeCustomer } from '../acceptance/installation.ts'
import { connect } from '../ledger/world.ts'

const announced = z.object({
  route: z.object({ listener: z.int(), methods: z.array(z.string()), url: z.string() }),
})
const routes: z.output<typeof announced>['route'][] = []

const database = await freshDatabase()
const { pools } = connect(database.url)
const gateway = await startGateway({
  databaseUrl: database.url,
  program: 'test/contract/routes-server.ts',
  env: { FAREBOX_LOG_LEVEL: 'error' },
  onLine(line) {
    if (!line.startsWith('{"route"')) return
    const { data } = announced.safeParse(JSON.parse(line))
    if (data !== undefined) routes.push(data.route)
  },
})
after(async () => {
  await gateway.stop()
  await pools.close()
})

const { contentHash } = Object(await (await fetch(`${gateway.siteUrl}/api/contracts/version`)).json())
const served = await fetch(`${gateway.siteUrl}/api/contracts/source?hash=${contentHash}&bundled=1`)
const document = Object(await served.json())

type Described = { readonly place: string; readonly operation: Record<string, unknown> }
const described: readonly Described[] = Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
  Object.entries(Object(methods)).map(([method, operation]) => ({
    place: `${method.toUpperCase()} ${path}`,
    operation: Object(operation),
  })),
)
const operationOf = (id: string) =>
  described.find(({ operation }) => operation.operationId === id)?.operation ?? assert.fail(id)

/** What pages are made of is no interface: names of files change with their bytes. Nor is the address that only says where to read on. */
const NO_INTERFACE = /^\/(assets\/|$)/
/** One route for all, which tells them apart by what stands behind the model. */
const ACTIONS = 'POST /v1beta/models/*'

/** As the framework has it: parameters by a colon, names of models as all that is left. */
function asRoute(place: string): string {
  if (/^POST \/v1beta\/models\/\{model\}:/.test(place)) return ACTIONS
  return place.replace('{model}', '*').replaceAll(/\{(\w+)\}/g, ':$1')
}

describe('SITE-4 the served contract and the running routes', () => {
  it('are the same set, by what the framework announces', () => {
    const [ofGateway] = routes.filter(({ url }) => url === '/v1/usage').map(({ listener }) => listener)
    const running = routes
      .filter(({ listener, url }) => listener === ofGateway && !NO_INTERFACE.test(url))
      .flatMap(({ methods, url }) => methods.filter((one) => one !== 'HEAD').map((method) => `${method} ${url}`))
    const declared = described.map(({ place }) => asRoute(place))
    assert.deepEqual([...new Set(running)].sort(), [...new Set(declared)].sort())
    assert.ok(declared.length >= catalogue.operations.length + 15, `${declared.length}`)
  })

  it('are the same set at the account API', async () => {
    const document = Object(await (await fetch(`${gateway.siteUrl}${ACCOUNT_PREFIX}/openapi.json`)).json())
    const running = routes
      .filter(({ url }) => url.startsWith(`${ACCOUNT_PREFIX}/`))
      .flatMap(({ methods, url }) => methods.filter((one) => one !== 'HEAD').map((method) => `${method} ${url}`))
    const declared = Object.entries(Object(document.paths)).flatMap(([path, methods]) =>
      Object.keys(Object(methods)).map((method) => asRoute(`${method.toUpperCase()} ${path}`)),
    )
    assert.deepEqual(running.sort(), declared.sort())
    assert.ok(declared.length >= 35, `${declared.length}`)
  })

  it('have each action of a model', () => {
    const inPath = catalogue.operations.filter(({ path }) => path.includes('{model}:')).map(({ id }) => id)
    const declared = described.filter(({ place }) => asRoute(place) === ACTIONS)
    assert.deepEqual(declared.map(({ operation }) => operation.operationId).sort(), inPath.sort())
  })

  it('are reached by a key, and nothing else is', async () => {
    const { secret } = await makeCustomer(pools.rest)
    for (const { place } of described) {
      const [method = '', path = ''] = place.replaceAll(/\{\w+\}/g, 'x').split(' ')
      const told = await ask(gateway.url, secret, path, { method, ...(method === 'POST' && { body: {} }) })
      assert.notEqual(told.status, 405, place)
      assert.notEqual(codeOf(told), 'route_not_found', place)
    }
    for (const path of ['/v1/usages', '/v1/balance/x', '/apis/v1/reseller', '/v2/usage', '/openapi.json'])
      assert.equal(codeOf(await ask(gateway.url, secret, path)), 'route_not_found', path)
  })
})

describe('SITE-5 the contract', () => {
  it('is OpenAPI 3.0.3, interface version 1.0.0, with the account and usage interface of the specification', () => {
    assert.equal(document.openapi, '3.0.3')
    assert.equal(document.info.version, '1.0.0')
    const { parameters, responses } = operationOf('get_usage') as {
      parameters: Record<string, unknown>[]
      responses: Record<string, unknown>
    }
    const ofSpecification = parameters.filter(({ name }) => /_time$/.test(String(name)))
    assert.deepEqual(
      ofSpecification.map(({ name, in: where, required }) => [name, where, required]),
      [
        ['end_time', 'query', false],
        ['start_time', 'query', true],
      ],
    )
    // What is ours may be left out.
    assert.ok(parameters.every((one) => ofSpecification.includes(one) || one.required === false))
    const report = document.components.schemas['get_usage.Answer']
    const members = ['bucket_width', 'buckets', 'currency', 'end_time', 'scope', 'start_time', 'totals']
    assert.deepEqual(report.required, members)
    const ours = ['group_by', 'groups', 'other_groups']
    assert.deepEqual(Object.keys(report.properties), [...members, ...ours].sort())
    const { $ref } = Object(responses[400])
    const refusal = document.components.responses[$ref.split('/').at(-1)]
    const { schema } = refusal.content['application/json']
    assert.deepEqual(document.components.schemas[schema.$ref.split('/').at(-1)].required, ['error'])
  })

  it('has no price: what anything costs is told by quotes', () => {
    const text = JSON.stringify(document)
    for (const price of ['0.00188', '0.00145', '0.0029', '0.050', '0.003', '0.002'])
      assert.ok(!text.includes(price), price)
  })

  const pending = catalogue.operations.filter(({ definition }) => definition === 'pending')

  it('SITE-5 DATA-6 says of pending definitions that they are, and of no others', () => {
    assert.ok(pending.length >= 4)
    for (const { operation } of described) {
      const isPending = pending.some(({ id }) => id === operation.operationId)
      assert.equal(operation['x-definition'], isPending ? 'pending' : undefined)
      assert.equal(/^Pending: /.test(String(operation.description)), isPending)
    }
  })

  it('SITE-5 DATA-6 invents no field of them: it names those that are read for the price alone', () => {
    const NAMED: Readonly<Record<string, readonly string[]>> = {
      website_traffic_engagement: ['end_date', 'metrics', 'others', 'start_date'],
      user_stories: ['others'],
    }
    for (const { id } of pending) {
      const { parameters, requestBody } = operationOf(id) as {
        parameters: Record<string, unknown>[]
        requestBody?: unknown
      }
      const query = parameters.filter((one) => one.in === 'query').map(({ name }) => name)
      assert.deepEqual(query, NAMED[id] ?? [], id)
      assert.ok(
        parameters.every(({ in: where, required }) => where !== 'query' || required === false),
        id,
      )
      if (requestBody === undefined) continue
      const { $ref } = Object(requestBody).content['application/json'].schema
      const {
        properties = {},
        required = [],
        additionalProperties,
      } = document.components.schemas[$ref.split('/').at(-1)]
      assert.deepEqual([properties, required], [{}, []], id)
      assert.notEqual(additionalProperties, false, id)
    }
  })
})

describe('MODEL-4 the catalogue', () => {
  it('can be read by anybody, and costs nothing', async () => {
    const before = await pools.rest.query('select count(*)::int as charges from charges')
    for (const { id } of catalogue.operations) {
      const told = await fetch(`${gateway.siteUrl}/api/contracts/source?hash=${contentHash}&operation_id=${id}`)
      assert.equal(told.status, 200, id)
      assert.equal(told.headers.get('x-farebox-cost-usd'), null)
    }
    const after = await pools.rest.query('select count(*)::int as charges from charges')
    assert.deepEqual(after.rows, before.rows)
  })
})
