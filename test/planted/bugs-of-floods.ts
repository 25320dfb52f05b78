import type { PlantedBug } from './planted-bug.ts'

/** What would let one have more than their share, by asking often or by beginning anew. */
export const bugsOfFloods: readonly PlantedBug[] = [
  {
    id: 'revoked-key-leaves-its-window',
    title: 'a key that is revoked leaves its place to the next one while what it used of its window still counts',
    promise: 'An account never has more requests a minute than the keys of its tier.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/storage/functions/places_of_ended_keys.sql',
        find: '(seconds_left > 0 or runs)',
        replace: 'runs',
      },
    ],
    caughtBy: [{ file: 'test/identity/keys.test.ts', title: 'keeps its place until its window is over' }],
  },
]
