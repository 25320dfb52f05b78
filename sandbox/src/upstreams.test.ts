import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { ASK, startTestSandbox, type TestSandbox } from './test-sandbox.ts'
import { UPSTREAM_NAMES } from './upstream.ts'

let sandbox: TestSandbox
before(async () => {
  sandbox = await startTestSandbox()
})
after(() => sandbox.stop())

describe('every upstream', () => {
  const errorMembers = {
    rerank: ['detail'],
    reseller: ['code', 'request_id', 'message', 'message_zh', 'support', 'time', 'time_stamp', 'time_zone', 'docs'],
    comments: ['success', 'error', 'errorStatus'],
    quotes: ['error', 'message', 'status'],
    financial: ['error', 'message'],
    traffic: ['meta'],
    deep_research: ['error'],
    openai: ['error'],
    anthropic: ['type', 'error', 'request_id'],
    gemini: ['error'],
    video: ['code', 'message', 'request_id'],
    platform: ['error', 'error_description'],
  }
  for (const name of UPSTREAM_NAMES) {
    it(`${name} answers the right key, and 401 in its own words without it or with another`, async () => {
      assert.equal((await sandbox.ask(ASK[name])).status, 200)
      const [header = ''] = Object.keys(ASK[name].headers)
      for (const headers of [
        {},
        { [header]: 'sandbox-key-2' },
        { [header]: 'Bearer sandbox-key-2' },
        { cookie: 'a' },
      ]) {
        const refused = await sandbox.ask({ ...ASK[name], headers })
        assert.equal(refused.status, 401)
        for (const member of errorMembers[name]) assert.ok(member in refused.json(), member)
      }
    })

    it(`${name} refuses another method with 405, and does not know another path`, async () => {
      const method = 'body' in ASK[name] ? 'GET' : 'POST'
      const { path, headers } = ASK[name]
      assert.equal((await sandbox.ask({ path, headers, method })).status, 405)
      assert.equal((await sandbox.ask({ path: `/${name}/v9/nothing`, headers })).status, 404)
    })

    it(`${name} gives the same request the same answer, and another seed another one`, async () => {
      const frozen = { nowMs: () => 1_790_000_000_000 }
      const [one, same, other] = await Promise.all([
        startTestSandbox({ seed: 5, ...frozen }),
        startTestSandbox({ seed: 5, ...frozen }),
        startTestSandbox({ seed: 6, ...frozen }),
      ])
      const answers = await Promise.all([one, same, other].map(async ({ ask }) => (await ask(ASK[name])).text))
      // What is asked for once more is another video.
      const again = (await one.ask(ASK[name])).text
      if (name === 'video') assert.notEqual(answers[0], again)
      else assert.equal(answers[0], again)
      assert.equal(answers[0], answers[1])
      // The platform makes nothing up but secrets, which nobody may guess.
      if (name !== 'platform') assert.notEqual(answers[0], answers[2])
      await Promise.all([one.stop(), same.stop(), other.stop()])
    })
  }
})
