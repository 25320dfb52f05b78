import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isMailAddress } from './mail-address.ts'

describe('an address of mail', () => {
  it('is a name, an @ and a domain, in any script', () => {
    for (const text of [
      'a@b',
      'mira@harbour.example',
      "o'neil+tag@mail.harbour.example",
      'jörg@bücher.example',
      '用户@例子.example',
    ])
      assert.equal(isMailAddress(text), true, text)
  })

  const wrong = [
    ...[
      '',
      '@',
      'a',
      'a@',
      '@b',
      'a b@c',
      'a@b c',
      'a@b,c@d',
      'a@b>',
      '<a@b>',
      'a@b\r\nBcc: c@d',
      'a\n@b',
      'a@b\u0000',
    ],
    ...[
      '"a"@b',
      'a(b)@c',
      'a;b@c',
      'a:b@c',
      'a@[127.0.0.1]',
      'a\\b@c',
      'a\u202eb@c',
      'a\u2028b@c',
      'a\ud800@b',
      'a@b/c',
    ],
    ...[`${'a'.repeat(65)}@b`, `a@${'b.'.repeat(130)}c`],
  ]
  for (const text of wrong)
    it(`is not ${JSON.stringify(text.slice(0, 40))}`, () => assert.equal(isMailAddress(text), false))
})
