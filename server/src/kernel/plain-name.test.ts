import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { plainName } from './plain-name.ts'

describe('a name that a caller made up', () => {
  for (const name of [
    'model',
    'tweetId',
    'max_completion_tokens',
    'top_k',
    'anthropic-beta',
    '$schema',
    'level3',
    'a1b',
  ])
    it(`is told if it is one: ${name}`, () => assert.equal(plainName(name), name))

  for (const name of [
    'fb_live_0000194fa2d1c5b7',
    'sk-proj-9aB3dE5f',
    'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
    '4111111111111111',
    'a b',
    '<b>',
    '\u202egnihton',
    'x'.repeat(100),
    '',
  ])
    it(`is not repeated if it may be a secret, or is not for people: ${name.slice(0, 12)}`, () =>
      assert.equal(plainName(name), '(name not shown)'))
})
