import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { readCredential } from './credential.ts'

describe('a credential', () => {
  for (const [what, headers, expected] of [
    ['a bearer token', { authorization: 'Bearer abc' }, 'abc'],
    ['a bearer token in another case', { authorization: 'bEARER abc' }, 'abc'],
    ['a key in x-api-key', { 'x-api-key': 'abc' }, 'abc'],
    ['a key in x-goog-api-key', { 'x-goog-api-key': 'abc' }, 'abc'],
    [
      'a bearer token before any key',
      { authorization: 'Bearer abc', 'x-api-key': 'def', 'x-goog-api-key': 'ghi' },
      'abc',
    ],
    ['x-api-key before x-goog-api-key', { 'x-api-key': 'def', 'x-goog-api-key': 'ghi' }, 'def'],
    ['a key beside an authorization of another scheme', { authorization: 'Basic eDp5', 'x-api-key': 'def' }, 'def'],
  ] satisfies [string, IncomingHttpHeaders, string][]) {
    it(`is ${what}`, () => assert.equal(readCredential(headers)?.reveal(), expected))
  }

  it('is missing when no header carries one', () => assert.equal(readCredential({ cookie: 'key=abc' }), undefined))

  for (const headers of [
    { authorization: 'Basic eDp5' },
    { authorization: 'Bearer' },
    { authorization: 'Bearer ' },
    { authorization: 'abc' },
    { authorization: 'Bearer abc def' },
    { authorization: 'Bearer a\u00e9' },
    { authorization: '' },
    { 'x-api-key': '' },
    { 'x-api-key': 'a b' },
  ] satisfies IncomingHttpHeaders[]) {
    it(`is refused when it is sent as ${JSON.stringify(headers)}`, () => {
      assert.throws(
        () => readCredential(headers),
        (error: unknown) => error instanceof Fault && error.code === 'invalid_credential',
      )
    })
  }
})
