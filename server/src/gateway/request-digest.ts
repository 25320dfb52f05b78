import { createHash } from 'node:crypto'

type Digested = {
  readonly operation: { readonly id: string }
  readonly model?: string
  readonly query: string
  readonly rawBody: Buffer | null
}

/** What makes two requests the same: the operation, the model in its path, and its query and body byte for byte. */
export function digestOf({ operation, model = '', query, rawBody }: Digested): string {
  const hash = createHash('sha256').update(`${operation.id}\n${model}\n${query}\n`)
  if (rawBody !== null) hash.update(rawBody)
  return hash.digest('base64url')
}
