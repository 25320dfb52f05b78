import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { NO_RESOURCE } from '../identity/resources.ts'
import { CALLERS, createAdminPolicy, createAgentPolicy, createCallersPolicy, createSitePolicy } from './policies.ts'

describe('the tokens of a listener', () => {
  it('are those of its own URL, with or without a slash at its end, and a scope of its own', () => {
    for (const url of ['https://api.example.com', 'https://API.example.com:443/'])
      assert.deepEqual(createCallersPolicy(url).resource, { audience: 'https://api.example.com', callScope: 'calls' })
    const agents = createAgentPolicy('https://mcp.example.com/mcp/', () => 'Bearer').resource
    assert.deepEqual(agents, { audience: 'https://mcp.example.com/mcp', callScope: 'agent' })
  })

  it('are none without a URL, and for people and operators', () => {
    const policies = [
      createCallersPolicy(undefined),
      createAgentPolicy(undefined, () => 'Bearer'),
      CALLERS,
      createAdminPolicy([]),
    ]
    for (const { resource } of [...policies, createSitePolicy('https://www.example.com')])
      assert.equal(resource, NO_RESOURCE)
    assert.equal(NO_RESOURCE.audience, null)
  })
})

describe('the hosts of a listener', () => {
  const site = createSitePolicy('https://www.example.com')
  const local = createSitePolicy(undefined)
  const admin = createAdminPolicy(['metrics.example.com'])

  for (const [what, { isOurHost }, ours, others] of [
    [
      'with a URL',
      site,
      ['www.example.com', 'WWW.example.com:443'],
      ['www.example.com:80', 'example.com', '127.0.0.1', ''],
    ],
    [
      'with a URL and a port',
      createSitePolicy('http://localhost:8702'),
      ['localhost:8702'],
      ['localhost', 'localhost:1'],
    ],
    [
      'without one',
      local,
      ['localhost:8702', '127.0.0.1', '[::1]:1'],
      ['evil.example', '10.0.0.1', '', 'localhost.evil.example'],
    ],
    [
      'of operators',
      admin,
      ['10.0.0.1:8709', '[fd00::1]:8709', 'farebox:8709', 'farebox_admin:8709', 'metrics.example.com', 'localhost'],
      ['evil.example', 'metrics.example.com.evil.example', '127.0.0.1.evil.example', ''],
    ],
    ['of callers', CALLERS, ['anything', ''], []],
  ] as const)
    it(`${what} are these alone`, () => {
      for (const host of ours) assert.ok(isOurHost(host), host)
      for (const host of others) assert.ok(!isOurHost(host), host)
    })
})
