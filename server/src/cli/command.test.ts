import assert from 'node:assert/strict'
import { hostname, userInfo } from 'node:os'
import { describe, it } from 'node:test'
import { operator } from './command.ts'

describe('who is at the keyboard', () => {
  const origin = { via: 'command line', host: hostname() }

  it('is told by name', () => {
    assert.deepEqual(operator(), { actor: `operator ${userInfo().username}`, origin })
  })

  it('is told by number where the system has no name for it, as in a container', () => {
    const nameless = () => {
      throw new Error('uv_os_get_passwd returned ENOENT')
    }
    assert.deepEqual(operator(nameless), { actor: `operator uid ${process.getuid?.()}`, origin })
  })
})
