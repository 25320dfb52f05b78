import type { PlantedBug } from './planted-bug.ts'

const SOURCE = 'server/src/identity/token-source.ts'
const GRANTS = 'server/src/identity/grants.ts'
const TOKENS_TEST = 'test/identity/tokens.test.ts'
const KNOWN_TEST = 'test/identity/revoked-tokens.test.ts'
const GRANTS_TEST = 'test/identity/grants.test.ts'
const CALLS_TEST = 'test/acceptance/tokens.test.ts'

/** Of grants and access tokens, written by who knows the code and the tests. */
export const bugsOfGrants: readonly PlantedBug[] = [
  {
    id: 'audience-not-checked',
    title: 'a token is taken under every address, whichever it was issued for',
    promise: 'A listener takes tokens of its own audience alone.',
    author: 'insider',
    edits: [
      {
        file: SOURCE,
        find: 'const isForHere = token.audience === face.audience',
        replace: "const isForHere = token.audience !== '' || face.audience === null",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'is taken under the address alone that it was issued for' }],
  },
  {
    id: 'grant-without-an-amount-pays',
    title: 'a grant without an amount spends what the account has, as a key does',
    promise: 'A grant without an amount can not pay.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/require-budget.ts',
        find: 'if (token === null || budget !== null || needed === ZERO) return',
        replace: 'if (token === null || budget !== null || needed >= ZERO) return',
      },
    ],
    caughtBy: [
      { file: TOKENS_TEST, title: 'of a grant without an amount pays for nothing' },
      { file: CALLS_TEST, title: 'is told 402 by every paid operation' },
    ],
  },
  {
    id: 'revoked-grant-stays-active',
    title: 'a revoked grant is told to every process, and its credential stays active until they have heard',
    promise: 'No paid call begins from the instant of the revocation.',
    author: 'insider',
    edits: [
      {
        file: GRANTS,
        find: "await query('update credentials set active = false where id = $1', [id])",
        replace: "await query('select from credentials where id = $1', [id])",
      },
    ],
    caughtBy: [{ file: KNOWN_TEST, title: 'begins no call once its grant is revoked' }],
  },
  {
    id: 'revoked-grant-cached',
    title: 'processes that know a grant do not hear of its revocation',
    promise: 'A revoked grant is unknown everywhere within a second.',
    author: 'insider',
    edits: [{ file: SOURCE, find: "topic: 'key'", replace: "topic: 'grant'" }],
    caughtBy: [{ file: KNOWN_TEST, title: 'is read anew' }],
  },
  {
    id: 'token-expiry-ignored',
    title: 'a token that has expired goes on working',
    promise: 'A token works until it expires.',
    author: 'insider',
    edits: [
      {
        file: SOURCE,
        find: 'const isAlive = nowMs < token.expiresAtMs',
        replace: 'const isAlive = nowMs > 0 && token.expiresAtMs > 0',
      },
    ],
    caughtBy: [{ file: KNOWN_TEST, title: 'is refused once its time is over' }],
  },
  {
    id: 'token-of-another-grant',
    title: 'a token counts for the grant that it names, whichever it was issued under',
    promise: 'A token is of the grant under which it was issued.',
    author: 'insider',
    edits: [
      {
        file: SOURCE,
        find: 'const isOfGrant = token.grantId === given.id',
        replace: "const isOfGrant = token.grantId !== ''",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'gets in as a whole alone' }],
  },
  {
    id: 'oauth-scope-ignored',
    title: 'a token makes calls whatever its scopes',
    promise: 'A token without the scope of calls makes none.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/require-scope.ts',
        find: 'if (token?.mayCall === false)',
        replace: 'if (token?.mayCall === false && !token.mayReadAccount && token.mayReadAccount)',
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'without the scope of calls can make none' }],
  },
  {
    id: 'scope-of-another-face',
    title: 'the scope of the agents’ tools is as good as that of calls',
    promise: 'Each face has a scope of its own.',
    author: 'insider',
    edits: [
      {
        file: SOURCE,
        find: 'face.callScope !== null && token.scopes.includes(face.callScope)',
        replace: "token.scopes.includes('calls') || token.scopes.includes('agent')",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'without the scope of calls can make none' }],
  },
  {
    id: 'old-allowance-left',
    title: 'the allowance of a budget that was taken away keeps what it had',
    promise: 'A budget that is taken away is worth nothing from that moment.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/locked-grant.ts',
        find: 'isSamePeriod ? now : 0n',
        replace: 'isSamePeriod ? now : (before?.amount ?? 0n)',
      },
    ],
    caughtBy: [{ file: KNOWN_TEST, title: 'spends nothing of a budget that was taken away' }],
  },
  {
    id: 'grants-outlive-a-membership',
    title: 'who is removed from a workspace keeps what they let clients do there',
    promise: 'Grants end with the membership, in its transaction.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/identity/people/members.ts',
        find: 'await revokeGrantsWithin(query, { personId, workspaceId })',
        replace: 'await revokeGrantsWithin(query, { personId: workspaceId, workspaceId })',
      },
    ],
    caughtBy: [{ file: GRANTS_TEST, title: 'end when they are removed or leave' }],
  },
  {
    id: 'account-usage-for-every-token',
    title: 'every token sees what the whole account used',
    promise: 'Only account.read shows the usage of the account.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/http/routes/usage.ts',
        find: 'caller.token?.mayReadAccount === true',
        replace: 'caller.token !== null',
      },
    ],
    caughtBy: [{ file: CALLS_TEST, title: 'with account.read sees what the whole account used' }],
  },
]
