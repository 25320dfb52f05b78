/** A table of Markdown, its head first, as the formatter of the project writes it. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll('|', '\\|')))
  const [head = [], ...rest] = cells
  const widths = head.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[], fill = ' ') =>
    `| ${widths.map((width, column) => (row[column] ?? '').padEnd(width, fill)).join(' | ')} |`
  return [line(head), line([], '-'), ...rest.map((row) => line(row))].join('\n')
}

/** A sentence of ours as Markdown: what looks like an address, like markup or like a sign with a meaning there is shown as code. */
export function asMarkdown(sentence: string): string {
  const [text, ...rest] = sentence.split(/(`[^`]*`|\[[^\]]*\]\([^)]*\))/)
  return [text ?? '', ...rest]
    .map((piece, at) => (at % 2 === 1 ? piece : piece.replaceAll(SPECIAL, (found) => `\`${found}\``)))
    .join('')
}

const SPECIAL = /[^\s(),;:'"]*(?:[@<>*%|]|:\/\/)[^\s(),;'"]*/g
