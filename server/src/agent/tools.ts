import { admit } from '../callers/admit.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { asFault, type Fault, invalidRequest } from '../kernel/fault.ts'
import type { Id } from '../kernel/ids.ts'
import { ZERO } from '../kernel/money.ts'
import { inputFault } from '../wording/input-fault.ts'
import { type Asking, createAskPerson } from './ask-person.ts'
import { createBatch } from './batch.ts'
import { createReadLeft } from './budgets.ts'
import { createDetails } from './details.ts'
import { createDiscovery } from './discovery.ts'
import { createFreeOperations } from './free-operations.ts'
import { createOperations } from './operations.ts'
import { type AgentParts, COUNTED, type MetaNames } from './parts.ts'
import { roomOfAnswer } from './pictures.ts'
import { capOf } from './price-cap.ts'
import { moneyOf, tell } from './tell.ts'
import { TOOL_ARGUMENTS, type ToolArguments, type ToolName } from './tool-arguments.ts'
import { type InputRequired, isInputRequired, sentOnce, type ToolResult, text } from './tool-result.ts'
import { createUse, type Used } from './use.ts'

/** Answers a call of a tool. Never throws: what is refused is an answer that the model can read. */
export type CallTool = (request: ToolRequest, call: ToolCall) => Promise<ToolResult | InputRequired>

/** A request whose message can be answered, but whose arguments can't be taken for what is wrong with them. */
export type ToolRequest = AgentRequest & { readonly wrong?: Fault }

export type ToolCall = {
  readonly name: ToolName
  readonly given: unknown
  readonly meta: Readonly<Record<string, unknown>>
  /** How a person can be asked through the client; null where it can't lead one to a page. */
  readonly asking: Asking | null
}

/** The five tools, on the pipeline of every call. */
export function createTools(parts: AgentParts, metaNames: MetaNames): CallTool {
  const { catalogue, begin, pool, ids, refused } = parts
  const free = createFreeOperations(parts)
  const operations = createOperations(
    catalogue,
    free.all.map(({ id }) => id),
  )
  const shared = { ...parts, operations, free }
  const use = createUse(shared)
  const readLeft = createReadLeft(pool)
  const askPerson = createAskPerson(parts)
  const discovery = createDiscovery(shared)
  const details = createDetails({ ...shared, quote: use.quote })
  const batch = createBatch({
    use: use.use,
    ids,
    readLeft,
    makesPictures: (id) => operations.find(id)?.protocol === 'openai_images',
    metaName: metaNames.call,
  })

  /** What is free counts as a request, once it is known what is asked for. */
  async function freely(request: AgentRequest, answer: () => Promise<object> | object): Promise<ToolResult> {
    await count(request)
    return found(await answer())
  }

  async function count({ id, caller }: AgentRequest): Promise<void> {
    await admit(begin, { id, caller }, COUNTED)
  }

  async function useOne(
    request: AgentRequest,
    wanted: ToolArguments<'use'>,
    { asking, key }: { readonly asking: Asking | null; readonly key: string | undefined },
  ): Promise<ToolResult | InputRequired> {
    const call = (id: Id, by: AgentRequest = request) =>
      use.use(by, {
        id,
        operationId: wanted.operation_id,
        given: wanted.arguments,
        ...capOf(wanted.max_price_usd),
        idempotencyKey: key,
      })
    // Who waited for a person may have got another mandate from them meanwhile.
    const again = async () => call(ids.next(), { ...request, caller: await request.callerNow() })
    const first = await call(request.id)
    const answered = asking === null ? first : await askPerson(request, asking, first, again)
    if ('inputRequests' in answered) return answered
    const used = answered
    const left = hasMovedMoney(used) ? await readLeft(request.caller, used.balance) : NOTHING_READ
    const money = moneyOf(used, left)
    const { structured, content, isError } = tell(used, left, roomOfAnswer())
    return {
      content,
      structuredContent: structured,
      ...(isError && { isError: true as const }),
      _meta: { [metaNames.call]: money },
    }
  }

  /** What is to be done, once its arguments are read. */
  function prepare(
    request: AgentRequest,
    { name, given, meta, asking }: ToolCall,
  ): () => Promise<ToolResult | InputRequired> {
    switch (name) {
      case 'search': {
        const asked = parsed('search', given)
        return () => freely(request, () => discovery.search(request, asked))
      }
      case 'get_details': {
        const asked = parsed('get_details', given)
        return async () => found(await details(request, asked, () => count(request)))
      }
      case 'list_categories': {
        parsed('list_categories', given)
        return () => freely(request, () => discovery.list(request))
      }
      case 'use': {
        const [wanted, key] = [parsed('use', given), keyIn(meta, metaNames)]
        return () => useOne(request, wanted, { asking, key })
      }
      case 'batch_use': {
        const [wanted, key] = [parsed('batch_use', given), keyIn(meta, metaNames)]
        return () => batch(request, wanted, key)
      }
    }
  }

  /** What is wrong with a call counts as a request, as everywhere. */
  async function prepareCounted(request: ToolRequest, call: ToolCall) {
    try {
      if (request.wrong !== undefined) throw request.wrong
      return prepare(request, call)
    } catch (thrown) {
      await count(request)
      throw thrown
    }
  }

  return async (request, call) => {
    try {
      const run = await prepareCounted(request, call)
      const result = await run()
      return isInputRequired(result) ? result : sentOnce(result, request.headers['user-agent'])
    } catch (thrown) {
      return refusal(request, refused(request, asFault(thrown)), metaNames)
    }
  }
}

const NOTHING_READ = { balance: undefined, budget: undefined }

/** Whether what is left may be another amount than before. What moved nothing is answered without asking the ledger. */
function hasMovedMoney({ cost, held, balance, atMost, taskCost }: Used): boolean {
  return (balance ?? held ?? atMost ?? taskCost) !== undefined || (cost ?? ZERO) !== ZERO
}

function refusal({ id }: AgentRequest, fault: Fault, metaNames: MetaNames): ToolResult {
  const used = { id, operationId: '', fault, cost: ZERO, held: undefined, balance: undefined }
  const { structured, content } = tell(used, NOTHING_READ, roomOfAnswer())
  const { request_id, error } = structured
  return {
    content,
    structuredContent: { request_id, error },
    isError: true,
    _meta: { [metaNames.call]: { request_id } },
  }
}

/** What was found, for programs and as the same in words. */
function found(structuredContent: object): ToolResult {
  return { content: [text(JSON.stringify(structuredContent))], structuredContent: { ...structuredContent } }
}

function parsed<Name extends ToolName>(name: Name, given: unknown): ToolArguments<Name> {
  const { success, data, error } = TOOL_ARGUMENTS[name].safeParse(given ?? {})
  if (!success) throw inputFault(error, given ?? {})
  // A schema gives what its own type says, which the compiler can't follow through the table.
  return data as ToolArguments<Name>
}

/** A key of the caller's own, by which a call happens once. One that is empty or no text is refused: it would protect nothing. */
function keyIn(meta: ToolCall['meta'], { idempotencyKey }: MetaNames): string | undefined {
  const key = meta[idempotencyKey]
  if (key === undefined) return undefined
  if (typeof key === 'string' && key !== '') return key
  throw invalidRequest(`_meta["${idempotencyKey}"] must be a text of 1 to 255 visible characters.`)
}
