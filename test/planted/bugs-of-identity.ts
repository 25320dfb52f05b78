import type { PlantedBug } from './planted-bug.ts'

const IDENTIFY = 'server/src/identity/identify.ts'
const KEYS = 'server/src/identity/keys.ts'
const KEY_FORMAT = 'server/src/identity/key-format.ts'
const TIMING = 'test/identity/timing.test.ts'
const STRANGERS = 'test/identity/strangers.test.ts'
const NOWHERE = 'test/identity/secrets-nowhere.test.ts'
const ALIKE = 'is the same for an unknown id and for a wrong secret of a known one'

/** Written by who knows the code and the tests. */
export const bugsOfIdentity: readonly PlantedBug[] = [
  {
    id: 'wrong-secret-refused-from-memory',
    title: 'a wrong secret of a key that is known from memory is refused without the look-up that an unknown id has',
    promise: 'Neither the answer nor the time that it takes tells whether an id exists.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: '    return lookUpInTurn(given, address)',
        replace:
          '    if (keys.peek(given.id) !== undefined) throw refused(address)\n    return lookUpInTurn(given, address)',
      },
    ],
    caughtBy: [{ file: TIMING, title: ALIKE }],
  },
  {
    id: 'unknown-id-finds-no-row',
    title: 'the look-up asks for the id alone, and is done sooner where there is none',
    promise: 'Neither the answer nor the time that it takes tells whether an id exists.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: '(select * from api_keys where id <= $1 order by id desc limit 1) k',
        replace: '(select * from api_keys where id = $1) k',
      },
    ],
    caughtBy: [{ file: TIMING, title: ALIKE }],
  },
  {
    id: 'neighbour-let-in-by-id',
    title: 'a key that is known from memory is let in by its id, whatever its secret',
    promise: 'Only the whole right key gets in.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: `    const key = right.get(printOf(given)) && keys.peek(given.id)
    const workspace = key && workspaces.peek(key.workspaceId)
    if (key !== undefined && workspace !== undefined && matches(given, key, time.nowMs()))`,
        replace: `    const key = keys.peek(given.id)
    const workspace = key && workspaces.peek(key.workspaceId)
    if (key !== undefined && workspace !== undefined && !key.isRevoked)`,
      },
    ],
    caughtBy: [{ file: STRANGERS, title: 'only the whole right key gets in' }],
  },
  {
    id: 'hash-of-a-part',
    title: 'of a key only its first characters are hashed and compared',
    promise: 'Only the whole right key gets in.',
    author: 'insider',
    edits: [
      {
        file: KEY_FORMAT,
        find: "hash('sha256', credential.reveal(), 'binary')",
        replace: "hash('sha256', credential.reveal().slice(0, 64), 'binary')",
      },
    ],
    caughtBy: [
      { file: STRANGERS, title: 'only the whole right key gets in' },
      { file: 'server/src/identity/key-format.test.ts', title: 'is stored as its SHA-256' },
    ],
  },
  {
    id: 'form-not-checked',
    title: 'whatever stands in the place of the id reaches the look-up',
    promise: 'Well-formed keys are the only ones that reach a query.',
    author: 'insider',
    edits: [{ file: KEY_FORMAT, find: '([0-9a-f]{32})', replace: '(.{32})' }],
    caughtBy: [
      { file: STRANGERS, title: 'trap: SQL injection' },
      { file: 'server/src/identity/key-format.test.ts', title: 'of another form is refused' },
    ],
  },
  {
    id: 'checksum-not-checked',
    title: 'a mistyped key is looked up',
    promise: 'Malformed keys are refused without a look-up.',
    author: 'insider',
    edits: [
      {
        file: KEY_FORMAT,
        find: 'if (checksum !== checksumOf(text.slice(0, -CHECKSUM_DIGITS))) return undefined',
        replace: 'if (checksum === undefined) return undefined',
      },
    ],
    caughtBy: [{ file: 'server/src/identity/key-format.test.ts', title: 'with any one character changed' }],
  },
  {
    id: 'failures-not-limited',
    title: 'whoever has failed often from an address is looked up all the same',
    promise: 'Failed authentications are limited by address before any database work.',
    author: 'insider',
    edits: [{ file: IDENTIFY, find: 'if (waitSeconds > 0) throw', replace: 'if (waitSeconds > 3_600) throw' }],
    caughtBy: [{ file: STRANGERS, title: 'are refused unseen' }],
  },
  {
    id: 'malformed-keys-counted',
    title: 'what is no key by its form counts as a guess, and keeps out others behind the same address',
    promise: 'Malformed keys cost nothing and count for nothing.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: "if (given === undefined) throw new Fault('invalid_credential')",
        replace: 'if (given === undefined) throw refused(address)',
      },
    ],
    caughtBy: [{ file: STRANGERS, title: 'counts for nothing, however often it comes' }],
  },
  {
    id: 'expired-told-apart',
    title: 'the refusal of a revoked or expired key says so',
    promise: 'Whatever is wrong with a credential, the answer is the same.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: 'if (key === undefined || !isRight) throw refused(address)',
        replace: `if (key !== undefined && !isRight && (key.isRevoked || key.expiresAtMs !== null))
      throw new Fault('invalid_credential', { detail: 'The key has ended.' })
    if (key === undefined || !isRight) throw refused(address)`,
      },
    ],
    caughtBy: [{ file: STRANGERS, title: 'is told the same 401 in the shape of openai' }],
  },
  {
    id: 'outage-told-as-401',
    title: 'who can not be looked up is told that the credential is wrong',
    promise: 'PostgreSQL down: calls answer 503 with Retry-After.',
    author: 'insider',
    edits: [
      {
        file: IDENTIFY,
        find: 'throw unavailable(cause)',
        replace: "throw new Fault('invalid_credential', { cause })",
      },
    ],
    caughtBy: [{ file: 'test/identity/strangers-outage.test.ts' }],
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
    id: 'key-sent-to-postgres',
    title: 'PostgreSQL is sent the key to hash, which its own log then has',
    promise: 'A key never appears in a log line.',
    author: 'insider',
    edits: [
      {
        file: KEYS,
        find: `       values ($1, $2, $3, $4, $5, $6, $7)\`,
      [id, workspaceId, name, hashOf(secret),`,
        replace: `       values ($1, $2, $3, sha256(convert_to($4, 'utf8')), $5, $6, $7)\`,
      [id, workspaceId, name, secret.reveal(),`,
      },
    ],
    caughtBy: [{ file: NOWHERE }],
  },
  {
    id: 'key-in-the-log',
    title: 'the log does not know how a key looks',
    promise: 'A key never appears in a log line.',
    author: 'insider',
    edits: [
      { file: 'server/src/telemetry/scrubber.ts', find: ', /fb_(live|test)_[A-Za-z0-9_]+/gi]', replace: ']' },
      {
        file: 'server/src/http/wire/traffic.ts',
        find: 'withoutCredential(fault.cause, exchange?.request.headers ?? {})',
        replace: 'withoutCredential(fault.cause, {})',
      },
    ],
    caughtBy: [
      { file: NOWHERE },
      { file: 'server/src/identity/key-format.test.ts', title: 'takes keys out of any text' },
    ],
  },
  {
    id: 'every-address-of-a-network-counts-alone',
    title: 'whoever has a network of IPv6 may guess from each of its addresses',
    promise: 'Failed authentications are limited by address.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/failures-by-address.ts',
        find: 'if (!isIPv6(address)) return address',
        replace: 'if (isIPv6(address) || address) return address',
      },
    ],
    caughtBy: [
      { file: STRANGERS, title: 'count for a whole network of IPv6' },
      { file: 'server/src/identity/failures-by-address.test.ts', title: 'count for all addresses' },
    ],
  },
  {
    id: 'key-in-a-query-known-by-name-alone',
    title: 'a key in a query is refused by the name of its parameter, and passed on upstream under any other name',
    promise: 'A key that a caller puts into a query reaches no upstream.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/http/key-in-url.ts',
        find: 'if (!holdsKey(decodedLoosely(url)) && !hasCredentialName(query, dialect)) return undefined',
        replace: 'if (!holdsKey(url.slice(0, at)) && !hasCredentialName(query, dialect)) return undefined',
      },
    ],
    caughtBy: [{ file: 'test/acceptance/keys-in-urls.test.ts', title: 'is refused on every endpoint' }],
  },
  {
    id: 'refusal-of-another-key',
    title: 'what one key is refused is counted for the account that all keys of its customer share',
    promise: 'Refusals are counted for the key that was refused.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/http/failures.ts',
        find: 'const { credentialId } = request.caller ?? {}',
        replace: 'const { accountId: credentialId } = request.caller ?? {}',
      },
    ],
    caughtBy: [{ file: 'test/acceptance/refusal-counts.test.ts', title: 'are counted exactly by key and reason' }],
  },
  {
    id: 'refusals-replaced',
    title: 'a process that writes its counts replaces those of the others',
    promise: 'Refusals are counted exactly, over all processes.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/refusals.ts',
        find: 'set count = refusals.count + excluded.count',
        replace: 'set count = excluded.count',
      },
    ],
    caughtBy: [
      { file: 'test/acceptance/refusal-counts.test.ts', title: 'are counted exactly by key and reason' },
      { file: 'server/src/gateway/refusals.test.ts', title: 'are added up by processes' },
    ],
  },
]
