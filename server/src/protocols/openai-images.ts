import { countIn, memberOf } from '../catalogue/price.ts'
import { modelOf } from './members.ts'
import { ask } from './openai-images-request.ts'
import type { Protocol, ReplyForm, Reported } from './protocol.ts'
import { partsOf, reportedOf } from './usage.ts'

export const openaiImages: Protocol = {
  modelOf,
  ask,
  path: '/v1/images/generations',
  target: () => '/v1/images/generations',
  credentialHeader: 'authorization',
  passesOn: ['openai-beta'],
  usageOf,
  formOf,
  // What a picture has in tokens can't be counted by looking at it.
  textOf: () => '',
}

/** Undefined where nobody can tell; one that was filtered out is none. */
export function picturesIn(json: unknown): number | undefined {
  const data = memberOf(json, 'data')
  if (!Array.isArray(data)) return undefined
  return data.filter((one) => Boolean(memberOf(one, 'url')) || Boolean(memberOf(one, 'b64_json'))).length
}

function formOf(json: unknown): ReplyForm {
  const pictures = picturesIn(json)
  if (pictures === undefined) return memberOf(json, 'error') ? 'nothing' : 'unreadable'
  return pictures === 0 ? 'nothing' : 'answer'
}

/** What was read from a cache is part of the input. */
function usageOf(json: unknown): Reported {
  const usage = memberOf(json, 'usage')
  const input = countIn(memberOf(usage, 'input_tokens'))
  const output = countIn(memberOf(usage, 'output_tokens'))
  const cached = countIn(memberOf(usage, 'input_tokens_details', 'cached_tokens'))
  const cacheRead = input === undefined || cached === undefined ? undefined : Math.min(cached, input)
  const image = countIn(memberOf(usage, 'input_tokens_details', 'image_tokens'))
  const newImage = Math.min(image ?? 0, (input ?? 0) - (cacheRead ?? 0))
  const painted = countIn(memberOf(usage, 'output_tokens_details', 'image_tokens'))
  const written = countIn(memberOf(usage, 'output_tokens_details', 'text_tokens')) ?? 0
  return {
    ...reportedOf({
      input: input === undefined ? undefined : input - (cacheRead ?? 0),
      output,
      cacheRead,
      cacheWrite: undefined,
    }),
    // What is generated are pictures, as far as it is not said to be text.
    ...partsOf({ input_image: newImage, output_image: painted ?? (output && Math.max(0, output - written)) }),
  }
}
