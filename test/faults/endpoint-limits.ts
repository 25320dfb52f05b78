/** Requests in a minute that endpoints take of each key, whatever its tier allows, as they are promised to callers. */
const GROUPS: Readonly<Record<string, { readonly operations: readonly string[]; readonly requestsPerMinute: number }>> =
  {
    generate_content: { operations: ['generate_content', 'stream_generate_content'], requestsPerMinute: 30 },
    images: { operations: ['image_generations'], requestsPerMinute: 30 },
  }

/** Undefined of the window that counts all requests of a key. */
export function limitOfGroup(group: string): number | undefined {
  return GROUPS[group]?.requestsPerMinute
}

/** The group whose limit holds for what is sold; empty where none does. */
export function groupOf(operation: string | undefined): string {
  const found = Object.entries(GROUPS).find(([, { operations }]) => operations.includes(operation ?? ''))
  return found?.[0] ?? ''
}
