import { openai } from './openai.ts'
import type { Protocol } from './protocol.ts'

export const gemini: Protocol = openai
export const geminiStream: Protocol = openai
export const geminiCount: Protocol = openai
