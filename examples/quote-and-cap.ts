/** Asks for the price first, then makes the call at that price. Plain HTTP: it is the same in every language. */
const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

const request = { query: 'a quick animal', documents: ['a snail', 'a fox', 'a stone'] }

async function rerank(headers: Readonly<Record<string, string>>): Promise<Response> {
  const response = await fetch(`${FAREBOX_URL}/v1/rerank`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${FAREBOX_KEY}`, 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(request),
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response
}

type Quote = { readonly quote_id: string; readonly expected: { usd: string }; readonly max: { usd: string } }

// Nothing is executed, held or charged.
const quote = (await (await rerank({ 'X-Farebox-Cost-Mode': 'quote' })).json()) as Quote
console.log(`quote: ${quote.expected.usd} USD expected, ${quote.max.usd} USD at most`)

// The quote fixes the price. The cap refuses whatever could cost more, before any spend.
const answer = await rerank({ 'X-Farebox-Quote-Id': quote.quote_id, 'X-Farebox-Max-Cost-Usd': quote.max.usd })

const { results } = (await answer.json()) as { results: { document: { text: string }; relevance_score: number }[] }
for (const { document, relevance_score } of results) console.log(`${relevance_score.toFixed(3)} ${document.text}`)
console.log(`cost: ${answer.headers.get('x-farebox-cost-usd')} USD`)
