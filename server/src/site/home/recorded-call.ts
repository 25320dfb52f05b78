/**
 * A call as it was made on the development stack, whose upstreams are the sandbox's: test/site/site.test.ts makes it again and
 * compares every figure.
 */
export const RECORDED_CALL = {
  on: '17 November 2026',
  path: '/v1/chat/completions',
  model: 'sandbox/text',
  body: {
    model: 'sandbox/text',
    max_tokens: 200,
    messages: [{ role: 'user', content: 'Name the tram stops between the harbour and the market.' }],
  },
  maxCostUsd: '0.01',
  priceVersion: '1',
  /** USD of a token. */
  prices: { input: '0.0000005', output: '0.000002' },
  tokens: { input: 19, output: 140 },
  costs: { input: '0.000009500', output: '0.000280000' },
  heldUsd: '0.000622500',
  chargedUsd: '0.000289500',
  backUsd: '0.000333000',
} as const
