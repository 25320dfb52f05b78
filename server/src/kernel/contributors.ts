/** So many accounts have to contribute before a route is taken from all: none counts for more than its share of the ceiling. */
export const CONTRIBUTORS_LEAST = 3n
