import assert from 'node:assert/strict'
import { after } from 'node:test'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import { makeCustomer } from '../acceptance/installation.ts'
import { linkAccount } from '../acceptance/links/linking.ts'
import { ask, letIn, makeTeam, startHouse, type Team } from '../account/house.ts'
import { startShell } from '../house/command-shell.ts'
import { bareEnvironment } from '../house/run-farebox.ts'
import { makeAgent } from '../mcp/agents.ts'

/** That only a hang meets. */
const PATIENCE_MS = 120_000
/** As much as `npm run dev` gives. */
const MONEY = 100_000_000_000n

/**
 * What a reader of the papers has: a running service with its sandbox, a key with test money, the command `farebox`, and what the papers
 * leave blank for the reader to fill in.
 */
export async function startReadersHouse(folder: string) {
  const database = await freshDatabase()
  const house = await startHouse(database.url)
  after(house.stop)
  const { gateway, pool, sandbox, siteUrl } = house
  const { farebox } = startShell({ ...bareEnvironment(), FAREBOX_DATABASE_URL: database.url, ...house.env }, folder)
  // The first account that there is: the papers take it from the head of the list.
  await makeCustomer(pool, { money: MONEY })
  const team = await makeTeam(pool, ['owner'])
  const { memberId, personId } = team.of('owner')
  await pool.query("update members set email = 'jo@example.com' where id = $1", [memberId])
  const agent = await makeAgent(pool)
  const client = await letIn(house, team.workspaceId, { personId })
  const set = await farebox('budgets', 'set', team.workspaceId, '7/day', '--tag', 'team=billing')

  /** The customer who reads a paper: what another paper has spent is not theirs. */
  async function customerOf(paper: string) {
    const { secret } = await makeCustomer(pool, { money: MONEY })
    if (paper === 'docs/links.md') await linkAccount(gateway.url, secret)
    return { API_KEY: secret, FAREBOX_KEY: secret }
  }

  async function askForQuota({ workspaceId, of }: Team): Promise<string> {
    const body = { requests_per_minute: 6_000, tokens_per_minute: 1_000_000, targets: ['rerank'], use_case: 'Search' }
    const told = await ask(siteUrl, of('owner'), `/workspaces/${workspaceId}/quota-requests`, { method: 'POST', body })
    assert.equal(told.status, 201, told.text)
    return String(told.json.id)
  }

  async function makeExport(): Promise<string> {
    const exports = `/workspaces/${team.workspaceId}/exports`
    const { json } = await ask(siteUrl, client, exports, { method: 'POST' })
    const isReady = async () => (await ask(siteUrl, client, `${exports}/${json.id}`)).json.state === 'ready'
    await until(isReady, PATIENCE_MS, 'that the export is ready')
    return String(json.id)
  }

  return {
    farebox,
    customerOf,
    sandboxUrl: sandbox.url,
    /** The variables that papers name. */
    variables: {
      ...{ BASE_URL: gateway.url, FAREBOX_URL: gateway.url },
      ...{ SITE_URL: siteUrl, WORKSPACE: team.workspaceId, TOKEN: client.token, EXPORT: await makeExport() },
    },
    /** What stands for a blank, in all papers or in one. */
    blanks: {
      '<account>': team.workspaceId,
      '<key>': team.keyId,
      '<member>': memberId,
      '<budget>': /[0-9a-f-]{36}/.exec(set.stdout)?.[0] ?? assert.fail(set.output),
      '<request>': await askForQuota(team),
      '<another request>': await askForQuota(await makeTeam(pool, ['owner'])),
      '{base_url}': gateway.url,
      // Addresses of examples, which nobody has here.
      'http://127.0.0.1:8701': sandbox.url,
      'https://api.vendor.example': `${sandbox.url}/openai`,
    },
    blanksOf: { 'docs/agents.md': { '<key>': agent.secret, '<mcp_url>': `${gateway.agentUrl}/mcp` } } as Readonly<
      Record<string, Readonly<Record<string, string>>>
    >,
  }
}
