/** The version of the interface of base_url. A change that breaks callers raises its first number: docs/contract.md. */
export const INTERFACE_VERSION = '1.0.0'
