import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, beforeEach, describe, it } from 'node:test'
import { SMTPServer } from 'smtp-server'
import { freePort } from '../../../harness/free-port.ts'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { Mailbox } from '../../../sandbox/src/mail/mailbox.ts'
import { receiveMail } from '../../../sandbox/src/mail/receive.ts'
import { LETTERS } from '../../../test/mail/letters.ts'
import { systemClock } from '../kernel/clock.ts'
import { createIds } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import { type Delivery, DeliveryFailure } from '../outbox/deliverer.ts'
import { createMailDeliverer } from './deliverer.ts'

const FROM = { name: 'Farebox', address: 'no-reply@farebox.example' }
const ids = createIds({ clock: systemClock })
const mailbox = new Mailbox()
const receiver = await receiveMail(mailbox, 0)
after(() => receiver.close())

function delivererTo(url: string) {
  const deliverer = createMailDeliverer({ url: new Secret(url), from: FROM, clock: systemClock })
  after(() => deliverer.close())
  return deliverer
}

const deliverer = delivererTo(receiver.url)

function delivery(payload: unknown, changes: Partial<Delivery> = {}): Delivery {
  const { signal } = new AbortController()
  const fixed = { destination: 'harbour.example', attempts: 1, createdAt: new Date('2026-11-15T20:58:00Z') }
  return { id: ids.next(), ...fixed, payload, signal, ...changes }
}

/** Why it was not delivered, and whether that is for good. */
async function failure(work: Promise<void>): Promise<readonly [string, boolean]> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof DeliveryFailure)
  assert.doesNotMatch(error.message, /harbour|farebox/)
  assert.equal(error.cause, undefined)
  return [error.message, error.isFinal]
}

beforeEach(() => {
  mailbox.empty()
  mailbox.faults.clear()
})

describe('a letter that is delivered', () => {
  it('is handed over once, for its address, with the id of the outbox', async () => {
    const letter = delivery(LETTERS.invitation)
    await deliverer.deliver(letter)
    const [mail, ...others] = mailbox.list(LETTERS.invitation.to)
    assert.equal(others.length, 0)
    assert.equal(mail?.message_id, `<${letter.id}@farebox.example>`)
    assert.deepEqual(mail?.envelope, { from: FROM.address, to: [LETTERS.invitation.to] })
    assert.equal(mail?.subject, 'Mira Halloran invites you to Harbour Labs')
  })

  it('again is the same, so that its receiver knows it', async () => {
    const letter = delivery(LETTERS.reset)
    mailbox.faults.add({ directives: ['reset=after-data'] })
    assert.equal((await failure(deliverer.deliver(letter)))[1], false)
    await deliverer.deliver({ ...letter, attempts: 2 })
    const [second, first] = mailbox.list()
    assert.deepEqual([first?.acknowledged, second?.acknowledged], [false, true])
    const fixed = ['message-id', 'date', 'from', 'to', 'subject']
    const lines = (mail = first) => mail?.headers.filter(([name]) => fixed.includes(name))
    assert.deepEqual(lines(first), lines(second))
    assert.equal(first?.text, second?.text)
  })

  it('shares connections with others', async () => {
    await Promise.all(Array.from({ length: 40 }, () => deliverer.deliver(delivery(LETTERS.verify))))
    assert.equal(mailbox.list().length, 40)
  })
})

describe('a letter that is not delivered', () => {
  const cases: readonly (readonly [directives: readonly string[], message: RegExp, isFinal: boolean])[] = [
    [['status=550'], /^the mail server answered 550( 5\.\d\.\d)? at RCPT TO$/, true],
    [['status=451'], /^the mail server answered 451( 4\.\d\.\d)? at RCPT TO$/, false],
    [['status=554', 'at=data'], /^the mail server answered 554( 5\.\d\.\d)? at DATA$/, true],
    [['status=452', 'at=data'], /^the mail server answered 452( 4\.\d\.\d)? at DATA$/, false],
    [['status=503'], /^the mail server answered 503/, false],
    [['reset=before-data'], /could not be reached, or broke off: E[A-Z]+$/, false],
    [['reset=after-data'], /could not be reached, or broke off: E[A-Z]+$/, false],
  ]
  for (const [directives, message, isFinal] of cases)
    it(`because of ${directives.join(' ')} is ${isFinal ? 'given up' : 'tried again'}`, async () => {
      assert.equal(mailbox.faults.add({ directives: [...directives] }), undefined)
      const [said, isOver] = await failure(deliverer.deliver(delivery(LETTERS.verify)))
      assert.match(said, message)
      assert.equal(isOver, isFinal)
      await deliverer.deliver(delivery(LETTERS.verify))
    })

  it('because nobody is there is tried again', async () => {
    const nobody = delivererTo(`smtp://127.0.0.1:${await freePort()}`)
    assert.deepEqual(await failure(nobody.deliver(delivery(LETTERS.verify))), [
      'the mail server could not be reached, or broke off: ESOCKET',
      false,
    ])
  })

  it('in time lets go of its connection, and others have new ones', async () => {
    mailbox.faults.add({ directives: ['hang'] })
    const late = new AbortController()
    const stuck = failure(deliverer.deliver(delivery(LETTERS.verify, { signal: late.signal })))
    await until(() => mailbox.list().length === 1, PATIENCE_MS, 'the message')
    late.abort()
    assert.equal((await stuck)[1], false)
    await deliverer.deliver(delivery(LETTERS.verify))
    assert.deepEqual(
      mailbox.list().map(({ acknowledged }) => acknowledged),
      [true, false],
    )
  })

  it('because its link has expired, or its address is none, is given up and never handed over', async () => {
    const expired = { ...LETTERS.reset, until: new Date(Date.now() - 1).toISOString() }
    assert.deepEqual(await failure(deliverer.deliver(delivery(expired))), ['its link has expired', true])
    const nowhere = { ...LETTERS.reset, to: 'a@b.example,c@d.example' }
    assert.deepEqual(await failure(deliverer.deliver(delivery(nowhere))), ['its address is not one of mail', true])
    assert.deepEqual(mailbox.list(), [])
  })

  it('because nobody knows what it is says nothing of what it held', async () => {
    await assert.rejects(deliverer.deliver(delivery({ what: 'poem', to: 'a@b.example' })), { name: 'ZodError' })
  })
})

describe('a server that is not on this machine', () => {
  it('is told nothing without TLS', async () => {
    // Linux connects to itself by this address, which is none of loopback.
    const elsewhere = delivererTo(receiver.url.replace('127.0.0.1', '0.0.0.0'))
    const [said, isFinal] = await failure(elsewhere.deliver(delivery(LETTERS.verify)))
    assert.deepEqual([/ETLS$|at STARTTLS$/.test(said), isFinal, mailbox.list()], [true, false, []])
  })

  it('is told nothing where its certificate is not to be trusted', async () => {
    let commands = 0
    const onMailFrom = (_address: unknown, _session: unknown, done: () => void) => {
      commands += 1
      done()
    }
    const server = new SMTPServer({ secure: true, logger: false, onMailFrom })
    server.on('error', () => {})
    const listening = server.listen(0, '127.0.0.1')
    await once(listening, 'listening')
    const at = listening.address()
    assert.ok(at !== null && typeof at === 'object')
    const [said, isFinal] = await failure(delivererTo(`smtps://127.0.0.1:${at.port}`).deliver(delivery(LETTERS.verify)))
    assert.match(said, /: E(SOCKET|TLS)$/)
    assert.deepEqual([isFinal, commands], [false, 0])
    await new Promise<void>((resolve) => server.close(resolve))
  })
})
