import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { html } from './html.ts'

describe('markup', () => {
  it('escapes whatever is put into it, in text and in attributes', () => {
    const name = `<b onload='x'>"&amp;`
    const told = '&lt;b onload=&#39;x&#39;&gt;&quot;&amp;amp;'
    assert.equal(String(html`<p title="${name}">${name}</p>`), `<p title="${told}">${told}</p>`)
  })

  it('takes markup, lists of it, numbers and nothing', () => {
    const items = ['<1>', '2'].map((item) => html`<li>${item}</li>`)
    assert.equal(String(html`<ul>${items}</ul>${null}${undefined}${3}`), '<ul><li>&lt;1&gt;</li><li>2</li></ul>3')
  })

  it('escapes what is in a list too, whatever its type says', () => {
    const items = JSON.parse('["<script>"]')
    assert.equal(String(html`<ul>${items}</ul>`), '<ul>&lt;script&gt;</ul>')
  })
})
