const NAME_LIMIT = 80

/** Letters, digits, spaces and the punctuation of names. What else there is can be a full stop to a reader of mail (`evil。example`). */
const UNUSUAL = /[^\p{L}\p{M}\p{N}\p{Zs}\ufffd!-~’‘“”–—…·]/gu

/**
 * A name that somebody chose for themselves, as it may stand in a letter of ours and in its subject: on one line, not too long, nothing
 * that a reader of mail makes a link of, because whoever invites strangers could tell them anything by it, and nothing that it decodes
 * (`=?utf-8?q?=0A?=`).
 */
export function nameOf(given: string): string {
  const line = oneLine(oneLine(given).replace(UNUSUAL, ' '))
    .replace(/:\/\//g, ' ')
    .replace(/=(?=\?)/g, '= ')
    .replace(/(?<=\S)[.@/](?=\S)/gu, (mark) => `${mark} `)
  return (line === '' ? 'Somebody' : cut(line)).trim()
}

/** Without what ends a line, draws nothing, or changes the direction of what follows. */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
}

function cut(line: string): string {
  const characters = [...line]
  return characters.length <= NAME_LIMIT ? line : `${characters.slice(0, NAME_LIMIT).join('')}…`
}
