import type { Upstream, UpstreamName } from './upstream.ts'
import { anthropic } from './upstreams/anthropic.ts'
import { comments } from './upstreams/comments.ts'
import { deepResearch } from './upstreams/deep-research.ts'
import { financial } from './upstreams/financial.ts'
import { gemini } from './upstreams/gemini.ts'
import { openai } from './upstreams/openai.ts'
import { platform } from './upstreams/platform.ts'
import { quotes } from './upstreams/quotes.ts'
import { rerank } from './upstreams/rerank.ts'
import { reseller } from './upstreams/reseller.ts'
import { traffic } from './upstreams/traffic.ts'
import { video } from './upstreams/video.ts'

export const UPSTREAMS: Readonly<Record<UpstreamName, Upstream>> = {
  rerank,
  reseller,
  comments,
  quotes,
  financial,
  traffic,
  deep_research: deepResearch,
  openai,
  anthropic,
  gemini,
  video,
  platform,
}
const BY_PREFIX: ReadonlyMap<string, Upstream> = new Map(Object.entries(UPSTREAMS))

/** Whose prefix a path has, and the path without it. */
export function upstreamAt(path: string): { readonly upstream: Upstream; readonly rest: string } | undefined {
  const end = path.indexOf('/', 1)
  const upstream = end < 0 ? undefined : BY_PREFIX.get(path.slice(1, end))
  return upstream && { upstream, rest: path.slice(end) }
}
