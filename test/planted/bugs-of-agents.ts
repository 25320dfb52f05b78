import type { PlantedBug } from './planted-bug.ts'

const USE = 'server/src/agent/use.ts'
const BATCH = 'server/src/agent/batch.ts'
const APPROVAL = 'server/src/agent/approval.ts'
const SERVER = 'server/src/agent/server.ts'
const SHORT_PATH = 'server/src/agent/short-path.ts'
const TOOLS = 'server/src/agent/tools.ts'
const ARGUMENTS = 'server/src/agent/call-arguments.ts'
const OF_BATCH = 'server/src/agent/batch.test.ts'
const OF_BATCHES = 'test/mcp/batch.test.ts'
const OF_USE = 'test/mcp/use.test.ts'
const OF_ATTACKS = 'test/mcp/attacks.test.ts'
const OF_SHORT_PATH = 'server/src/agent/short-path.test.ts'

/** What would let an agent spend more than somebody approved, or let somebody else spend by it. */
export const bugsOfAgents: readonly PlantedBug[] = [
  {
    id: 'agent-cap-forgotten',
    title: 'the cap of a tool call is not passed on',
    promise: 'A price above max_price_usd is refused before any spend.',
    author: 'insider',
    edits: [{ file: USE, find: '      maxCost: wanted.maxCost,', replace: '      maxCost: undefined,' }],
    caughtBy: [{ file: OF_USE, title: 'a price above max_price_usd' }],
  },
  {
    id: 'agent-batch-cap-of-each',
    title: 'each call of a batch has the whole cap of the batch',
    promise: 'A batch never costs more than its cap in all.',
    author: 'insider',
    edits: [
      { file: BATCH, find: 'wanted.max_price_usd, nanos(cap - committed)),', replace: 'wanted.max_price_usd, cap),' },
    ],
    caughtBy: [{ file: OF_BATCHES, title: 'never costs more than its cap in all' }],
  },
  {
    id: 'agent-batch-forgets-holds',
    title: 'what is held for a task is not counted against the cap of its batch',
    promise: 'A batch never costs more than its cap in all.',
    author: 'insider',
    edits: [{ file: BATCH, find: 'plus(plus(spent, held), plus(', replace: 'plus(spent, plus(' }],
    caughtBy: [{ file: OF_BATCHES, title: 'counts what is held for a task' }],
  },
  {
    id: 'agent-batch-spends-again',
    title: 'what a batch was charged when it was sent before is not counted against its cap',
    promise: 'A batch never costs more than its cap in all.',
    author: 'insider',
    edits: [{ file: BATCH, find: "fault?.code === 'idempotency_completed' &&", replace: 'fault === undefined &&' }],
    caughtBy: [
      { file: OF_BATCH, title: 'when they were sent before' },
      { file: OF_BATCHES, title: 'counts what was charged before' },
    ],
  },
  {
    id: 'agent-batch-forgets-unknown',
    title: 'what nobody knows the cost of counts as nothing against the cap of its batch',
    promise: 'A batch never costs more than its cap in all.',
    author: 'insider',
    edits: [{ file: BATCH, find: 'used.atMost ?? ZERO', replace: 'ZERO' }],
    caughtBy: [{ file: OF_BATCH, title: 'where nobody knows what it did' }],
  },
  {
    id: 'agent-key-in-query',
    title: 'a key in the arguments of a call goes into the URL of an upstream',
    promise: 'A key never appears in a URL.',
    author: 'insider',
    edits: [{ file: ARGUMENTS, find: "'problem') !== undefined", replace: "'problem') === ''" }],
    caughtBy: [
      { file: 'server/src/agent/call-arguments.test.ts', title: 'where a key stands in them' },
      { file: OF_ATTACKS, title: 'a key in the arguments of a call' },
    ],
  },
  {
    id: 'agent-unapproved',
    title: 'a key without a budget may spend by an agent',
    promise: 'An agent spends only what somebody has approved.',
    author: 'insider',
    edits: [{ file: APPROVAL, find: '...(budget === null', replace: '...(budget === undefined' }],
    caughtBy: [{ file: OF_USE, title: 'a key without a budget, scopes or a rate' }],
  },
  {
    id: 'agent-any-origin',
    title: 'pages of any origin may use the tools',
    promise: 'DNS rebinding does not reach the tools.',
    author: 'insider',
    edits: [
      {
        file: SERVER,
        find: 'headers.origin !== undefined && !isOurOrigin',
        replace: "headers.origin === '' && !isOurOrigin",
      },
    ],
    caughtBy: [{ file: OF_ATTACKS, title: 'DNS rebinding' }],
  },
  {
    id: 'agent-header-not-compared',
    title: 'the short path does not compare the tool in the header with that of the body',
    promise: 'A message that says two things is refused.',
    author: 'insider',
    edits: [
      { file: SHORT_PATH, find: "request.headers['mcp-name'] !== name", replace: "request.headers['mcp-name'] === ''" },
    ],
    caughtBy: [
      { file: OF_SHORT_PATH, title: 'another tool in the header' },
      { file: OF_ATTACKS, title: 'where headers and body differ: another tool' },
    ],
  },
  {
    id: 'agent-other-numbers',
    title: 'a number that JavaScript can not hold is passed on as another one',
    promise: 'What is sent is what was asked for.',
    author: 'insider',
    edits: [{ file: SERVER, find: "inexactNumberIn(rawBody.toString('utf8'))", replace: "inexactNumberIn('')" }],
    caughtBy: [{ file: OF_ATTACKS, title: 'a number would be passed on as another one' }],
  },
  {
    id: 'agent-invalid-is-free',
    title: 'a call of a tool whose arguments are wrong counts as no request',
    promise: 'Invalid requests count as requests.',
    author: 'insider',
    edits: [{ file: TOOLS, find: '      await count(request)\n      throw thrown', replace: '      throw thrown' }],
    caughtBy: [{ file: OF_USE, title: 'what is wrong counts as a request' }],
  },
]
