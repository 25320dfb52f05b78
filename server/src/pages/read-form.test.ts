import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Fault } from '../kernel/fault.ts'
import { emailAddress, factorCode, newPassword, personName, readForm } from './read-form.ts'

const SIGN_UP = { name: personName, email: emailAddress, password: newPassword }
const good = { name: ' Mira ', email: 'Mira@Harbour.example', password: 'a few words of mine' }
const formOf = (fields: Readonly<Record<string, string>>) => new Map(Object.entries(fields))

describe('a form', () => {
  it('is read as it is kept', () => {
    const read = readForm(formOf({ ...good, form_token: 'x', return_to: '/a' }), SIGN_UP)
    assert.deepEqual(read, { isGood: true, fields: { ...good, name: 'Mira', email: 'mira@harbour.example' } })
  })

  it('is told what is wrong with it in the order of its fields, once each', () => {
    const read = readForm(formOf({ password: 'short', email: 'mira@harbour' }), SIGN_UP)
    assert.equal(read.isGood, false)
    assert.deepEqual(Object.keys(read.isGood ? {} : read.problems), ['name', 'email', 'password'])
  })

  it('has no field that is not its own', () => {
    for (const name of ['is_admin', '__proto__', 'constructor', 'role'])
      assert.throws(() => readForm(formOf({ ...good, [name]: 'x' }), SIGN_UP), Fault, name)
  })

  for (const [field, value, problem] of [
    ['name', '', /Enter your name/],
    ['name', '  ', /Enter your name/],
    ['name', 'x'.repeat(101), /longer than 100/],
    ['name', 'a\r\nb', /can’t be shown/],
    ['email', '', /Enter your e-mail/],
    ['email', 'mira', /no @/],
    ['email', '@harbour.example', /nothing before the @/],
    ['email', 'mira@harbour', /no domain after the @/],
    ['email', 'mi ra@harbour.example', /can’t be sent/],
    ['password', '', /Choose a password/],
    ['password', 'x', /1 character and needs at least 12/],
    ['password', 'x'.repeat(11), /11 characters and needs at least 12/],
    ['password', 'x'.repeat(201), /201 characters; the limit is 200/],
  ] as const)
    it(`says what is wrong with ${field} of ${JSON.stringify(value.slice(0, 20))}`, () => {
      const read = readForm(formOf({ ...good, [field]: value }), SIGN_UP)
      assert.match(read.isGood ? '' : (read.problems[field] ?? ''), problem)
    })

  it('counts the characters of a password as a person does, and takes any', () => {
    assert.ok(newPassword.safeParse('🦊'.repeat(12)).success)
    assert.ok(!newPassword.safeParse('🦊'.repeat(6)).success)
    assert.ok(newPassword.safeParse('x'.repeat(200)).success)
  })

  it('takes a code with gaps', () => {
    assert.equal(factorCode.parse(' 418 207 '), '418207')
    for (const code of ['', '41820', '4182070', 'abcdef', '４１８２０７'])
      assert.ok(!factorCode.safeParse(code).success, code)
  })
})
