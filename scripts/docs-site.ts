/**
 * Writes the guides of `docs/` as static files that any web server, or a browser alone, can show:
 * `npm run docs -- FOLDER` (default: `site`). A page each, their list with a search over all texts, one style sheet and
 * one script. Nothing is loaded from elsewhere.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { DOCS, GUIDES, type GuidePart, readGuide, searchedWords, slugOf } from '../web/guides.ts'

const ROOT = resolve(DOCS, '..')
const pageOf = (slug: string) => `${slug}.html`

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string) => text.replaceAll(/[&<>"]/g, (sign) => ESCAPES[sign] as string)

const STYLE = `:root { color-scheme: light dark; --line: light-dark(#d9dde3, #343a44); --soft: light-dark(#f4f5f7, #22262d) }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 16px; max-width: 76rem; font: 16px/1.6 system-ui, sans-serif; display: grid; gap: 32px }
@media (min-width: 56rem) { body { grid-template-columns: 16rem minmax(0, 1fr) } }
nav ul { list-style: none; margin: 0 0 16px; padding: 0 }
nav h2 { font-size: 14px; margin: 0 }
nav li { padding: 2px 0; font-size: 15px }
nav input { width: 100%; font: inherit; padding: 6px 8px; margin-bottom: 16px }
main { max-width: 76ch; overflow-wrap: anywhere }
pre { padding: 12px 16px; background: var(--soft); border: 1px solid var(--line); border-radius: 8px; white-space: pre-wrap }
code, pre { font-family: ui-monospace, monospace; font-size: 0.9em }
.guide-table { overflow-x: auto; margin: 1em 0 }
table { border-collapse: collapse; font-size: 0.93em }
th, td { border: 1px solid var(--line); padding: 6px 10px; text-align: start; vertical-align: top }
[hidden] { display: none }
@media print { nav { display: none } body { display: block } a { color: inherit } pre, tr { break-inside: avoid } }
`

/** Hides what does not have all words of the search field. */
const SCRIPT = `const field = document.querySelector('nav input')
field.hidden = false
field.addEventListener('input', () => {
  const words = field.value.toLowerCase().split(/\\s+/).filter(Boolean)
  for (const section of document.querySelectorAll('nav section')) {
    let found = 0
    for (const item of section.querySelectorAll('li')) {
      item.hidden = !words.every((word) => TEXTS[item.dataset.slug].includes(word))
      if (!item.hidden) found += 1
    }
    section.hidden = found === 0
  }
})
`

const partHtml = (part: GuidePart) =>
  part.kind === 'html' ? part.html : `<pre tabindex="0"><code>${escaped(part.text)}</code></pre>\n`

/** Writes all files, and returns their names. */
export async function writeDocsSite(folder: string): Promise<string[]> {
  const groups = GUIDES.map(({ group, files }) => ({
    group,
    guides: files.map((file) => ({ slug: slugOf(file), ...readGuide(file, pageOf) })),
  }))
  const guides = groups.flatMap((group) => group.guides)
  const sections = (open: string | undefined) =>
    groups.map(({ group, guides: some }) => {
      const items = some.map(({ slug, title }) => {
        const here = slug === open ? ' aria-current="page"' : ''
        return `<li data-slug="${slug}"><a href="${pageOf(slug)}"${here}>${escaped(title)}</a></li>`
      })
      return `<section><h2>${escaped(group)}</h2><ul>${items.join('')}</ul></section>`
    })
  const page = (title: string, body: string, open?: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="stylesheet" href="style.css">
<script src="texts.js" defer></script>
<script src="search.js" defer></script>
</head>
<body>
<nav aria-label="Guides"><input type="search" aria-label="Search guides" placeholder="Words of a guide" hidden>
${sections(open).join('\n')}
</nav>
<main><h1>${escaped(title)}</h1>
${body}</main>
</body>
</html>
`
  const texts = Object.fromEntries(guides.map((guide) => [guide.slug, searchedWords(guide)]))
  const start = `<p>Begin with <a href="${pageOf('quick-start')}">the quick start</a>, or search for a word.</p>\n`
  const files = new Map([
    ['index.html', page('Sendwright', start)],
    ...guides.map(({ slug, title, parts }): [string, string] => [
      pageOf(slug),
      page(title, parts.map(partHtml).join(''), slug),
    ]),
    ['style.css', STYLE],
    ['texts.js', `const TEXTS = ${JSON.stringify(texts)}\n`],
    ['search.js', SCRIPT],
  ])
  await mkdir(folder, { recursive: true })
  for (const [name, text] of files) await writeFile(join(folder, name), text)
  return [...files.keys()]
}

if (import.meta.main) {
  const [folder = join(ROOT, 'site')] = parseArgs({ allowPositionals: true }).positionals
  const names = await writeDocsSite(resolve(folder))
  console.log(`${names.length} files in ${resolve(folder)}`)
}
