import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Secret } from '../kernel/secret.ts'
import { createScrubber, secretsOf } from './scrubber.ts'

const scrubberOf = (url: string) => createScrubber(secretsOf(new Secret(url)))

describe('the secrets of a database URL', () => {
  const passwords: Readonly<Record<string, readonly [url: string, ...texts: string[]]>> = {
    'a plain one': ['postgres://u:canary-1@h/d', 'canary-1'],
    'one with encoded characters': ['postgres://u:can%40ry%2F1@h/d', 'can%40ry%2F1', 'can@ry/1', '"can@ry/1"'],
    'one with characters that should be encoded': [
      'postgres://u:can@ry"1@h/d',
      'can@ry"1',
      'can%40ry%221',
      'can@ry\\"1',
    ],
    'one with a percent sign that means nothing': ['postgres://u:can%40ry%@h/d', 'can%40ry%', 'can@ry%'],
    'one in the query': ['postgres://u@h/d?password=can%40ry', 'can@ry', 'can%40ry'],
  }
  for (const [what, [url, ...texts]] of Object.entries(passwords)) {
    it(`are the whole and its password: ${what}`, () => {
      const scrub = scrubberOf(url)
      for (const text of [url, ...texts]) assert.ok(!/can/.test(scrub(`<${text}>`)), text)
    })
  }

  it('are not its host, its user and its database, which help to find what is wrong', () => {
    const text = 'no pg_hba.conf entry for host db.example, user farebox_user, database farebox_main'
    assert.equal(scrubberOf('postgres://farebox_user:canary-1@db.example/farebox_main')(text), text)
  })

  it('are the whole where there is no password', () => {
    assert.equal(scrubberOf('postgres://u@h/d')('at postgres://u@h/d'), 'at [redacted]')
  })
})
