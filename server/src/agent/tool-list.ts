import { z } from 'zod'
import { TOOL_ARGUMENTS, type ToolName } from './tool-arguments.ts'

/** A tool as `tools/list` describes it. */
export type Tool = {
  readonly name: ToolName
  readonly title: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly outputSchema: Readonly<Record<string, unknown>>
  readonly annotations: Readonly<Record<string, unknown>>
}

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false }
/** A call spends money, and may act for a person: it follows users, and makes what others see. */
const SPENDS = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }

const text = { type: 'string' }
const money = {
  request_id: { type: 'string', description: 'By which the call can be looked up' },
  cost_usd: { type: 'string', description: 'What was charged, in exact decimal USD' },
  cost_micros_usd: { type: 'integer' },
  held_usd: { type: 'string', description: 'Held for a task until it has ended' },
  left: { type: 'object', description: 'What is left of the balance and of the budget of the key' },
}
const call = {
  operation_id: text,
  ...money,
  status: { type: 'integer', description: 'Of the answer of the provider' },
  result: { description: 'The answer of the operation' },
  result_text: {
    type: 'string',
    description: 'An answer that is too large or too deep to be shown whole, or its beginning',
  },
  truncated: { type: 'object' },
  error: {
    type: 'object',
    description: 'Why there is no answer. Refusals for money have needed_usd, and cap_usd or left_usd',
    properties: { code: text, message: text, retryable: { type: 'boolean' } },
    required: ['code', 'message'],
  },
}
const object = (properties: object) => ({ type: 'object', properties })

type Described = Omit<Tool, 'name' | 'inputSchema'>

const DESCRIBED: Readonly<Record<ToolName, Described>> = {
  search: {
    title: 'Search operations',
    description:
      'Find operations by what they do: models (chat, embeddings, images, video, rerank), social, finance and web-traffic data, as far as they are sold here. Say in plain words what you want. Free.',
    outputSchema: object({
      operations: { type: 'array' },
      models: { type: 'array' },
      error: call.error,
      request_id: text,
    }),
    annotations: { title: 'Search operations', ...READS },
  },
  get_details: {
    title: 'Details of an operation',
    description:
      'What an operation takes, what it costs, its limits, how long a call may take, and an example. With arguments, also what that call is expected to cost and the most that it can. Free.',
    outputSchema: object({ operation_id: text, error: call.error, request_id: text }),
    annotations: { title: 'Details of an operation', ...READS },
  },
  list_categories: {
    title: 'List categories',
    description: 'All categories with all their operations. Free.',
    outputSchema: object({ categories: { type: 'array' }, error: call.error, request_id: text }),
    annotations: { title: 'List categories', ...READS },
  },
  use: {
    title: 'Use an operation',
    description:
      'Make one call of an operation and pay for it. It is refused before anything is spent if it can cost more than max_price_usd, or than what is left. The answer says what was charged and what is left. Wait for it: a call that you stop waiting for goes on, and is charged as if you had waited. Videos return a task_id at once; poll it with the operation get_video_task, which is free.',
    outputSchema: object(call),
    annotations: { title: 'Use an operation', ...SPENDS },
  },
  batch_use: {
    title: 'Use several operations',
    description:
      'Make up to 20 calls, one after the other, each with its own result, charge or refusal. Together they never cost more than max_total_usd. Once you have left, no further call begins; the one that runs is charged.',
    outputSchema: object({
      results: { type: 'array', items: object(call) },
      total: { type: 'object' },
      error: call.error,
      request_id: text,
    }),
    annotations: { title: 'Use several operations', ...SPENDS },
  },
}

/** Built once: to make a schema costs more than to answer a request. */
export const TOOLS: readonly Tool[] = (['search', 'get_details', 'list_categories', 'use', 'batch_use'] as const).map(
  (name) => {
    const { $schema, ...inputSchema } = z.toJSONSchema(TOOL_ARGUMENTS[name], { io: 'input' })
    return { name, inputSchema, ...DESCRIBED[name] }
  },
)
