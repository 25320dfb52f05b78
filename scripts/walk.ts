import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { request } from 'undici'
import { median } from '../bench/bench.ts'
import { freePort } from '../harness/free-port.ts'
import { countFunctions, type FunctionCounts } from '../harness/function-counts.ts'
import { startPostgres } from '../harness/postgres.ts'
import { writeProof } from '../harness/proof-file.ts'
import { scriptArguments } from '../harness/script-arguments.ts'
import { Secret } from '../server/src/kernel/secret.ts'
import { migrate } from '../server/src/storage/migrate.ts'
import { silentLog } from '../server/src/telemetry/log.ts'
import { makeKey } from '../test/acceptance/installation.ts'
import { ask, type House, makeTeam, startHouse } from '../test/account/house.ts'
import { makeAgent } from '../test/mcp/agents.ts'
import { callRaw } from '../test/mcp/raw-agent.ts'
import { createVisitor, hiddenIn } from '../test/people/visitor.ts'

/**
 * `npm run walk [-- --record] [--files]`: how far one travels through server/src to follow a request. It makes each of four requests many times, and
 * counts the files and functions that run for one once the process is warm. What runs while nobody asks is subtracted.
 */
const { values: flags } = scriptArguments(
  'Usage: npm run walk [-- --record] [--files]: files and functions of server/src that run for one warm request; with --files also which.',
  { record: { type: 'boolean', default: false }, files: { type: 'boolean', default: false } },
)

/** Counted by this program on 724c812e, of 19 November 2026. */
const BEFORE: Readonly<Record<string, readonly [files: number, functions: number]>> = {
  'chat stream': [129, 662],
  'use by an agent': [118, 514],
  'sign-up, with its mail': [61, 214],
  'PATCH of a key': [58, 194],
}

const WARM = 30
const ROUNDS = 11
/** Longer than what follows a request behind its answer takes: records, usage, the mail. */
const WINDOW_MS = 2_500

const postgres = await startPostgres()
await migrate({ url: new Secret(postgres.url()), log: silentLog })
const inspectorPort = await freePort()
const house = await startHouse(postgres.url(), {
  env: { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}`, FAREBOX_PEOPLE_SIGN_UP: 'open' },
})
try {
  const counting = await countFunctions(inspectorPort)
  const walks = await walksOf(house)
  for (const { prepare } of walks) for (let at = 0; at < WARM; at += 1) await (await prepare())()
  const during = async (work: () => Promise<void>): Promise<FunctionCounts> => {
    await counting.take()
    const until = sleep(WINDOW_MS)
    await work()
    await until
    return counting.take()
  }
  const idle: FunctionCounts[] = []
  const ran = new Map(walks.map(({ name }) => [name, [] as FunctionCounts[]]))
  for (let round = 0; round < ROUNDS; round += 1) {
    idle.push(await during(async () => {}))
    for (const { name, prepare } of walks) ran.get(name)?.push(await during(await prepare()))
  }
  counting.stop()
  const results = walks.map(({ name }) => ({ name, places: placesOf(ran.get(name) ?? [], idle) }))
  show(results)
  if (flags.record) record(results)
} finally {
  await house.stop()
  await postgres.remove()
}

/** What is asked once; `prepare` makes what has to be there before, which is not counted. */
type Walk = { readonly name: string; readonly prepare: () => Promise<() => Promise<void>> }
type Result = { readonly name: string; readonly places: readonly string[] }

async function walksOf({ gateway, pool, siteUrl, sandbox }: House): Promise<readonly Walk[]> {
  const team = await makeTeam(pool)
  const agent = await makeAgent(pool)
  // Not the key that makes calls, which would be looked up again after each change.
  const { keyId } = await makeKey(pool, team.workspaceId)
  const path = `/workspaces/${team.workspaceId}/keys/${keyId}`
  let people = 0
  let changes = 0
  return [
    {
      name: 'chat stream',
      prepare: async () => async () => {
        const body = {
          model: 'sandbox/text',
          stream: true,
          max_tokens: 20,
          messages: [{ role: 'user', content: 'Hello' }],
        }
        const answer = await request(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${team.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        assert.match(await answer.body.text(), /\[DONE\]/)
      },
    },
    {
      name: 'use by an agent',
      prepare: async () => async () => {
        const given = { operation_id: 'tag_detail', arguments: { tag_name: 'cats' }, max_price_usd: 1 }
        const { isError, content } = await callRaw(`${gateway.agentUrl}/mcp`, agent.secret, 'use', given)
        assert.equal(isError, false, JSON.stringify(content))
      },
    },
    {
      name: 'sign-up, with its mail',
      async prepare() {
        people += 1
        const email = `walker-${people}@harbour.example`
        const fields = { name: 'Walker', email, password: 'a long walk by the harbour' }
        const visitor = createVisitor({ url: siteUrl })
        const { text: page } = await visitor.get('/sign-up')
        return async () => {
          const { status, text } = await visitor.post('/sign-up', { ...hiddenIn(page, '/sign-up'), ...fields })
          assert.ok(status < 400, text)
          while ((await sandbox.mail(email)).length === 0) await sleep(20)
        }
      },
    },
    {
      name: 'PATCH of a key',
      prepare: async () => async () => {
        changes += 1
        const headers = { 'if-match': '*' }
        const told = await ask(siteUrl, team.of('owner'), path, {
          method: 'PATCH',
          body: { rates: { requests_per_minute: 1_000 + changes, tokens_per_minute: null, concurrency: null } },
          headers,
        })
        assert.equal(told.status, 200, told.text)
      },
    },
  ]
}

/** Functions that run more often in most windows with the request than in any without. */
function placesOf(windows: readonly FunctionCounts[], idle: readonly FunctionCounts[]): readonly string[] {
  const all = new Set(windows.flatMap((counts) => [...counts.keys()]))
  const usually = (place: string) => median(windows.map((counts) => counts.get(place) ?? 0))
  const idly = (place: string) => Math.max(...idle.map((counts) => counts.get(place) ?? 0))
  return [...all].filter((place) => usually(place) > idly(place)).sort()
}

function filesOf({ places }: Result): readonly string[] {
  return [...new Set(places.map((place) => place.split(':')[0] ?? place))]
}

function show(results: readonly Result[]): void {
  console.log(`${''.padEnd(24)}  files  functions   before: files  functions`)
  for (const result of results) {
    const { name, places } = result
    const [files, functions] = BEFORE[name] ?? [0, 0]
    const now = [filesOf(result).length, places.length].map(String)
    console.log(
      `${name.padEnd(24)}  ${now[0]?.padStart(5)}  ${now[1]?.padStart(9)}   ${String(files).padStart(13)}  ${String(functions).padStart(9)}`,
    )
    if (flags.files) for (const file of filesOf(result)) console.log(`    ${file}`)
  }
}

function record(results: readonly Result[]): void {
  const walks = results.map((result) => {
    const [files, functions] = BEFORE[result.name] ?? [0, 0]
    return {
      ...{ walk: result.name, files: filesOf(result).length, functions: result.places.length },
      before: { commit: '724c812e', files, functions },
      in_files: filesOf(result),
    }
  })
  writeProof('walk', { program: 'scripts/walk.ts', walks })
}
