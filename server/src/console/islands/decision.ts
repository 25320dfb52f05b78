/**
 * Keeps the sentence, the ticket and the button of a decision with what is typed. It asks the server for the page again, as it would be for these values, and puts what is said there in the
 * place of what was said before: there is one place that words what is allowed. The decision goes with the seal of what was shown; without it, as here, nothing can be allowed.
 */
const PAUSE_MS = 250

export function followDecision(form: HTMLFormElement): void {
  let latest = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  form.addEventListener('input', () => {
    latest += 1
    const mine = latest
    clearTimeout(timer)
    timer = setTimeout(
      () => void pageFor(form).then((page) => mine === latest && page !== null && show(form, page)),
      PAUSE_MS,
    )
  })
}

/** As it answers a decision on values that nobody was shown: nothing is allowed by it. */
function pageFor(form: HTMLFormElement): Promise<Document | null> {
  const values = new URLSearchParams()
  for (const [name, value] of new FormData(form))
    if (typeof value === 'string' && name !== 'seen') values.append(name, value)
  values.set('decision', 'allow')
  const { promise, resolve } = Promise.withResolvers<Document | null>()
  const asking = new XMLHttpRequest()
  asking.open('POST', form.action)
  // The browser reads the page, and runs nothing in it.
  asking.responseType = 'document'
  asking.onload = () => resolve(asking.responseXML)
  asking.onerror = () => resolve(null)
  asking.send(values)
  return promise
}

function show(form: HTMLFormElement, page: Document): void {
  const fresh = page.querySelector('form[data-island="decision"]')
  const sealed = fresh?.querySelector<HTMLInputElement>('input[name="seen"]') ?? null
  const seen = form.querySelector<HTMLInputElement>('input[name="seen"]')
  const places = form.querySelectorAll<HTMLElement>('[data-follows]')
  const replacements = [...places].map(({ dataset: { follows } }) =>
    fresh?.querySelector(`[data-follows="${follows}"]`),
  )
  // It is another page: somebody was signed out, or the client no longer waits. What is sent will be told so.
  if (fresh === null || seen === null || replacements.includes(null) || replacements.includes(undefined)) return
  seen.value = sealed?.value ?? ''
  const focused = document.activeElement?.getAttribute('value')
  for (const [at, place] of places.entries()) {
    const one = replacements[at]
    if (one !== null && one !== undefined)
      place.replaceChildren(...[...one.childNodes].map((node) => document.adoptNode(node)))
  }
  if (document.activeElement === document.body && focused !== null)
    form.querySelector<HTMLButtonElement>(`button[value="${focused}"]`)?.focus()
}
