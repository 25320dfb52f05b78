import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CALLERS, createAdminPolicy, createSitePolicy } from './policies.ts'

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
