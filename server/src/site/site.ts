import { catalogueDocument } from '../catalogue/document.ts'
import type { Catalogue, Names } from '../catalogue/operation.ts'
import type { Contract } from '../contracts/contract.ts'
import type { Clock } from '../kernel/clock.ts'
import { type Pages, seeOther } from '../pages/page.ts'
import type { PageRoute } from '../pages/page-route.ts'
import type { TokenCounter } from '../upstreams/tokens/count-tokens.ts'
import type { HeaderNames } from '../wording/header-names.ts'
import { catalogueRoutes } from './catalogue/routes.ts'
import { guideRoutes } from './guides/guides.ts'
import { docsFolder, openLibrary } from './guides/library.ts'
import { homeRoutes } from './home/routes.ts'
import type { KeptPrices } from './kept-prices.ts'
import { machineRoutes } from './machines/machines.ts'
import { modelRoutes } from './models/routes.ts'
import { proofRoutes } from './proof/proof.ts'
import { keptReference } from './reference/described.ts'
import { referenceRoutes } from './reference/routes.ts'
import { searchRoutes } from './search/search.ts'
import { createShell, type ShownPages } from './shell.ts'
import type { Reading } from './status/kept-processes.ts'
import { statusRoutes } from './status/status.ts'
import { themeRoute } from './theme-route.ts'

export type SiteParts = {
  readonly pages: Pages
  /** Where the website is; undefined where nobody said, which is this machine. */
  readonly siteUrl: string | undefined
  /** Under which callers reach the gateway; undefined where nobody said. */
  readonly baseUrl: string | undefined
  readonly catalogue: Catalogue
  /** What the operator calls things in paths and headers. */
  readonly names: Names & { readonly provider: string }
  readonly headerNames: HeaderNames
  /** The one that is served now; null where none could be verified. */
  readonly contract: () => Contract | null
  readonly prices: KeptPrices
  readonly counter: Pick<TokenCounter, 'count'>
  readonly clock: Pick<Clock, 'nowMs'>
  /** Under which agents reach their tools; undefined where nobody said. */
  readonly mcpUrl: string | undefined
  readonly processes: () => Reading
  /** Pages that not every operator shows. */
  readonly show: ReadonlySet<ShownPages>
}

/** The guide that has every operation in brief. */
const CATALOGUE_GUIDE = 'catalogue'

/** The website: what anybody may read, the same for all. A room is a file that gives routes. */
export function createSite(parts: SiteParts): readonly PageRoute[] {
  const { contract, names, headerNames, show } = parts
  const shell = createShell(parts)
  const library = openLibrary(names.provider, docsFolder(), {
    ...parts,
    hasOperators: show.has('operator_guides'),
    written: { [CATALOGUE_GUIDE]: () => catalogueDocument(parts.prices.now().sold) },
  })
  const reference = keptReference(contract)
  const given = { ...parts, shell, reference, provider: names.provider, costModeHeader: headerNames.costMode }
  return [
    ...homeRoutes({ ...given, name: parts.pages.assets.label.name }),
    ...catalogueRoutes(given),
    ...modelRoutes(given),
    ...(show.has('reference') ? referenceRoutes(given) : []),
    ...guideRoutes({ shell, library }),
    ...searchRoutes({
      ...{ ...given, guides: library.guides },
      operations: () => parts.prices.now().sold,
      models: () => parts.prices.now().models,
    }),
    ...(show.has('proof') ? proofRoutes({ shell, docs: library.folder }) : []),
    ...statusRoutes(given),
    ...machineRoutes({ ...given, library, name: parts.pages.assets.label.name }),
    { method: 'GET', path: '/favicon.ico', answer: () => seeOther(parts.pages.assets.icon.href) },
    themeRoute(given),
  ]
}
