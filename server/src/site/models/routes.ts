import type { PageRoute } from '../../pages/page-route.ts'
import { modelList } from './list.ts'
import { modelPage } from './model.ts'

/** Models, their prices, and what a call would cost. */
export function modelRoutes(parts: Parameters<typeof modelPage>[0]): readonly PageRoute[] {
  return [modelList(parts), modelPage(parts)]
}
