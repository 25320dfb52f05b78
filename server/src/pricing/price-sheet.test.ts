import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { CLASSES, oracle, priceOf, rounded, written } from '../../../harness/price-oracle.ts'
import { seed } from '../../../harness/proof.ts'
import {
  PART_CLASS_NAMES,
  PART_CLASSES,
  PLAIN_CLASSES,
  SERVER_TOOLS,
  type ServerTool,
  type TokenClass,
} from '../catalogue/price-classes.ts'
import { rational } from '../kernel/rational.ts'
import { type Asked, sheetOf, type Used } from './price-sheet.ts'
import { costOf, mostFor } from './terms.ts'

const count = fc.integer({ min: 0, max: 2_000 })
const partCounts = fc.dictionary(fc.constantFrom(...PART_CLASS_NAMES), count)
const callCounts = fc.dictionary(fc.constantFrom(...SERVER_TOOLS), fc.integer({ min: 0, max: 9 }))
const usage: fc.Arbitrary<Used> = fc.record({
  input: count,
  output: count,
  cacheRead: count,
  cacheWrite: count,
  parts: partCounts,
  calls: callCounts,
  tier: fc.constantFrom('standard', 'flex', 'priority', 'batch'),
})
const RUNS = { seed, numRuns: 400 }

describe('what a usage costs in classes, steps and tiers', () => {
  it('is what an independent reckoning says, to the nano-dollar', () => {
    fc.assert(
      fc.property(written, usage, (price, used) => {
        const { terms, countsOf } = sheetOf(priceOf(price), rational(1n))
        assert.equal(costOf(terms, countsOf(used)), rounded(oracle(price, used)))
      }),
      RUNS,
    )
  })

  it('is the same in every way of counting parts that have no price of their own', () => {
    fc.assert(
      fc.property(written, usage, (price, used) => {
        const plain = { ...price, parts: [] }
        const { terms, countsOf } = sheetOf(priceOf(plain), rational(1n))
        const { parts: _, ...whole } = used
        assert.equal(costOf(terms, countsOf(used)), costOf(terms, countsOf(whole)))
      }),
      RUNS,
    )
  })
})

/** In thousandths; all or nothing more often than by chance, for that is where a bound is met. */
const some = fc.oneof(fc.constant(0), count)
const share = fc.oneof(fc.constantFrom(0, 1_000), fc.nat(1_000))

/** A request, and what an honest upstream may report of it: within its bounds, in classes and tiers that it asks for. */
type Honest = { readonly asked: Asked; readonly used: Used }

const honest: fc.Arbitrary<Honest> = fc
  .record({
    text: some,
    images: some,
    sounds: some,
    output: some,
    longCache: fc.boolean(),
    speaks: fc.boolean(),
    tier: fc.constantFrom('auto', 'standard', 'flex', 'priority'),
    tools: fc.oneof(fc.constant<ServerTool[]>([]), fc.subarray<ServerTool>([...SERVER_TOOLS])),
    calls: fc.integer({ min: 1, max: 5 }),
    shares: fc.array(share, { minLength: 12, maxLength: 12 }),
    downgraded: fc.boolean(),
    only: fc.constantFrom('any', 'read', 'hour'),
  })
  // Some write all of a text to a cache of one hour, and nothing else.
  .map((one) => (one.only === 'hour' ? { ...one, images: 0, sounds: 0, longCache: true } : one))
  .map(({ text, images, sounds, output, longCache, speaks, tier, tools, calls, shares, downgraded, only }) => {
    const shareOf = (whole: number, at: number) => Math.floor((whole * (shares[at] ?? 0)) / 1_000)
    const [usedText, usedImages, usedSounds] = [
      only === 'hour' ? text : shareOf(text, 0),
      shareOf(images, 1),
      shareOf(sounds, 2),
    ]
    const read = only === 'read' ? usedText : only === 'hour' ? 0 : shareOf(usedText, 3)
    const wrote = only === 'hour' ? usedText : shareOf(usedText - read, 4)
    const readSounds = shareOf(usedSounds, 5)
    const spoken = output - shareOf(output, 6)
    const any = ['standard', 'flex', 'priority'][(shares[7] ?? 0) % 3] ?? 'standard'
    const tool = tools[(shares[8] ?? 0) % Math.max(1, tools.length)]
    return {
      asked: {
        inputMost: text + images + sounds,
        outputMost: output,
        partsMost: { image: images, any: sounds },
        needs: new Set([
          ...(longCache ? (['cache_write_1h'] as const) : []),
          ...(speaks ? (['output_audio'] as const) : []),
          ...tools.map((name) => `tool:${name}` as const),
        ]),
        tier,
        ...(tools.length > 0 && { toolCalls: calls }),
      },
      used: {
        input: usedText - read - wrote + usedImages + usedSounds - readSounds,
        cacheRead: read + readSounds,
        cacheWrite: wrote,
        output: spoken,
        parts: {
          ...(longCache && { cache_write_1h: only === 'hour' ? wrote : shareOf(wrote, 9) }),
          ...(speaks && { output_audio: shareOf(spoken, 10) }),
          input_image: usedImages,
          input_audio: usedSounds - readSounds,
          cache_read_audio: readSounds,
        },
        calls: tool === undefined ? {} : { [tool]: shareOf(calls, 11) },
        tier: tier === 'auto' ? any : downgraded ? 'standard' : tier,
      },
    }
  })

