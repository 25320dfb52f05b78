import { startCopying } from './copy.ts'
import { waitForFirstCall } from './first-call.ts'

/** What lives on pages of the console. Each island finds its place in the page, which is complete without it. */
startCopying()
for (const place of document.querySelectorAll<HTMLElement>('[data-island="first-call"]')) waitForFirstCall(place)
