import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { asMarkdown, markdownTable } from './markdown.ts'

describe('Markdown that we write', () => {
  it('has columns as wide as their widest cell, and bars that end none', () => {
    const rows = [
      ['a', 'what it is'],
      ['`x|y`', 'both'],
    ]
    assert.equal(
      markdownTable(rows),
      ['| a      | what it is |', '| ------ | ---------- |', '| `x\\|y` | both       |'].join('\n'),
    )
  })

  it('shows addresses and markup as code, and leaves code and links as they are', () => {
    const cases = {
      'an origin, such as https://a.example, or *': 'an origin, such as `https://a.example`, or `*`',
      'Example <no-reply@example.com> (%40 for @)': 'Example `<no-reply@example.com>` (`%40` for `@`)',
      'see `a <b>` and [mail.md](mail.md#a_b)': 'see `a <b>` and [mail.md](mail.md#a_b)',
      'lower case, digits, _ and -': 'lower case, digits, _ and -',
      '`b*` c* `d*`': '`b*` `c*` `d*`',
    }
    assert.deepEqual(Object.keys(cases).map(asMarkdown), Object.values(cases))
  })
})
