/** The little of SVG that charts and flame graphs need. A picture stands by itself: no script, no font, no file beside it. */
export const COLOURS = {
  ours: '#c2410c',
  bare: '#64748b',
  peer: '#0369a1',
  postgres: '#4d7c0f',
  grid: '#e2e8f0',
  ink: '#0f172a',
}

export function document(width: number, height: number, title: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="${COLOURS.ink}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n')
}

type Style = {
  readonly size?: number
  readonly anchor?: 'start' | 'middle' | 'end'
  readonly weight?: number
  readonly fill?: string
}

export function text(x: number, y: number, content: string, style: Style = {}): string {
  const { size = 12, anchor = 'start', weight = 400, fill = COLOURS.ink } = style
  return `<text x="${round(x)}" y="${round(y)}" font-size="${size}" font-weight="${weight}" text-anchor="${anchor}" fill="${fill}">${escaped(content)}</text>`
}

export function rectangle(x: number, y: number, width: number, height: number, fill: string, hint?: string): string {
  const shape = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${fill}"`
  return hint === undefined
    ? `<rect ${shape}/>`
    : `<rect ${shape} stroke="#fff" stroke-width="0.5"><title>${escaped(hint)}</title></rect>`
}

export function line(points: readonly (readonly [x: number, y: number])[], stroke: string, width = 1): string {
  const list = points.map(([x, y]) => `${round(x)},${round(y)}`).join(' ')
  return `<polyline points="${list}" fill="none" stroke="${stroke}" stroke-width="${width}"/>`
}

export function dot(x: number, y: number, fill: string): string {
  return `<circle cx="${round(x)}" cy="${round(y)}" r="3" fill="${fill}"/>`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

function escaped(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
