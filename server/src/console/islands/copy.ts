/** Buttons that copy what stands beside them: they are shown by the script, because they need it. */
export function startCopying(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    button.hidden = false
    button.addEventListener('click', () => void copy(button))
  }
}

const SAYS_MS = 2_000

async function copy(button: HTMLButtonElement): Promise<void> {
  const word = button.querySelector('span')
  if (word === null) return
  try {
    await navigator.clipboard.writeText(textFor(button))
    word.textContent = 'Copied'
  } catch {
    word.textContent = 'Select it, and copy'
  }
  setTimeout(() => {
    word.textContent = 'Copy'
  }, SAYS_MS)
}

/** Of an element, or of the panel that is shown where the button stands in the head of a block. */
function textFor(button: HTMLButtonElement): string {
  const named = document.getElementById(button.dataset.copy ?? '')
  if (named !== null) return named.textContent ?? ''
  const panels = button.closest('.fb-block')?.querySelectorAll<HTMLElement>('pre') ?? []
  const shown = [...panels].find((panel) => panel.offsetParent !== null)
  return shown?.textContent ?? ''
}
