import { retryAfterSecondsOf } from '../http/retry-after.ts'
import { Fault } from '../kernel/fault.ts'
import { html } from '../kernel/html.ts'
import type { Trouble } from '../pages/form.ts'
import type { Page } from '../pages/page.ts'
import { waitOf } from './views/words.ts'

type Show = (status: number, trouble: Trouble) => Page | Promise<Page>

/** Does what a form asks for. Where it was tried too often, or there is too much to do, the form is shown again and says when, or what has to be done first. */
export async function orLater(work: () => Promise<Page>, show: Show): Promise<Page> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Fault && error.code === 'password_reset_required') return show(error.status, MUST_RESET)
    if (error instanceof Fault && error.code === 'person_blocked') return show(error.status, BLOCKED)
    if (!(error instanceof Fault) || (error.status !== 429 && error.code !== 'overloaded')) throw error
    const seconds = retryAfterSecondsOf(error) ?? 1
    const page = await show(error.status, troubleOf(error, seconds))
    return { ...page, headers: { ...page.headers, 'retry-after': String(seconds) } }
  }
}

const MUST_RESET: Trouble = {
  title: 'Choose a new password first',
  text: html`Too many codes were wrong, so somebody else may know your password. <a href="/reset">Choose a new one</a>, then sign in with a code.`,
}

const BLOCKED: Trouble = {
  title: 'Your account is blocked',
  text: 'The operator of this service has blocked it. Ask them why, and what to do.',
}

/** As long as between two letters to one address. */
const MOMENT_SECONDS = 60

function troubleOf({ status }: Fault, seconds: number): Trouble {
  const text = `Try again in ${waitOf(seconds)}.`
  if (status === 429) return { title: seconds <= MOMENT_SECONDS ? 'Wait a moment' : 'Too many attempts', text }
  return { title: 'The service is busy', text: `Nothing was changed. ${text}` }
}
