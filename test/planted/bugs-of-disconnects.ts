import type { PlantedBug } from './planted-bug.ts'

const MODEL_PLAN = 'server/src/gateway/plans/model.ts'
const CATCHER = 'test/acceptance/models/on-disconnect.test.ts'

/** What would let somebody hang up at another's cost. */
export const bugsOfDisconnects: readonly PlantedBug[] = [
  {
    id: 'cancel-though-meter-runs-on',
    title: 'who hangs up has an upstream given up whose meter runs on, and pays for what was delivered alone',
    promise: 'cancel gives an upstream up only where its profile says that this stops its meter.',
    author: 'insider',
    edits: [
      {
        file: MODEL_PLAN,
        find: "const isStoppable = cancels && route.profile.abort === 'stops'",
        replace: 'const isStoppable = cancels',
      },
    ],
    caughtBy: [
      { file: CATCHER, title: 'trap: cancel, where its meter runs on' },
      { file: CATCHER, title: 'trap: cancel before its answer begins, where its meter runs on' },
    ],
  },
  {
    id: 'left-before-the-answer-is-free',
    title: 'who hangs up before the answer begins pays nothing, as if the upstream had failed',
    promise: 'Once a request was sent, who hangs up pays at least its input.',
    author: 'insider',
    edits: [
      {
        file: MODEL_PLAN,
        find: "      if (sent.outcome === 'not_sent' || !opening.hasLeft()) return sent\n",
        replace: '      if (opening.hasLeft() || !opening.hasLeft()) return sent\n',
      },
    ],
    caughtBy: [{ file: CATCHER, title: 'before its answer begins, and the caller pays the input that was sent' }],
  },
  {
    id: 'ended-answer-is-given-up',
    title: 'an answer that has ended is given up for who hangs up then, and its usage is never heard',
    promise: 'Once an answer has ended there is no meter left to stop, and what is reported is charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: 'stopsOnAbort && !reader.isHolding() ? 0 : drainMs',
        replace: 'stopsOnAbort ? 0 : drainMs',
      },
    ],
    caughtBy: [
      { file: CATCHER, title: 'trap: but not once the answer has ended, when its usage comes next and is charged' },
    ],
  },
  {
    id: 'pictures-are-free-for-who-leaves',
    title: 'of an input that nobody reports only the text is counted',
    promise: 'Who hangs up pays all of the input, pictures, files and sound too.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-token.ts',
        find: 'sum + count, image + audio + other)',
        replace: 'sum + count, 0)',
      },
    ],
    caughtBy: [
      { file: CATCHER, title: 'trap: and pays what the input has that is no text' },
      { file: 'server/src/pricing/by-token.test.ts', title: 'has pictures, sound and files too' },
    ],
  },
  {
    id: 'early-report-is-the-last-word',
    title: 'a usage that an upstream writes as it begins is charged, though words were delivered after it',
    promise: 'What is charged is never less than what was delivered.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/by-token.ts',
        find: 'output === undefined || !isWhole) return',
        replace: 'output === undefined) return',
      },
      {
        file: 'server/src/protocols/withholding-reader.ts',
        find: "if (report === 'current') report = 'passed'",
        replace: "if (report === 'passed') report = 'passed'",
      },
    ],
    caughtBy: [{ file: CATCHER, title: 'trap: and what was delivered, where a report came before that' }],
  },
]
