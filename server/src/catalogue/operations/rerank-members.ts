import { memberTable, neutral, priced, refused } from '../member-table.ts'

const WITH_EACH = 'in the bound once for each document, which is read with it'

/** What a request to rerank may have. Others pass nowhere: everything that a reranker reads is sold at one price. */
export const RERANK = memberTable(
  'rerank',
  {
    model: priced('one of those that the installation declares, at one price'),
    query: priced(WITH_EACH),
    documents: priced('each is in the bound'),
    instruction: priced(WITH_EACH),
    top_n: neutral(),
    return_documents: neutral(),
    max_tokens_per_doc: neutral(),
    max_chunks_per_doc: refused('the query is read with each chunk, but the hold counts it once per document.'),
    truncation: neutral(),
    rank_fields: neutral(),
    user: neutral(),
  },
  { others: 'it is not known here, and may change what is read with each document.' },
)
