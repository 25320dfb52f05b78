import type { PlantedBug } from './planted-bug.ts'

const PRICES = 'test/site/prices.test.ts'
const SITE = 'test/site/site.test.ts'

/** Written by who knows the code and the tests. */
export const bugsOfSite: readonly PlantedBug[] = [
  {
    id: 'site-published-price',
    title: 'pages show the published price of an operation where an operator has set another',
    promise: 'Prices on the page equal the price book.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/site/catalogue/words.ts',
        find: 'const price = set?.unitPrice ?? unitPrice',
        replace: 'const price = unitPrice',
      },
    ],
    caughtBy: [{ file: PRICES, title: 'follow a change within moments' }],
  },
  {
    id: 'site-calculator-forgets-choices',
    title: 'the calculator holds for the output limit of one answer as if reasoning and choices were not asked for',
    promise: 'The calculator says what a quote says.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/site/models/calculator.ts',
        find: 'const outputMost = outputMostOf(ask, routes, model.limits)',
        replace: 'const outputMost = routes.length === 0 ? 0 : ask.outputLimit',
      },
    ],
    caughtBy: [{ file: PRICES, title: 'says what a quote says' }],
  },
  {
    id: 'site-leads-elsewhere',
    title: 'the switch of colours leads to whatever address a form names',
    promise: 'A form of ours leads to pages of ours.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/site/theme-route.ts',
        find: "OWN_PATH.test(back) ? back : '/'",
        replace: "OWN_PATH.test(back) || back !== '' ? back : '/'",
      },
    ],
    caughtBy: [{ file: SITE, title: 'leads back to a page of its own, and to no other' }],
  },
]
