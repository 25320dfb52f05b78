import type { PlantedBug } from './planted-bug.ts'

const SITE = 'test/contract/site.test.ts'
const SALES = 'test/contract/sales.test.ts'

/** What would let callers rely on a contract that is not the one they were told of, or that says what is not so. */
export const bugsOfContracts: readonly PlantedBug[] = [
  {
    id: 'contract-in-any-order',
    title: 'the names of a contract stand in the order in which the code happened to write them',
    promise: 'Equal contracts have equal bytes.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/canonical.ts',
        find: '    .sort(([a], [b]) => (a < b ? -1 : 1))\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: 'server/src/contracts/canonical.test.ts', title: 'are the same for the same value' }],
  },
  {
    id: 'damaged-contract-served',
    title: 'a kept contract is served without a look at its hash',
    promise: 'Bytes that are served under a hash have that hash.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/kept-contracts.ts',
        find: "return sha256(bytes) === contentHash ? { contentHash, docsRevision, bytes } : 'damaged'",
        replace: 'return { contentHash, docsRevision, bytes }',
      },
    ],
    caughtBy: [{ file: SITE, title: 'is not served where its bytes are damaged' }],
  },
  {
    id: 'contract-kept-for-ever',
    title: 'a contract can be read by its hash however long ago it was served',
    promise: 'Old contracts are readable for the time that the operator says.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/kept-contracts.ts',
        find: 'where content_hash = $1 and last_served_at > clock_timestamp() - make_interval(days => $2)',
        replace: 'where content_hash = $1 and $2::integer > 0',
      },
    ],
    caughtBy: [{ file: SITE, title: 'can be read after it was replaced' }],
  },
  {
    id: 'operation-without-its-parts',
    title: 'the contract of one operation lacks what its parts refer to',
    promise: "One operation's contract can be read by itself.",
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/one-operation.ts',
        find: '    open.push(...referencesIn(target))\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: SITE, title: 'is served by operation' }],
  },
  {
    id: 'breaking-without-a-version',
    title: 'a contract that breaks callers may follow another one of the same version',
    promise: 'Nothing breaks callers without a decision on the version.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/diff.ts',
        find: 'majorOf(after) > majorOf(before)',
        replace: 'majorOf(after) >= majorOf(before)',
      },
    ],
    caughtBy: [
      { file: 'server/src/contracts/diff.test.ts', title: 'may break callers only under another first number' },
    ],
  },
  {
    id: 'pending-untold',
    title: 'the contract does not say that a definition is pending',
    promise: 'A pending definition says so.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/contracts/operation-routes.ts',
        find: "    ...(definition === 'pending' && { definition }),\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: 'test/contract/routes.test.ts', title: 'says of pending definitions that they are' }],
  },
  {
    id: 'damaged-sales-served',
    title: 'a snapshot of what is sold is served without a look at its hash',
    promise: 'Bytes that do not match their hash are not served.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/site/sales/kept-snapshot.ts',
        find: 'if (sha256(bytes) !== contentHash) throw',
        replace: "if (contentHash === '') throw",
      },
    ],
    caughtBy: [{ file: SALES, title: 'is not served where its bytes were tampered with' }],
  },
  {
    id: 'failing-sales-are-fresh',
    title: 'a snapshot that is kept after a failure is told as fresh',
    promise: 'A snapshot kept after a failure carries an explicit stale state.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/site/sales/sales.ts',
        find: "      if (isFailing) return { freshness: 'stale', snapshot, reason: SALES_SOURCE_UNAVAILABLE }\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: SALES, title: 'is stale while the source fails' }],
  },
]
