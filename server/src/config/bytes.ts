/** How large the bodies of requests may be set to be. */
export const MIB = 1_048_576
/** Beyond this, what operations that are no model's do with a body would take a long turn of the event loop. */
export const BODY_MOST_BYTES = 16 * MIB
export const MODEL_BODY_MOST_BYTES = 32 * MIB
