/** Makes something when it is first asked for, and keeps it: a process that nobody asks starts without it. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
