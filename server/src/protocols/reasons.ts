/** Why members are refused, and how they are priced, in the words that several protocols have in common. */
export const OTHER_MODEL = 'it uses another model, whose price is not part of this call.'
export const RUN_UPSTREAM = 'tools that the provider runs are not metered.'
export const NO_AUDIO = 'audio has no price of its own here yet. Send text.'
export const SEARCH = 'the cost of a search is not part of the token count.'
export const TIERS = 'other tiers have prices of their own.'
/** The tiers that some vendor sells, by the price that each needs. */
export const PRICED_TIERS = {
  flex: 'tier:flex',
  priority: 'tier:priority',
  scale: 'tier:scale',
  fast: 'tier:fast',
} as const
export const CACHE = 'a cache that is kept longer has a price of its own.'
export const IN_INPUT = 'in the bound of the input'
export const IN_OUTPUT = 'the output limit, which is held'
export const SENT_ELSEWHERE = 'it redirects or rewrites the request; not supported.'
export const SUMMARY = 'the text of a summary is charged beyond the output limit.'
export const STORED = 'nothing is stored here. Send the whole conversation in "input".'
export const HOSTED = 'only tools that you run yourself are served here. Declare it as a function.'
