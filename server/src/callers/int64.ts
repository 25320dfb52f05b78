declare global {
  interface JSON {
    /** ECMAScript and V8 have it; the compiler's own declarations do not yet. */
    rawJSON(text: string): object
  }
}

/** An integer as it stands in JSON, exact also where a JavaScript number would round it: then it can be written, and nothing else. */
export function int64(value: bigint): number {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : (JSON.rawJSON(String(value)) as unknown as number)
}
