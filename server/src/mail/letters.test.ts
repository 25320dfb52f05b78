import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LETTERS } from '../../../test/mail/letters.ts'
import { ROLES } from '../kernel/role.ts'
import { htmlOf, textOf } from './letter.ts'
import { letterOf } from './letters.ts'
import { nameOf } from './names.ts'

const VERIFY = `Verify your address

Somebody, we hope you, has created an account for mira@harbour.example.
Open the link to confirm that this mailbox is yours.

Verify this address:
https://farebox.example/verify/Yk3v9QmT2x8RcN5bWd7LpA

It works once, until 15 November 2099 at 21:28 UTC. Then the account can
be used, and $2.00 of credit is there.

If it was not you, do nothing: the account is deleted after a day.

-- 
farebox
`

const INVITATION = `Join Harbour Labs

Mira Halloran (mira@harbour.example) invites jo@harbour.example as a
developer.

Keys and playground             use and create
Mandates for agents                       give
Requests and usage                        read
Balance and statements                    read
Credit                                      no
Members                                     no

See the invitation:
https://farebox.example/invitations/Hc5Mz8TgQe3aJv6LxU1sWd

Valid until 15 November 2099, only for this address. If you do not know
Mira Halloran, do nothing.

-- 
farebox
`

describe('a letter', () => {
  it('reads as text in lines of 72 characters, with its links on lines of their own', () => {
    assert.equal(textOf(letterOf(LETTERS.verify)), VERIFY)
    assert.equal(textOf(letterOf(LETTERS.invitation)), INVITATION)
    for (const mail of Object.values(LETTERS))
      for (const line of textOf(letterOf(mail)).split('\n')) assert.ok(line.length <= 72 || !line.includes(' '), line)
  })

  for (const mail of Object.values(LETTERS))
    it(`of ${mail.what} has the same words and links in HTML as in text`, () => {
      const letter = letterOf(mail)
      const markup = htmlOf(letter)
      const words = (text: string) => text.split(/\s+/).filter((word) => /[A-Za-z]/.test(word))
      const seen = new Set(
        words(
          markup
            .replace(/<style>.*<\/style>/s, '')
            .replace(/<\/?b>/g, '')
            .replace(/<[^>]*>/g, ' ')
            .replace(/&#39;/g, "'"),
        ),
      )
      for (const word of words(textOf(letter).replace(/:\n/g, '\n')))
        assert.ok(
          [...seen].some((one) => one.includes(word)),
          word,
        )
      const links = textOf(letter).match(/https:\S+/g) ?? []
      assert.ok(links.length > 0)
      for (const link of links) assert.ok(markup.includes(`href="${link}"`), link)
      assert.doesNotMatch(markup, /<(script|img|link|iframe|form)/)
    })

  it('says how much credit there is, or nothing of it', () => {
    assert.doesNotMatch(textOf(letterOf({ ...LETTERS.verify, credit: null })), /credit/)
  })

  it('says whether the second factor is on', () => {
    assert.match(textOf(letterOf({ ...LETTERS.factor_changed, isOn: true })), /^Your second factor is on\n/)
    assert.match(textOf(letterOf(LETTERS.factor_changed)), /^Your second factor is off\n/)
  })

  it('says of each role what it may do', () => {
    const rows = ROLES.map((role) => {
      const text = textOf(letterOf({ ...LETTERS.invitation, role }))
      return [...text.matchAll(/^(?:Keys|Mandates|Credit|Members).* {2,}(\S.*)$/gm)].map(([, right]) => right)
    })
    const everything = ['use and create', 'give', 'add', 'invite and remove']
    assert.deepEqual(rows, [
      everything,
      everything,
      ['use and create', 'give', 'no', 'no'],
      ['no', 'no', 'add', 'no'],
      ['no', 'no', 'no', 'no'],
    ])
  })

  it('takes what others gave as text, whatever it looks like', () => {
    const mail = {
      ...LETTERS.invitation,
      workspace: '<script>alert(1)</script> & *Co*',
      by: { name: '"><b>', email: '<i>' },
    }
    const markup = htmlOf(letterOf(mail))
    assert.doesNotMatch(markup, /<script>|<i>|"><b>/)
    assert.match(markup, /&lt;script&gt;alert\(1\)&lt;\/ script&gt; &amp; \*Co\*/)
  })
})

describe('a name in a letter', () => {
  const names: readonly (readonly [given: string, shown: string])[] = [
    ['Harbour Labs', 'Harbour Labs'],
    [' two\r\nlines\t and\u2028more ', 'two lines and more'],
    ['Harbour\u202e Labs\u200b', 'Harbour Labs'],
    ['Win at https://evil.example/x now', 'Win at https evil. example/ x now'],
    ['evil.example', 'evil. example'],
    ['me@evil.example', 'me@ evil. example'],
    ['evil\u3002example', 'evil example'],
    ['evil\uff0eexample and evil\uff61example', 'evil example and evil example'],
    ['evil\u2024example \u2606', 'evil example'],
    ['Zoë Müller-Łęcka & Söhne (GmbH), 東京 3', 'Zoë Müller-Łęcka & Söhne (GmbH), 東京 3'],
    ['Dr. Mira', 'Dr. Mira'],
    ['=?utf-8?q?=0D=0A?=', '= ?utf-8?q?=0D=0A?='],
    ['', 'Somebody'],
    ['\u0000', 'Somebody'],
    ['x'.repeat(81), `${'x'.repeat(80)}…`],
    ['\ud800', '\ufffd'],
  ]
  for (const [given, shown] of names)
    it(`is ${JSON.stringify(shown)} where ${JSON.stringify(given)} was given`, () => assert.equal(nameOf(given), shown))
})
