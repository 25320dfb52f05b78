import type { PlantedBug } from './planted-bug.ts'

const FORM_TOKEN = 'server/src/oauth/form-token.ts'
const ATTACKS = 'test/people/attacks.test.ts'
const FACTOR = 'test/people/second-factor.test.ts'
const REFUSED = 'is refused everywhere without a token'

/** Written by who knows the code and the tests. */
export const bugsOfPages: readonly PlantedBug[] = [
  {
    id: 'form-without-token',
    title: 'a form is taken from our origin with any token',
    promise: 'No form does anything that this browser was not shown by us.',
    author: 'insider',
    edits: [
      {
        file: FORM_TOKEN,
        find: "  return own.cookie !== undefined && isSame(form.get(FORM_TOKEN) ?? '', formTokenOf(own.cookie))",
        replace: '  return own.cookie !== undefined && form.size >= 0',
      },
    ],
    caughtBy: [{ file: ATTACKS, title: REFUSED }],
  },
  {
    id: 'form-of-another-origin',
    title: 'a form of another origin is taken where its token is right',
    promise: 'No form does anything that this browser was not shown by us.',
    author: 'insider',
    edits: [
      { file: FORM_TOKEN, find: '  if (origin !== undefined && origin !== own.origin) return false\n', replace: '' },
    ],
    caughtBy: [{ file: ATTACKS, title: REFUSED }],
  },
  {
    id: 'session-before-goes-on',
    title: 'a session that was in the browser before somebody signs in goes on beside the new one',
    promise: 'A session that somebody else put there is worth nothing after signing in.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/signed-in.ts',
        find: '  if (before !== null) await people.endSession(before.personId, before.id, visitor)\n',
        replace: '',
      },
    ],
    caughtBy: [{ file: ATTACKS, title: 'is another one after signing in' }],
  },
  {
    id: 'link-used-by-opening-it',
    title: 'opening the link of a sign-up verifies the address',
    promise: 'To open a link changes nothing: mail scanners open it before people do.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/routes/sign-up.ts',
        find: 'const found = TOKEN.test(token) ? await people.readVerification(token, visitor) : null',
        replace:
          "const found = TOKEN.test(token) && (await people.verify(visitor, token)) ? { email: 'x@y.example' } : null",
      },
    ],
    caughtBy: [{ file: ATTACKS, title: 'verifies an address once' }],
  },
  {
    id: 'return-to-anywhere',
    title: 'whoever signs in is led to any address that begins with a slash',
    promise: 'Signing in leads to a page of ours alone.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/return-to.ts',
        find: "  if (!PATH.test(given) || DOTS.test(given.split('?')[0] ?? '')) return undefined\n",
        replace: "  if (!given.startsWith('/')) return undefined\n",
      },
    ],
    caughtBy: [{ file: ATTACKS, title: 'is never elsewhere' }],
  },
  {
    id: 'half-signed-in-is-in',
    title: 'who has typed the password is in, and may pass by the second factor',
    promise: 'Nothing is shown or done before the second factor, where there is one.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/oauth/visits.ts',
        find: "    if (!session.isComplete) return seeOther(withReturnTo('/second-factor', parseReturnTo(back)))\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: FACTOR, title: 'is asked for once it is on' }],
  },
]
