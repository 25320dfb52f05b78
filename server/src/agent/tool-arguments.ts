import { z } from 'zod'
import { MOST_CAP_USD } from './price-cap.ts'

/** What each tool takes. A member that a tool does not know is refused: a misspelt cap must not be no cap. */
const operationId = z.string().min(1).max(200).describe('The id of an operation, as search and list_categories give it')
const given = z
  .record(z.string(), z.unknown())
  .default({})
  .describe('The arguments of the operation, as get_details describes them')
const cap = z
  .number()
  .min(0)
  .max(MOST_CAP_USD)
  .describe('The most that this may cost, in USD. A call that can cost more is refused before anything is spent')

export const MOST_CALLS = 20
const MOST_QUERY = 500

export const TOOL_ARGUMENTS = {
  search: z.strictObject({
    query: z.string().min(1).max(MOST_QUERY).describe('What you want to do or to know, in plain words'),
    category: z.string().max(40).optional().describe('Only operations of this category'),
    limit: z.int().min(1).max(20).default(5).describe('How many operations to return'),
  }),
  get_details: z.strictObject({
    operation_id: operationId.describe('The id of an operation, or model:<name> for a model'),
    arguments: z
      .record(z.string(), z.unknown())
      .optional()
      .describe(
        'Arguments that you want to use: the answer then says what the call is expected to cost, and the most it can',
      ),
    schema: z.enum(['short', 'full']).default('short').describe('full also describes what is nested in the arguments'),
  }),
  list_categories: z.strictObject({}),
  use: z.strictObject({ operation_id: operationId, arguments: given, max_price_usd: cap }),
  batch_use: z.strictObject({
    calls: z
      .array(
        z.strictObject({
          operation_id: operationId,
          arguments: given,
          max_price_usd: cap.optional().describe('The most that this one call may cost, in USD'),
        }),
      )
      .min(1)
      .max(MOST_CALLS)
      .describe('Made one after the other, in this order'),
    max_total_usd: cap.describe('The most that all of them together may cost, in USD'),
  }),
} as const

export type ToolName = keyof typeof TOOL_ARGUMENTS
export type ToolArguments<Name extends ToolName> = z.output<(typeof TOOL_ARGUMENTS)[Name]>

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(TOOL_ARGUMENTS, name)
}
