import assert from 'node:assert/strict'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { makeOpenCluster, own } from './cluster.ts'
import { startPostgres, temporaryFolder } from './postgres.ts'
import { findPostgres } from './postgres-binaries.ts'

const folder = temporaryFolder('farebox-cluster-')
after(() => rmSync(folder, { recursive: true, force: true }))
const binaries = findPostgres()
own(folder, binaries)

describe('a data folder', () => {
  it('is initialised once, copied from then on, and starts', async () => {
    const kept = path.join(folder, 'kept')
    makeOpenCluster(binaries, path.join(folder, 'first'), kept)
    const [name = '', ...more] = readdirSync(kept)
    assert.deepEqual(more, [])
    // Only what is copied has this file.
    writeFileSync(path.join(kept, name, 'kept-here'), '')
    makeOpenCluster(binaries, path.join(folder, 'data'), kept)
    assert.ok(readdirSync(path.join(folder, 'data')).includes('kept-here'))
    const postgres = await startPostgres({ folder })
    await postgres.stop()
  })

  it('is kept by one of two processes that initialise it at the same time', () => {
    const kept = path.join(folder, 'raced')
    // As a process that began before us and ends after we have looked.
    const late = { ...binaries }
    Object.defineProperty(late, 'folder', {
      enumerable: true,
      get: onSecondLook(binaries.folder, () => makeOpenCluster(binaries, path.join(folder, 'quicker'), kept)),
    })
    makeOpenCluster(late, path.join(folder, 'slower'), kept)
    assert.equal(readdirSync(kept).length, 1)
    assert.ok(readdirSync(path.join(folder, 'slower')).includes('PG_VERSION'))
  })
})

/** The first look names the folder that is kept, the second one is that of initdb. */
function onSecondLook(value: string, act: () => void): () => string {
  let looks = 0
  return () => {
    looks += 1
    if (looks === 2) act()
    return value
  }
}
