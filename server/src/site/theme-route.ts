import { invalidRequest } from '../kernel/fault.ts'
import { seeOther } from '../pages/page.ts'
import type { PageRoute } from '../pages/page-route.ts'
import { THEMES, themeCookie } from '../pages/theme.ts'

/** A page of this site, by its path alone: `//` and `/\` begin the name of another host. */
const OWN_PATH = /^\/(?![/\\])[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,500}$/

/** Keeps which colours a browser wants, and leads back to where it was. */
export function themeRoute({ siteUrl }: { readonly siteUrl: string | undefined }): PageRoute {
  const isSecure = siteUrl?.startsWith('https:') ?? false
  return {
    method: 'POST',
    path: '/theme',
    answer({ form }) {
      const theme = THEMES.find((one) => one === form.get('theme'))
      if (theme === undefined) throw invalidRequest('theme must be system, light or dark.')
      const back = form.get('back') ?? '/'
      return seeOther(OWN_PATH.test(back) ? back : '/', [themeCookie(theme, isSecure)])
    },
  }
}
