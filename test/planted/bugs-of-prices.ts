import type { PlantedBug } from './planted-bug.ts'

/** What every test once missed: a price that is right only as long as nothing changes or nobody leaves. */
export const bugsOfPrices: readonly PlantedBug[] = [
  {
    id: 'profile-of-a-route-unread',
    title: 'the output limit is sent as the caller wrote it, though the route says that its upstreams ignore that name',
    promise: 'A route says by which member its upstreams limit output, and it alone is sent.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-request.ts',
        find: 'bodyFor(upstreamModel, { outputLimit: name } = PLAIN_PROFILE) {',
        replace: 'bodyFor(upstreamModel) {\n      const name = PLAIN_PROFILE.outputLimit',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-request.test.ts',
        title: 'is sent as the member that the route names, and as nothing else',
      },
    ],
  },
  {
    id: 'cut-after-leaving-is-free',
    title: 'who left before the first word pays nothing for a stream that is cut beyond its limit later',
    promise: 'A caller who left owes the input once it was sent.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: 'const isOwed = isComplete || isAbandoned || isCut',
        replace: 'const isOwed = isComplete || isAbandoned',
      },
    ],
    caughtBy: [
      { file: 'server/src/gateway/relay.test.ts', title: 'is owed where its caller has left before the first word' },
    ],
  },
  {
    id: 'held-told-for-charged',
    title: 'the last frame of a stream tells what was held as what it cost',
    promise: 'What a caller is told that a call cost is what was charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/gateway/relay.ts',
        find: 'const last = stream.reader.release(formatUsd(charged))',
        replace: 'const last = stream.reader.release(formatUsd(relayed.held.most))',
      },
    ],
    caughtBy: [
      {
        file: 'test/acceptance/models/stream-cost.test.ts',
        title: 'is in the chunk with the last finish reason where usage was not asked for: a text',
      },
    ],
  },
  {
    id: 'cost-in-a-frame-that-is-left-out',
    title: 'the place of the cost is that of the frame as it came, though the caller gets less of it',
    promise: 'A frame with the cost in it is as valid as it was.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/withholding-reader.ts',
        find: 'costAt = heldBytes + at - (frame.bytes.length - given.length)',
        replace: 'costAt = heldBytes + at + 0 * given.length',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-reply.test.ts',
        title: 'has the cost in the chunk that stops',
      },
    ],
  },
  {
    id: 'task-cost-before-corrections',
    title: 'polls tell what a task was charged at first, though some was given back',
    promise: 'The cost of a task is the same wherever it is told.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/ledger/requests.ts',
        find: 'select c.id, c.amount - ',
        replace: 'select c.id, c.amount - 0 * ',
      },
    ],
    caughtBy: [
      {
        file: 'test/acceptance/tasks/tasks.test.ts',
        title: 'is what is left of it where some was given back',
      },
    ],
  },
  {
    id: 'response-counted-as-often-as-told',
    title: 'the text of a response counts again when its events repeat it whole',
    promise: 'What a model wrote is counted once.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-reply.ts',
        find: 'const text = newIn(kind, told, countedBytes)',
        replace: 'const text = newIn(kind, told, 0)',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-responses-reply.test.ts',
        title: 'counts what was written once, however often it is told',
      },
    ],
  },
  {
    id: 'response-refers-to-a-stored-item',
    title: 'an item of a conversation that has nothing but an id is sent',
    promise: 'A hold covers the most that a call can cost: nothing is read that its bound does not have.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-request.ts',
        find: 'if (!isGiven(rest.role)) throw',
        replace: 'if (at < 0) throw',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-responses-request.test.ts',
        title: 'refers to nothing that is stored elsewhere, by whatever name',
      },
    ],
  },
  {
    id: 'response-kept-upstream',
    title: 'a request that does not say whether its answer is to be stored is sent as it came',
    promise: 'No upstream is asked to keep an answer.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-request.ts',
        find: "if (members.store !== false) set.store = 'false'",
        replace: "if (members.store === true) set.store = 'false'",
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-responses-request.test.ts',
        title: 'is stored by no upstream, whatever is left out',
      },
      {
        file: 'test/acceptance/models/responses.test.ts',
        title: 'is to keep nothing, within the model’s cap, whether or not that is said',
      },
    ],
  },
  {
    id: 'response-free-by-early-zeros',
    title: 'a usage that a response has before its answer is taken for what the answer used',
    promise: 'What was delivered and not reported is counted.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-reply.ts',
        find: "BEGINNINGS.has(kind) ? undefined : memberOf(json, 'response', 'usage')",
        replace: "memberOf(json, 'response', 'usage')",
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-responses-reply.test.ts',
        title: 'does not take the zeros before an answer for what the answer used',
      },
    ],
  },
  {
    id: 'response-too-large-for-its-usage',
    title: 'a stream is asked for that repeats more of its request than is read',
    promise: 'No caller can have a stream lose its usage.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/openai-responses-request.ts',
        find: 'if (!isStream || bytes <= REPEATED_MOST_BYTES) return bytes',
        replace: 'if (!isStream || bytes > 0) return bytes',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/openai-responses-request.test.ts',
        title: 'is refused as a stream where what that repeats is too large for it',
      },
    ],
  },
  {
    id: 'title-of-a-vector-unheld',
    title: 'the title that is embedded with a text is not in its bound',
    promise: 'A hold covers the most that a call can cost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/gemini-embeddings-request.ts',
        find: "if (typeof title === 'string') texts.push(title)",
        replace: "if (typeof title === 'string') structures.splice(0, 0)",
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/gemini-embeddings.test.ts',
        title: 'is the bytes of each text and a share for each, within the context window of each request',
      },
    ],
  },
  {
    id: 'large-vectors-are-none',
    title: 'of a large reply every list of numbers is read as empty, so that its vectors are given away',
    promise: 'No charge that a caller saw is lost.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/json-outline.ts',
        find: '    this.#keep(SOME_NUMBER)\n',
        replace: '',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/json-outline.test.ts',
        title: 'leaves one number of a list of numbers, and counts whatever they stand in',
      },
      {
        file: 'test/acceptance/models/gemini-embeddings.test.ts',
        title: 'MODEL-3 costs what the upstream reports, however large the vectors are',
      },
    ],
  },
  {
    id: 'another-model-within-a-batch',
    title: 'a request within a batch keeps the model that its caller wrote, which may be a dearer one',
    promise: 'What is sent is what was priced.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/protocols/gemini-embeddings-request.ts',
        find: 'withModel(item, requests[at] ?? {}, upstreamModel)',
        replace: 'withModel(item, at === 0 ? (requests[at] ?? {}) : {}, upstreamModel)',
      },
    ],
    caughtBy: [
      {
        file: 'server/src/protocols/gemini-embeddings.test.ts',
        title: 'goes to the upstream byte for byte, but for the name of the model where it has one',
      },
    ],
  },
  {
    id: 'only-dearer-is-held-back',
    title: 'an import holds back a price that grows by more than ten times, and applies one that falls so',
    promise: 'A price that moves by more than ten times, up or down, is held back.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-list/moves.ts',
        find: 'fresh > TIMES_MOST * old || old > TIMES_MOST * fresh',
        replace: 'fresh > TIMES_MOST * old',
      },
    ],
    caughtBy: [
      { file: 'server/src/pricing/price-list/moves.test.ts', title: 'above ten times, up and down' },
      { file: 'test/house/import-commands.test.ts', title: 'holds back moves above ten times' },
    ],
  },
  {
    id: 'import-to-zero',
    title: 'an import gives away what has cost something, because zero is ten times of nothing',
    promise: 'A price that moves to or from zero is held back.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-list/moves.ts',
        find: "  if (after.numerator === 0n) return 'to zero'\n",
        replace: '  if (after.numerator === 0n) return undefined\n',
      },
    ],
    caughtBy: [
      { file: 'server/src/pricing/price-list/moves.test.ts', title: 'to zero or from zero is held back' },
      { file: 'test/house/import-commands.test.ts', title: 'holds back moves above ten times' },
    ],
  },
  {
    id: 'cache-falls-back-unseen',
    title: 'an import compares what is written alone, and not that a cache without a price costs as input',
    promise: 'Prices are compared as they are charged.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-list/moves.ts',
        find: '  const was = before === undefined ?',
        replace: "  if (member.includes('cache_')) return []\n  const was = before === undefined ?",
      },
    ],
    caughtBy: [{ file: 'server/src/pricing/price-list/moves.test.ts', title: 'a cache without a price of its own' }],
  },
  {
    id: 'imports-interleave',
    title: 'an import compares with what stands before it has the models for itself',
    promise: 'Of two imports at once, one comes whole after the other.',
    author: 'insider',
    edits: [
      {
        file: 'server/src/pricing/price-list/import.ts',
        find: '    await lockAllNames(query)\n',
        replace: '    void lockAllNames\n',
      },
    ],
    caughtBy: [{ file: 'test/house/import-commands.test.ts', title: 'waits for whoever' }],
  },
]
