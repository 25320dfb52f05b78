import type { PlantedBug } from './planted-bug.ts'

const IDENTIFY = 'server/src/identity/identify.ts'
const KEY_SOURCE = 'server/src/identity/key-source.ts'
const KEYS = 'server/src/identity/keys.ts'
const KEY_FORMAT = 'server/src/identity/key-format.ts'
const TIMING = 'test/identity/timing.test.ts'
const STRANGERS = 'test/identity/strangers.test.ts'
const KEY_TERMS = 'test/identity/key-terms.slow.test.ts'
const KEY_SCOPES = 'test/acceptance/key-scopes.test.ts'
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
        file: KEY_SOURCE,
        find: 'const key = await keys.reload(given.id)',
        replace: 'const key = keys.peek(given.id) ?? (await keys.reload(given.id))',
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
        file: KEY_SOURCE,
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
        find: 'const known = right.get(printOf(given)) && sourceOf(given).peek(given, face)',
        replace: 'const known = sourceOf(given).peek(given, face)',
      },
      {
        file: KEY_SOURCE,
        find: 'return key !== undefined && matches(given, key, time.nowMs()) ? key : undefined',
        replace: 'return key?.isRevoked === false ? key : undefined',
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
    title: 'that a key has expired is told to somebody who has not its secret',
    promise:
      'Whatever is wrong with a credential, the answer is the same; only who has its secret hears that it has expired.',
    author: 'insider',
    edits: [
      {
        file: KEY_SOURCE,
        find: 'const isExpired = matches(given, { ...(key ?? NOBODY), expiresAtMs: null }, nowMs)',
        replace: 'const isExpired = (key?.expiresAtMs ?? Number.POSITIVE_INFINITY) <= nowMs',
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
        find: `       values ($1, $2, $3, $4, $5, $6, $7, \${termsPlaces(8)})\`,
      [id, workspaceId, name, hashOf(secret),`,
        replace: `       values ($1, $2, $3, sha256(convert_to($4, 'utf8')), $5, $6, $7, \${termsPlaces(8)})\`,
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
      {
        file: 'server/src/telemetry/scrubber.ts',
        find: ', /fb_(live|test|at|rt|ac|dc)_[A-Za-z0-9_]+/gi]',
        replace: ']',
      },
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
  {
    id: 'model-scope-not-asked',
    title: 'a key with scopes of models may use every model',
    promise: 'What is outside the scopes of a key is refused before anything is spent.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/pipeline.ts',
        find: '      requireModelScope(caller, operation, plan.model)\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: KEY_SCOPES, title: 'may use no other, in no protocol' }],
  },
  {
    id: 'model-scope-opens-the-rest',
    title: 'a scope of a model lets a key through wherever no model is asked about later',
    promise: 'What is outside the scopes of a key is refused before anything is spent.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/scopes.ts',
        find: "return models.size > 0 && (category === 'models' || category === 'video')",
        replace: "return models.size > 0 && category !== 'finance'",
      },
    ],
    caughtBy: [{ file: KEY_SCOPES, title: 'may begin to link an account with auth_link or with social alone' }],
  },
  {
    id: 'category-not-asked',
    title: 'a scope of a category allows nothing',
    promise: 'A key may use what its scopes name.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/scopes.ts',
        find: 'names.has(id) || (category !== undefined && names.has(category))',
        replace: 'names.has(id) || (category !== undefined && names.has(id + category))',
      },
    ],
    caughtBy: [
      { file: KEY_SCOPES, title: 'of a category may use what is in it' },
      { file: 'server/src/identity/scopes.test.ts', title: 'by a category allow those of it' },
    ],
  },
  {
    id: 'unknown-scope-taken',
    title: 'a key can be made with scopes that name nothing',
    promise: 'Unknown scopes are refused when a key is made or changed.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/cli/key-terms.ts',
        find: '  checkScopes(scopes, { operations: catalogue.operations, models })\n',
        replace: "  checkScopes(['rerank'], { operations: catalogue.operations, models })\n",
      },
    ],
    caughtBy: [{ file: 'test/house/identity-commands.test.ts', title: 'refuse a scope that is not there' }],
  },
  {
    id: 'known-caller-from-anywhere',
    title: 'a caller that is known from memory is let in from any address',
    promise: 'A key is used from the addresses alone that it allows.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/http/admission.ts',
        find: '      return fromAllowed(request, found)\n',
        replace: '      return found\n',
      },
    ],
    caughtBy: [{ file: KEY_TERMS, title: 'are let in, and all others are refused' }],
  },
  {
    id: 'mapped-address-is-another',
    title: 'an address of IPv4 that is written as one of IPv6 is in no network of IPv4',
    promise: 'A caller has one address, however its connection came.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/kernel/networks.ts',
        find: 'return isMapped(family, value) ? unmapped(value, WIDTH[6]) : { family, value }',
        replace: 'return { family, value }',
      },
    ],
    caughtBy: [
      { file: 'server/src/kernel/networks.test.ts', title: 'an address' },
      { file: KEY_TERMS, title: 'are let in, and all others are refused' },
    ],
  },
  {
    id: 'network-larger-than-written',
    title: 'bits beyond the length of a network are dropped in silence, and it is larger than who wrote it thinks',
    promise: 'Networks are read strictly.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/kernel/networks.ts',
        find: '  if (first.value !== network.value)\n',
        replace: '  if (network.bits < 0)\n',
      },
    ],
    caughtBy: [{ file: 'server/src/kernel/networks.test.ts', title: 'has no bits beyond its length' }],
  },
  {
    id: 'address-refused-uncounted',
    title: 'refusals for an address are not counted for the key',
    promise: 'Refusals are counted by key and reason.',
    author: 'insider',
    edits: [{ file: 'server/src/http/admission.ts', find: '  request.caller = caller\n  throw', replace: '  throw' }],
    caughtBy: [{ file: 'test/acceptance/refusal-counts.test.ts', title: 'are counted exactly by key and reason' }],
  },
  {
    id: 'changed-key-untold',
    title: 'what is changed of a key is not told to processes that know it',
    promise: 'A change of a key holds within a second in every process.',
    author: 'insider',
    edits: [
      {
        file: KEYS,
        find: "...deedTo(id, 'changed'), ...difference(termsFacts(before), termsFacts(after)) })\n    await tell(query, id)\n",
        replace: "...deedTo(id, 'changed'), ...difference(termsFacts(before), termsFacts(after)) })\n",
      },
    ],
    caughtBy: [{ file: KEY_TERMS, title: 'of its requests a minute holds in every process soon' }],
  },
]
