import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ANSWERS } from './answers.ts'
import { ASK, askFor, type Question, startTestSandbox, type TestSandbox } from './test-sandbox.ts'
import { UPSTREAM_NAMES } from './upstream.ts'

let sandbox: TestSandbox
before(async () => {
  sandbox = await startTestSandbox()
})
after(() => sandbox.stop())

/** What is in a vendor's own errors. */
const ERROR_MEMBERS = {
  rerank: ['detail'],
  reseller: ['code', 'request_id', 'message', 'message_zh', 'support', 'time', 'time_stamp', 'time_zone', 'docs'],
  comments: ['success', 'error', 'errorStatus'],
  quotes: ['error', 'message', 'status'],
  traffic: ['meta'],
  deep_research: ['error'],
  openai: ['error'],
  anthropic: ['type', 'error', 'request_id'],
  gemini: ['error'],
  video: ['code', 'message', 'request_id'],
  platform: ['error', 'error_description'],
} as const
const PLAIN = ['error', 'message']
const membersOf = (name: string): readonly string[] =>
  new Map<string, readonly string[]>(Object.entries(ERROR_MEMBERS)).get(name) ?? PLAIN

type Case = { readonly name: string; readonly what: string; readonly ask: Question & { readonly headers: object } }

const CASES: readonly Case[] = [
  ...UPSTREAM_NAMES.map((name) => ({ name, what: name, ask: ASK[name] })),
  ...ANSWERS.map((one) => ({
    name: one.upstream,
    what: `${one.upstream} ${one.method} ${one.path}`,
    ask: askFor(one),
  })),
]

describe('every upstream', () => {
  for (const { name, what, ask } of CASES) {
    it(`${what} answers the right key, and 401 in its own words without it or with another`, async () => {
      assert.equal((await sandbox.ask(ask)).status, 200)
      const [header = ''] = Object.keys(ask.headers)
      for (const headers of [
        {},
        { [header]: 'sandbox-key-2' },
        { [header]: 'Bearer sandbox-key-2' },
        { cookie: 'a' },
      ]) {
        const refused = await sandbox.ask({ ...ask, headers })
        assert.equal(refused.status, 401)
        for (const member of membersOf(name)) assert.ok(member in refused.json(), member)
      }
    })

    it(`${what} refuses another method with 405, and does not know another path`, async () => {
      const method = 'body' in ask ? 'GET' : 'POST'
      const { path, headers } = ask
      assert.equal((await sandbox.ask({ path, headers, method })).status, 405)
      assert.equal((await sandbox.ask({ path: `/${name}/v9/nothing`, headers })).status, 404)
    })

    it(`${what} gives the same request the same answer, and another seed another one`, async () => {
      const frozen = { nowMs: () => 1_790_000_000_000 }
      const [one, same, other] = await Promise.all([
        startTestSandbox({ seed: 5, ...frozen }),
        startTestSandbox({ seed: 5, ...frozen }),
        startTestSandbox({ seed: 6, ...frozen }),
      ])
      const answers = await Promise.all([one, same, other].map(async (asked) => (await asked.ask(ask)).text))
      // What is asked for once more is another video.
      const again = (await one.ask(ask)).text
      if (name === 'video') assert.notEqual(answers[0], again)
      else assert.equal(answers[0], again)
      assert.equal(answers[0], answers[1])
      // The platform makes nothing up but secrets, which nobody may guess.
      if (name !== 'platform') assert.notEqual(answers[0], answers[2])
      await Promise.all([one.stop(), same.stop(), other.stop()])
    })
  }

  for (const one of ANSWERS)
    it(`${one.upstream} ${one.method} ${one.path} refuses a request without ${one.needs.join(' or ')} with 400`, async () => {
      const { path, headers, body } = askFor(one)
      const [place = ''] = path.split('?')
      const refused = await sandbox.ask({ path: place, headers, ...(body !== undefined && { body: {} }) })
      assert.equal(refused.status, 400)
      for (const member of membersOf(one.upstream)) assert.ok(member in refused.json(), member)
    })
})
