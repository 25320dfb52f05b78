import { memberOf } from '../catalogue/price.ts'
import { ENDED_BY, type LimitEnding, typedFrame } from './limit-end.ts'
import { COST } from './usage.ts'

/** The end of every block that is open, a message_delta with the reason `max_tokens`, then message_stop. */
export function createMessageEnding(): LimitEnding {
  const open = new Set<unknown>()

  return {
    passed(json) {
      const index = memberOf(json, 'index')
      if (memberOf(json, 'type') === 'content_block_start') open.add(index)
      if (memberOf(json, 'type') === 'content_block_stop') open.delete(index)
    },

    frames({ cost, endedBy, usage: { input, output, cacheRead, cacheWrite } }) {
      return [
        ...[...open].map((index) => typedFrame({ type: 'content_block_stop', index })),
        typedFrame({
          type: 'message_delta',
          delta: { stop_reason: 'max_tokens', stop_sequence: null },
          usage: {
            input_tokens: input,
            cache_creation_input_tokens: cacheWrite,
            cache_read_input_tokens: cacheRead,
            output_tokens: output,
            [COST]: cost,
          },
          [ENDED_BY]: endedBy,
        }),
        typedFrame({ type: 'message_stop' }),
      ].join('')
    },
  }
}
