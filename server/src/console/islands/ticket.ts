/** What a ticket has left, asked with the secret behind the # of the address. It goes into no address, no storage and no state: only into the body of what is asked, and into the page. */

type Amount = { readonly usd: string }
type Ticket = {
  readonly name: string
  readonly workspace: string
  readonly mode: 'live' | 'test'
  readonly state: 'active' | 'expired' | 'revoked'
  readonly expires_at: string
  readonly amount: Amount
  readonly charged: Amount
  readonly held: Amount
  readonly left: Amount
  readonly is_covered: boolean
  readonly scopes: readonly string[] | null
}

const EVERY_MS = 5_000
/** Whoever leaves the page open is not asked for all day. */
const AT_MOST_MS = 3_600_000

export function showTicket(place: HTMLElement): void {
  const slots = new Map([...place.querySelectorAll<HTMLElement>('[data-slot]')].map((one) => [one.dataset.slot, one]))
  const at = (name: string): HTMLElement => slots.get(name) ?? place
  const began = performance.now()
  let isAsking = false

  async function look(): Promise<void> {
    const secret = location.hash.slice(1)
    if (secret === '') {
      say(
        'There is no ticket in this address',
        'Open the whole link that you were given, with what stands behind the #.',
      )
      return
    }
    if (isAsking) return
    isAsking = true
    try {
      const answer = await fetch(place.dataset.ask ?? '', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        credentials: 'omit',
        body: JSON.stringify({ secret }),
      })
      const body = await answer.json()
      if (answer.ok) show(body, secret)
      else say('This can’t be shown', String(body.detail))
    } catch {
      say('We can’t look now', 'The connection failed. This page looks again by itself.')
    } finally {
      isAsking = false
    }
  }

  function say(title: string, text: string): void {
    at('trouble-title').textContent = title
    at('trouble-text').textContent = text
    at('trouble').hidden = false
  }

  function show(ticket: Ticket, secret: string): void {
    const { amount, charged, held, left } = ticket
    const end = new Date(ticket.expires_at)
    const over = overWords(ticket)
    at('without').hidden = true
    at('trouble').hidden = over === null
    if (over !== null) say(...over)
    at('state').hidden = false
    at('ticket').hidden = false
    at('name').textContent = ticket.name
    at('badge').hidden = false
    at('badge').textContent = BADGES[ticket.state]
    at('badge').classList.toggle('fb-badge--ok', ticket.state === 'active')
    at('lead').textContent = `${ticket.workspace} gave you this to spend on calls. You need no account.`
    for (const [name, text] of [
      ['amount', short(amount)],
      ['sum', short(amount)],
      ['from', ticket.workspace],
      ['mode', ticket.mode],
      ['until', momentOf(end)],
      ['scopes', ticket.scopes === null ? 'everything' : ticket.scopes.join(', ')],
      ['ends', endWords(ticket, end)],
    ] as const)
      at(name).textContent = text
    for (const [name, { usd }] of Object.entries({ charged, held, left }))
      for (const one of place.querySelectorAll(`[data-money="${name}"]`)) fillIn(one, usd)
    at('sample').hidden = mayRerank(ticket.scopes)
    draw(at('bar'), ticket)
    const code = document.getElementById('secret')
    if (code !== null) code.textContent = `export FAREBOX_KEY='${secret}'`
  }

  function lookWhileSeen(): void {
    if (document.visibilityState === 'visible' && performance.now() - began < AT_MOST_MS) void look()
  }

  void look()
  setInterval(lookWhileSeen, EVERY_MS)
  document.addEventListener('visibilitychange', lookWhileSeen)
  window.addEventListener('hashchange', () => void look())
}

const BADGES = { active: 'Active', expired: 'Ended', revoked: 'Ended' } as const

function overWords({ state, left, is_covered: isCovered, workspace }: Ticket): [string, string] | null {
  if (state !== 'active')
    return ['It has ended', 'No call begins with it any more. Ask whoever gave it to you for another one.']
  if (Number(left.usd) === 0)
    return ['It is used up', 'Calls are refused, and cost nothing. Whoever gave it to you can raise its amount.']
  if (isCovered) return null
  return [
    'It is more than there is now',
    `${workspace} has less than what is left of this ticket. Calls can be refused until that changes.`,
  ]
}

function endWords({ state }: Ticket, end: Date): string {
  if (state === 'revoked') return 'It was ended by whoever gave it to you. What was left stays with them.'
  const when = momentOf(end)
  return state === 'expired'
    ? `It ended on ${when}. What was left stays with whoever gave it.`
    : `No call begins after ${when}. What is left then stays with whoever gave it.`
}

/** Where it is scoped, the sample of the page may not be for it. */
function mayRerank(scopes: readonly string[] | null): boolean {
  return scopes === null || scopes.includes('rerank') || scopes.includes('models')
}

/** Nine places in groups of three, as everywhere. */
function fillIn(money: Element, usd: string): void {
  const [whole = '0', fraction = ''] = usd.split('.')
  const groups = [`$${whole}.${fraction.slice(0, 3)}`, fraction.slice(3, 6), fraction.slice(6)]
  money.setAttribute('value', usd)
  for (const [at, group] of groups.entries()) {
    const part = money.children[at]
    if (part !== undefined) part.textContent = group
  }
}

/** Charged and held, to scale. */
function draw(bar: HTMLElement, { amount, charged, held }: Ticket): void {
  const whole = Number(amount.usd)
  const share = (part: Amount) => (whole === 0 ? 0 : Math.min(100, (100 * Number(part.usd)) / whole))
  const [, ink, hatch, edge] = bar.querySelectorAll('rect')
  const wide = Number(held.usd) === 0 ? 0 : Math.max(0.8, share(held))
  const from = Math.min(share(charged), 100 - wide)
  ink?.setAttribute('width', `${from}%`)
  for (const one of [hatch, edge]) {
    one?.setAttribute('x', `${from}%`)
    one?.setAttribute('width', `${wide}%`)
  }
  bar.setAttribute('aria-label', `${short(charged)} charged and ${short(held)} held of ${short(amount)}`)
}

/** As it was set: two places or more. */
const short = ({ usd }: Amount) => `$${usd.replace(/0{1,7}$/, '')}`

/** In the reader's zone, which is named. */
const MOMENT = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZoneName: 'short',
})
const momentOf = (at: Date) => MOMENT.format(at)
