/** An amount with nine places, as pages write it: in groups of three, with the zeros in front dim. */
export function amountOf(usd: string): HTMLElement {
  const [whole = '', fraction = ''] = usd.split('.')
  const isSmall = /^0+$/.test(whole) && /[1-9]/.test(fraction)
  const firstDigit = fraction.search(/[1-9]/)
  const head = `$${whole.replace(/\B(?=(\d{3})+$)/g, ',')}.`
  const groups = [0, 3, 6].map((from) => {
    const dim = isSmall ? Math.max(0, Math.min(3, firstDigit - from)) : 0
    const text = fraction.slice(from, from + 3)
    const nodes = [...(dim > 0 ? [element('span', 'z', text.slice(0, dim))] : []), text.slice(dim)]
    return from === 0 ? nodes : [element('i', '', ...nodes)]
  })
  const amount = element('data', 'fb-money', isSmall ? element('span', 'z', head) : head, ...groups.flat())
  amount.setAttribute('value', usd)
  return amount
}

export function element(name: string, kind: string, ...content: readonly (Node | string)[]): HTMLElement {
  const made = document.createElement(name)
  if (kind !== '') made.className = kind
  made.append(...content)
  return made
}
