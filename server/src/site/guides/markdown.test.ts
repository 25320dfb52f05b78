import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createLinkOf, renderMarkdown } from './markdown.ts'

const linkOf = createLinkOf((file) => (file === 'other.md' ? { href: '/docs/other', title: 'Another one' } : undefined))
const render = (source: string) => renderMarkdown(`# Title\n\n${source}`, linkOf)
const text = (source: string) => String(render(source).main)

describe('Markdown of guides', () => {
  it('is escaped wherever it says something', () => {
    for (const source of ['a < b & c', '`<b>`', '    <b>', '```sh\n<b>\n```', '| a |\n| - |\n| `<b>` |', '- a < b']) {
      assert.doesNotMatch(text(source), /<b>|a < b/, source)
      assert.match(text(source), /&lt;/, source)
    }
  })

  it('has no markup of its own', () => {
    for (const source of ['<b>bold</b>', '<script>alert(1)</script>', 'a <img src=x onerror=alert(1)> b', '<!-- a -->'])
      assert.throws(() => render(source), /cannot have html/, source)
  })

  it('links to other guides by their titles, to anchors and to the web, and shows what is elsewhere as text', () => {
    assert.match(text('[other.md](other.md)'), /<a href="\/docs\/other">Another one<\/a>/)
    assert.match(text('[this](other.md#a-part)'), /<a href="\/docs\/other#a-part">this<\/a>/)
    assert.match(text('[it](https://example.com/)'), /<a href="https:\/\/example\.com\/">it<\/a>/)
    assert.match(text('[the code](../server/src/main.ts)'), /<p>the code<\/p>/)
    assert.doesNotMatch(text('[it](javascript:alert(1))'), /<a /)
  })

  it('has headings with anchors as repositories make them, of which no two are the same', () => {
    const { parts } = render("## A key's own `limits`\n\nfirst\n\n## A key's own limits\n\nsecond")
    assert.deepEqual(
      parts.map(({ id, depth, text: below }) => [id, depth, below]),
      [
        ['title', 1, ''],
        ['a-keys-own-limits', 2, 'first'],
        ['a-keys-own-limits-1', 2, 'second'],
      ],
    )
  })

  it('begins with a heading of the first level', () => {
    assert.throws(() => renderMarkdown('## Second\n', linkOf), /first level/)
  })
})