describe('what is held for a request', () => {
  it('trap: the reservation is priced at the standard rate, the call at a dearer tier: it is never below what an honest upstream may report', () => {
    fc.assert(
      fc.property(written, honest, (price, { asked, used }) => {
        const { terms, countsOf, mostOf } = sheetOf(priceOf(price), rational(1n))
        const [held, cost] = [mostFor(terms, mostOf(asked)), costOf(terms, countsOf(used))]
        assert.ok(held >= cost, `${held} is held, and it costs ${cost}`)
      }),
      { ...RUNS, numRuns: 2_000 },
    )
  })

  it('grows with the output that it is for, so that a slice is never below what its own tokens cost, nor above the whole', () => {
    fc.assert(
      fc.property(written, honest, share, (price, { asked, used }, part) => {
        const { terms, countsOf, mostOf } = sheetOf(priceOf(price), rational(1n))
        const output = Math.floor((asked.outputMost * part) / 1_000)
        const parts = Object.entries(used.parts ?? {}).map(
          ([name, tokens]) => [name, Math.min(tokens, output)] as const,
        )
        const within = {
          ...used,
          output: Math.min(used.output, output),
          parts: { ...used.parts, ...Object.fromEntries(parts.filter(([name]) => name.startsWith('output'))) },
        }
        const slice = mostFor(terms, mostOf({ ...asked, outputMost: output }))
        assert.ok(slice >= costOf(terms, countsOf(within)))
        assert.ok(slice <= mostFor(terms, mostOf(asked)))
      }),
      { ...RUNS, numRuns: 2_000 },
    )
  })

  const price = priceOf({
    plain: {
      ...allAt(1_000_000),
      input_audio: 40_000_000,
      cache_write: 1_250_000,
      cache_write_1h: 2_000_000,
      output: 5_000_000,
    },
    parts: ['input_audio', 'cache_write_1h'],
    steps: [{ above: 1_000, rates: allAt(9_000_000) }],
    tiers: { priority: 2_000 },
    tools: { web_search: 10_000 },
  })
  const heldFor = (asked: Partial<Asked>) => {
    const { terms, mostOf } = sheetOf(price, rational(1n))
    return mostFor(terms, mostOf({ inputMost: 1_000, outputMost: 100, tier: 'standard', ...asked }))
  }

  it('has no price in it that the request does not ask for', () => {
    assert.equal(heldFor({}), 1_000n * 1_250n + 100n * 5_000n)
    assert.equal(heldFor({ needs: new Set(['cache_write_1h']) }), 1_000n * 2_000n + 100n * 5_000n)
    assert.equal(heldFor({ partsMost: { image: 0, any: 10 } }), 10n * 40_000n + 990n * 1_250n + 100n * 5_000n)
    assert.equal(heldFor({ needs: new Set(['tool:web_search']), toolCalls: 3 }), 3n * 10_000_000n + heldFor({}))
  })

  it('has the price of a step from the first token beyond it on, for all of the request', () => {
    assert.equal(heldFor({ inputMost: 1_001 }), 1_001n * 9_000n + 100n * 9_000n)
  })

  it('has the dearest tier where the upstream may choose', () => {
    for (const tier of ['auto', 'priority']) assert.equal(heldFor({ tier }), 2n * heldFor({}))
  })
})

function allAt(amount: number): Readonly<Record<TokenClass, number>> {
  return Object.fromEntries(CLASSES.map((name) => [name, amount])) as Record<TokenClass, number>
}

describe('the table of classes', () => {
  it('has each part within a plain class, so that no token is counted twice', () => {
    for (const whole of Object.values(PART_CLASSES)) assert.ok(PLAIN_CLASSES.includes(whole))
  })
})
