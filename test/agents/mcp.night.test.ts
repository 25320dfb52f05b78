import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { startChromium } from '../../harness/chromium.ts'
import { isFullProof, recordProof } from '../../harness/proof.ts'
import { usd } from '../../server/src/kernel/money.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { type Customer, chargesOf, makeCustomer } from '../acceptance/installation.ts'
import { makeAgent } from '../mcp/agents.ts'
import { startDocumentHost } from '../oauth/document-host.ts'
import { installAgents } from './agents.ts'
import { replay } from './conversation.ts'
import { type Desk, MCP_CLIENTS, type McpClient, openDesk, PAID_TASK } from './mcp-clients.ts'
import { type McpHouse, makePerson, startMcpHouse } from './mcp-house.ts'
import { answersOf, toolsListed, transcriptOf } from './mcp-transcript.ts'
import { openBrowserOf } from './person-at-browser.ts'
import { startRecorder } from './recorder.ts'
import type { Recorded } from './scrub.ts'

/**
 * Real coding agents and our tools: with a key, and from nothing but the URL. A proof fetches the programs from npm and runs them;
 * otherwise the messages are sent again that they once sent with a key (`node test/agents/record.ts` renews them), and the rest is skipped.
 */
const TOOLS = ['search', 'get_details', 'list_categories', 'use', 'batch_use']
const installed = isFullProof ? await installAgents() : undefined
if (installed) after(installed.remove)

const house = await startMcpHouse()
after(house.stop)

/** A client on a machine of its own; what it asks beside us and its model goes nowhere. */
async function desk(client: McpClient, at: McpHouse, env: Readonly<Record<string, string>> = {}) {
  const payer = await makeCustomer(at.pool)
  const recorder = await startRecorder(at.gatewayUrl)
  const where = { binaries: installed?.binaries ?? '', url: recorder.url, secret: payer.secret, proxyUrl: recorder.url }
  const opened = await openDesk(client, { ...where, env })
  async function leave(): Promise<void> {
    await opened.remove()
    await recorder.stop()
    assert.deepEqual(recorder.strangers, [], 'hosts that it asked beside')
  }
  return { ...opened, leave }
}

for (const client of MCP_CLIENTS) {
  const { name, version } = client.agent

  describe(`${name} ${version} with a key`, () => {
    it('lists the five tools, searches and uses a paid operation, and the ledger has what it was told', async () => {
      const agent = await makeAgent(house.pool)
      const from = house.wire.exchanges.length
      const said = installed ? await worked(client, agent) : await replayed(client, agent)
      const exchanges = house.wire.exchanges.slice(from)
      for (const listed of toolsListed(exchanges)) assert.deepEqual(listed, TOOLS)
      const [found] = answersOf(exchanges, 'search')
      const [first] = [Object(found?.operations)].flat()
      assert.equal(first?.operation_id, 'tag_detail')
      const [used] = answersOf(exchanges, 'use')
      assert.equal(used?.cost_usd, '0.001450000')
      const charges = await chargesOf(house.pool, agent.accountId)
      assert.deepEqual([...charges], [[used?.request_id, usd(String(used?.cost_usd))]])
      assert.deepEqual(await verifyLedger(house.pool, [agent.accountId]), [])
      recordProof('agents-mcp', `${name} ${version} with a key`, {
        ...(said !== undefined && { said: said.slice(0, 400) }),
        ...{ messages: transcriptOf(exchanges), charged_usd: used?.cost_usd, charges_in_ledger: charges.size },
      })
    })
  })

  for (const registration of ['document', 'registration', 'document that came with the program'] as const)
    describe(`${name} ${version} from nothing but the URL, by a ${registration}`, () => {
      it(
        'is let in by a person, keeps its tokens, lists the tools, searches, pays and renews its token, until that is taken back',
        {
          skip: installed ? false : 'it needs the program itself: npm run proof -- test/agents/mcp.night.test.ts',
        },
        () => letIn(client, registration),
      )
    })
}

async function worked(client: McpClient, { secret }: Customer): Promise<string> {
  const at = await desk(client, house)
  await at.connect({ url: house.mcpUrl, secret })
  await at.run(client.list)
  const said = await at.use('Find out how often a hashtag is used.', PAID_TASK)
  assert.match(said, /^Done: .*0\.001450000/s)
  await at.leave()
  return said
}

async function replayed(client: McpClient, agent: Customer): Promise<undefined> {
  const file = path.join(import.meta.dirname, 'recorded', `mcp-${client.agent.name}.json`)
  const recorded: readonly Recorded[] = JSON.parse(readFileSync(file, 'utf8'))
  for (const { status, answer } of await replay(house.wire.url, agent, recorded)) assert.ok(status < 300, answer)
}

type Registration = 'document' | 'registration' | 'document that came with the program'

