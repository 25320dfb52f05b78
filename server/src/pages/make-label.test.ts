import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contrastOf } from '../kernel/contrast.ts'
import { html } from '../kernel/html.ts'
import { loadAssets } from './assets.ts'
import { makeLabel } from './make-label.ts'
import { createPages } from './page.ts'

describe('a label', () => {
  it('stands in the title and in place of our mark, and escapes what it says', () => {
    const assets = loadAssets(makeLabel({ name: 'Fox & Sons' }))
    const { body } = createPages({ assets, siteUrl: undefined }).wide({ kind: 'fault', title: 'A', main: html`` })
    assert.match(body, /<title>A · Fox &amp; Sons<\/title>/)
    assert.match(body, /<b class="fb-brand__name">Fox &amp; Sons<\/b>/)
    assert.doesNotMatch(body, /Farebox/i)
    assert.match(body, /rel="icon" href="\/assets\/icon-[\w-]{12}\.svg"/)
  })

  it('gives its colours in a style sheet of its own, with ink that can be read on its buttons', () => {
    for (const [light, dark] of [
      ['#0b6b53', '#5fd3b0'],
      ['#000000', '#ffffff'],
      ['#8a2be2', '#ffcb2e'],
    ] as const) {
      const assets = loadAssets(makeLabel({ name: 'Fox', accent: { light, dark } }))
      const [, own = ''] = assets.stylesheets
      const css = assets.files.get(own.replace('/assets/', ''))?.bytes.toString('utf8') ?? ''
      const buttons = [...css.matchAll(/--button: (#\w{6}); --button-ink: (#\w{6});/g)]
      assert.deepEqual(
        buttons.map(([, button]) => button),
        [light, dark, dark],
      )
      for (const [, button = '', ink = ''] of buttons) assert.ok(contrastOf(button, ink) >= 4.5, `${ink} on ${button}`)
    }
  })

  it('has links to what it is bound by, and to help', () => {
    const label = makeLabel({ name: 'Fox', terms: 'https://fox.example/terms', support: 'help@fox.example' })
    assert.deepEqual(label.legal, [{ title: 'Terms', href: 'https://fox.example/terms' }])
    assert.deepEqual(label.support, { title: 'Support', href: 'mailto:help@fox.example' })
  })
})
