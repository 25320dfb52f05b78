import { isObject } from './json.ts'
import type { Asked, Reply } from './upstream.ts'

const XML = '<?xml version="1.0" encoding="UTF-8"?>\n<answer><status>ok</status></answer>\n'

/** An answer as a deviant sends it, whichever vendor it is: what differs in its content the vendor itself has seen to. */
export function deviate(reply: Reply, asked: Asked): Reply {
  const { firstByteMs, paddingBytes, answersInXml } = asked.deviance
  const isXml = answersInXml && reply.status < 300 && wantsXml(asked)
  if (firstByteMs === 0 && paddingBytes === 0 && !isXml) return reply
  const slow = firstByteMs > 0 && { delayMs: firstByteMs }
  const delivery = { ...reply.delivery, ...slow, paddingBytes }
  if (!isXml) return { ...reply, delivery }
  const { stream, ...whole } = reply
  return {
    ...whole,
    tokens: stream?.tokens ?? reply.tokens,
    delivery,
    content: { type: 'application/xml', bytes: XML },
  }
}

/** A caller has asked for it, in the query or in the body. */
function wantsXml({ parameters, body }: Asked): boolean {
  const format = parameters.get('format') ?? (isObject(body) ? body.format : undefined)
  return format === 'xml'
}
