import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { startChromium } from '../../harness/chromium.ts'
import { isFullProof, recordProof } from '../../harness/proof.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import { verifyLedger } from '../../server/src/ledger/verify.ts'
import { makeCustomer } from '../acceptance/installation.ts'
import { installAgents } from '../agents/agents.ts'
import { type Desk, MCP_CLIENTS, type McpClient, openDesk } from '../agents/mcp-clients.ts'
import { makePerson, startMcpHouse } from '../agents/mcp-house.ts'
import { answersOf, toolsListed, transcriptOf } from '../agents/mcp-transcript.ts'
import { openBrowserOf } from '../agents/person-at-browser.ts'
import { startRecorder } from '../agents/recorder.ts'

/** Real coding agents within a mandate, from nothing but the URL. It needs the programs themselves, which a proof fetches from npm. */
const installed = isFullProof ? await installAgents() : undefined
if (installed) after(installed.remove)
const house = await startMcpHouse()
after(house.stop)
const { pool, wire } = house

async function desk(client: McpClient) {
  const payer = await makeCustomer(pool)
  const recorder = await startRecorder(house.gatewayUrl)
  const where = { binaries: installed?.binaries ?? '', url: recorder.url, secret: payer.secret, proxyUrl: recorder.url }
  const opened = await openDesk(client, where)
  async function leave(): Promise<void> {
    await opened.remove()
    await recorder.stop()
  }
  return { ...opened, leave }
}

const figures = (ticker: string) => ({
  name: 'use',
  arguments: { operation_id: 'financial_metrics_snapshot', arguments: { ticker }, max_price_usd: 1 },
})

/** What its calls of `use` were answered with, and what it said of them. */
async function uses(program: Pick<Desk, 'use'>, tickers: readonly string[]) {
  const from = wire.exchanges.length
  const said = await program.use('Look up the figures.', tickers.map(figures))
  const exchanges = wire.exchanges.slice(from)
  return { said, exchanges, answers: answersOf(exchanges, 'use') }
}

for (const client of MCP_CLIENTS) {
  const { name, version } = client.agent
  describe(`${name} ${version} within a mandate`, () => {
    it(
      'MCP-4 AUTH-7 signs in, pays, is refused with a link, raised, approved once, and refused when the mandate has ended',
      {
        skip: installed ? false : 'it needs the program itself: npm run proof -- test/mandates/agents.night.test.ts',
      },
      () => withinMandate(client),
    )
  })
}

async function withinMandate(client: McpClient): Promise<void> {
  const { name, version } = client.agent
  const person = await makePerson(house)
  const program = await desk(client)
  const browser = await startChromium()
  const visitor = await openBrowserOf(browser, house.site, person.email)
  const { page } = visitor
  try {
    await program.connect({ url: house.mcpUrl })
    const { authorizeUrl, done } = await program.login(client.login('registration'))
    await Promise.all([done, visitor.letIn(authorizeUrl, { amount: '0.02', call: '0.02' })])
    const paid = await uses(program, ['A', 'B', 'C'])
    for (const listed of toolsListed(paid.exchanges)) assert.equal(listed.length, 5)
    const [first, second, third] = paid.answers
    assert.deepEqual([first?.cost_usd, second?.cost_usd], ['0.010000000', '0.010000000'])
    const refusal = Object(third?.error)
    assert.equal(refusal.code, 'budget_exceeded')

    await page.goto(String(refusal.mandate_url))
    await page.getByLabel('In total, at most').fill('0.50')
    await page.getByLabel('Per call').fill('0.005')
    await page.getByRole('button', { name: 'Review the change' }).click()
    await page.getByRole('button', { name: 'Change it' }).click()
    await page.getByText('The mandate is changed').waitFor()

    const asked = await uses(program, ['C'])
    const { rows } = await pool.query<{ id: string }>(
      'select approvals.id from approvals join grants on grants.id = grant_id where person_id = (select id from people where email = $1)',
      [person.email],
    )
    assert.equal(rows.length, 1, JSON.stringify(asked.answers))
    assert.deepEqual(
      asked.answers.filter(({ cost_usd }) => cost_usd !== undefined),
      [],
      'nothing is charged unapproved',
    )
    await page.goto(`/approvals/${rows[0]?.id}`)
    await page.getByRole('button', { name: /^Allow once/ }).click()
    await page.getByRole('heading', { name: 'The call is allowed' }).waitFor()
    const allowed = await uses(program, ['C'])
    assert.equal(allowed.answers.at(-1)?.cost_usd, '0.010000000', JSON.stringify(allowed.answers))

    await page.goto(String(refusal.mandate_url))
    await page.getByRole('button', { name: 'End the mandate' }).click()
    await page.getByRole('status').waitFor()
    const ended = wire.exchanges.length
    await program.use('Look up the figures.', [figures('D')]).catch(() => '')
    const after = wire.exchanges.slice(ended)
    assert.ok(after.some(({ status }) => status === 401))
    assert.deepEqual(
      answersOf(after, 'use').filter(({ cost_usd }) => cost_usd !== undefined),
      [],
    )
    await until(async () => (await verifyLedger(pool, [person.accountId])).length === 0, PATIENCE_MS, 'the ledger')
    recordProof('agents-mandates', `${name} ${version}`, {
      ...{
        paid: transcriptOf(paid.exchanges),
        asked: transcriptOf(asked.exchanges),
        asked_said: asked.said.slice(0, 600),
      },
      ...{ allowed: transcriptOf(allowed.exchanges), ended: transcriptOf(after) },
    })
  } finally {
    await visitor.leave()
    await browser.close()
    await program.leave()
  }
}
