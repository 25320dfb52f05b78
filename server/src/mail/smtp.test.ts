import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Secret } from '../kernel/secret.ts'
import { smtpOptions } from './smtp.ts'

describe('a mail server', () => {
  const read = (url: string) => {
    const { host, port, secure, requireTLS, ignoreTLS, auth } = smtpOptions(new Secret(url))
    return { host, port, secure, requireTLS, ignoreTLS, ...(auth && { auth }) }
  }

  it('is spoken to under TLS alone, from the start or before anything is told', () => {
    const auth = { user: 'farebox', pass: 'p@ss' }
    assert.deepEqual(read('smtps://farebox:p%40ss@mail.example'), {
      ...{ host: 'mail.example', port: 465, secure: true, requireTLS: false, ignoreTLS: false, auth },
    })
    assert.deepEqual(read('smtp://mail.example'), {
      ...{ host: 'mail.example', port: 587, secure: false, requireTLS: true, ignoreTLS: false },
    })
    for (const url of [
      'smtp://10.0.0.7:25',
      'smtp://127.0.0.1.evil.example',
      'smtp://[::2]',
      'smtp://localhost.example',
    ])
      assert.equal(read(url).requireTLS, true, url)
  })

  it('on this machine is spoken to as it is', () => {
    for (const url of ['smtp://127.0.0.1:25', 'smtp://localhost:25', 'smtp://[::1]:25']) {
      const { port, secure, requireTLS, ignoreTLS } = read(url)
      assert.deepEqual([port, secure, requireTLS, ignoreTLS], [25, false, false, true])
    }
    assert.equal(read('smtp://[::1]:25').host, '::1')
  })

  it('is never asked to read files or addresses into a message', () => {
    const { disableFileAccess, disableUrlAccess } = smtpOptions(new Secret('smtp://mail.example'))
    assert.deepEqual([disableFileAccess, disableUrlAccess], [true, true])
  })
})
