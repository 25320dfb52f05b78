import { memberOf } from '../catalogue/price.ts'
import { dataFrame, ENDED_BY, type LimitEnding } from './limit-end.ts'
import { isMembers } from './members.ts'
import { COST, itemsOf } from './usage.ts'

/** A chunk with the reason `length` for every choice that has none yet, then the usage where it was asked for, then [DONE]. */
export function createChatEnding(choices: number, wantsUsage: boolean): LimitEnding {
  const open = new Set<unknown>(Array.from({ length: choices }, (_, index) => index))
  let about: Readonly<Record<string, unknown>> = { id: '', object: 'chat.completion.chunk', created: 0, model: '' }

  return {
    passed(json) {
      if (!isMembers(json)) return
      about = aboutOf(json, about)
      for (const choice of itemsOf(memberOf(json, 'choices')))
        if (memberOf(choice, 'finish_reason')) open.delete(memberOf(choice, 'index') ?? 0)
    },

    frames({ cost, endedBy, usage: { input, output, cacheRead, cacheWrite } }) {
      const prompt = input + cacheRead + cacheWrite
      const ended = [...open].map((index) => ({ index, delta: {}, logprobs: null, finish_reason: 'length' }))
      const usage = {
        prompt_tokens: prompt,
        completion_tokens: output,
        total_tokens: prompt + output,
        prompt_tokens_details: { cached_tokens: cacheRead },
        [COST]: cost,
      }
      return [
        dataFrame({ ...about, choices: ended, [ENDED_BY]: endedBy, ...(!wantsUsage && { [COST]: cost }) }),
        ...(wantsUsage ? [dataFrame({ ...about, choices: [], usage })] : []),
        'data: [DONE]\n\n',
      ].join('')
    },
  }
}

/** What every chunk of an answer repeats. */
function aboutOf(chunk: object, before: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const about: Record<string, unknown> = { ...before }
  for (const name of ['id', 'object', 'created', 'model']) {
    const value = memberOf(chunk, name)
    if (value !== undefined) about[name] = value
  }
  return about
}
