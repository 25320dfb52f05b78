import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ELSEWHERE } from '../../../test/people/elsewhere.ts'
import { parseReturnTo, withReturnTo } from './return-to.ts'

const ORIGIN = 'https://www.example.com'

describe('where to return to', () => {
  it('is a path of this site, with its query', () => {
    for (const path of [
      '/sessions',
      '/account/second-factor',
      `/invitations/${'A-z_'.repeat(10)}abc`,
      '/authorize?client_id=x&redirect_uri=https%3A%2F%2Fapp.example%2Fcb&scope=a%20b&state=~.-_',
      '/a?b=//evil.example',
      '/...',
    ]) {
      assert.equal(parseReturnTo(path), path)
      assert.equal(new URL(path, ORIGIN).origin, ORIGIN)
    }
  })

  it('is nothing else, whatever browsers would make of it', () => {
    for (const given of ELSEWHERE) assert.equal(parseReturnTo(given), undefined, JSON.stringify(given))
    assert.equal(parseReturnTo(undefined), undefined)
  })

  it('is kept in the address of a page as a whole', () => {
    const path = withReturnTo('/sign-in', '/a?b=c&d=%20')
    assert.equal(new URL(path, ORIGIN).searchParams.get('return_to'), '/a?b=c&d=%20')
    assert.equal(withReturnTo('/sign-in', undefined), '/sign-in')
  })
})
