import type { Catalogue, Operation } from '../../catalogue/operation.ts'
import { notSold } from '../../gateway/require-sold.ts'
import { Fault } from '../../kernel/fault.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Model } from '../../pricing/models.ts'
import { spokenBy } from '../../protocols/protocols.ts'
import type { KeptPrices } from '../kept-prices.ts'
import { isForTests, testsLast } from '../models/for-tests.ts'
import type { KeptReference } from '../reference/described.ts'
import type { Shell } from '../shell.ts'
import { staleNote } from '../stale-note.ts'
import { catalogueList } from './list.ts'
import { type OperationParts, operationPage } from './operation.ts'

type Parts = Omit<OperationParts, 'note' | 'reference' | 'hasReference'> & {
  readonly reference: KeptReference
  readonly shell: Shell
  readonly catalogue: Catalogue
  readonly prices: KeptPrices
}

/** What we sell: all of it, and a page of each. */
export function catalogueRoutes(parts: Parts): readonly PageRoute[] {
  const { shell, catalogue, prices } = parts
  return [
    catalogueList(parts),
    {
      method: 'GET',
      path: '/catalogue/:id',
      answer({ params: { id = '' }, query }) {
        const book = prices.now()
        const operation = book.sold.find((one) => one.id === id)
        if (operation === undefined) throw catalogue.find(id) ? notSold(id) : new Fault('route_not_found')
        const models = modelsFor(operation, book.models)
        const wanted = models.find((model) => model.id === query.get('model'))
        const model = (wanted ?? newest(models))?.id
        return shell.page({
          title: `${operation.id} · Catalogue`,
          description: `${operation.summary}: price, limits, and code to call it.`,
          path: `/catalogue/${operation.id}`,
          section: 'catalogue',
          main: operationPage(
            operation,
            {
              ...parts,
              reference: parts.reference()?.reference ?? null,
              hasReference: shell.isShown('/reference'),
              note: () => staleNote(prices),
            },
            { book, models, model },
          ),
        })
      },
    },
  ]
}

/** Those with an upstream that speaks what the operation does. */
function modelsFor({ protocol }: Operation, models: readonly Model[]): readonly Model[] {
  if (protocol === undefined) return []
  const spoken = spokenBy({ protocol })
  return testsLast(models.filter(({ routes }) => routes.some((route) => route.protocol === spoken)))
}

/** The one that was added last, of those with the most protocols: what most callers would try. */
function newest(models: readonly Model[]): Model | undefined {
  const protocols = ({ routes }: Model) => new Set(routes.map(({ protocol }) => protocol)).size
  return models.toSorted(
    (a, b) =>
      Number(isForTests(a)) - Number(isForTests(b)) ||
      protocols(b) - protocols(a) ||
      b.createdAt.getTime() - a.createdAt.getTime(),
  )[0]
}
