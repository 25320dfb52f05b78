import type { Mode } from '../kernel/mode.ts'

type Named = { readonly slot: string; readonly mode: Mode; readonly base_url: string }

/** What operators know an upstream by: its slot, where it is, and whether it is for test calls. Two accounts with one provider have one name. */
export function upstreamName({ slot, mode, base_url: baseUrl }: Named): string {
  const host = URL.parse(baseUrl)?.host ?? 'nowhere'
  return `${slot}@${host}${mode === 'test' ? '#test' : ''}`
}
