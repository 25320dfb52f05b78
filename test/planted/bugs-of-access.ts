import type { PlantedBug } from './planted-bug.ts'

const KEYS = 'server/src/identity/keys.ts'
const KEY_SOURCE = 'server/src/identity/key-source.ts'
const NOWHERE = 'test/identity/secrets-nowhere.process.test.ts'

/** What would let somebody in who is not, keep somebody in who is out, or write down a secret. */
export const bugsOfAccess: readonly PlantedBug[] = [
  {
    id: 'neighbour-let-in-by-id',
    title: 'a key that is known from memory is let in by its id, whatever its secret',
    promise: 'Only the whole right key gets in.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/identify.ts',
        find: 'remembered && sourceOf(remembered).peek(remembered, resource)',
        replace: 'sourceOf(given).peek(given, resource)',
      },
      {
        file: KEY_SOURCE,
        find: 'key !== undefined && matches(given, key, time.nowMs())',
        replace: 'key?.isRevoked === false',
      },
    ],
    caughtBy: [{ file: 'test/identity/strangers.test.ts', title: 'only the whole right key gets in' }],
  },
  {
    id: 'changed-key-untold',
    title: 'what is changed of a key is not told to processes that know it',
    promise: 'A change of a key holds within a second in every process.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/locked-key.ts',
        find: "topic => 'key', key => $1",
        replace: "topic => 'nothing', key => $1",
      },
    ],
    caughtBy: [
      {
        file: 'test/identity/key-terms.night.test.ts',
        title: 'of its requests a minute holds in every process soon',
      },
    ],
  },
  {
    id: 'key-in-the-audit-log',
    title: 'the audit log keeps the new secret of a rotated key',
    promise: 'A key never appears in a database row.',
    author: 'insider',
    edits: [
      {
        file: KEYS,
        // Without what it begins with, by which the scrubber would know it.
        find: 'after: { overlapSeconds }',
        replace: 'after: { overlapSeconds, secret: secret.reveal().slice(44) }',
      },
    ],
    caughtBy: [{ file: NOWHERE }],
  },
  {
    id: 'bearer-values-kept',
    title: 'codes and tokens stand in the payloads of their rows',
    promise: 'What is kept is of no use to whoever reads it.',
    author: 'insider',
    edits: [{ file: 'server/src/authorization/adapter.ts', find: "['jti', 'userCode', ", replace: '[' }],
    caughtBy: [{ file: 'test/oauth/device.test.ts', title: 'holds no code, token, secret or cookie' }],
  },
  {
    id: 'any-master-key-will-do',
    title: 'a server starts with a master key that opens nothing that is stored',
    promise: 'Nobody serves with a master key that does not open what is stored.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/storage/sealed-values.ts',
        find: 'where name <> all ($1::text[])',
        replace: 'where name <> all ($1::text[]) and false',
      },
    ],
    caughtBy: [
      {
        file: 'test/house/wrong-installations.process.test.ts',
        title: 'that is not the one of what is stored, or is missing',
      },
    ],
  },
  {
    id: 'revoked-grant-stays-active',
    title: 'a revoked grant is told to every process, and its credential stays active until they have heard',
    promise: 'No paid call begins from the instant of the revocation.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/grants/grants.ts',
        find: 'update credentials set active = false where id',
        replace: 'select from credentials where id',
      },
    ],
    caughtBy: [{ file: 'test/identity/revoked-tokens.test.ts', title: 'begins no call once its grant is revoked' }],
  },
  {
    id: 'pause-without-the-ledger',
    title: 'a pause is known to processes, and not to BEGIN',
    promise: 'From its commit on, no paid call begins under a mandate that is paused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/grants/mandates.ts',
        find: 'new_amount => 0)',
        replace: 'new_amount => (select amount from allowances where id = $1))',
      },
    ],
    caughtBy: [{ file: 'test/mandates/mandates.test.ts', title: 'is where a refusal leads' }],
  },
  {
    id: 'session-by-an-old-password',
    title: 'a session is opened with a password that was changed since it was compared',
    promise: 'A reset ends every session, those that are just being opened too.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/people/sessions.ts',
        find: 'or password = $2) for share',
        replace: 'or true)',
      },
    ],
    caughtBy: [
      {
        file: 'test/identity/people/sign-in.test.ts',
        title: 'never leaves a session that was opened with the old one',
      },
    ],
  },
  {
    id: 'members-change-without-a-lock',
    title: 'changes of members do not wait for each other',
    promise: 'A workspace that has an owner keeps one, whatever happens at once.',
    author: 'insider',
    edits: [{ file: 'server/src/people/workspace-lock.ts', find: ' for no key update', replace: '' }],
    caughtBy: [{ file: 'test/identity/people/members.test.ts', title: 'stays, of two who' }],
  },
  {
    id: 'members-by-any-token',
    title: 'what no token may do is refused to none',
    promise: 'Who belongs to a workspace is decided by people in a browser, and by no client.',
    author: 'insider',
    edits: [{ file: 'server/src/account/guard.ts', find: "tokens === 'both'", replace: "tokens !== 'own mode'" }],
    caughtBy: [{ file: 'test/account/team.test.ts', title: 'are invited, changed and removed by no client' }],
  },
  {
    id: 'code-to-another-session',
    title: 'what a person allowed goes on in any browser that it was begun in, whoever decided',
    promise: 'The code of what a person allowed goes to the browser in which they decided.',
    author: 'insider',
    edits: [
      { file: 'server/src/authorization/deciding-browser.ts', find: 'isDecider && isBegunBy', replace: 'isBegunBy' },
    ],
    caughtBy: [{ file: 'test/oauth/authorize.test.ts', title: 'no browser but the one that decided' }],
  },
  {
    id: 'proxies-unsaid',
    title: 'a server starts with an https URL and no word about the proxies in front of it',
    promise: 'No server that stands behind a proxy takes everybody for one address.',
    author: 'insider',
    edits: [{ file: 'server/src/config.ts', find: 'isBehindTls &&', replace: 'isBehindTls && false &&' }],
    caughtBy: [{ file: 'server/src/config.test.ts', title: 'an https URL without a word about proxies' }],
  },
  {
    id: 'keys-of-who-went-spend-on',
    title: 'a member is removed without a decision on their keys, which are kept',
    promise: 'Nobody is removed before it is decided what becomes of their keys.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/people/member-keys.ts',
        find: 'throw undecidedKeys(working)',
        replace: "return { became: 'kept', keys }",
      },
    ],
    caughtBy: [
      {
        file: 'test/account/team.test.ts',
        title: 'leave with their keys revoked, where they may not manage the workspace',
      },
    ],
  },
]
