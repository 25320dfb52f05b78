import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { hasPackagesOf } from './versions.ts'

const HERE = {
  packages: {
    '': { version: '0.2.0' },
    'node_modules/@farebox/server': { link: true },
    'node_modules/pg': { version: '8.23.1' },
    'node_modules/undici': { version: '8.12.4' },
    'node_modules/typescript': { version: '7.0.2' },
  },
}

describe('the packages of another version', () => {
  it('are ours where we have all that it is built and runs with, whatever else we have', () => {
    const wanted = {
      packages: {
        '': { version: '0.1.0' },
        'node_modules/@farebox/server': { link: true },
        'node_modules/pg': { version: '8.23.1' },
      },
    }
    assert.equal(hasPackagesOf(wanted, HERE), true)
  })

  it('are its own where one is missing here or has another version', () => {
    for (const packages of [
      { 'node_modules/pg': { version: '8.22.0' } },
      { 'node_modules/pg/node_modules/pg-types': { version: '2.2.0' } },
      { 'node_modules/redis': { version: '5.0.0' } },
      { 'node_modules/typescript': { version: '6.0.0' } },
      { 'node_modules/vite': { version: '8.3.6' } },
    ])
      assert.equal(hasPackagesOf({ packages }, HERE), false, JSON.stringify(packages))
  })
})
