import type { PlantedBug } from './planted-bug.ts'

const WORKER = 'server/src/outbox/worker.ts'
const MESSAGES = 'server/src/outbox/messages.ts'
const RESOLVE = 'server/src/outbound/resolve.ts'
const OUTBOUND = 'server/src/outbound/outbound.ts'
const OF_WORKER = 'server/src/outbox/worker.test.ts'
const OF_STRANGERS = 'server/src/outbound/ssrf.test.ts'

/** What would lose messages, or let strangers into our network. */
export const bugsOfOutbox: readonly PlantedBug[] = [
  {
    id: 'delivered-before-delivery',
    title: 'a message is marked as delivered before it is',
    promise: 'A worker that dies in the middle of a delivery loses nothing.',
    author: 'insider',
    edits: [
      {
        file: WORKER,
        find: '    const retries = { ...RETRIES, ...deliverer.retries }\n',
        replace: '    const retries = { ...RETRIES, ...deliverer.retries }\n    await markDelivered(pool, id)\n',
      },
    ],
    caughtBy: [{ file: OF_WORKER, title: 'is tried again after a while' }],
  },
  {
    id: 'late-failure-buries',
    title: 'a worker whose lease has ended buries a message that another is delivering',
    promise: 'What a worker says after its lease has ended changes nothing.',
    author: 'insider',
    edits: [
      {
        file: MESSAGES,
        find: `update outbox set died_at = clock_timestamp(), due_at = null, failure = $3
     where id = $1 and attempts = $2 and due_at is not null`,
        replace: `update outbox set died_at = clock_timestamp(), due_at = null, failure = $3
     where id = $1 and $2::integer > 0 and due_at is not null`,
      },
    ],
    caughtBy: [{ file: OF_WORKER, title: 'whose lease has ended' }],
  },
  {
    id: 'lane-without-bound',
    title: 'deliveries that are under way do not count towards the bound of their destination',
    promise: 'A slow receiver keeps nobody else waiting.',
    author: 'insider',
    edits: [{ file: WORKER, find: ' - (runningInLane.get(lane) ?? 0)', replace: '' }],
    caughtBy: [{ file: OF_WORKER, title: 'has so many deliveries at once' }],
  },
  {
    id: 'one-public-address-is-enough',
    title: 'a name is asked when one of its addresses is public',
    promise: 'No address of a stranger leads into our network.',
    author: 'insider',
    edits: [
      {
        file: RESOLVE,
        find: 'for (const address of addresses) requirePublic',
        replace: 'for (const address of addresses.slice(0, 1)) requirePublic',
      },
    ],
    caughtBy: [{ file: OF_STRANGERS, title: 'one of its addresses is of this machine' }],
  },
  {
    id: 'literal-address-unchecked',
    title: 'an address that a stranger writes in place of a name is not checked',
    promise: 'No address of a stranger leads into our network.',
    author: 'insider',
    edits: [
      {
        file: OUTBOUND,
        find: '    if (!target.isListed && isIP(target.host) !== 0) requirePublic(target.host, target.host)\n',
        replace: '',
      },
      { file: OUTBOUND, find: "import { isIP } from 'node:net'\n", replace: '' },
    ],
    caughtBy: [{ file: OF_STRANGERS, title: 'however it is written' }],
  },
  {
    id: 'own-networks-unheard',
    title: 'networks that the operator names as its own are asked as public ones',
    promise: 'No address of a stranger leads into our network.',
    author: 'insider',
    edits: [
      { file: OUTBOUND, find: 'createRefusedRange(parts.refusedNetworks ?? [])', replace: 'createRefusedRange([])' },
    ],
    caughtBy: [{ file: OF_STRANGERS, title: 'the operator has named as its own' }],
  },
  {
    id: 'resolved-twice',
    title: 'the look-up that is checked is not the one that the connection uses',
    promise: 'No address of a stranger leads into our network, whatever its name server says a moment later.',
    author: 'insider',
    edits: [
      {
        file: RESOLVE,
        find: '  return addresses.slice(0, TRIED_LIMIT)',
        replace: '  return (await resolve(name)).slice(0, TRIED_LIMIT)',
      },
    ],
    caughtBy: [{ file: OF_STRANGERS, title: 'is resolved once for a connection' }],
  },
]
