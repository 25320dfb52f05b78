import assert from 'node:assert/strict'
import { PATIENCE_MS, until } from '../../../harness/until.ts'
import { codeAt } from '../../people/authenticator.ts'
import { freshAddress } from '../../people/site.ts'
import { createVisitor, freshEmail, hiddenIn, PASSWORD, signUp, type Visitor } from '../../people/visitor.ts'
import { type Attack, later, linkTo, newcomer, turnsFactorOff, turnsFactorOn, type World } from './world.ts'

/** Mail is not under way any more: a letter that was asked for after all others has come. */
async function mailHasSettled(world: World): Promise<void> {
  await until(
    async () => {
      const { rows } = await world.pool.query("select from outbox where kind = 'mail' and due_at is not null limit 1")
      return rows.length === 0
    },
    PATIENCE_MS,
    'that all mail has left',
  )
}

/** Somebody who has the password, at the door of the second factor. */
async function halfIn(world: World, email: string): Promise<Visitor> {
  const visitor = createVisitor(world)
  const { location } = await visitor.fill('/sign-in', { email, password: PASSWORD })
  assert.equal(location, '/second-factor')
  return visitor
}

/** Guesses until it is refused to; how many were compared. */
async function guess(world: World, email: string, times: number): Promise<number> {
  let compared = 0
  let visitor = await halfIn(world, email)
  for (let n = 0; n < times; n += 1) {
    if (n % 5 === 0) visitor = await halfIn(world, email)
    const { status } = await visitor.fill('/second-factor', { code: String(n).padStart(6, '0') })
    if (status === 400) compared += 1
    else if (status !== 429) return compared
  }
  return compared
}

const ask = (world: World, email: string, address = freshAddress()) =>
  createVisitor(world, { address }).fill('/reset', { email })

const resetsOf = async (world: World, email: string) =>
  (await world.sandbox.mail(email)).filter(({ links }) => links.some((one) => one.includes('/reset/'))).length

