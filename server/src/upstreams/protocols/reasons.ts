/** Why members are refused, and how they are priced, in the words that several protocols have in common. */
export const OTHER_MODEL = 'it has another model work for the answer, whose price this call does not have.'
export const RUN_UPSTREAM = 'what an upstream runs is not metered.'
export const NO_AUDIO = 'audio has no price of its own here yet. Send text.'
export const TIERS = 'other tiers have prices of their own.'
export const CACHE = 'a cache that is kept longer has a price of its own.'
export const IN_INPUT = 'in the bound of the input'
export const IN_OUTPUT = 'the output limit, which is held'
