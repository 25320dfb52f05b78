import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { domainToASCII } from 'node:url'
import fc from 'fast-check'
import { createTransport } from 'nodemailer'
import { count, seed } from '../../../harness/proof.ts'
import { readMail } from '../../../sandbox/src/mail/read-mail.ts'
import { LETTERS } from '../../../test/mail/letters.ts'
import { isMailAddress } from '../kernel/mail-address.ts'
import type { Mail } from '../storage/mail.ts'
import { textOf } from './letter.ts'
import { letterOf } from './letters.ts'
import { messageOf } from './message.ts'

const CASES = count({ full: 20_000, reduced: 1_000 })
const ID = '019a8c8e-91c3-7000-b0d2-5f1c2a77e014'
const FROM = { name: 'Farebox, "Inc." <é>', address: 'no-reply@farebox.example' }
const PARTS = { id: ID, createdAt: new Date('2026-11-15T20:58:00Z'), from: FROM }
const HEADERS = ['auto-submitted', 'content-type', 'date', 'from', 'message-id', 'mime-version', 'subject', 'to']

/** Makes the bytes that a server would be sent. */
const composer = createTransport({ streamTransport: true, buffer: true, newline: 'windows' })

async function compose(mail: Mail) {
  const message = messageOf(mail, PARTS)
  if (message === null) return null
  const { envelope, message: bytes } = await composer.sendMail(message)
  assert.ok(Buffer.isBuffer(bytes))
  return { envelope, raw: bytes, read: await readMail(bytes) }
}

describe('the letterhead', () => {
  it('is the name and the logo of whoever operates the installation, which come with the letter', async () => {
    const logo = { name: 'logo.png', bytes: Buffer.from('the picture') }
    const message = messageOf(LETTERS.verify, { ...PARTS, brand: { name: 'Harbour <AI>', logo } }) ?? assert.fail()
    assert.match(
      String(message.html),
      /<p class="brand"><img src="cid:logo" alt="" height="28"> Harbour &lt;AI&gt;<\/p>/,
    )
    assert.match(String(message.text), /\n-- \nHarbour <AI>\n$/)
    const { message: bytes } = await composer.sendMail(message)
    assert.match(String(bytes), /Content-ID: <logo>/i)
    assert.ok(String(bytes).includes(logo.bytes.toString('base64')))
    assert.doesNotMatch(String(messageOf(LETTERS.verify, { ...PARTS, brand: { name: 'Harbour' } })?.html), /<img/)
  })
})

const attack = fc.constantFrom(
  ...[
    '\r\nBcc: eve@evil.example',
    '\nSubject: x',
    '\r\n\r\nbody',
    ',',
    ', eve@evil.example',
    '"',
    '\\',
    '<',
    '>',
    '<eve@evil.example>',
  ],
  ...[
    ';',
    ':',
    '@',
    '(',
    ')',
    '\u0000',
    '\u2028',
    '\u0085',
    '\u202e',
    '\ud800',
    '=?utf-8?q?=0D=0ABcc:_eve@evil.example?=',
    'é',
    '漢',
    '👩‍🚀',
  ],
)
const hostile = fc
  .array(
    fc.oneof(attack, fc.string({ unit: 'grapheme', maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 6 })),
    { maxLength: 6 },
  )
  .map((parts) => parts.join('').slice(0, 300))
const address = fc.oneof(
  fc.tuple(hostile, fc.constantFrom('@harbour.example', '@bücher.example', '')).map((parts) => parts.join('')),
  fc.stringMatching(/^[a-z0-9!#$%&'*+/=?^_`{|}~.-]{1,20}$/).map((local) => `${local}@harbour.example`),
)
const letter = fc
  .record({ to: address, workspace: hostile, name: hostile, email: hostile, where: hostile })
  .chain(({ to, workspace, name, email, where }) =>
    fc.constantFrom<Mail>(
      { ...LETTERS.invitation, to, workspace, by: { name, email } },
      { ...LETTERS.reset, to, address: where },
      { ...LETTERS.verify, to, credit: where },
    ),
  )

describe('a message', () => {
  it('has the id of the outbox, the time of its letter, and says that a program wrote it', async () => {
    const { read, envelope } = (await compose(LETTERS.verify)) ?? assert.fail()
    assert.deepEqual(read.headers.map(([name]) => name).toSorted(), HEADERS)
    const line = (name: string) => read.headers.find(([key]) => key === name)?.[1]
    assert.equal(line('message-id'), `Message-ID: <${ID}@farebox.example>`)
    assert.equal(line('date'), 'Date: Sun, 15 Nov 2026 20:58:00 +0000')
    assert.equal(line('auto-submitted'), 'Auto-Submitted: auto-generated')
    assert.deepEqual(read.from, [FROM])
    assert.deepEqual(envelope, { from: FROM.address, to: [LETTERS.verify.to] })
    assert.match(read.html ?? '', /<h1>Verify your address<\/h1>/)
    assert.deepEqual(read.links, [LETTERS.verify.link])
  })

  it('goes to its one address with its own headers and words, whatever names and addresses hold', async () => {
    let sent = 0
    await fc.assert(
      fc.asyncProperty(letter, async (mail) => {
        const composed = await compose(mail)
        if (composed === null) return assert.equal(isMailAddress(mail.to), false)
        sent += 1
        const { envelope, raw, read } = composed
        assert.deepEqual(read.headers.map(([name]) => name).toSorted(), HEADERS)
        assert.deepEqual([envelope.from, envelope.to.map(inAscii)], [FROM.address, [inAscii(mail.to)]])
        assert.deepEqual(
          read.to.map((one) => [one.name, inAscii(one.address)]),
          [['', inAscii(mail.to)]],
        )
        assert.deepEqual(read.from, [FROM])
        const written = letterOf(mail)
        assert.equal(read.subject, written.subject)
        assert.equal(read.text.trimEnd(), textOf(written).trimEnd())
        const [head = ''] = raw.toString('latin1').split('\r\n\r\n', 1)
        for (const line of head.replace(/\r\n[ \t]/g, ' ').split('\r\n')) {
          assert.ok(HEADERS.includes(line.split(':', 1)[0]?.toLowerCase() ?? ''), line)
          assert.doesNotMatch(line, /[\r\n]/)
        }
      }),
      { numRuns: CASES, seed },
    )
    assert.ok(sent > CASES / 10, `${sent} were sent`)
  })
})

function inAscii(text: string): string {
  const at = text.lastIndexOf('@')
  return `${text.slice(0, at)}@${domainToASCII(text.slice(at + 1))}`
}
