import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isTarget, parseBaseUrl } from './address.ts'

describe('a base URL', () => {
  it('gives the origin and what goes before every target', () => {
    assert.deepEqual(parseBaseUrl('https://API.example.com/v1/'), { origin: 'https://api.example.com', prefix: '/v1' })
    assert.deepEqual(parseBaseUrl('https://api.example.com:8443'), {
      origin: 'https://api.example.com:8443',
      prefix: '',
    })
    assert.deepEqual(parseBaseUrl('http://[::1]:9000/a/b'), { origin: 'http://[::1]:9000', prefix: '/a/b' })
  })

  it('may be plain http for this machine, and for others only where that is allowed', () => {
    for (const url of ['http://127.0.0.1', 'http://127.9.9.9:80', 'http://localhost:1', 'http://[::1]'])
      parseBaseUrl(url)
    for (const url of [
      'http://10.0.0.1',
      'http://localhost.example.com',
      'http://127.0.0.1.example.com',
      'http://[::2]',
    ]) {
      assert.throws(() => parseBaseUrl(url), /must be https/)
      parseBaseUrl(url, { allowPlainHttp: true })
    }
  })

  const refused: Readonly<Record<string, RegExp>> = {
    '': /must be a URL/,
    'api.example.com': /must be a URL/,
    '//api.example.com': /must be a URL/,
    'https:api.example.com': /must be a URL/,
    'ftp://api.example.com': /must be a URL/,
    'file:///etc/passwd': /must be a URL/,
    'https://': /must be a URL/,
    'https://user:canary@api.example.com': /must not hold a user/,
    'https://canary@api.example.com': /must not hold a user/,
    'https://api.example.com/v1?key=canary': /query or a fragment/,
    'https://api.example.com/v1?': /query or a fragment/,
    'https://api.example.com/#canary': /query or a fragment/,
    'https://api.example.com//v1': /more than one way/,
  }
  for (const [url, expected] of Object.entries(refused))
    it(`is refused where it is ${JSON.stringify(url)}, without repeating it`, () => {
      assert.throws(
        () => parseBaseUrl(url),
        (error: Error) => expected.test(error.message) && !error.message.includes('canary'),
      )
    })
})

describe('a target', () => {
  it('is a path and a query as they go over the wire', () => {
    for (const target of [
      '/',
      '/a',
      '/a/b.c/..d/e..',
      '/a//b',
      '/a?b=//c&d=../e',
      '/a:b@c',
      '/%41%2F',
      '/a;b=[c]',
      '/...',
    ])
      assert.equal(isTarget(target), true, target)
  })
})
