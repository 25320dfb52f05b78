import { html } from '../html.ts'

const STYLE = `
  :root { color-scheme: light dark; --line: light-dark(#d8dde3, #3a424b); --soft: light-dark(#5a6570, #9aa5b1);
    --accent: light-dark(#1f5fbf, #6ea8fe); --paper: light-dark(#ffffff, #1b2027); --desk: light-dark(#f3f5f7, #12161b) }
  * { box-sizing: border-box }
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1rem; background: var(--desk);
    font: 16px/1.5 system-ui, sans-serif }
  main { width: 100%; max-width: 27rem; padding: 2rem; background: var(--paper); border: 1px solid var(--line); border-radius: 12px }
  h1 { margin: 0 0 1rem; font-size: 1.35rem; line-height: 1.3 }
  form, label { display: grid; gap: .6rem }
  input { padding: .6rem; font: inherit; border: 1px solid var(--line); border-radius: 8px; background: transparent; color: inherit }
  button { padding: .7rem; font: inherit; font-weight: 600; border: 1px solid var(--line); border-radius: 999px;
    background: transparent; color: inherit; cursor: pointer }
  button[value=allow] { background: var(--accent); border-color: var(--accent); color: light-dark(#ffffff, #0c1117) }
  footer { margin-top: 1.5rem; font-size: .8rem; text-align: center; color: var(--soft) }
`

type Shown = { readonly email: string; readonly hidden: Iterable<readonly [name: string, value: string]> }

/** Where somebody says who they are, which is believed. */
export function openidPage({ email, hidden }: Shown): string {
  const inputs = Array.from(hidden, ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in to the sandbox</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Who are you?</h1>
<form method="post">${inputs.join('')}
<label>Email <input name="email" type="email" value="${html`${email}`}" required></label>
<label>Name <input name="name" value="Mira Halloran"></label>
<button name="decision" value="allow">Sign in</button>
<button name="decision" value="deny">Cancel</button>
</form>
<footer>The sandbox’s issuer. It believes whatever it is told.</footer>
</main>
</body>
</html>
`
}
