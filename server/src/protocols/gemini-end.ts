import { memberOf } from '../catalogue/price.ts'
import { dataFrame, ENDED_BY, type LimitEnding } from './limit-end.ts'
import { COST, itemsOf } from './usage.ts'

/** One chunk with the reason `MAX_TOKENS` for every candidate that has none yet, and the usage. */
export function createContentEnding(choices: number): LimitEnding {
  const open = new Set<unknown>(Array.from({ length: choices }, (_, index) => index))
  let about: Readonly<Record<string, unknown>> = {}

  return {
    passed(json) {
      const [modelVersion, responseId] = [memberOf(json, 'modelVersion'), memberOf(json, 'responseId')]
      about = {
        ...about,
        ...(modelVersion !== undefined && { modelVersion }),
        ...(responseId !== undefined && { responseId }),
      }
      for (const candidate of itemsOf(memberOf(json, 'candidates')))
        if (memberOf(candidate, 'finishReason')) open.delete(memberOf(candidate, 'index') ?? 0)
    },

    frames({ cost, endedBy, usage: { input, output, cacheRead, cacheWrite } }) {
      const prompt = input + cacheRead + cacheWrite
      const candidates = [...open].map((index) => ({
        content: { role: 'model', parts: [{ text: '' }] },
        finishReason: 'MAX_TOKENS',
        index,
      }))
      const usageMetadata = {
        promptTokenCount: prompt,
        candidatesTokenCount: output,
        totalTokenCount: prompt + output,
        ...(cacheRead > 0 && { cachedContentTokenCount: cacheRead }),
        [COST]: cost,
      }
      return dataFrame({ candidates, usageMetadata, ...about, [ENDED_BY]: endedBy })
    },
  }
}
