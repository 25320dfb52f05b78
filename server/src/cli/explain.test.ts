import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError } from '../config.ts'
import { Secret } from '../kernel/secret.ts'
import { explain } from './explain.ts'

const URL = new Secret('postgres://farebox:canary-1@db.example/farebox')
const coded = (code: string, text = '') => Object.assign(new Error(text), { code })

describe('what an operator is told of a failure', () => {
  const cases: Readonly<Record<string, readonly [error: unknown, line: string | RegExp]>> = {
    'a PostgreSQL that is not there': [
      coded('ECONNREFUSED', 'connect ECONNREFUSED 127.0.0.1:5432'),
      "database.url: can't reach db.example:5432 (ECONNREFUSED): start PostgreSQL or correct the address",
    ],
    'a host of two addresses, neither of which answers': [
      new AggregateError([coded('ECONNREFUSED'), coded('ECONNREFUSED')]),
      "database.url: can't reach db.example:5432 (ECONNREFUSED): start PostgreSQL or correct the address",
    ],
    'a host that nobody knows': [coded('ENOTFOUND'), /^database\.url: can't reach .* correct its name$/],
    'a host that does not answer': [new Error('timeout expired'), /\(ETIMEDOUT\): it does not answer/],
    'a pool that waits in vain': [new Error('timeout exceeded when trying to connect'), /\(ETIMEDOUT\)/],
    'a wrong password': [
      coded('28P01', 'password authentication failed'),
      /the user name or the password \(28P01\): correct/,
    ],
    'a password that is missing': [
      new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
      /the user name or the password/,
    ],
    'a database that is missing': [coded('3D000'), /no database of that name \(3D000\): create it/],
    'a file of ours that is missing': [
      Object.assign(coded('ENOENT', 'no such file /migrations'), { syscall: 'open', path: '/migrations' }),
      'no such file /migrations',
    ],
    'an error with a secret in it': [new Error('can not use canary-1'), 'can not use [redacted]'],
    'an error without a text': [new TypeError(''), 'TypeError'],
    'what is no error': ['canary-1', 'failed for an unknown reason'],
  }
  for (const [what, [error, expected]] of Object.entries(cases)) {
    it(`is one line: ${what}`, () => {
      const [line = '', ...more] = explain(error, URL)
      if (typeof expected === 'string') assert.equal(line, expected)
      else assert.match(line, expected)
      assert.deepEqual(more, [])
      assert.ok(!line.includes('canary'))
    })
  }

  it('is a line for each wrong setting', () => {
    assert.deepEqual(explain(new ConfigError(['one', 'two']), undefined), ['one', 'two'])
  })
})
