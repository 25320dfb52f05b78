import type { PageRoute } from '../../pages/page-route.ts'
import type { Family } from '../families.ts'
import { addPageRoutes } from '../page-routes.ts'

/** The most that a form of ours has. */
const FORM_BYTES = 16_384

/** What people find at site_url. */
export function siteFamily(routes: readonly PageRoute[]): Family {
  return {
    name: 'site',
    prefix: '/',
    dialect: 'html',
    bodies: 'form',
    bodyBytes: FORM_BYTES,
    register(scope) {
      addPageRoutes(scope, routes)
    },
  }
}
