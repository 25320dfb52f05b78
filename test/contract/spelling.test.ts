import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defaultNames } from '../../harness/recorded-contract.ts'
import { catalogue } from '../../server/src/catalogue/catalogue.ts'
import { canonicalBytes } from '../../server/src/contracts/canonical.ts'
import { createContract } from '../../server/src/contracts/contract.ts'
import { MARK } from '../../server/src/contracts/draft.ts'
import { draftOf } from '../../server/src/contracts/make-draft.ts'
import { contractInputOf } from '../../server/src/http/routes/contract-input.ts'

const input = contractInputOf(catalogue)
const draft = draftOf(input)
const NAMES = [
  { ...defaultNames() },
  // They stand elsewhere among paths and headers than the default ones.
  { ...defaultNames(), provider: 'AardVark', social_a: 'zebra', reseller: '0', deep_research: 'a/b/c' },
  { ...defaultNames(), provider: 'Zz', social_c: 'x-y_z', traffic_analytics: 'a' },
]

describe('the contract of an installation', () => {
  for (const names of NAMES)
    it(`has the bytes of one that is made with its words: ${names.provider}`, () => {
      const words: Record<string, string> = {
        ...names,
        Provider: names.provider,
        provider: names.provider.toLowerCase(),
      }
      const spelt = JSON.parse(JSON.stringify(input).replace(MARK, (_, mark: string) => words[mark] ?? ''))
      const spelling = { names, serverUrl: 'https://api.example.com' }
      const { bytes } = createContract(draft, spelling)
      assert.ok(bytes.equals(createContract(draftOf(spelt), spelling).bytes))
      const text = bytes.toString('utf8')
      assert.ok(canonicalBytes(JSON.parse(text)).equals(bytes))
      assert.doesNotMatch(text, MARK)
      assert.ok(text.includes(`x-${words.provider}-max-cost-usd`) && text.includes(`/apis/v1/${names.social_a}/`))
      assert.ok(text.includes('"servers":[{"url":"https://api.example.com"}]'))
    })

  it('has the revision of its input: another word or address is another, and a name that it has not is none', () => {
    const names = defaultNames()
    const revisionOf = (own: object, serverUrl?: string) =>
      createContract(draft, { names: { ...names, ...own }, serverUrl }).docsRevision
    const revision = revisionOf({})
    assert.equal(revisionOf({}), revision)
    assert.equal(revisionOf({ deep_research_upstream: 'elsewhere' }), revision)
    const others = [
      revisionOf({ provider: 'Other' }),
      revisionOf({ social_b: 'other' }),
      revisionOf({}, 'https://x.example'),
    ]
    assert.equal(new Set([revision, ...others]).size, 4)
  })
})
