import type { PlantedBug } from './planted-bug.ts'

const SMTP = 'server/src/mail/smtp.ts'
const MESSAGE = 'server/src/mail/message.ts'
const DELIVERER = 'server/src/mail/deliverer.ts'
const REFUSAL = 'server/src/mail/refusal.ts'
const NAMES = 'server/src/mail/names.ts'
const ISSUER = 'server/src/oauth/issuer.ts'
const OF_DELIVERER = 'server/src/mail/deliverer.test.ts'
const OF_MESSAGE = 'server/src/mail/message.test.ts'
const OF_LETTERS = 'server/src/mail/letters.test.ts'
const OF_ISSUER = 'server/src/oauth/issuer.test.ts'

/** What would tell others what only one person may know, or let somebody in as another. */
export const bugsOfMail: readonly PlantedBug[] = [
  {
    id: 'mail-in-the-clear',
    title: 'mail is sent without TLS where the server offers none',
    promise: 'Links that sign people in are told to nobody on the way.',
    author: 'insider',
    edits: [{ file: SMTP, find: 'requireTLS: !isSecure && !isLocal', replace: 'requireTLS: false' }],
    caughtBy: [{ file: OF_DELIVERER, title: 'is told nothing without TLS' }],
  },
  {
    id: 'message-id-of-each-attempt',
    title: 'each attempt at a letter has a Message-ID of its own',
    promise: 'A letter that is sent again is known by its receiver.',
    author: 'insider',
    edits: [{ file: MESSAGE, find: '    messageId: ', replace: '    messageId: String(process.hrtime.bigint()) + ' }],
    caughtBy: [{ file: OF_DELIVERER, title: 'again is the same' }],
  },
  {
    id: 'many-addresses',
    title: 'an address is not checked to be one',
    promise: 'A letter goes to one person.',
    author: 'insider',
    edits: [
      { file: MESSAGE, find: '  if (!isMailAddress(mail.to)) return null\n', replace: '' },
      { file: MESSAGE, find: "import { isMailAddress } from '../kernel/mail-address.ts'\n", replace: '' },
    ],
    caughtBy: [
      { file: OF_DELIVERER, title: 'or its address is none' },
      { file: OF_MESSAGE, title: 'whatever names and addresses hold' },
    ],
  },
  {
    id: 'dead-links-sent',
    title: 'a letter is sent though its link has expired',
    promise: 'Nobody is sent a link that does not work any more.',
    author: 'insider',
    edits: [
      {
        file: DELIVERER,
        find: "return 'until' in letter && Date.parse(letter.until) <= nowMs",
        replace: "return 'until' in letter && Date.parse(letter.until) <= 0 * nowMs",
      },
    ],
    caughtBy: [{ file: OF_DELIVERER, title: 'because its link has expired' }],
  },
  {
    id: 'mail-given-up-for-our-fault',
    title: 'a letter is given up where the server asks to try again',
    promise: 'A letter is lost only where it is refused for good.',
    author: 'insider',
    edits: [{ file: REFUSAL, find: 'responseCode >= 500', replace: 'responseCode >= 400' }],
    caughtBy: [{ file: OF_DELIVERER, title: 'because of status=451' }],
  },
  {
    id: 'links-in-names',
    title: 'a name that somebody chose can be a link',
    promise: 'Whoever invites strangers can tell them nothing by it.',
    author: 'insider',
    edits: [{ file: NAMES, find: "    .replace(/:\\/\\//g, ' ')\n", replace: '' }],
    caughtBy: [{ file: OF_LETTERS, title: 'is "Win at' }],
  },
  {
    id: 'no-nonce',
    title: 'a sign-in is begun without a nonce, and none is expected',
    promise: 'An ID token is for the sign-in that was begun.',
    author: 'insider',
    edits: [
      { file: ISSUER, find: "        nonce: partOf(own, 'nonce'),\n", replace: '' },
      { file: ISSUER, find: "            expectedNonce: partOf(own, 'nonce'),\n", replace: '' },
    ],
    caughtBy: [{ file: OF_ISSUER, title: 'is not believed with no-nonce' }],
  },
  {
    id: 'state-of-anybody',
    title: 'the state of an answer is not checked',
    promise: 'Only the browser that began a sign-in can finish it.',
    author: 'insider',
    edits: [
      {
        file: ISSUER,
        find: "            expectedState: partOf(own, 'state'),",
        replace: "            expectedState: answer.get('state') ?? '',",
      },
    ],
    caughtBy: [{ file: OF_ISSUER, title: 'with another state' }],
  },
  {
    id: 'signature-of-anybody',
    title: 'the signature of an ID token is not checked',
    promise: 'An ID token is believed where the issuer has signed it.',
    author: 'insider',
    edits: [{ file: ISSUER, find: ', openid.enableNonRepudiationChecks]', replace: ']' }],
    caughtBy: [{ file: OF_ISSUER, title: 'is not believed with wrong-key' }],
  },
]
