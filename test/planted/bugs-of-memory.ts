import type { PlantedBug } from './planted-bug.ts'

const BUDGET = 'server/src/kernel/memory-budget.ts'
const OUTLINE = 'server/src/protocols/json-outline.ts'
const CATCHERS = 'server/src/kernel/memory-budget.test.ts'

/** What would let some callers take the memory of all, or lose it for good. */
export const bugsOfMemory: readonly PlantedBug[] = [
  {
    id: 'large-part-is-everything',
    title: 'large calls may take all of the memory, and small ones find none',
    promise: 'Large calls share a part of the budget, so that small ones always have the rest.',
    author: 'insider',
    edits: [
      {
        file: BUDGET,
        find: "    if (moreLarge > 0 && this.#largeBytes + moreLarge > this.#largeMost) return 'large'\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: CATCHERS, title: 'leaves a quarter to small ones' }],
  },
  {
    id: 'outgrown-reply-keeps-its-wait',
    title: 'a reply that is there still gets the memory for which it had waited, and nobody gives that back',
    promise: 'What is reserved for a reply is what it has, once it is there.',
    author: 'insider',
    edits: [
      {
        file: BUDGET,
        find: `  shrink(toBytes: number): void {
    this.#budget.callOff(this)
`,
        replace: `  shrink(toBytes: number): void {
`,
      },
    ],
    caughtBy: [{ file: CATCHERS, title: 'does not wait for more once its reply is there' }],
  },
  {
    id: 'lease-given-back-by-the-first',
    title: 'the memory of an answer is given back when its call has ended, though nobody has read the answer yet',
    promise: 'Unread answers count.',
    author: 'insider',
    edits: [{ file: BUDGET, find: '    if (this.#keepers > 0) return\n', replace: '    this.#keepers = 0\n' }],
    caughtBy: [{ file: CATCHERS, title: 'until everybody who keeps it has released it' }],
  },
  {
    id: 'usage-left-out-of-a-large-reply',
    title: 'of a large reply with many log probabilities, only the first figure of its usage is read',
    promise: 'The usage of a reply is read as it stands there, however large the reply is.',
    author: 'insider',
    edits: [
      {
        file: OUTLINE,
        find: '    if (this.#at - this.#memberAt <= this.#limits.memberBytes) return\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: 'server/src/protocols/json-outline.test.ts', title: 'has all of the usage' }],
  },
]
