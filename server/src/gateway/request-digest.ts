import { createHash } from 'node:crypto'

type Digested = {
  readonly operation: { readonly id: string }
  readonly model?: string
  readonly query: string
  readonly rawBody: Buffer | null
  /** Where it was worked out before, as for a large body. */
  readonly digest?: string | undefined
}

/** What makes two requests the same: the operation, the model in its path, and its query and body byte for byte. */
export function digestOf(asked: Digested): string {
  if (asked.digest !== undefined) return asked.digest
  const hash = createHash('sha256').update(digestHead(asked))
  if (asked.rawBody !== null) hash.update(asked.rawBody)
  return hash.digest('base64url')
}

/** What is digested before the body. */
export function digestHead({ operation, model = '', query }: Omit<Digested, 'rawBody' | 'digest'>): string {
  return `${operation.id}\n${model}\n${query}\n`
}
