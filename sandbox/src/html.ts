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
