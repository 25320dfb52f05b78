import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { answerOf, shapeOf } from '../../harness/example-answers.ts'
import { COMMAND_DEADLINE_MS } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { isTask } from '../../server/src/catalogue/operation.ts'
import { EXAMPLE_ANSWERS } from '../../server/src/site/catalogue/example-answer.ts'
import { makeCustomer } from '../acceptance/installation.ts'
import { linkAccount } from '../acceptance/links/linking.ts'
import { makeAgent } from '../mcp/agents.ts'
import { callRaw } from '../mcp/raw-agent.ts'
import { codeIn } from './page-text.ts'
import { startShownSite } from './shown-site.ts'

const run = promisify(execFile)
const { url: databaseUrl } = await freshDatabase()
const site = await startShownSite(databaseUrl)
after(site.stop)
const customer = await makeCustomer(site.pool)
const agent = await makeAgent(site.pool)
await linkAccount(site.url, customer.secret)
await linkAccount(site.url, agent.secret, 'bob')
const folder = mkdtempSync(path.join(tmpdir(), 'farebox-samples-'))
after(() => rmSync(folder, { recursive: true }))

const options = {
  cwd: folder,
  timeout: COMMAND_DEADLINE_MS,
  env: { ...process.env, BASE_URL: site.url, API_KEY: customer.secret },
}
const STREAMS = new Set(['stream_generate_content'])
const pages = new Map<string, ReadonlyMap<string, string>>()
for (const { id } of catalogue.operations)
  pages.set(id, codeIn(await (await fetch(`${site.siteUrl}/catalogue/${id}?model=sandbox/text`)).text()))

/** Those whose answer tells no cost: tasks, and streams, which tell it in their last frame. */
const WITHOUT_COST = new Set(
  catalogue.operations.filter((operation) => isTask(operation) || STREAMS.has(operation.id)).map(({ id }) => id),
)

function sampleOf(id: string, title: string): string {
  return pages.get(id)?.get(`Code: ${title}`) ?? assert.fail(`${id} has no sample in ${title}`)
}

describe('every sample of the catalogue, run as it stands on the page', () => {
  for (const operation of catalogue.operations) {
    const { id } = operation
    it(`${id}: is answered with the members that its page shows`, async () => {
      const { status, body } = await answerOf(site.url, customer.secret, operation)
      const shown = EXAMPLE_ANSWERS[id]
      assert.deepEqual([status, shapeOf(body)], [shown?.status, shapeOf(shown?.body)], 'run scripts/example-answers.ts')
    })

    it(`${id}: curl is answered with 200`, async () => {
      const { stdout } = await run('bash', ['-c', `${sampleOf(id, 'curl')} --silent --show-error`], options)
      assert.match(stdout, /^HTTP\/1\.1 200 /, stdout)
    })

    it(`${id}: Python, with its standard library alone, prints the cost`, async () => {
      const file = path.join(folder, `${id}.py`)
      writeFileSync(file, sampleOf(id, 'Python'))
      const { stdout } = await run('python3', [file], options)
      // What a task or a stream costs is known at its end; of all else the cost is told, and is 0 for what is free.
      assert.match(stdout, WITHOUT_COST.has(id) ? /^None\n[\s\S]+/ : /^\d+\.\d{9}\n[\s\S]+/)
    })
  }

  it('TypeScript, with the client', async () => {
    // The client stands in a checkout under its sources; the name is what npm installs it under.
    const client = pathToFileURL(path.join(ROOT, 'client/src/index.ts')).href
    const files = catalogue.operations.map(({ id }) => {
      writeFileSync(path.join(folder, `${id}.ts`), sampleOf(id, 'TypeScript').replace('@farebox/client', client))
      return id
    })
    const all = files.map((id) => `await import('./${id}.ts')\nconsole.log('done ${id}')`).join('\n')
    writeFileSync(path.join(folder, 'all.ts'), all)
    const { stdout } = await run(process.execPath, [path.join(folder, 'all.ts')], options)
    const done = [...stdout.matchAll(/^done (\w+)$/gm)].map(([, id]) => id)
    assert.deepEqual(done, files)
  })

  it('as a tool of an agent, for all that agents can call', async () => {
    const agentUrl = site.gateways[0]?.agentUrl ?? ''
    for (const { id } of catalogue.operations) {
      if (STREAMS.has(id)) assert.equal(pages.get(id)?.has('Code: Agent tool'), false)
      else {
        const given = JSON.parse(sampleOf(id, 'Agent tool'))
        const answer = await callRaw(agentUrl, agent.secret, 'use', given)
        assert.ok(!answer.isError, `${id}: ${JSON.stringify(answer.content)}`)
      }
    }
  })
})
