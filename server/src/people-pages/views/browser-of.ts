/** More names than one stand in what a browser says of itself; the first of these that does is meant. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR', 'Opera'],
  ['Firefox', 'Firefox'],
  ['FxiOS', 'Firefox'],
  ['CriOS', 'Chrome'],
  ['Chrome', 'Chrome'],
  ['Safari', 'Safari'],
] as const
const SYSTEMS = [
  ['Android', 'Android'],
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const

/** What a person calls a browser, by what it says of itself. It can say anything. */
export function browserOf(agent: string): string {
  const [, browser] = BROWSERS.find(([word]) => agent.includes(`${word}/`)) ?? []
  const [, system] = SYSTEMS.find(([word]) => agent.includes(word)) ?? []
  if (browser === undefined) return 'Another program'
  return system === undefined ? browser : `${browser} on ${system}`
}
