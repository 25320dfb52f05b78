/** The largest whole number that fits, from one that does up to below one that does not. Of two that fit, all between them do. */
export function largestThat(fits: (number: number) => boolean, from: number, below: number): number {
  let [known, tooMuch] = [from, below]
  while (tooMuch - known > 1) {
    const middle = Math.floor((known + tooMuch) / 2)
    if (fits(middle)) known = middle
    else tooMuch = middle
  }
  return known
}
