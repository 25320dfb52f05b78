const BYTES_PER_TOKEN = 4

/** The sandbox's token rule: one for every 4 bytes of UTF-8, rounded up, for each text by itself. */
export function tokensOf(...texts: readonly string[]): number {
  let tokens = 0
  for (const text of texts) tokens += Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN)
  return tokens
}
