import type { PlantedBug } from './planted-bug.ts'

const FOLDER = 'server/src/identity/people'
const OF_SIGN_UP = 'test/identity/people/sign-up.test.ts'
const OF_SIGN_IN = 'test/identity/people/sign-in.test.ts'
const OF_FACTOR = 'test/identity/people/second-factor.test.ts'
const OF_MEMBERS = 'test/identity/people/members.test.ts'
const OF_GUESSES = 'test/identity/people/guesses.test.ts'
const OF_ALIKE = 'test/identity/people/alike.test.ts'

/** What would give credit twice, let somebody in who should not be, or leave a workspace to nobody. */
export const bugsOfPeople: readonly PlantedBug[] = [
  {
    id: 'credit-for-each-address',
    title: 'credit is given for each address of a mailbox',
    promise: 'A mailbox is credited once.',
    author: 'insider',
    edits: [{ file: `${FOLDER}/welcome.ts`, find: '  if (rowCount !== 1) return\n', replace: '' }],
    caughtBy: [{ file: OF_SIGN_UP, title: 'gives credit once a mailbox' }],
  },
  {
    id: 'mailbox-not-folded',
    title: 'labels and dots make another mailbox of an address',
    promise: 'A mailbox is credited once.',
    author: 'insider',
    edits: [{ file: `${FOLDER}/mailbox.ts`, find: 'hashOf(foldMailbox(address))', replace: 'hashOf(address)' }],
    caughtBy: [
      { file: OF_SIGN_UP, title: 'gives credit once a mailbox' },
      { file: `${FOLDER}/mailbox.test.ts`, title: 'is known by its hash alone' },
    ],
  },
  {
    id: 'link-works-again',
    title: 'a link that was used works again',
    promise: 'A link works once.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/links.ts`,
        find: 'kind = $2 and used_at is null and expires_at',
        replace: 'kind = $2 and expires_at',
      },
    ],
    caughtBy: [{ file: OF_SIGN_IN, title: 'is set anew by a link, once' }],
  },
  {
    id: 'password-of-the-first-who-signed-up',
    title: 'whoever signs up first with an address chooses the password that its owner confirms',
    promise: 'Nobody else chooses the password of who confirms an address.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/links.ts`,
        find: 'select $1, $2, $3, $4, $5, $6, now.at',
        replace: `select $1, $2, $3, $4,
       coalesce((select first.password from mailed_links first where first.person_id = $3 order by created_at limit 1), $5), $6, now.at`,
      },
    ],
    caughtBy: [{ file: OF_SIGN_UP, title: 'counts with its own link alone' }],
  },
  {
    id: 'password-of-another-browser',
    title: 'who confirms an address has the password that somebody typed elsewhere',
    promise: 'Nobody else chooses the password of who confirms an address.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/sign-up.ts`,
        find: 'const isTheirs = isSameBrowser(typed.browser, browser)',
        replace: 'const isTheirs = isSameBrowser(browser, browser)',
      },
    ],
    caughtBy: [{ file: OF_SIGN_UP, title: 'has a password of its own browser alone' }],
  },
  {
    id: 'credit-for-who-is-invited',
    title: 'who is invited is given credit where sign-up is closed',
    promise: 'Credit is given to those alone who may sign up by themselves.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/welcome.ts`,
        find: ' || !isOpenTo(settings, person.email)) return',
        replace: ') return',
      },
    ],
    caughtBy: [{ file: OF_SIGN_UP, title: 'is open to who is invited where it is closed to others' }],
  },
  {
    id: 'unknown-address-is-faster',
    title: 'no password is compared for an address that nobody has',
    promise: 'A sign-in does not tell whether an address has an account.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/sign-in.ts`,
        find: '        const isRight = await passwords',
        replace: '        if (person === undefined) return null\n        const isRight = await passwords',
      },
    ],
    caughtBy: [{ file: OF_ALIKE, title: 'is not told by a sign-in' }],
  },
  {
    id: 'unknown-address-writes-nothing',
    title: 'a forgotten password does less for an address that nobody has',
    promise: 'A forgotten password does not tell whether an address has an account.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/resets.ts`,
        find: "        const { token, at, until } = await addLink(query, { kind: 'reset', personId })",
        replace:
          "        if (personId === null) return\n        const { token, at, until } = await addLink(query, { kind: 'reset', personId })",
      },
    ],
    caughtBy: [{ file: OF_ALIKE, title: 'is not told by a forgotten password' }],
  },
  {
    id: 'one-guess-more',
    title: 'one attempt more is let through than the limit says',
    promise: 'Guesses are limited exactly.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/attempts.ts`,
        find: 'tried.map(({ limit }) => limit.most)',
        replace: 'tried.map(({ limit }) => limit.most + 1)',
      },
    ],
    caughtBy: [{ file: OF_GUESSES, title: 'guessing a password is tried ten times for a mailbox' }],
  },
  {
    id: 'wrong-guess-given-back',
    title: 'a wrong guess is not counted',
    promise: 'Guesses are limited exactly.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/attempts.ts`,
        find: 'if (result !== null) await attempts.giveBack',
        replace: 'await attempts.giveBack',
      },
    ],
    caughtBy: [{ file: OF_GUESSES, title: 'guessing a code' }],
  },
  {
    id: 'code-works-twice',
    title: 'a code of the second factor works again while it is shown',
    promise: 'A code works once.',
    author: 'insider',
    edits: [
      { file: `${FOLDER}/totp.ts`, find: 'matching.find((step) => step > now.usedStep)', replace: 'matching[0]' },
      { file: `${FOLDER}/second-factor.ts`, find: ' and totp_used_step < $2', replace: '' },
    ],
    caughtBy: [
      { file: OF_FACTOR, title: 'takes each code once' },
      { file: `${FOLDER}/totp.test.ts`, title: 'works once' },
    ],
  },
  {
    id: 'session-keeps-its-token',
    title: 'a session has the same token before and after the second factor',
    promise: 'Who knew the token of before gains nothing.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/second-factor.ts`,
        find: 'update browser_sessions set hash = $2, is_complete = true,',
        replace:
          'update browser_sessions set hash = case when $2::bytea is null then hash else hash end, is_complete = true,',
      },
    ],
    caughtBy: [{ file: OF_FACTOR, title: 'gets another token for it' }],
  },
  {
    id: 'sessions-survive-a-reset',
    title: 'a new password leaves the sessions of before',
    promise: 'A reset ends every session.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/resets.ts`,
        find: 'const ended = await endSessionsWithin(query, personId, exceptId)',
        replace: 'const ended = exceptId === null ? 0 : await endSessionsWithin(query, personId, exceptId)',
      },
    ],
    caughtBy: [{ file: OF_SIGN_IN, title: 'is set anew by a link, once' }],
  },
  {
    id: 'session-by-an-old-password',
    title: 'a session is opened with a password that was changed since it was compared',
    promise: 'A reset ends every session, those that are just being opened too.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/sessions.ts`,
        find: ' and ($2::text is null or password = $2) for share',
        replace: ' and ($2::text is null or true)',
      },
    ],
    caughtBy: [{ file: OF_SIGN_IN, title: 'never leaves a session that was opened with the old one' }],
  },
  {
    id: 'issuer-need-not-verify',
    title: 'an issuer that has not verified an address signs in whoever has it here',
    promise: 'An address that nobody has verified never joins a person.',
    author: 'insider',
    edits: [
      { file: `${FOLDER}/sign-in.ts`, find: 'email === null || !claims.emailVerified', replace: 'email === null' },
    ],
    caughtBy: [{ file: OF_SIGN_IN, title: 'where the issuer has verified it, and never otherwise' }],
  },
  {
    id: 'last-owner-demoted',
    title: 'the last owner can be given another role',
    promise: 'A workspace that has an owner keeps one.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/members.ts`,
        find: `  if (from === 'owner') await requireAnotherOwner(locked, { id, personId })
  await query('update members set role`,
        replace: `  await query('update members set role`,
      },
    ],
    caughtBy: [{ file: OF_MEMBERS, title: 'can be neither demoted nor removed' }],
  },
  {
    id: 'members-change-without-a-lock',
    title: 'changes of members do not wait for each other',
    promise: 'A workspace that has an owner keeps one, whatever happens at once.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/workspace-lock.ts`,
        find: "'select name from workspaces where id = $1 for no key update'",
        replace: "'select name from workspaces where id = $1'",
      },
    ],
    caughtBy: [{ file: OF_MEMBERS, title: 'stays, of two who' }],
  },
  {
    id: 'admins-make-owners',
    title: 'an admin can make somebody an owner',
    promise: 'What belongs to owners is for owners alone.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/kernel/role.ts',
        find: "from === 'owner' || to === 'owner' ?",
        replace: "from === 'owner' && to !== 'owner' ?",
      },
    ],
    caughtBy: [{ file: OF_MEMBERS, title: 'can neither make, change nor remove an owner' }],
  },
  {
    id: 'invitation-for-anybody',
    title: 'whoever has the link of an invitation can join by it',
    promise: 'An invitation is for one address.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/invitations.ts`,
        find: "    if (!open.is_theirs) throw new Fault('invitation_for_another')\n",
        replace: '',
      },
    ],
    caughtBy: [{ file: OF_MEMBERS, title: 'is for one address' }],
  },
  {
    id: 'invitation-outlives-the-role',
    title: 'an invitation is good although who made it may make it no longer',
    promise: 'What a role allows is judged when it is used.',
    author: 'insider',
    edits: [
      {
        file: `${FOLDER}/workspace-lock.ts`,
        find: '  if (personId === null) return\n',
        replace: '  if (personId !== null || role === null) return\n',
      },
    ],
    caughtBy: [{ file: OF_MEMBERS, title: 'is void once who made it may make it no longer' }],
  },
]
