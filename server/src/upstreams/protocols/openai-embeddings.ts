import { openai } from './openai.ts'
import type { Protocol } from './protocol.ts'

export const openaiEmbeddings: Protocol = openai
