/** Beside package.json, which a bundle does not carry; a test holds the two together. */
export const VERSION = '0.2.0'
