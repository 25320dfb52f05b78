import { vendorOf, withAnswers } from './answer.ts'
import { ANSWERS } from './answers.ts'
import type { Upstream, UpstreamName } from './upstream.ts'
import { anthropic } from './upstreams/anthropic.ts'
import { comments } from './upstreams/comments.ts'
import { deepResearch } from './upstreams/deep-research.ts'
import { gemini } from './upstreams/gemini.ts'
import { openai } from './upstreams/openai.ts'
import { platform } from './upstreams/platform.ts'
import { quotes } from './upstreams/quotes.ts'
import { rerank } from './upstreams/rerank.ts'
import { reseller } from './upstreams/reseller.ts'
import { traffic } from './upstreams/traffic.ts'
import { video } from './upstreams/video.ts'

const OF_FILES: Readonly<Record<UpstreamName, Upstream>> = {
  rerank,
  reseller,
  comments,
  quotes,
  traffic,
  deep_research: deepResearch,
  openai,
  anthropic,
  gemini,
  video,
  platform,
}

const OWN: ReadonlyMap<string, Upstream> = new Map(Object.entries(OF_FILES))

/** Every vendor by its name, which is its prefix too. */
export const UPSTREAMS: ReadonlyMap<string, Upstream> = new Map([
  ...OWN,
  ...Array.from(
    Map.groupBy(ANSWERS, ({ upstream }) => upstream),
    ([name, answers]) => {
      const own = OWN.get(name)
      return [name, own === undefined ? vendorOf(name, answers) : withAnswers(own, answers)] as const
    },
  ),
])

/** Whose prefix a path has, and the path without it. */
export function upstreamAt(path: string): { readonly upstream: Upstream; readonly rest: string } | undefined {
  const end = path.indexOf('/', 1)
  const upstream = end < 0 ? undefined : UPSTREAMS.get(path.slice(1, end))
  return upstream && { upstream, rest: path.slice(end) }
}
