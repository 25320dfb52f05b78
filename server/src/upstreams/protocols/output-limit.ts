import type { ProtocolName } from './protocol.ts'
import { spliceJson, withoutMembers } from './splice-json.ts'

/** The members by which upstreams of each protocol may limit output; none where nothing limits it. */
export const OUTPUT_LIMIT_MEMBERS: Readonly<Record<ProtocolName, readonly string[]>> = {
  openai: ['max_completion_tokens', 'max_tokens'],
  anthropic: ['max_tokens'],
  gemini: ['maxOutputTokens', 'max_output_tokens'],
  openai_embeddings: [],
  openai_images: [],
  video: [],
}

/** An object with its output limit as the one member that its upstream knows, and without the others. */
export function withOnlyLimit(
  object: Buffer,
  members: Readonly<Record<string, unknown>>,
  { name, among, limit }: { readonly name: string; readonly among: readonly string[]; readonly limit: number },
): Buffer {
  const others = among.filter((one) => one !== name && Object.hasOwn(members, one))
  const alone = others.length === 0 ? object : withoutMembers(object, others)
  return members[name] === limit ? alone : spliceJson(alone, { [name]: String(limit) })
}
