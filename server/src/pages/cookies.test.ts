import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Secret } from '../kernel/secret.ts'
import { createCookies } from './cookies.ts'

const token = `${'A-z_'.repeat(10)}abc`
const secure = createCookies({ isSecure: true })
const local = createCookies({ isSecure: false })

describe('a cookie', () => {
  it('is for this host alone, over TLS alone, and no script and no other site brings it along', () => {
    assert.equal(
      secure.put('session', new Secret(token), { seconds: 60 }),
      `__Host-fb_session=${token}; Max-Age=60; Path=/; HttpOnly; SameSite=Lax; Secure`,
    )
    assert.equal(secure.remove('visit'), '__Host-fb_visit=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure')
  })

  it('has neither prefix nor Secure on this machine, where there is no TLS', () => {
    assert.equal(local.put('session', new Secret(token)), `fb_session=${token}; Path=/; HttpOnly; SameSite=Lax`)
  })

  it('is read where it is there once, in the form that we gave it', () => {
    assert.equal(secure.tokenIn(`a=b; __Host-fb_session=${token};c=d`, 'session'), token)
    for (const header of [
      undefined,
      '',
      `fb_session=${token}`,
      `__Host-fb_session=${token}x`,
      `__Host-fb_session="${token}"`,
      `__host-fb_session=${token}`,
      `__Host-fb_session=${token}; __Host-fb_session=${token}`,
      `x__Host-fb_session=${token}`,
      `__Host-fb_session =${token}`,
    ])
      assert.equal(secure.tokenIn(header, 'session'), undefined, header)
  })

  it('keeps a text of any characters', () => {
    const [pair] = local.putText('mail', 'mïra+x;y=z@harbour.example').split(';')
    assert.equal(local.textIn(pair, 'mail'), 'mïra+x;y=z@harbour.example')
    assert.equal(local.textIn('fb_mail=', 'mail'), undefined)
    assert.equal(local.textIn('fb_mail=a b', 'mail'), undefined)
  })
})
