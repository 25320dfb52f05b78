import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { generateContent } from '../catalogue/operations/generate-content.ts'
import { tagDetail } from '../catalogue/operations/tag-detail.ts'
import { makeKey } from '../identity/key-format.ts'
import { Fault } from '../kernel/fault.ts'
import { type Arguments, spellArguments } from './call-arguments.ts'

const ID = '019c1b2a-0000-7000-8000-000000000001' as Parameters<typeof makeKey>[0]
const KEY = makeKey(ID, 'live', 1).reveal()

function refusal(given: Arguments, operation: Parameters<typeof spellArguments>[0] = tagDetail): Fault {
  try {
    spellArguments(operation, given)
  } catch (thrown) {
    assert.ok(thrown instanceof Fault)
    return thrown
  }
  assert.fail('it was taken')
}

describe('arguments that become a query', () => {
  it('are taken up to the length of a URL, and refused beyond it', () => {
    assert.equal(spellArguments(tagDetail, { a: 'x'.repeat(8_190) }).query.length, 8_192)
    const { code, message } = refusal({ a: 'x'.repeat(8_191) })
    assert.equal(code, 'uri_too_long')
    assert.match(message, /8193 characters; the limit is 8192/)
    const many = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`a${at}`, at]))
    assert.equal(refusal(many).code, 'uri_too_long')
  })

  for (const [title, given] of Object.entries<Arguments>({
    'as a value': { tag_name: KEY },
    'within a value': { tag_name: ['cats', `see ${KEY}, please`] },
    'encoded in a value': { tag_name: KEY.replaceAll('_', '%5F') },
    'as a name': { [KEY]: 'cats' },
    'by the name of a credential': { 'api-key': 'anything' },
  }))
    it(`AUTH-2 are refused where a key stands in them, which is not quoted: ${title}`, () => {
      const { code, message } = refusal(given)
      assert.equal(code, 'invalid_request')
      assert.match(message, /^Credentials in the arguments/)
      assert.equal(message.includes(KEY.slice(8, 40)), false)
    })

  it('AUTH-2 a key is not taken as the model that a path names either', () => {
    assert.match(refusal({ model: KEY, contents: [] }, generateContent).message, /^Credentials in the arguments/)
    assert.equal(spellArguments(generateContent, { model: 'sandbox/text' }).model, 'sandbox/text')
  })
})