/** Its maker's host can't be asked here. So its document is one of an origin that the operator lists, or the one that this program brings. */
async function houseFor(client: McpClient, registration: Registration) {
  if (registration === 'document that came with the program') {
    const at = await startMcpHouse({ FAREBOX_OUTBOUND_ACCESS: '' })
    after(at.stop)
    return { at, env: {}, clientId: undefined, vouched: /claude\.ai|chatgpt\.com|openai\.com/ }
  }
  if (registration === 'registration')
    return { at: house, env: {}, clientId: undefined, vouched: /None: anybody can use this name/ }
  const host = await startDocumentHost()
  const document = '/oauth/client-metadata'
  const clientId = host.origin + document
  host.documents.set(document, { body: JSON.stringify(documentOf(client, clientId)) })
  const at = await startMcpHouse({
    ...{ FAREBOX_OUTBOUND_ACCESS: 'listed', FAREBOX_OUTBOUND_ALLOWED_ORIGINS: host.origin },
    NODE_EXTRA_CA_CERTS: host.certificate,
  })
  after(at.stop)
  return { at, env: client.documentEnv(clientId), clientId, vouched: new RegExp(new URL(host.origin).host) }
}

/** As its maker publishes it. */
function documentOf({ agent: { name } }: McpClient, clientId: string): object {
  return {
    ...{ client_id: clientId, client_name: name },
    redirect_uris: ['http://localhost/callback', 'http://127.0.0.1/callback'],
    ...{ grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'] },
    token_endpoint_auth_method: 'none',
  }
}

async function letIn(client: McpClient, registration: Registration): Promise<void> {
  const { at, env, clientId, vouched } = await houseFor(client, registration)
  const person = await makePerson(at)
  const program = await desk(client, at, env)
  const browser = await startChromium()
  const visitor = await openBrowserOf(browser, at.site, person.email)
  try {
    await program.connect({ url: at.mcpUrl, ...(clientId !== undefined && { clientId }) })
    const { authorizeUrl, done } = await program.login(
      client.login(registration === 'registration' ? 'registration' : 'document'),
    )
    const [, consent] = await Promise.all([done, visitor.letIn(authorizeUrl, { amount: '0.50' })])
    assert.match(consent, vouched)
    assert.equal(authorizeUrl.searchParams.get('resource'), at.mcpUrl)
    const from = at.wire.exchanges.length
    const said = await searches(program)
    const exchanges = at.wire.exchanges.slice(from)
    assert.ok(exchanges.length > 1)
    for (const { headers } of exchanges.filter(({ method }) => method === 'POST'))
      assert.match(String(headers.authorization), /^Bearer fb_at_/)
    for (const listed of toolsListed(exchanges)) assert.deepEqual(listed, TOOLS)
    assert.equal(answersOf(exchanges, 'search').length, 1)

    const paidFrom = at.wire.exchanges.length
    await program.use('Find out how often a hashtag is used.', PAID_TASK)
    const paid = at.wire.exchanges.slice(paidFrom)
    const [used] = answersOf(paid, 'use')
    assert.equal(used?.cost_usd, '0.001450000')
    assert.deepEqual([...(await chargesOf(at.pool, person.accountId))], [[used?.request_id, usd('0.00145')]])

    await program.spoilToken()
    const renewedFrom = at.wire.exchanges.length
    await searches(program)
    const renewed = at.wire.exchanges.slice(renewedFrom)
    assert.equal(answersOf(renewed, 'search').length, 1, 'it renews a token that is refused, and asks nobody')

    const { rows } = await at.pool.query(
      'select client_name as name from grants where person_id in (select id from people where email = $1)',
      [person.email],
    )
    assert.equal(rows.length, 1)
    await visitor.takeBack(rows[0]?.name)
    const refusedFrom = at.wire.exchanges.length
    const list = await program.run(client.list)
    await searches(program)
    const refused = at.wire.exchanges.slice(refusedFrom)
    assert.deepEqual(answersOf(refused, 'search'), [])
    assert.ok(refused.some(({ status }) => status === 401))
    recordProof('agents-mcp', `${client.agent.name} ${client.agent.version} by a ${registration}`, {
      ...{ asked_to_be_let_in: shownUrl(authorizeUrl), calls_itself: rows[0]?.name },
      ...{ messages: transcriptOf(exchanges), said: said.slice(0, 400) },
      paid: { messages: transcriptOf(paid), charged_usd: used?.cost_usd },
      once_renewed: transcriptOf(renewed),
      ...{
        once_taken_back: {
          messages: transcriptOf(refused),
          list: list.split('\n').find((line) => line.startsWith('farebox')),
        },
      },
    })
  } finally {
    await visitor.leave()
    await browser.close()
    await program.leave()
  }
}

const searches = (program: Pick<Desk, 'use'>) => program.use('Look for it.', PAID_TASK.slice(0, 1))

/** What it asked with, without what is secret or of this run. */
function shownUrl({ searchParams }: URL): Record<string, string> {
  const own = ['state', 'code_challenge']
  return Object.fromEntries([...searchParams].map(([name, value]) => [name, own.includes(name) ? '…' : value]))
}
