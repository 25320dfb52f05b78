import { decimalText } from '../kernel/rational.ts'
import type { LimitName } from './limit-groups.ts'
import { isSoldByUnit, isTask, type Operation } from './operation.ts'

const LIMITS: Readonly<Record<LimitName, string>> = {
  tokens: "the tier's tokens a minute",
  concurrency: "the tier's calls at once",
  deep_research: '5 requests a minute',
  generate_content: '30 requests a minute',
  images: '30 requests a minute',
  video_tasks: '3 tasks at once',
}

/** The catalogue for people, as a page of Markdown. */
export function catalogueDocument(operations: readonly Operation[]): string {
  return `# Catalogue

Written by \`node scripts/catalogue.ts\` from the operations themselves. Names in braces are spelt by the installation.
Prices are published estimates, in USD; what you pay is explained in [pricing.md](pricing.md). Every operation counts against the
requests a minute of its key. An installation sells those that its operator has left on and has an upstream for: [operating.md](operating.md#what-you-sell).

${operations.map(section).join('\n')}`
}

function section(operation: Operation): string {
  const { id, summary, method, path, limits, quotable, definition } = operation
  const also = limits.map((name) => LIMITS[name])
  return `## ${id}

${summary}.

- \`${method} ${path}\`
- ${priceOf(operation)}
- Also limited by ${also.length === 0 ? 'nothing else' : also.join(', ')}
- ${attemptsOf(operation)}
- ${quotable ? 'Can be quoted' : 'Gives no quotes'}${definition === 'pending' ? '\n- Its definition is pending: request and answer pass through as they are' : ''}
`
}

function attemptsOf(operation: Operation): string {
  const { requests, refreshes } = operation.attempts
  const counted = `A call makes at most ${requests === 1 ? '1 request' : `${requests} requests`} to upstreams`
  if (refreshes > 0) return `${counted}, and refreshes the token of its link at most once`
  return isTask(operation) ? `${counted} to create its task; what becomes of it is asked at the worker's pace` : counted
}

function priceOf(operation: Operation): string {
  if (operation.protocol?.endsWith('_count_tokens')) return 'Free'
  if (operation.protocol === 'openai_images')
    return "The price of a picture, or of a token, is its model's: see [models.md](models.md)"
  if (isTask(operation)) return "The price of a second is its model's: see [tasks.md](tasks.md) (`per_second`)"
  if (!isSoldByUnit(operation)) return "The price of a token is its model's: see [models.md](models.md) (`per_token`)"
  const { unitPrice, unit, contract } = operation.price
  const scaled = operation.isScaledByCustomerPlan ? ', times the multiplier of your plan' : ''
  return `${decimalText(unitPrice, 9)} USD per ${unit} (\`${contract}\`)${scaled}`
}
