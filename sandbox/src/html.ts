const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** What is put in is text, whatever it looks like. */
export function html(parts: TemplateStringsArray, ...texts: readonly string[]): string {
  return String.raw({ raw: parts }, ...texts.map((text) => text.replaceAll(/[&<>"']/g, (one) => ENTITIES[one] ?? one)))
}

/** A page that the sandbox shows to people; its parts are HTML already. */
export function pageOf(
  title: string,
  parts: { readonly style: string; readonly content: string; readonly footer: string },
): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>${COMMON_STYLE}${parts.style}</style>
</head>
<body>
<main>
${parts.content}
<footer>${parts.footer}</footer>
</main>
</body>
</html>
`
}

const COMMON_STYLE = `
  :root { color-scheme: light dark; --line: light-dark(#d8dde3, #3a424b); --soft: light-dark(#5a6570, #9aa5b1);
    --accent: light-dark(#1f5fbf, #6ea8fe); --paper: light-dark(#ffffff, #1b2027); --desk: light-dark(#f3f5f7, #12161b) }
  * { box-sizing: border-box }
  body { margin: 0; padding: 1rem; background: var(--desk); font: 16px/1.5 system-ui, sans-serif }
  main { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; overflow-wrap: anywhere }
  h1 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.3 }
  h2 { margin: 1.5rem 0 .5rem; font-size: 1rem }
  .soft, small, footer { color: var(--soft) }
  ul { margin: 0; padding: 0; list-style: none }
  li { border-top: 1px solid var(--line) }
  small { display: block }
  footer { margin-top: 1.5rem; font-size: .8rem; text-align: center }
`
