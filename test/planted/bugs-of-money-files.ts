import type { PlantedBug } from './planted-bug.ts'

/** In the files that decide what a call costs: unit tests alone have to notice each. `npm run mutants` tries these too. */
export const bugsOfMoneyFiles: readonly PlantedBug[] = [
  {
    id: 'quote-pins-the-maximum-alone',
    title: 'a call with a quote is held to the quoted maximum, and charged by the price of today',
    promise: 'What was quoted is charged by the quoted price, whatever prices do in between.',
    author: 'insider',
    edits: [{ file: 'server/src/pricing/quotes.ts', find: "price: fromFraction(prices[at] ?? ''),", replace: '' }],
    caughtBy: [{ file: 'server/src/pricing/quotes.test.ts', title: 'has the quoted price of a unit' }],
  },
  {
    id: 'input-held-at-its-own-price',
    title: 'input is held for at the price of input, though to write it to a cache is dearer',
    promise: 'A hold covers the most that a call can cost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-sheet.ts',
        find: 'isMore(value(name), value(dearest))',
        replace: 'isMore(value(name), value(name))',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/pricing/by-token.test.ts',
        title: 'at the dearest price that it can have: writing a cache',
      },
      {
        file: 'server/src/pricing/by-token.test.ts',
        title: 'covers whatever class the upstream reports the input in',
      },
    ],
  },
  {
    id: 'drained-is-charged',
    title: 'who left pays for what was heard out after that, as counted',
    promise: 'Where the upstream reports nothing, what was delivered is counted, and no more.',
    author: 'insider',
    edits: [{ file: 'server/src/gateway/relay.ts', find: 'delivered ??= reader.deliveredText()', replace: '' }],
    caughtBy: [
      {
        file: 'server/src/gateway/relay.test.ts',
        title: 'is counted by what was delivered, not by what was heard out',
      },
    ],
  },
]
