import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { generateContent } from '../catalogue/operations/generate-content.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { createDetails } from './details.ts'

const details = createDetails({
  operations: { find: () => generateContent },
  free: { find: () => undefined },
  names: {},
  sold: { now: async () => ({ in: { test: [generateContent] } }) },
} as unknown as Parameters<typeof createDetails>[0])
const request = { caller: { scopes: null, limits: {}, mode: 'test' } } as unknown as AgentRequest

describe('what an operation takes', () => {
  for (const schema of ['short', 'full'] as const)
    it(`is made once, and not for everybody who asks: ${schema}`, async () => {
      const ask = async () =>
        Object(await details(request, { operation_id: 'generate_content', schema }, async () => {}))
      const [first, second] = [await ask(), await ask()]
      assert.ok(first.arguments.properties.model)
      assert.equal(first.arguments, second.arguments)
    })
})
