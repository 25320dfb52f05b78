import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { CONTRACTS, currentContract } from '../../harness/recorded-contract.ts'
import { ROOT } from '../../harness/root.ts'
import { asObject, operationsIn } from '../../server/src/contracts/problems.ts'
import { brokenLinks, type Checkout, readCheckout, readPaper, unevenlyListed } from './papers.ts'

const checkout = readCheckout(ROOT)

/** Where readers begin. Whatever else there is, these are read. */
const FIRST = [
  ...['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md'],
  ...['client/README.md', 'examples/README.md', 'docs/README.md', 'docs/decisions/README.md'],
]

describe('the papers of the repository', () => {
  it('are all read: those at the root, of the client, of the examples and of docs/', () => {
    assert.deepEqual(
      FIRST.filter((file) => !checkout.papers.has(file)),
      [],
    )
    const links = [...checkout.papers.values()].flatMap((paper) => paper.links)
    assert.ok(checkout.papers.size > 70 && links.length > 300, `${checkout.papers.size} papers, ${links.length} links`)
  })

  it('link to files that are there, and to headings that are there', () => {
    assert.deepEqual(brokenLinks(checkout), [])
  })

  for (const index of ['docs/README.md', 'docs/decisions/README.md'])
    it(`are each listed once in ${index}`, () => {
      assert.deepEqual(unevenlyListed(checkout, index), [])
    })
})

function planted(texts: Readonly<Record<string, string>>): Checkout {
  const papers = Object.entries(texts).map(([file, text]) => [file, readPaper(`# Title\n\n${text}`)] as const)
  return { files: new Set([...Object.keys(texts), 'docs/proof/money.json']), papers: new Map(papers) }
}

describe('the test of the papers', () => {
  it('takes links to files, folders, headings and the web', () => {
    const fine = planted({
      'README.md': '[a](docs/a.md) [b](docs/a.md#one-part) [c](docs/proof/) [d](https://example.com/x.md) [e](#title)',
      'docs/a.md': '## One part\n\n[home](../README.md#title) ![money](proof/money.json) `[no](link.md)`',
    })
    assert.deepEqual(brokenLinks(fine), [])
  })

  it('catches a file that is not there, an anchor that is not there, and a path from the root of the disk', () => {
    const broken = planted({
      'README.md': '[a](docs/b.md)\n\n| a |\n| - |\n| [b](docs/a.md#two) |\n\n- [c](#nowhere)',
      'docs/a.md': '[d](README.md) [e](/README.md) ![f](none.svg) [g](proof/money.json#L1)',
    })
    assert.deepEqual(brokenLinks(broken), [
      'README.md → docs/b.md: there is no docs/b.md',
      'README.md → docs/a.md#two: there is no heading #two',
      'README.md → #nowhere: there is no heading #nowhere',
      'docs/a.md → README.md: there is no docs/README.md',
      'docs/a.md → /README.md: there is no /README.md',
      'docs/a.md → none.svg: there is no docs/none.svg',
      'docs/a.md → proof/money.json#L1: there is no heading #L1',
    ])
  })

  it('names what an index leaves out, and what it lists twice', () => {
    const uneven = planted({
      'docs/README.md': '[a](a.md) [b](b.md#title) [b](b.md) [home](../README.md)',
      'README.md': '',
      'docs/a.md': '',
      'docs/b.md': '',
      'docs/c.md': '',
      'docs/deep/d.md': '',
    })
    assert.deepEqual(unevenlyListed(uneven, 'docs/README.md'), [
      'docs/README.md lists docs/b.md 2 times',
      'docs/README.md does not list docs/c.md: add a line for it',
    ])
  })
})

describe('README.md', () => {
  const [, section = ''] =
    /### Not built yet\n\n(.*?)\n\n/s.exec(readFileSync(path.join(ROOT, 'README.md'), 'utf8')) ?? []
  const items = section.split(/\n(?=- )/)

  it('names in bold what each item of "Not built yet" is', () => {
    assert.ok(items.length > 1)
    assert.deepEqual(
      items.filter((item) => !/^- .*\*\*[a-z]+\*\*/i.test(item)),
      [],
    )
  })

  it('says of nothing that it is not built that a command or an operation of the contracts does', () => {
    const commands = [...readFileSync(path.join(ROOT, 'docs/cli.md'), 'utf8').matchAll(/^### farebox (.+)$/gm)]
    const operations = CONTRACTS.flatMap((name) =>
      operationsIn(asObject(JSON.parse(currentContract(name).bytes.toString('utf8')))).map(({ operation }) =>
        String(operation.operationId),
      ),
    )
    // A list of what there can be none of yet is not the thing.
    const built = [...commands.map(([, name = '']) => name), ...operations.filter((id) => !id.startsWith('list_'))]
    const words = built.flatMap((name) => name.split(/[ _-]/))
    const named = [...section.matchAll(/\*\*([a-z]+)\*\*/gi)].map(([, word = '']) => word.toLowerCase())
    const stem = (word: string) => word.slice(0, Math.max(4, word.length - 3))
    for (const word of ['export', 'closure', 'budgets'])
      assert.ok(
        words.some((one) => one.startsWith(stem(word))),
        word,
      )
    assert.deepEqual(
      named.filter((word) => words.some((one) => one.startsWith(stem(word)))),
      [],
    )
  })
})
