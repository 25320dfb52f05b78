import { html } from '../kernel/html.ts'

/**
 * Mail has no access to our files: one style element, and system fonts. Many readers drop what they do not know, so that without any
 * of it a letter is still headings, paragraphs and links in their order.
 */
export const STYLE = html`<style>
body{margin:0;padding:32px 16px;background:#f5f6f7;color:#14161a;font:16px/1.55 Archivo,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
table{border-collapse:collapse;width:100%}
.sheet{max-width:560px;margin:0 auto;background:#fff;border:1px solid #e1e4e8;border-radius:10px;overflow:hidden}
.in{padding:28px 32px 16px}
.brand{margin:0;padding:22px 32px 0;font-weight:700;font-size:18px;line-height:28px;letter-spacing:-.02em;color:#14161a}
.brand img{height:28px;vertical-align:middle}
h1{margin:0 0 8px;font-size:22px;line-height:1.25;letter-spacing:-.02em;overflow-wrap:anywhere}
p{margin:0 0 16px;color:#454a54;overflow-wrap:anywhere}
b{color:#14161a}
.lines{margin:0 0 24px}
.lines td{padding:9px 0;border-bottom:1px solid #e1e4e8;vertical-align:top}
.lines td+td{text-align:right;padding-left:16px}
.small{font-size:13px;line-height:1.5;color:#636975}
a{color:#1d4fd7}
.button{display:inline-block;padding:12px 20px;background:#14161a;color:#fff;border-radius:6px;text-decoration:none;font-weight:600}
.mono{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;word-break:break-word;overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){body{background:#0e1013;color:#f1f2f4}.sheet{background:#15181c;border-color:#262b32}p{color:#bcc1ca}b,.brand{color:#f1f2f4}.lines td{border-color:#262b32}.small{color:#9097a3}a{color:#8fb1ff}.button{background:#f1f2f4;color:#14161a}}
@media (max-width:480px){.in,.brand{padding-left:22px;padding-right:22px}.button{display:block;text-align:center}}
</style>`
