/** What a server may leave out of a name: what joins or parts its words, brackets, and what nobody sees. */
const LEFT_OUT = /[\s\p{Z}\p{C}\p{Pc}\p{Pd}\p{Ps}\p{Pe}.;]/gu
/** The same of ASCII alone, which nearly every name is: this takes a tenth of the time. */
const ASCII = /^[\0-\x7f]*$/
const LEFT_OUT_OF_ASCII = /[\0-\x20\x7f_\-()[\]{}.;]/g

/**
 * The same for all spellings that some upstream may take for one name: `max_tokens`, `maxTokens`, `MAX-TOKENS`, `max.tokens`,
 * `"max_tokens "`, `max_tokens[]`, and letters of another width. Whatever compares names of requests compares these.
 */
export function foldName(name: string): string {
  if (ASCII.test(name)) return name.toLowerCase().replace(LEFT_OUT_OF_ASCII, '')
  return name.normalize('NFKC').toUpperCase().toLowerCase().replace(LEFT_OUT, '')
}
