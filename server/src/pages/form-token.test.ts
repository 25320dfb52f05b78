import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formTokenOf, isOurForm } from './form-token.ts'

const origin = 'https://www.example.com'
const cookie = 'c'.repeat(43)
const own = { origin, cookie }
const form = new Map([['form_token', formTokenOf(cookie)]])

describe('a form', () => {
  it('is ours where the origin is and the token belongs to the cookie', () => {
    assert.ok(isOurForm({ form, origin, fetchSite: 'same-origin' }, own))
    assert.ok(isOurForm({ form, origin, fetchSite: undefined }, own))
    assert.ok(isOurForm({ form, origin: undefined, fetchSite: 'same-origin' }, own))
  })

  it('is not where any of it is missing or another', () => {
    const good = { form, origin, fetchSite: 'same-origin' }
    for (const [what, asked, mine] of [
      ['nothing about where it is from', { form, origin: undefined, fetchSite: undefined }, own],
      ['another origin', { ...good, origin: 'https://evil.example' }, own],
      ['the origin of a page that tells nothing', { ...good, origin: 'null' }, own],
      ['the same host without TLS', { ...good, origin: 'http://www.example.com' }, own],
      ['a host of the same domain', { ...good, fetchSite: 'same-site' }, own],
      ['another site', { ...good, fetchSite: 'cross-site' }, own],
      ['another site, by two headers', { ...good, fetchSite: 'same-origin, cross-site' }, own],
      ['no cookie', good, { origin, cookie: undefined }],
      ['the cookie of somebody else', good, { origin, cookie: 'd'.repeat(43) }],
      ['no token', { ...good, form: new Map() }, own],
      ['the cookie as the token', { ...good, form: new Map([['form_token', cookie]]) }, own],
      ['a token that is cut', { ...good, form: new Map([['form_token', formTokenOf(cookie).slice(1)]]) }, own],
    ] as const)
      assert.equal(isOurForm(asked, mine), false, what)
  })
})
