import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { startInstallation } from './installation.ts'

const WANTED = { callers: 10, protocols: ['openai'], upstreamPort: 1 }

describe('an installation for a benchmark', () => {
  it('does without a setting that its version does not know, and sells its model', async () => {
    const installation = await startInstallation({ ...WANTED, env: { FAREBOX_LISTEN_ELSEWHERE: '127.0.0.1:0' } })
    try {
      const [gateway] = installation.gateways
      const [secret] = readFileSync(installation.secretsFile, 'utf8').split('\n')
      const answer = await fetch(`${gateway?.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } })
      assert.equal(answer.status, 200)
      assert.match(await answer.text(), /vendor\/model/)
    } finally {
      await installation.stop()
    }
  })

  it('does not start with a value that is wrong', async () => {
    await assert.rejects(
      startInstallation({ ...WANTED, env: { FAREBOX_LOG_LEVEL: 'loud' } }),
      /log\.level \(FAREBOX_LOG_LEVEL\) must be/,
    )
  })
})
