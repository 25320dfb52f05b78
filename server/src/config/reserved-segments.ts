/**
 * The first word of every path of our own below /apis/v1, which no name of a setting may be. A test compares it with the paths that are
 * served, and `npm run new` enters the word of a new operation.
 */
export const RESERVED_SEGMENTS: readonly string[] = ['services', 'financial']
