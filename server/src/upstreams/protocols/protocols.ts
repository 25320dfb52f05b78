import { anthropic, anthropicCount } from './anthropic.ts'
import { openai } from './openai.ts'
import type { Protocol, ProtocolName } from './protocol.ts'

export const PROTOCOLS: Readonly<Record<ProtocolName, Protocol>> = { openai, anthropic }

/** For POST /v1/messages/count_tokens. */
export const countTokensProtocol: Protocol = anthropicCount

/** What an upstream requires and a caller may leave out, such as one who writes a request by hand. */
const DEFAULT_HEADERS: Readonly<Record<ProtocolName, Readonly<Record<string, string>>>> = {
  openai: {},
  anthropic: { 'anthropic-version': '2023-06-01' },
}

/** The headers that an upstream gets beside our credential: those of the caller that it has to see, and the defaults. */
export function headersFor(name: ProtocolName, sent: Readonly<Record<string, string>>): Record<string, string> {
  const headers = { ...DEFAULT_HEADERS[name] }
  for (const header of PROTOCOLS[name].passesOn) {
    const value = sent[header]
    if (value !== undefined) headers[header] = value
  }
  return headers
}
