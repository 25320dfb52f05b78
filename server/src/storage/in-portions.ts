/** Does a part of the work again and again, until a part is less than a whole one. How much was done in all. */
export async function inPortions(atOnce: number, portion: (most: number) => Promise<number>): Promise<number> {
  let all = 0
  for (;;) {
    const done = await portion(atOnce)
    all += done
    if (done < atOnce) return all
  }
}
