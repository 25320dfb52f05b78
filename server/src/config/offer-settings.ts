import { z } from 'zod'
import { section, setting } from './described.ts'
import { ceiling, integer, list, modelName, segment, segments, word } from './kinds.ts'

const PART_OF_URLS = 'Choose it before the first customer: it is a part of URLs that programs have.'

const platform = (name: string, what: string) =>
  setting(segment.prefault(name), `Path segment of ${what}: \`/apis/v1/${name}/…\` by default.`, PART_OF_URLS)

export const names = section(
  z
    .strictObject({
      provider: setting(
        word.prefault('Farebox'),
        'Name of the service: the word in the names of headers (`X-<word>-Max-Cost-Usd`), and on pages where `site.name` is left out.',
        'Choose it before the first customer: a header with another word is refused or unknown afterwards.',
      ),
      social_a: platform('social_a', 'the platform whose users link accounts'),
      social_b: platform('social_b', 'the platform of comments and stories'),
      social_c: platform('social_c', 'the platform of tags, creators and shops'),
      reseller: platform('reseller', "the reseller's operations"),
      traffic_analytics: platform('traffic_analytics', 'web traffic'),
      deep_research: setting(
        segments.prefault('deep-research/search'),
        'Path of deep research below `/v1`.',
        PART_OF_URLS,
      ),
      deep_research_upstream: setting(
        segments.prefault('search'),
        'Path of deep research below the base URL of its upstream.',
        "Set it to what the upstream's own documentation says.",
      ),
    })
    .prefault({}),
  'How the installation spells what callers see. Every process needs the same. Path segments differ from each other, and from those that the service itself uses.',
)

export const rerank = section(
  z
    .strictObject({
      models: setting(
        list(modelName).prefault([]),
        'Names of rerank models that callers may ask for beside `rerank`.',
        'All of them are sold at the price of `rerank`: list only models that cost you less than that.',
      ),
    })
    .prefault({}),
  'Reranking ([models.md](models.md#reranking)).',
)

const lossOf = (most: string, what: string, advice: string) =>
  setting(ceiling.prefault(most), `Loss ceiling of ${what}.`, advice)

const OF_ACCOUNT = "one account's calls to one route"
const OF_ROUTE = 'all calls to one route together'

const THREE_TIMES = (window: string) =>
  `It has to be at least three times \`loss.account_${window}_usd\`: the losses of one account count for at most a third of this ceiling. If either is \`none\`, this is not checked.`

export const loss = section(
  z
    .strictObject({
      account_hour_usd: lossOf(
        '5',
        `${OF_ACCOUNT}, within the last 60 minutes`,
        'Set it to what you would pay for one bad hour of one customer.',
      ),
      account_day_usd: lossOf(
        '20',
        `${OF_ACCOUNT}, within the last 24 hours`,
        'Set it to what you would pay for one bad day of one customer.',
      ),
      route_hour_usd: lossOf(
        '50',
        `${OF_ROUTE}, within the last 60 minutes`,
        `Set it to what you would pay for one bad hour of one provider. ${THREE_TIMES('hour')}`,
      ),
      route_day_usd: lossOf(
        '200',
        `${OF_ROUTE}, within the last 24 hours`,
        `Set it to what you would pay for one bad day of one provider. ${THREE_TIMES('day')}`,
      ),
    })
    .prefault({}),
  'Loss ceilings: how much an upstream may provably cost you beyond what was charged, before calls are refused. A route is a model (or another operation) at one upstream slot. At the ceiling of an account, its calls to the route get 403 `loss_ceiling_account`; at that of a route, all calls to it get 503 `loss_ceiling_route`. Where a model has another route, that one is used instead. The hour and the day are rolling, so calls are accepted again as losses get older ([hostile-upstreams.md](hostile-upstreams.md#a-ceiling-on-loss)).',
)

export const contract = section(
  z
    .strictObject({
      kept_days: setting(
        integer(1, 3_650).prefault(365),
        'Retention: how long a contract can be read by its hash once no process serves it any more.',
        'Keep it longer than your customers pin a contract.',
      ),
    })
    .prefault({}),
  'The OpenAPI contract ([contract.md](contract.md)).',
)

export const tasks = section(
  z
    .strictObject({
      unknown_hours: setting(
        integer(1, 24).prefault(2),
        'How long a provider may answer that it does not know a task (a video) before the task ends as `UNKNOWN`: its money is released, its place is free, and what it may have cost is your loss. Any other answer about the task starts the time anew.',
        'Raise it where a provider forgets tasks for hours and finds them again.',
      ),
    })
    .prefault({}),
  'Tasks ([tasks.md](tasks.md)).',
)

export const sales = section(
  z
    .strictObject({
      fresh_seconds: setting(
        integer(2, 86_400).prefault(300),
        'How long a snapshot of what is sold counts as fresh. The worker makes five in that time. An older one is still served, marked `stale`; 503 `sales_data_unavailable` comes only if there is none at all.',
        'Lower it where published prices have to follow a change sooner; quotes follow within a second anyway.',
      ),
    })
    .prefault({}),
  'The public snapshot of operations, models and prices ([contract.md](contract.md#what-is-sold)).',
)
