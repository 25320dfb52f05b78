/** Where the holder of a ticket looks, below site_url; the secret stands behind a #, which no server is sent. */
export const TICKET_PATH = '/ticket'
