import type { PlantedBug } from './planted-bug.ts'

const UNIT = 'server/src/calls/loss-sums.test.ts'
const STORED = 'test/ledger/losses.test.ts'

/** What would let a ceiling on loss stop the wrong ones, or nobody. */
export const bugsOfLosses: readonly PlantedBug[] = [
  {
    id: 'presumed-loss-counts',
    title: 'a connection that broke counts towards the ceilings as if an answer had been delivered',
    promise: 'An outage of a vendor reaches no ceiling on loss.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/judge.ts',
        find: 'atOurLoss(held, { isUnreadable: false })',
        replace: 'atOurLoss(held, { isUnreadable: true })',
      },
    ],
    caughtBy: [{ file: 'server/src/gateway/judge.test.ts', title: 'is nothing of what is presumed' }],
  },
  {
    id: 'one-account-takes-a-route',
    title: 'an account counts towards the ceiling of a route with all that it has lost',
    promise: 'One hostile account cannot take a route from others.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/loss-sums.ts',
        find: 'added(sum, smaller(lost[window], most))',
        replace: 'added(sum, smaller(lost[window], NANOS_LIMIT))',
      },
    ],
    caughtBy: [{ file: UNIT, title: 'is not taken from others by one account or two' }],
  },
  {
    id: 'loss-beyond-the-overrun',
    title: 'a loss is written as it was judged, also where the call overran by less',
    promise: 'A loss is no more than what its call overran.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/end-batch.ts',
        find: 'item.route, least(item.nanos, result.overrun), item.claim',
        replace: 'item.route, item.nanos, item.claim',
      },
    ],
    caughtBy: [{ file: STORED, title: 'none beyond what the call overran' }],
  },
  {
    id: 'release-unheard',
    title: 'a process that is running does not notice a release',
    promise: 'One command lets calls through again, within a second.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/loss-ceilings.ts',
        find: ' || read.releases !== releases',
        replace: '',
      },
    ],
    caughtBy: [{ file: STORED, title: 'lets it through when released' }],
  },
  {
    id: 'outage-page-counts',
    title: 'a page that a vendor shows in an outage counts towards the ceilings as a delivery',
    promise: 'An outage of a vendor reaches no ceiling on loss.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/judge.ts',
        find: 'reply.status < 300 && !isOutage(reply)',
        replace: 'reply.status < 300',
      },
      { file: 'server/src/gateway/judge.ts', find: '    isOutage: isOutage(reply),\n', replace: '' },
    ],
    caughtBy: [{ file: 'server/src/gateway/judge.test.ts', title: 'is no page that a vendor shows in an outage' }],
  },
  {
    id: 'late-loss-unread',
    title: 'only the oldest hour of the day is read again',
    promise: 'A loss that is committed late counts within ten minutes.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/calls/loss-ceilings.ts',
        find: 'hours[turn % (hours.length + 1)]',
        replace: 'hours[0]',
      },
    ],
    caughtBy: [{ file: STORED, title: 'committed long after they were judged' }],
  },
]
