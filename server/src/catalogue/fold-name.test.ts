import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { foldName } from './fold-name.ts'

describe('a folded name', () => {
  for (const spelling of [
    ...[
      'max_tokens',
      'maxTokens',
      'MAX_TOKENS',
      'max-tokens',
      'max.tokens',
      'max tokens',
      'max_tokens ',
      '\tmax_tokens',
    ],
    ...['max_tokens[]', '[max_tokens]', 'max_tokens;', 'ｍax_tokens', 'max＿tokens', 'max–tokens', 'max_to\u200bkens'],
    ...['max_tokens\0', 'max_toKens', 'max_tokenſ'],
  ])
    it(`is the same for ${JSON.stringify(spelling)}`, () => {
      assert.equal(foldName(spelling), 'maxtokens')
    })

  it('is another for another name', () => {
    const names = ['max_token', 'max_tokens_2', 'xmax_tokens', 'n', 'm', 'größe', 'grosse_']
    assert.equal(new Set(names.map(foldName)).size, names.length)
  })

  it('leaves out the same of ASCII as of a name with another letter in it', () => {
    // The sharp s is none of ASCII, and folds to two letters.
    for (let code = 0; code < 0x80; code += 1) {
      const letter = String.fromCharCode(code)
      assert.equal(`ss${foldName(letter)}`, foldName(`ß${letter}`), `U+${code.toString(16)}`)
    }
  })
})
