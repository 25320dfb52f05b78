const PLAIN = /^[A-Za-z_$][A-Za-z_$-]{0,60}(?:\d{1,3}[A-Za-z_$-]{0,30})?$/
const NOT_SHOWN = '(name not shown)'

/** A name of the caller's own as it may stand in an answer or a log: what looks like a secret in the wrong place is not repeated. */
export function plainName(name: string): string {
  return PLAIN.test(name) ? name : NOT_SHOWN
}
