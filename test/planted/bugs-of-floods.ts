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
    caughtBy: [{ file: 'test/identity/keys.process.test.ts', title: 'keeps its place until its window is over' }],
  },
  {
    id: 'links-behind-notices',
    title: 'a link that somebody waits for is due when it is written, as a notice is',
    promise: 'A flood of notices to a domain does not keep a link from leaving.',
    author: 'insider',
    edits: [{ file: 'server/src/storage/outbox.ts', find: "interval '30 days'", replace: "interval '0 days'" }],
    caughtBy: [{ file: 'test/people/doors.test.ts', title: 'let links go first' }],
  },
  {
    id: 'one-address-fills-the-gate',
    title: 'all places where passwords are compared go to who comes first',
    promise: 'A flood of sign-ins keeps nobody else’s right password from being compared.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/people/passwords.ts',
        find: 'const OF_MAILBOX = 1',
        replace: 'const OF_MAILBOX = 1_000',
      },
      {
        file: 'server/src/people/passwords.ts',
        find: 'const OF_ADDRESS = 4',
        replace: 'const OF_ADDRESS = 1_000',
      },
    ],
    caughtBy: [{ file: 'test/people/doors.test.ts', title: 'right password from being compared' }],
  },
  {
    id: 'reset-counted-by-mailbox',
    title: 'resets are counted for all labels of a mailbox together',
    promise: 'Nobody can keep the owner of an account from a reset for longer than an hour.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/people/resets.ts',
        find: 'const key = hashOf(email)',
        replace: "const key = hashOf(email.replace(/[+].*@/, '@'))",
      },
    ],
    caughtBy: [
      { file: 'test/identity/people/guesses.test.ts', title: 'by asking for resets of labels that nobody has' },
    ],
  },
  {
    id: 'second-factor-guessed-for-ever',
    title: 'codes are taken however many in a row were wrong',
    promise: 'A second factor takes no code after twenty wrong ones in a row, until its owner has another password.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/people/second-factor.ts',
        find: 'failures >= MOST_FAILURES',
        replace: 'failures >= 1_000_000',
      },
    ],
    caughtBy: [
      { file: 'test/identity/people/guesses.test.ts', title: 'tells its owner after ten wrong ones in a row' },
    ],
  },
]
