import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { endSoon } from './end-soon.ts'
import { takeFrom } from './file-queue.ts'
import { ROOT } from './root.ts'

/**
 * A process that runs many test files, one after the other, with their installations in this process. A file is a test around
 * its tests, so that its hooks run when it is over.
 */
for (const file of takeFrom(process.env.HARNESS_QUEUE ?? ''))
  await test(path.relative(ROOT, file), async () => {
    await import(pathToFileURL(file).href)
  })
endSoon()
