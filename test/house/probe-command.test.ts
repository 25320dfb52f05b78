import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, beforeEach, describe, it } from 'node:test'
import { COMMAND_DEADLINE_MS, FAREBOX, startGateway } from '../../harness/gateways.ts'
import { startSandbox } from '../../harness/sandbox.ts'
import {
  CONVERSATION_PROTOCOLS,
  CONVERSATION_SLOTS,
  type ConversationProtocol,
  makeMasterKey,
} from '../../harness/seed.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { until } from '../../harness/until.ts'
import type { JournalEntry } from '../../sandbox/src/journal.ts'
import { ask, makeCustomer } from '../acceptance/installation.ts'
import { connect } from '../ledger/world.ts'
import { type Ended, startShell } from './command-shell.ts'

const database = await freshDatabase()
const { pools } = connect(database.url)
const pool = pools.rest
after(() => pools.close())
const sandbox = await startSandbox()
after(() => sandbox.stop())
beforeEach(() => sandbox.emptyJournal())
const folder = mkdtempSync(path.join(tmpdir(), 'probe-command-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const masterKey = makeMasterKey().reveal()
const env = { ...process.env, FAREBOX_DATABASE_URL: database.url, FAREBOX_SECRETS_MASTER_KEY: masterKey }
const { farebox, said } = startShell(env)

const SANDBOX_KEY = 'sandbox-key'

/** USD for a token of the model below. */
const PRICE = { input: 0.5e-6, output: 2e-6 }
const BUDGET_USD = 0.05
let made = 0

type Made = { readonly model: string; readonly slot: string; readonly probe: readonly string[] }

/** A model with one route to an upstream at this address. */
async function makeModel(protocol: ConversationProtocol, baseUrl: string, key = SANDBOX_KEY): Promise<Made> {
  made += 1
  const [model, slot] = [`maker/${made}`, `vendor_${made}`]
  const file = path.join(folder, `key-${made}`)
  writeFileSync(file, key)
  await said('models', 'set', model, '--context-window', '200000', '--output-cap', '4096', '--output-most', '64000')
  await said('models', 'price', model, '--input', '0.50', '--output', '2')
  const route = ['models', 'route', model, '--slot', slot, '--protocol', protocol]
  await said(...route, '--upstream-model', 'sandbox/text')
  await said('upstreams', 'add', slot, baseUrl, '--test', '--credential-file', file)
  return { model, slot, probe: ['upstreams', 'probe', slot, '--model', model, '--test'] }
}

async function profileOf(model: string): Promise<unknown> {
  const { rows } = await pool.query(
    'select output_limit, unknown_members, reasoning, on_abort from model_routes where model = $1',
    [model],
  )
  return rows
}

const PLAIN = { output_limit: null, unknown_members: 'refuse', reasoning: 'within', on_abort: 'runs_on' }

/** What the vendor charges for everything that it was asked. */
async function billed(): Promise<number> {
  const isOver = ({ outcome }: JournalEntry) => outcome !== 'open'
  await until(async () => (await sandbox.journal()).every(isOver), COMMAND_DEADLINE_MS, 'that all answers are over')
  let sum = 0
  for (const { bill } of await sandbox.journal())
    sum += (bill?.input ?? 0) * PRICE.input + (bill?.output ?? 0) * PRICE.output
  return sum
}

/** The verdict of each experiment in what the command prints. */
function verdictsIn(output: string): Readonly<Record<string, string>> {
  const rows = output.split('\n').filter((line) => line.startsWith('  '))
  return Object.fromEntries(
    rows.map((row) => {
      const cells = row.trim().split(/ {2,}/)
      return [cells[0], cells[3] ?? '']
    }),
  )
}

type Expected = {
  readonly words: readonly string[]
  readonly protocol: ConversationProtocol
  readonly profile?: { readonly output_limit?: string; readonly reasoning?: 'apart' }
  readonly verdicts?: Readonly<Record<string, RegExp>>
  readonly says?: RegExp
}

const UNBOUNDED = /Warning: no output limit works here/
const [MAX_TOKENS, MAX_COMPLETION] = ['limit max_tokens', 'limit max_completion_tokens']
const [MAX_OUTPUT, MAX_OUTPUT_SNAKE] = ['limit maxOutputTokens', 'limit max_output_tokens']
const EXACT = /^accepts names as written only$/
const FOLDS = /^accepts names in any case$/

const DEVIANTS: readonly Expected[] = [
  {
    words: [],
    protocol: 'openai',
    verdicts: {
      [MAX_TOKENS]: /^obeyed$/,
      [MAX_COMPLETION]: /^obeyed$/,
      case: EXACT,
      reasoning: /^within the output$/,
      abort: /^usage at disconnect: nothing$/,
      answer: /^ordinary size, 3\.\d bytes per token$/,
    },
  },
  {
    words: [],
    protocol: 'anthropic',
    verdicts: { [MAX_TOKENS]: /^obeyed$/, case: EXACT, abort: /^usage at disconnect: input$/ },
  },
  {
    words: [],
    protocol: 'gemini',
    verdicts: {
      [MAX_OUTPUT]: /^obeyed$/,
      [MAX_OUTPUT_SNAKE]: /^obeyed$/,
      case: EXACT,
      abort: /^usage at disconnect: input and output$/,
    },
  },
  {
    words: [],
    protocol: 'openai_responses',
    verdicts: {
      [MAX_OUTPUT_SNAKE]: /^obeyed$/,
      case: EXACT,
      reasoning: /^within the output$/,
      abort: /^usage at disconnect: nothing$/,
      answer: /^ordinary size, 3\.\d bytes per token$/,
    },
  },
  {
    words: ['ignores-max-output-tokens'],
    protocol: 'openai_responses',
    verdicts: { [MAX_OUTPUT_SNAKE]: /^ignored$/ },
    says: UNBOUNDED,
  },
  {
    words: ['reasoning-apart'],
    protocol: 'openai_responses',
    profile: { reasoning: 'apart' },
    verdicts: { [MAX_OUTPUT_SNAKE]: /^obeyed$/, reasoning: /^apart from the output$/ },
  },
  {
    words: ['ignores-max-tokens'],
    protocol: 'openai',
    profile: { output_limit: 'max_completion_tokens' },
    verdicts: { [MAX_TOKENS]: /^ignored$/, [MAX_COMPLETION]: /^obeyed$/, case: EXACT },
  },
  {
    words: ['ignores-max-completion-tokens'],
    protocol: 'openai',
    profile: { output_limit: 'max_tokens' },
    verdicts: { [MAX_TOKENS]: /^obeyed$/, [MAX_COMPLETION]: /^ignored$/, case: EXACT },
  },
  { words: ['ignores-max-tokens'], protocol: 'anthropic', verdicts: { [MAX_TOKENS]: /^ignored$/ }, says: UNBOUNDED },
  {
    words: ['ignores-max-output-tokens'],
    protocol: 'gemini',
    verdicts: { [MAX_OUTPUT]: /^ignored$/, [MAX_OUTPUT_SNAKE]: /^ignored$/ },
    says: UNBOUNDED,
  },
  {
    words: ['ignores-limits'],
    protocol: 'openai',
    verdicts: { [MAX_TOKENS]: /^ignored$/, [MAX_COMPLETION]: /^ignored$/, case: EXACT },
    says: UNBOUNDED,
  },
  ...CONVERSATION_PROTOCOLS.map((protocol) => ({ words: ['folds-case'], protocol, verdicts: { case: FOLDS } })),
  { words: ['folds-case', 'ignores-limits'], protocol: 'openai', verdicts: { case: FOLDS }, says: UNBOUNDED },
  {
    words: ['reasoning-apart'],
    protocol: 'openai',
    profile: { reasoning: 'apart' },
    verdicts: { [MAX_TOKENS]: /^obeyed$/, reasoning: /^apart from the output$/ },
  },
  {
    words: ['reasoning-apart', 'ignores-max-tokens', 'folds-case'],
    protocol: 'openai',
    profile: { reasoning: 'apart', output_limit: 'max_completion_tokens' },
    verdicts: { case: FOLDS },
  },
  ...CONVERSATION_PROTOCOLS.map((protocol) => ({
    words: ['large-replies'],
    protocol,
    verdicts: { answer: /^large reply, / },
    says: /Warning: replies are large: 8\d{6} bytes/,
  })),
  { words: ['over-reports'], protocol: 'openai', says: /Warning: the tokens that it reports do not match/ },
  { words: ['under-reports'], protocol: 'openai', says: /Warning: the tokens that it reports do not match/ },
  // Nobody outside can see what becomes of the meter: the safe side stays.
  { words: ['keeps-running-on-abort'], protocol: 'openai', says: /cannot be measured from outside/ },
  { words: ['stops-on-abort'], protocol: 'openai', says: /cannot be measured from outside/ },
]

describe('farebox upstreams probe', () => {
  for (const { words, protocol, profile = {}, verdicts = {}, says = /^Profile: /m } of DEVIANTS)
    it(`finds and writes the profile of ${protocol}, ${words.join(' and ') || 'plain'}, for under 0.05 USD`, async () => {
      const slot = CONVERSATION_SLOTS[protocol]
      const baseUrl = words.length === 0 ? `${sandbox.url}/${slot}` : sandbox.deviant(slot, ...words)
      const { model, probe } = await makeModel(protocol, baseUrl)
      const output = await said(...probe, '--write')
      assert.deepEqual(await profileOf(model), [{ ...PLAIN, ...profile }], output)
      const found = verdictsIn(output)
      for (const [name, verdict] of Object.entries(verdicts)) assert.match(found[name] ?? '', verdict, output)
      assert.match(output, says)
      if (says !== UNBOUNDED) assert.doesNotMatch(output, UNBOUNDED)
      const cost = await billed()
      assert.ok(cost > 0 && cost < BUDGET_USD, `${cost}`)
      const [, most = ''] = /Spent \S+ USD as reported or counted, at most (\S+) USD\./.exec(output) ?? []
      assert.ok(cost <= Number(most) && Number(most) <= BUDGET_USD, `${cost} of ${most}`)
    })

  it('writes nothing unless it is told to, and prints the command that does', async () => {
    const { model, probe } = await makeModel('openai', sandbox.deviant('openai', 'ignores-max-tokens'))
    const output = await said(...probe)
    assert.deepEqual(await profileOf(model), [PLAIN])
    const [, command = ''] =
      /^To write the profile, add --write, or run: farebox (models route .*)$/m.exec(output) ?? []
    assert.notEqual(command, '', output)
    await said(...command.split(' '))
    assert.deepEqual(await profileOf(model), [{ ...PLAIN, output_limit: 'max_completion_tokens' }])
  })

  it('keeps what it can not measure as the operator has set it', async () => {
    const { model, slot, probe } = await makeModel('openai', `${sandbox.url}/openai`)
    const route = ['models', 'route', model, '--slot', slot, '--protocol', 'openai', '--upstream-model', 'sandbox/text']
    await said(...route, '--on-abort', 'stops', '--unknown', 'pass', '--output-limit', 'max_tokens')
    await said(...probe, '--write')
    assert.deepEqual(await profileOf(model), [{ ...PLAIN, on_abort: 'stops', unknown_members: 'pass' }])
  })

  it('asks nothing within a budget that is too small, and says what is needed', async () => {
    const { model, probe } = await makeModel('openai', `${sandbox.url}/openai`)
    const { code, output } = await farebox(...probe, '--budget-usd', '0.00001', '--write')
    assert.equal(code, 1)
    assert.match(output, /a budget of 0\.00001 USD is too small: the first request can cost 0\.00\d+/)
    assert.deepEqual(await sandbox.journal(), [])
    assert.deepEqual(await profileOf(model), [PLAIN])
  })

  it('begins no question that could pass the budget, and writes only what it has measured', async () => {
    const { model, probe } = await makeModel('openai', sandbox.deviant('openai', 'ignores-max-tokens'))
    const output = await said(...probe, '--budget-usd', '0.003', '--write')
    assert.match(output, /^ {2}limit max_tokens: skipped, because it could exceed the budget$/m)
    assert.match(output, /output limit none \(not measured\)/)
    assert.deepEqual(await profileOf(model), [PLAIN])
    assert.equal((await sandbox.journal()).filter(({ bill }) => bill !== null).length > 0, true)
    assert.ok((await billed()) <= 0.003)
  })

  it('concludes nothing from a vendor that refuses everything', async () => {
    const { model, probe } = await makeModel('openai', `${sandbox.url}/openai`)
    await sandbox.fault('openai', ['status=404'], 3)
    const { code, output } = await farebox(...probe, '--write')
    assert.equal(code, 1)
    assert.match(output, /nothing was written: none of its answers could be read \(status 404\)/)
    assert.equal((await sandbox.journal()).length, 3)
    assert.deepEqual(await profileOf(model), [PLAIN])
  })

  it('takes a name that is refused for one that can not be sent', async () => {
    const { model, probe } = await makeModel('openai', `${sandbox.url}/openai`)
    await sandbox.fault('openai', ['status=400'], 1)
    const output = await said(...probe, '--write')
    assert.equal(verdictsIn(output)['limit max_completion_tokens'], 'refused')
    assert.deepEqual(await profileOf(model), [{ ...PLAIN, output_limit: 'max_tokens' }])
  })

  for (const [what, args, says] of [
    ['no such model', ['--model', 'none'], /there is no model "none"/],
    ['a protocol that it has no route of', ['--protocol', 'gemini'], /has no route to \S+ in protocol gemini/],
    ['a budget that is none', ['--budget-usd', 'much'], /not a plain decimal number: "much"/],
    [
      'an upstream that the slot does not have',
      ['--upstream', '01a1dd7c-3f6a-7000-93b4-661a883f55ec'],
      /has no upstream/,
    ],
  ] as const)
    it(`says what is wrong with ${what}, and asks nothing`, async () => {
      const { probe } = await makeModel('openai', `${sandbox.url}/openai`)
      const { code, output } = await farebox(...probe, ...args)
      assert.equal(code, 1, output)
      assert.match(output, says)
      assert.deepEqual(await sandbox.journal(), [])
    })

  it('needs an upstream of the mode, and a price', async () => {
    const { model, slot, probe } = await makeModel('openai', `${sandbox.url}/openai`)
    const live = await farebox('upstreams', 'probe', slot, '--model', model)
    assert.match(live.output, /\S+ has no upstream in live mode/)
    await pool.query('delete from model_prices where model = $1', [model])
    assert.match((await farebox(...probe)).output, /has no price per token/)
    assert.deepEqual(await sandbox.journal(), [])
  })

  it('changes what the next call through a gateway sends', async () => {
    const { model, probe } = await makeModel('openai', sandbox.deviant('openai', 'ignores-max-tokens'))
    const gateway = await startGateway({ databaseUrl: database.url, env: { FAREBOX_SECRETS_MASTER_KEY: masterKey } })
    after(() => gateway.stop())
    const { secret } = await makeCustomer(pool)
    const messages = [{ role: 'user', content: 'a story' }]
    const outputOf = async () => {
      const { status, json, text } = await ask(gateway.url, secret, '/v1/chat/completions', {
        body: { model, messages, max_tokens: 8 },
      })
      assert.equal(status, 200, text)
      return Number(Object(json.usage).completion_tokens)
    }
    assert.ok((await outputOf()) > 8)
    await said(...probe, '--write')
    await until(
      async () => (await outputOf()) === 8,
      COMMAND_DEADLINE_MS,
      'that the gateway sends the limit that works',
    )
  })

  it('records what the sandbox can replay, with the same verdicts', async () => {
    const words = ['ignores-max-completion-tokens', 'reasoning-apart', 'folds-case', 'large-replies=300000']
    const recordings = path.join(folder, 'a-vendor')
    const first = await makeModel('openai', sandbox.deviant('openai', ...words))
    const output = await said(...first.probe, '--record', recordings)
    assert.match(output, /^6 recordings written to /m)
    assert.equal(readdirSync(recordings).length, 6)
    const player = await startSandbox({ replay: [recordings] })
    after(() => player.stop())
    const second = await makeModel('openai', `${player.url}/replay/a-vendor`)
    const replayed = await said(...second.probe, '--write')
    assert.deepEqual(verdictsIn(replayed), verdictsIn(output))
    assert.match(output, /reasoning apart/)
    assert.deepEqual(await profileOf(second.model), [{ ...PLAIN, output_limit: 'max_tokens', reasoning: 'apart' }])
    const answered = (await player.journal()).map(({ status }) => status)
    assert.deepEqual(answered, Array(6).fill(200))
    const strange = await fetch(`${player.url}/replay/a-vendor/v1/chat/completions`, { method: 'POST', body: '{}' })
    assert.equal(strange.status, 404)
  })

  it('records the other protocols too, streams that were left included', async () => {
    for (const protocol of ['openai_responses', 'anthropic', 'gemini'] as const) {
      const recordings = path.join(folder, `plain-${protocol}`)
      const first = await makeModel(protocol, `${sandbox.url}/${CONVERSATION_SLOTS[protocol]}`)
      const output = await said(...first.probe, '--record', recordings)
      const player = await startSandbox({ replay: [recordings] })
      after(() => player.stop())
      const second = await makeModel(protocol, `${player.url}/replay/plain-${protocol}`)
      assert.deepEqual(verdictsIn(await said(...second.probe)), verdictsIn(output))
    }
  })
})

describe('a credential', () => {
  const CANARY = 'sk-canary-5f0c1d7e9b3a4c68'
  const ORGANISATION = 'org-canary1234567'

  /** Runs a line in a process of its own, as an operator does. */
  function program(...args: readonly string[]): Promise<Ended> {
    return new Promise((resolve) => {
      execFile(process.execPath, [FAREBOX, ...args], { env, timeout: COMMAND_DEADLINE_MS }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code ?? -1), output: stdout + stderr })
      })
    })
  }

  /** A vendor that gives back all that it is told, in its headers and wherever a body has room. */
  async function startEcho(status: number): Promise<string> {
    const server = createServer((request, response) => {
      const told = request.headers.authorization ?? ''
      const usage = { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 }
      const message = {
        role: 'assistant',
        content: `You said ${told}, ${encodeURIComponent(told)}, of ${ORGANISATION}.`,
      }
      const body = { id: told, organization: ORGANISATION, choices: [{ message, finish_reason: told }], usage }
      const error = { message: `Wrong key ${told} of ${ORGANISATION}`, code: told }
      response.writeHead(status, {
        'content-type': `application/json; key="${told}"`,
        'x-request-id': told,
        'openai-organization': ORGANISATION,
      })
      response.end(JSON.stringify(status < 300 ? body : { error }))
    })
    after(() => server.close())
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    return `http://127.0.0.1:${port}`
  }

  for (const status of [200, 400, 401, 500])
    it(`is in no output and no file, though the vendor repeats it with status ${status}`, async () => {
      const recordings = path.join(folder, `echo-${status}`)
      const { probe } = await makeModel('openai', await startEcho(status), CANARY)
      const { code, output } = await program(...probe, '--record', recordings, '--write')
      assert.equal(code, status < 400 ? 0 : 1, output)
      const files = status < 401 ? readdirSync(recordings) : []
      assert.equal(files.length > 0, status < 401)
      for (const text of [output, ...files.map((name) => readFileSync(path.join(recordings, name), 'utf8'))]) {
        assert.ok(!text.includes(CANARY) && !text.includes('canary'), text)
      }
    })

  it('that is wrong is told by the status alone', async () => {
    const { probe } = await makeModel('openai', `${sandbox.url}/openai`, CANARY)
    const { code, output } = await program(...probe)
    assert.equal(code, 1)
    assert.match(output, /the first request of the probe failed: it answered with status 401/)
    assert.ok(!output.includes('canary'))
  })
})
