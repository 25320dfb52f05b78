import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { accent, COLOURS, link, logo, PAPERS, siteName, support } from './label.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'farebox-logo-'))
after(() => rmSync(folder, { recursive: true }))

function file(name: string, content: string | Buffer): string {
  const at = path.join(folder, name)
  writeFileSync(at, content)
  return at
}

const messageOf = (parsed: {
  readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined
}) => parsed.error?.issues[0]?.message
const svg = (inside: string) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">${inside}</svg>`

describe('an accent', () => {
  it('is taken where text in it can be read on every paper, and refused with the contrast and what to do', () => {
    assert.equal(accent('light').parse('#0B6B53'), '#0b6b53')
    assert.equal(accent('dark').parse('#5fd3b0'), '#5fd3b0')
    assert.match(
      messageOf(accent('light').safeParse('#5fd3b0')) ?? '',
      /contrast of 1\.\d\d on the light pages.*darker/,
    )
    assert.match(messageOf(accent('dark').safeParse('#0b6b53')) ?? '', /contrast of 2\.\d\d on the dark pages.*lighter/)
    assert.match(messageOf(accent('light').safeParse('green')) ?? '', /such as #1d4fd7/)
  })

  it('has an example in each scheme that is taken', () => {
    for (const scheme of ['light', 'dark'] as const)
      assert.equal(accent(scheme).parse(COLOURS[scheme]), COLOURS[scheme])
  })

  it('is held against the papers that the style sheet has', () => {
    const tokens = readFileSync(path.join(import.meta.dirname, '../pages/assets/tokens.css'), 'utf8')
    const papers = (name: string) => [...tokens.matchAll(new RegExp(`--${name}: (#\\w+);`, 'g'))].map(([, one]) => one)
    for (const [at, name] of ['paper', 'paper-2'].entries())
      assert.deepEqual(papers(name), [PAPERS.light[at], PAPERS.dark[at], PAPERS.dark[at]])
  })
})

describe('a logo', () => {
  it('is a PNG or a plain drawing', () => {
    const plain = svg('<defs><g id="a"><path d="M0 0h9"/></g></defs><use href="#a" fill="url(#b)"/>')
    assert.deepEqual(logo.parse(file('a.svg', plain)), { name: 'logo.svg', bytes: Buffer.from(plain) })
    const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1])
    assert.deepEqual(logo.parse(file('a.png', png)), { name: 'logo.png', bytes: png })
  })

  it('runs nothing and asks for nothing', () => {
    for (const inside of [
      '<script>alert(1)</script>',
      '<SCRIPT href="a"/>',
      '<path onload="alert(1)"/>',
      '<foreignObject/>',
      '<a href="javascript:alert(1)"/>',
      '<image href="https://elsewhere.example/a.png"/>',
      "<use xlink:href='//elsewhere.example/#a'/>",
      '<style>@import "a"</style>',
      '<path fill="url(https://elsewhere.example/a)"/>',
      '<animate attributeName="href"/>',
    ])
      assert.match(messageOf(logo.safeParse(file('b.svg', svg(inside)))) ?? '', /^has scripts/, inside)
    assert.match(messageOf(logo.safeParse(file('c.svg', `<!DOCTYPE svg>${svg('')}`))) ?? '', /^has scripts/)
  })

  it('is there, small, and what its name says', () => {
    assert.match(messageOf(logo.safeParse(path.join(folder, 'none.svg'))) ?? '', /cannot be read/)
    assert.match(messageOf(logo.safeParse(file('d.svg', svg(' '.repeat(70_000))))) ?? '', /^is too large/)
    assert.match(messageOf(logo.safeParse(file('e.png', 'no picture'))) ?? '', /^is not a PNG/)
    assert.match(messageOf(logo.safeParse(file('f.gif', 'GIF89a'))) ?? '', /^is neither/)
  })
})

describe('what else is shown of an operator', () => {
  it('is a plain name, links by https, and a mailbox or a page for help', () => {
    assert.equal(siteName.parse('Harbour & Söhne'), 'Harbour & Söhne')
    for (const name of ['', '<b>', 'a\nb', 'x'.repeat(61)]) assert.ok(messageOf(siteName.safeParse(name)), name)
    assert.equal(link.parse('https://harbour.example/terms'), 'https://harbour.example/terms')
    for (const address of ['http://harbour.example', 'javascript:alert(1)', 'https://a:b@harbour.example', 'terms'])
      assert.ok(messageOf(link.safeParse(address)), address)
    assert.equal(support.parse('help@harbour.example'), 'help@harbour.example')
    assert.ok(messageOf(support.safeParse('help')))
  })
})
