/** What is wrong with a file, a line for each problem, with what to change. */
export class PriceListError extends Error {
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    const shown = problems.slice(0, PROBLEMS_MOST)
    const more = problems.length - shown.length
    // Whoever wrote the file is not always who reads this, and a terminal obeys what it is shown.
    const lines = [...shown, ...(more > 0 ? [`and ${more} more`] : [])].map((line) => line.replace(/\p{Cc}/gu, '?'))
    super(lines.join('\n'))
    this.name = 'PriceListError'
    this.problems = lines
  }

  /** The same, saying of which file. */
  of(file: string): PriceListError {
    return new PriceListError(this.problems.map((problem) => `${file}: ${problem}`))
  }
}

const PROBLEMS_MOST = 20
