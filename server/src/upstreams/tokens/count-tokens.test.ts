import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, describe, it } from 'node:test'
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base'
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base'
import { rolldown } from 'rolldown'
import type { Missed } from '../../kernel/thread.ts'
import { estimateTokens } from '../../protocols/estimate.ts'
import { createTokenCounter } from './count-tokens.ts'

const TEXTS = [
  '',
  'Hello, world!',
  'Zażółć gęślą jaźń',
  '人人生而自由',
  'function f() {\n  return 1\n}',
  '👨‍👩‍👧 family',
] as const
/** No machine is so busy that these take as long. */
const PATIENT = { deadlineMs: 60_000 }

/** Letters by chance: of what repeats, a tokenizer remembers the parts. */
function endlessWord(length: number): string {
  const letters = Buffer.alloc(length)
  let state = 1
  for (let at = 0; at < length; at += 1) {
    state = (state * 48_271) % 2_147_483_647
    letters[at] = 97 + (state % 26)
  }
  return letters.toString('latin1')
}

describe('tokens counted in a thread', () => {
  const counter = createTokenCounter(PATIENT)
  after(() => counter.close())

  it('are those of the tokenizer that is named', async () => {
    for (const text of TEXTS) {
      assert.equal(await counter.count(text, 'o200k'), countO200k(text), text)
      assert.equal(await counter.count(text, 'cl100k'), countCl100k(text), text)
    }
  })

  it('come back to whoever asked, however many ask at once', async () => {
    const texts = Array.from({ length: 50 }, (_, index) => 'word '.repeat(index + 1))
    assert.deepEqual(
      await Promise.all(texts.map((text) => counter.count(text, 'o200k'))),
      texts.map((text) => countO200k(text)),
    )
  })

  it('take what is special to a model as text', async () => {
    assert.ok((await counter.count('<|endoftext|>', 'o200k')) > 1)
  })

  it('are the same of a long text, which is counted in pieces', async () => {
    const text = 'The gateway holds the most that a call can cost; then it settles what it did cost.\n'.repeat(2_000)
    assert.equal(await counter.count(text, 'o200k'), countO200k(text))
  })

  it('of one endless word take no endless time, and are off by a token for each piece at the most', async () => {
    assert.ok((await counter.count(endlessWord(300_000), 'o200k')) > 50_000)
    const text = endlessWord(5_000)
    const [tokens, whole] = [await counter.count(text, 'o200k'), countO200k(text)]
    assert.ok(tokens >= whole && tokens <= whole + text.length / 1024, `${tokens} of ${whole}`)
  })

  it('are one for every three bytes where that is the rule', async () => {
    assert.equal(await counter.count('', 'bytes_3'), 0)
    assert.equal(await counter.count('abcd', 'bytes_3'), 2)
    assert.equal(await counter.count('漢字', 'bytes_3'), 2)
  })
})

describe('tokens that can not be counted', () => {
  it('are estimated after the deadline, which is told, and a new thread counts those after them', async () => {
    const told: Missed[] = []
    const counter = createTokenCounter({ deadlineMs: 2_000, onEstimate: (missed) => told.push(missed) })
    const tooLong = endlessWord(10_000_000)
    assert.equal(await counter.count(tooLong, 'o200k'), estimateTokens(tooLong))
    assert.deepEqual(told, [{ reason: 'deadline' }])
    const text = 'Zażółć gęślą jaźń'
    assert.notEqual(estimateTokens(text), countO200k(text))
    // A thread may need longer than that to start, where the machine has much else to do.
    let tokens = 0
    for (let tries = 0; tries < 30 && tokens !== countO200k(text); tries += 1)
      tokens = await counter.count(text, 'o200k')
    assert.equal(tokens, countO200k(text))
    await counter.close()
  })

  it('are estimated after the deadline where they only waited', async () => {
    const counter = createTokenCounter({ deadlineMs: 1 })
    const texts = ['one', 'one two', 'one two three']
    assert.deepEqual(await Promise.all(texts.map((text) => counter.count(text, 'o200k'))), [1, 2, 3])
    await counter.close()
  })

  it('are estimated where too many wait', async () => {
    const told: Missed[] = []
    const counter = createTokenCounter({ ...PATIENT, queueMost: 1, onEstimate: (missed) => told.push(missed) })
    const counts = await Promise.all(['one', 'two', 'three'].map((text) => counter.count(text, 'o200k')))
    assert.deepEqual(counts, [1, 1, 1])
    assert.deepEqual(told, [{ reason: 'queue_full' }])
    await counter.close()
  })

  it('are estimated once the counter is closed, those that wait with them', async () => {
    const told: Missed[] = []
    const counter = createTokenCounter({ ...PATIENT, onEstimate: (missed) => told.push(missed) })
    const waiting = ['one', 'two'].map((text) => counter.count(text, 'o200k'))
    await counter.close()
    assert.deepEqual(await Promise.all([...waiting, counter.count('three', 'cl100k')]), [1, 1, 1])
    assert.deepEqual(told, [{ reason: 'closed' }, { reason: 'closed' }, { reason: 'closed' }])
  })
})

describe('a thread that counts', () => {
  it('keeps no process alive when it is idle', () => {
    const module = JSON.stringify(path.join(import.meta.dirname, 'count-tokens.ts'))
    const program = `const { createTokenCounter } = await import(${module})
      console.log(await createTokenCounter(${JSON.stringify(PATIENT)}).count('Hello, world!', 'o200k'))`
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })
    assert.equal(printed, '4\n')
  })

  it('is found beside a bundle', async () => {
    // Inside of the project, so that packages are found as they are by the bundle that is shipped.
    const folder = mkdtempSync(path.join(import.meta.dirname, '.bundle-'))
    try {
      writeFileSync(
        path.join(folder, 'entry.ts'),
        `import { createTokenCounter } from '../count-tokens.ts'
        console.log(await createTokenCounter(${JSON.stringify(PATIENT)}).count('Hello, world!', 'cl100k'))`,
      )
      const build = await rolldown({
        input: {
          main: path.join(folder, 'entry.ts'),
          'count-worker': path.join(import.meta.dirname, 'count-worker.ts'),
        },
        platform: 'node',
        external: (id) => !id.startsWith('.') && !path.isAbsolute(id),
      })
      await build.write({ dir: folder, format: 'esm', entryFileNames: '[name].js' })
      await build.close()
      assert.equal(execFileSync(process.execPath, [path.join(folder, 'main.js')], { encoding: 'utf8' }), '4\n')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
