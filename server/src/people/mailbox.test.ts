import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { foldMailbox, mailboxHash, readAddress } from './mailbox.ts'

describe('an e-mail address', () => {
  it('is kept in lower case, its domain in ASCII', () => {
    for (const [typed, kept] of [
      ['Mira@Harbour.Example', 'mira@harbour.example'],
      ['  mira@harbour.example\n', 'mira@harbour.example'],
      ['jörg@example.com', null],
      ['joerg@bücher.example', 'joerg@xn--bcher-kva.example'],
      ['joerg@XN--BCHER-KVA.example', 'joerg@xn--bcher-kva.example'],
      ['a+b.c@example.com', 'a+b.c@example.com'],
    ] as const)
      assert.equal(readAddress(typed), kept, typed)
  })

  it('is refused by its length before anything of it is read', () => {
    const trim = mock.method(String.prototype, 'trim')
    assert.equal(readAddress(`${'ü'.repeat(16_384)}@example.com`), null)
    assert.equal(trim.mock.callCount(), 0)
    trim.mock.restore()
  })

  it('is refused where it is none, or could be read as another', () => {
    for (const typed of [
      ...[
        '',
        '@',
        'a@',
        '@b.example',
        'a',
        'a b@example.com',
        'a@b',
        'a@localhost',
        'a@127.0.0.1',
        'a@1.2.3',
        'a@[::1]',
      ],
      ...[
        'a@example..com',
        '.a@example.com',
        'a.@example.com',
        'a..b@example.com',
        '"a"@example.com',
        'a@exa%6dple.com',
      ],
      ...['a\r\nbcc: b@example.com', 'a@example.com\nbcc', 'a\0@example.com', 'a,b@example.com', '<a@example.com>'],
      ...['a@-example.com', 'a@example.com.', 'a@example.c', 'a@b@', `${'a'.repeat(65)}@example.com`],
      `a@${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(63)}.${'e'.repeat(63)}.example`,
    ])
      assert.equal(readAddress(typed), null, JSON.stringify(typed))
  })
})

describe('a mailbox', () => {
  it('is the same for each of its addresses', () => {
    for (const [address, mailbox] of [
      ['mira@harbour.example', 'mira@harbour.example'],
      ['mira+one@harbour.example', 'mira@harbour.example'],
      ['mira+one+two@harbour.example', 'mira@harbour.example'],
      ['m.i.r.a@harbour.example', 'm.i.r.a@harbour.example'],
      ['m.i.r.a+x@gmail.com', 'mira@gmail.com'],
      ['mira@googlemail.com', 'mira@gmail.com'],
      ['m.ira@googlemail.com', 'mira@gmail.com'],
      ['+tag@harbour.example', '+tag@harbour.example'],
    ] as const)
      assert.equal(foldMailbox(address), mailbox, address)
  })

  it('is known by its hash alone', () => {
    assert.deepEqual(mailboxHash('m.ira+a@gmail.com'), mailboxHash('mira@googlemail.com'))
    assert.notDeepEqual(mailboxHash('mira@harbour.example'), mailboxHash('mirb@harbour.example'))
    assert.equal(mailboxHash('mira@harbour.example').length, 32)
  })
})
