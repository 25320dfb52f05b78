import type { PlantedBug } from './planted-bug.ts'

const ADAPTER = 'server/src/oauth/provider/adapter.ts'
const TOKENS_TEST = 'test/oauth/tokens.test.ts'
const AUTHORIZE_TEST = 'test/oauth/authorize.test.ts'
const REGISTRATION_TEST = 'test/oauth/registration.test.ts'

/** Of the authorization server, written by who knows the code and the tests. */
export const bugsOfOauth: readonly PlantedBug[] = [
  {
    id: 'refresh-without-grace',
    title: 'a refresh token that comes a second time ends its grant at once',
    promise: 'Whoever loses an answer, or shares a token among programs, is not logged out.',
    author: 'insider',
    edits: [
      {
        file: ADAPTER,
        find: "model === 'RefreshToken' ? REFRESH_GRACE : ONCE",
        replace: "model === '' ? REFRESH_GRACE : ONCE",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'may come again within two minutes' }],
  },
  {
    id: 'refresh-with-endless-grace',
    title: 'a refresh token may come again however late',
    promise: 'A refresh token that comes again late ends its grant.',
    author: 'insider',
    edits: [{ file: ADAPTER, find: 'seconds: 120, most: 20', replace: 'seconds: 120_000, most: 20' }],
    caughtBy: [{ file: TOKENS_TEST, title: 'ends its grant where it comes again after that' }],
  },
  {
    id: 'code-replayed',
    title: 'an authorization code can be exchanged again and again',
    promise: 'A code works once.',
    author: 'insider',
    edits: [
      {
        file: ADAPTER,
        find: 'if (consumedAt === null || isInGrace) return found',
        replace: "if (consumedAt === null || isInGrace || model === 'AuthorizationCode') return found",
      },
      {
        file: ADAPTER,
        find: 'if (await states.take(model, id, grace)) return',
        replace: "if ((await states.take(model, id, grace)) || model === 'AuthorizationCode') return",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'works once: the second time it is refused' }],
  },
  {
    id: 'redirects-read-loosely',
    title: 'an address to be sent back to is taken however it is written',
    promise: 'What can be read in more than one way is no address to send a code to.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/provider/redirects.ts',
        find: 'if (url.href !== address && url.href !== ',
        replace: "if (url.href === '' && url.href !== ",
      },
    ],
    caughtBy: [{ file: REGISTRATION_TEST, title: 'is refused where an address could lead somewhere else' }],
  },
  {
    id: 'pkce-not-required',
    title: 'a client may leave out the challenge',
    promise: 'A code is worth nothing without its verifier.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/provider/configuration.ts',
        find: 'pkce: { required: () => true }',
        replace: 'pkce: { required: () => false }',
      },
    ],
    caughtBy: [{ file: AUTHORIZE_TEST, title: 'goes back to the client with what is wrong' }],
  },
  {
    id: 'bearer-values-kept',
    title: 'codes and tokens stand in the payloads of their rows',
    promise: 'What is kept is of no use to whoever reads it.',
    author: 'insider',
    edits: [
      {
        file: ADAPTER,
        find: "const SECRET_MEMBERS = ['jti', 'userCode', 'deviceCode', 'returnTo']",
        replace: "const SECRET_MEMBERS = ['deviceCode', 'returnTo']",
      },
    ],
    caughtBy: [{ file: 'test/oauth/device.test.ts', title: 'holds no code, token, secret or cookie' }],
  },
  {
    id: 'consent-in-any-browser',
    title: 'whoever opens the link to a request can answer it',
    promise: 'Only the browser that a client sent can answer for it.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/routes/consent.ts',
        find: 'if (!UID.test(uid) || cookieIn(cookie, COOKIES.interaction) !== uid) return null',
        replace: "if (!UID.test(uid) || cookieIn(cookie, COOKIES.interaction) === '') return null",
      },
    ],
    caughtBy: [{ file: AUTHORIZE_TEST, title: 'takes no form that is not ours, and none for somebody else' }],
  },
  {
    id: 'registrations-unlimited',
    title: 'a network may register as many clients as it likes',
    promise: 'Registrations are limited by network.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/provider/door.ts',
        find: "pass('register', registration)",
        replace: 'pass(null, registration)',
      },
    ],
    caughtBy: [{ file: REGISTRATION_TEST, title: 'are limited for a network' }],
  },
  {
    id: 'scopes-of-accounts-told',
    title: 'the metadata names the scopes of accounts, which some clients then ask for',
    promise: 'A client of the tools reads of no scope that reaches into accounts.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/provider/scopes.ts',
        find: '[...SCOPES_OF.agent, ...DEFAULT_SCOPES.callers, ...OWN_SCOPES]',
        replace: '[...SCOPES_OF.agent, ...SCOPES_OF.callers, ...OWN_SCOPES]',
      },
    ],
    caughtBy: [{ file: 'test/oauth/flow.test.ts', title: 'finds its way from the metadata to a token' }],
  },
  {
    id: 'renewal-with-offline-access-refused',
    title: 'a client that renews its token with all scopes that it first asked for is refused',
    promise: 'Real clients stay logged in: Codex names offline_access when it renews.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/provider/parameters.ts',
        find: ".filter((one) => one !== 'offline_access')",
        replace: ".filter((one) => one !== 'offline')",
      },
    ],
    caughtBy: [{ file: TOKENS_TEST, title: 'is renewed by who names all scopes that it first asked for' }],
  },
  {
    id: 'sign-in-not-asked-again',
    title: 'prompt=login is answered by whoever was signed in before',
    promise: 'A client that wants the person to prove anew who they are gets that.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/sign-in-again.ts',
        find: 'if (!isLogin && maxAge === undefined) return false',
        replace: 'if (maxAge === undefined) return false',
      },
    ],
    caughtBy: [{ file: 'test/oauth/sign-in-again.test.ts', title: 'has the person sign in once more' }],
  },
]