export const SIGN_IN_ATTACKS: readonly Attack[] = [
  [
    'a password that is changed in a loop sends a few letters',
    async (world) => {
      const person = await newcomer(world)
      let [old, changes] = [PASSWORD, 0]
      for (let n = 0; n < 30; n += 1) {
        const password = `a few words of mine ${n}`
        const { status } = await person.browser.fill('/account/password', { old, password })
        if (status !== 303) break
        changes += 1
        old = password
      }
      await mailHasSettled(world)
      const letters = (await world.sandbox.mail(person.email)).length
      assert.ok(letters <= 12, `${letters} letters of ${changes} changes`)
    },
  ],
  [
    'notices that wait keep no reset of another mailbox of their domain waiting',
    async (world) => {
      const domain = 'queue.example'
      const attackers = await Promise.all([1, 2, 3].map((n) => newcomer(world, { email: `attacker${n}@${domain}` })))
      const victim = `victim@${domain}`
      await signUp(world, { email: victim })
      await mailHasSettled(world)
      await world.sandbox.mailFault(['delay=200'], 200, '@queue.example')
      for (const person of attackers)
        for (let n = 0; n < 3; n += 1) {
          const { key, recovery } = await turnsFactorOn(person)
          await turnsFactorOff(person, recovery[0] ?? codeAt(key, 1))
        }
      const before = (await world.sandbox.mail()).length
      await ask(world, victim)
      await until(async () => (await resetsOf(world, victim)) === 1, PATIENCE_MS, 'the reset')
      const meanwhile = (await world.sandbox.mail()).length - before
      assert.ok(meanwhile <= 10, `${meanwhile} letters went first`)
      await mailHasSettled(world)
    },
  ],
  [
    'right passwords from a few addresses without end keep no right password of others out',
    async (world) => {
      const victims = [await signUp(world), await signUp(world)]
      const attackers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => signUp(world)))
      let isOver = false
      const flood = Array.from({ length: 60 }, async (_, n) => {
        const visitor = createVisitor(world, { address: `198.51.100.${(n % 6) + 1}` })
        const email = attackers[n % 6] ?? ''
        while (!isOver) {
          const { status } = await visitor.fill('/sign-in', { email, password: PASSWORD }).catch(() => ({ status: 0 }))
          if (status === 429) return
          visitor.cookies.clear()
        }
      })
      const answers: number[] = []
      for (let n = 0; n < 12; n += 1) {
        const visitor = createVisitor(world)
        answers.push((await visitor.fill('/sign-in', { email: victims[n % 2] ?? '', password: PASSWORD })).status)
      }
      isOver = true
      await Promise.all(flood)
      assert.deepEqual(new Set(answers), new Set([303]))
    },
  ],
  [
    'wrong passwords for mailboxes that do not exist, from many networks at once, keep no right password out',
    async (world) => {
      const victim = await signUp(world)
      let isOver = false
      const flood = Array.from({ length: 20 }, async (_, n) => {
        const visitor = createVisitor(world, { address: `198.${18 + (n % 2)}.${n}.9` })
        for (let m = 0; m < 15 && !isOver; m += 1) {
          await visitor
            .fill('/sign-in', { email: `nobody${n}x${m}@harbour.example`, password: PASSWORD })
            .catch(() => {})
          visitor.cookies.clear()
        }
      })
      const answers: number[] = []
      for (let n = 0; n < 6; n += 1)
        answers.push((await createVisitor(world).fill('/sign-in', { email: victim, password: PASSWORD })).status)
      isOver = true
      await Promise.all(flood)
      assert.deepEqual(
        answers,
        answers.map(() => 303),
      )
    },
  ],
  [
    'resets for a mailbox under labels and spellings take no letter from its owner, and send it no flood',
    async (world) => {
      const victim = freshEmail('victim')
      await signUp(world, { email: victim })
      const [name = '', host = ''] = victim.split('@')
      for (let n = 0; n < 40; n += 1) await ask(world, `${name}+${n}@${host}`)
      const spellings = Array.from({ length: 24 }, (_, n) =>
        [...name].map((letter, at) => ((n >> (at % 5)) & 1 ? letter.toUpperCase() : letter)).join(''),
      )
      for (const spelling of spellings) await ask(world, `${spelling}@${host}`)
      for (const ending of ['.', ' ', '\u200b']) await ask(world, victim + ending)
      await mailHasSettled(world)
      const sent = await resetsOf(world, victim)
      assert.ok(sent <= 6, `${sent} letters`)
      await later(world, '61 minutes')
      await ask(world, victim)
      await until(async () => (await resetsOf(world, victim)) > sent, PATIENCE_MS, "its owner's reset an hour later")
    },
  ],
  [
    'codes are not guessed for ever nor in silence, and their owner has a way in meanwhile',
    async (world) => {
      const person = await newcomer(world)
      const { key, recovery } = await turnsFactorOn(person)
      await mailHasSettled(world)
      const before = (await world.sandbox.mail(person.email)).length
      await guess(world, person.email, 14)
      const { text } = await world.mailTo(person.email, before + 1)
      assert.match(text, /password/)
      const owner = await halfIn(world, person.email)
      const entered = await owner.fill('/recovery', { recovery: recovery[0] ?? '' })
      assert.equal(entered.status, 303, 'a recovery code is counted apart')
      let compared = 0
      for (let n = 0; n < 6; n += 1) {
        await later(world, '16 minutes')
        compared += await guess(world, person.email, 14)
      }
      assert.ok(compared <= 21, `${compared} were compared in a row`)
      await later(world, '16 minutes')
      const late = await halfIn(world, person.email)
      const right = await late.fill('/second-factor', { code: codeAt(key) })
      assert.notEqual(right.status, 303, 'not without a new password')
      assert.match(right.text, /reset|new password/i)
      await ask(world, person.email)
      const link = await linkTo(world, person.email, '/reset/')
      const browser = createVisitor(world)
      await browser.fill(new URL(link).pathname, { password: 'another few words' })
      const back = createVisitor(world)
      await back.fill('/sign-in', { email: person.email, password: 'another few words' })
      await world.pool.query('update people set totp_used_step = 0 where email = $1', [person.email])
      assert.equal((await back.fill('/second-factor', { code: codeAt(key) })).status, 303)
    },
  ],
  [
    'codes are not guessed for ever where the factor is turned off, with a session that somebody got hold of',
    async (world) => {
      const person = await newcomer(world)
      await turnsFactorOn(person)
      await mailHasSettled(world)
      const before = (await world.sandbox.mail(person.email)).length
      let compared = 0
      for (let window = 0; window < 5; window += 1) {
        for (let n = 0; n < 12; n += 1) {
          const { status } = await turnsFactorOff(person, String(window * 12 + n).padStart(6, '0')).catch(() => ({
            status: 0,
          }))
          if (status === 400) compared += 1
        }
        await later(world, '16 minutes')
      }
      assert.ok(compared <= 21, `${compared} guesses were compared`)
      await world.mailTo(person.email, before + 1)
    },
  ],
  [
    'a password that is changed begins no guesses of codes anew, with a session and the password that somebody got hold of',
    async (world) => {
      const person = await newcomer(world)
      await turnsFactorOn(person)
      let [old, compared] = [PASSWORD, 0]
      for (let window = 0; window < 5; window += 1) {
        for (let n = 0; n < 9; n += 1) {
          const { status } = await turnsFactorOff(person, String(window * 9 + n).padStart(6, '0')).catch(() => ({
            status: 0,
          }))
          if (status === 400) compared += 1
        }
        const password = `a few words of mine ${window}`
        const changed = await person.browser.fill('/account/password', { old, password })
        if (changed.status === 303) old = password
      }
      assert.ok(compared <= 10, `${compared} guesses were compared in a quarter of an hour`)
    },
  ],
  [
    'a name is no link in any letter, however it is written',
    async (world) => {
      const names = [
        'evil。example',
        'evil．example',
        'evil․example',
        'https://evil.example',
        'www.evil.example',
        'a@evil.example',
        'evil.example\u202e',
        'evil%2eexample',
        'evil&#46;example',
      ]
      for (const name of names) {
        const owner = await newcomer(world)
        await owner.own('', { method: 'PATCH', body: { name }, headers: { 'if-match': '*' } })
        const guest = freshEmail('guest')
        await owner.own('/invitations', { method: 'POST', body: { email: guest, role: 'viewer' } })
        const email = freshEmail('named')
        const { status } = await createVisitor(world).fill('/sign-up', { name, email, password: PASSWORD })
        for (const address of status === 303 ? [guest, email] : [guest]) {
          const { text, html, subject } = await world.mailTo(address)
          assert.doesNotMatch(`${subject} ${text}`.normalize('NFKC'), /evil[.。](?=\S)|@evil|\u202e/i, name)
          assert.doesNotMatch(
            (html ?? '').normalize('NFKC'),
            /evil([.。]|&#46;)(?=\S)|@evil|\u202e|href="[^"]*evil/i,
            name,
          )
        }
      }
    },
  ],
  [
    'an address of mail that is far too long is refused like one that is wrong',
    async (world) => {
      const shapes = [
        'a'.repeat(16_000),
        `${'a.'.repeat(8_000)}b@c`,
        `${'a@'.repeat(8_000)}`,
        `x@${'a-'.repeat(8_000)}`,
        `"${' '.repeat(16_000)}"@x.example`,
      ]
      for (const path of ['/sign-in', '/sign-up', '/reset']) {
        const visitor = createVisitor(world)
        const { text } = await visitor.get(path)
        for (const email of shapes) {
          const { status } = await visitor.post(path, {
            ...hiddenIn(text, path),
            name: 'Mira',
            email,
            password: PASSWORD,
          })
          assert.ok(status === 400 || status === 413, `${path}: ${status}`)
        }
      }
    },
  ],
]
