import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { COMMAND_DEADLINE_MS } from '../../harness/gateways.ts'
import { ROOT } from '../../harness/root.ts'
import { freshDatabase } from '../../harness/test-postgres.ts'
import { formatUsd, nanos, usd } from '../../server/src/kernel/money.ts'
import { chargesOf, makeCustomer, startInstallation } from '../acceptance/installation.ts'
import { readPaper } from '../documents/papers.ts'

/** Every program of examples/ as its own process, as a newcomer runs it, against the whole service and its sandbox. */
const FOLDER = path.join(ROOT, 'examples')
const README = 'README.md'
const MONEY = 10_000_000_000n

const { url: databaseUrl } = await freshDatabase()
const installation = await startInstallation(databaseUrl)
after(installation.stop)
const { pool } = installation

type Ran = {
  readonly stdout: string
  /** What a line of its output says, such as `cost: … USD`. There is one such line. */
  readonly said: (line: RegExp) => string
  readonly cost: bigint
  /** The one call that was charged. */
  readonly callId: string
}

const TOKENS = /^tokens: ([1-9]\d* in, [1-9]\d* out)$/m

/** What each has to show, beside one charge that is the cost which it prints. */
const SHOWS: Readonly<Record<string, (ran: Ran) => void | Promise<void>>> = {
  'curl-stream.sh': ({ stdout }) => {
    const frames = stdout.match(/^data: \{.*$/gm) ?? []
    const texts = frames.map((frame) => JSON.parse(frame.slice('data: '.length)).choices[0]?.delta.content ?? '')
    assert.equal(texts.join(''), 'Echo: Hello from curl')
    assert.match(stdout, /^data: \[DONE\]$/m)
  },
  'openai-sdk.ts': ({ said }) => {
    said(TOKENS)
    said(/^(Echo: Hello from the OpenAI SDK)$/m)
  },
  'anthropic-sdk.ts': ({ said }) => {
    said(TOKENS)
    said(/^(Echo: Hello from the Anthropic SDK)$/m)
  },
  'gemini-sdk.ts': ({ said }) => {
    said(TOKENS)
    said(/^(Echo: Hello from the Google SDK)$/m)
  },
  'quote-and-cap.ts': async ({ stdout, said, cost, callId }) => {
    assert.ok(cost <= usd(said(/^quote: .* USD expected, (.*) USD at most$/m)))
    const ranked = [...stdout.matchAll(/^\d\.\d{3} (.*)$/gm)].map(([, text]) => text)
    assert.deepEqual(ranked, ['a fox', 'a snail', 'a stone'])
    const { rows } = await pool.query("select 1 from claims where call_id = $1 and scope = 'quote'", [callId])
    assert.equal(rows.length, 1, 'it was charged by the quote')
  },
  'video-task.ts': ({ stdout, said, callId, cost }) => {
    assert.equal(said(/^task: (.*)$/m), callId)
    assert.equal(said(/^held: (.*) USD$/m), '0.500000000')
    assert.equal(cost, usd('0.5'), 'five seconds at 0.10 USD')
    assert.match(stdout, /^\d+ s: SUCCEEDED$/m)
    said(/^video: (http:\S+)$/m)
  },
  'idempotency.ts': ({ said, callId, cost }) => {
    assert.equal(said(/^first: a fox, request (.*)$/m), callId)
    const second = /^second: idempotency_completed, (request .*, charged before: .*) USD$/m
    assert.equal(said(second), `request ${callId}, charged before: ${formatUsd(nanos(cost))}`)
    assert.equal(said(/^balance: (.*) USD$/m), formatUsd(nanos(MONEY - cost)))
  },
}

function run(name: string, variables: Readonly<Record<string, string>>) {
  const { FAREBOX_URL: _, FAREBOX_KEY: __, ...env } = process.env
  return promisify(execFile)(name.endsWith('.sh') ? 'bash' : process.execPath, [path.join('examples', name)], {
    cwd: ROOT,
    env: { ...env, ...variables },
    timeout: COMMAND_DEADLINE_MS,
  })
}

describe('the examples', () => {
  const programs = readdirSync(FOLDER).filter((name) => name !== README)

  it('are those that are run here, each of them', () => {
    assert.deepEqual(programs.toSorted(), Object.keys(SHOWS).toSorted())
  })

  it('are all in their README, with the command that runs them', () => {
    const text = readFileSync(path.join(FOLDER, README), 'utf8')
    const { links } = readPaper(text)
    for (const name of programs) {
      assert.ok(links.includes(name), `examples/README.md does not link to ${name}`)
      const command = `${name.endsWith('.sh') ? 'bash' : 'node'} examples/${name}`
      assert.ok(text.includes(`\`${command}\``), `examples/README.md does not say ${command}`)
    }
  })

  for (const [name, show] of Object.entries(SHOWS)) {
    it(`${name} prints what it got and what it cost, which is what the ledger has`, async () => {
      const customer = await makeCustomer(pool, { money: MONEY })
      const { stdout, stderr } = await run(name, { FAREBOX_URL: installation.url, FAREBOX_KEY: customer.secret })
      assert.equal(stderr, '')
      const said = (line: RegExp) => {
        const found = [...stdout.matchAll(new RegExp(line, 'gm'))]
        assert.equal(found.length, 1, `${line} in:\n${stdout}`)
        return found[0]?.[1] ?? ''
      }
      const cost = usd(said(/^cost: (\d+\.\d{9}) USD$/m))
      const charges = [...(await chargesOf(pool, customer.accountId))]
      assert.deepEqual(
        charges.map(([, amount]) => amount),
        [cost],
      )
      assert.ok(cost > 0n)
      const { rows } = await pool.query('select 1 from holds where account_id = $1', [customer.accountId])
      assert.equal(rows.length, 0, 'nothing stays held')
      await show({ stdout, said, cost, callId: charges[0]?.[0] ?? '' })
    })

    it(`${name} says what to set where the environment does not have it`, async () => {
      for (const variables of [{}, { FAREBOX_URL: installation.url }])
        await assert.rejects(run(name, variables), ({ stderr }) => {
          assert.match(String(stderr), /Set FAREBOX_URL|Set FAREBOX_KEY/)
          return true
        })
    })
  }
})
