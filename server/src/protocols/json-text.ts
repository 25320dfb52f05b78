const BYTE_ORDER_MARK = 0xfeff

/** What a text says in JSON, after a byte order mark too; undefined where it is none. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text)
  } catch {
    return undefined
  }
}
