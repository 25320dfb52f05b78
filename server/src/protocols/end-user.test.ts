import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { END_USER_MOST, endUserIn, endUserNamed } from './end-user.ts'

const textIn = (body: unknown) => endUserIn(body)?.text

describe('the end user of a request', () => {
  it('is read where OpenAI and Anthropic have it', () => {
    assert.equal(textIn({ user: 'alice' }), 'alice')
    assert.equal(textIn({ safety_identifier: 'alice' }), 'alice')
    assert.equal(textIn({ user: 'old', safety_identifier: 'new' }), 'new')
    assert.equal(textIn({ metadata: { user_id: 'alice' } }), 'alice')
  })

  it('is the same however its letters are composed, and not looked into where it is too long', () => {
    assert.deepEqual(endUserNamed('Zo\u00eb'), endUserNamed('Zoe\u0308'))
    const long = 'x'.repeat(END_USER_MOST + 1)
    assert.deepEqual(endUserIn({ user: long }), { text: long, label: '' })
  })

  it('is nobody where it is left out, empty, or no text', () => {
    for (const body of [undefined, null, [], 'user', {}, { user: '' }, { user: '  ' }, { user: 7 }, { metadata: 'x' }])
      assert.equal(textIn(body), undefined)
  })

  it('is one person from session to session, for clients that send a session along', () => {
    const ids = (session: string, account = '', device = 'd'.repeat(64)) =>
      endUserNamed(JSON.stringify({ device_id: device, account_uuid: account, session_id: session }))
    assert.deepEqual(ids('one'), ids('two'))
    assert.deepEqual(ids('one', 'a', 'here'), ids('two', 'a', 'there'))
    assert.notDeepEqual(ids('one', 'a'), ids('one', 'b'))
    assert.notDeepEqual(ids('one', '', 'here'), ids('one', '', 'there'))
    const before = (session: string, account = '') => endUserNamed(`user_0a1b_account_${account}_session_${session}`)
    assert.deepEqual(before('one'), before('two'))
    assert.deepEqual(before('one', 'a-1'), endUserNamed('{"account_uuid":"a-1"}'))
    assert.deepEqual(
      endUserNamed('{"person":"alice","sessionId":"1"}'),
      endUserNamed('{"sessionId":"2","person":"alice"}'),
    )
  })

  it('is the text itself where that only looks like such an object', () => {
    for (const text of ['{', '{"a":', '[1]', '{"session":"1"}', `{"a":"${'x'.repeat(3_000)}"}`])
      assert.equal(endUserNamed(text).text, text)
  })
})
