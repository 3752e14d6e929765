/**
 * Text as people write it, and the HTML of `mj-text` and `mj-button`:
 *
 *     # Heading          ## Smaller one        - entry of a list
 *     **bold**           *italic*              [words](https://example.com/)
 *
 * An empty line begins a paragraph. A backslash takes a sign's meaning away. Handlebars expressions stay as they are.
 */

const CODES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\u00a0': '&nbsp;' }
const CHARS: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&nbsp;': '\u00a0',
  '&quot;': '"',
  '&#39;': "'",
}
const escaped = (text: string) => text.replaceAll(/[&<>\u00a0]/g, (char) => CODES[char] ?? char)

/** One after another: an expression, an escaped sign, bold, italic, a link, or text. */
const INLINE =
  /(\{\{\{?[^{}]*\}?\}\})|\\([\\*[\]#-])|\*\*((?:\\.|\*[^*\n]+\*|[^*\\\n]|\n(?!\n))+?)\*\*|\*((?:\\.|[^*\\\n]|\n(?!\n))+?)\*|\[((?:\\.|[^[\]\\\n])+)\]\(([^()\s"<>]+)\)|([\s\S])/g

function inline(text: string): string {
  return text.replaceAll(INLINE, (_, expression, sign, bold, italic, words, href, char) => {
    if (expression !== undefined) return expression
    if (sign !== undefined) return sign
    if (bold !== undefined) return `<strong>${inline(bold)}</strong>`
    if (italic !== undefined) return `<em>${inline(italic)}</em>`
    if (words !== undefined) return `<a href="${escaped(href)}">${inline(words)}</a>`
    return char === '\n' ? '<br>' : escaped(char)
  })
}

/** The HTML of a text. One paragraph alone is no element. */
export function htmlOf(marks: string): string {
  const parts = marks.split(/\n{2,}/).filter((part) => part.trim() !== '')
  const [only] = parts
  if (parts.length === 0) return ''
  if (parts.length === 1 && only !== undefined && !/^(#{1,3}|-) /.test(only)) return inline(only)
  return parts.map(partHtml).join('\n')
}

function partHtml(part: string): string {
  const heading = /^(#{1,3}) ([^\n]*)$/.exec(part)
  if (heading) return `<h${heading[1]?.length}>${inline(heading[2] ?? '')}</h${heading[1]?.length}>`
  const lines = part.split('\n')
  if (lines.every((line) => line.startsWith('- ')))
    return `<ul>${lines.map((line) => `<li>${inline(line.slice(2))}</li>`).join('')}</ul>`
  return `<p>${inline(part)}</p>`
}

/** The text of an HTML, or null if it has more than a text can say. */
export function marksOf(html: string): string | null {
  const read = simpleHtml(html)
  const marks = read
    .replaceAll(/\{\{\{?[^{}]*\}?\}\}|[\\*[\]]|^[#-](?= )|(?<=>)[#-](?= )|<[^>]*>|#(?=#* )/g, (part) =>
      /^[\\*[\]#-]$/.test(part) ? `\\${part}` : part,
    )
    .replaceAll(/<(\/?)strong>/g, '**')
    .replaceAll(/<(\/?)em>/g, '*')
    .replaceAll(
      /<a href="([^"]*)">((?:(?!<\/?a\b)[\s\S])*)<\/a>/g,
      (_, href: string, words: string) => `[${words}](${href})`,
    )
    .replaceAll('<br>', '\n')
    .replaceAll(/<h([1-3])>/g, (_, level) => `\n\n${'#'.repeat(Number(level))} `)
    .replaceAll(/<ul><li>/g, '\n\n- ')
    .replaceAll(/<\/li><li>/g, '\n- ')
    .replaceAll('<p>', '\n\n')
    .replaceAll(/<\/(?:p|h[1-3])>|<\/li><\/ul>/g, '\n\n')
    .replaceAll(/&(?:amp|lt|gt|nbsp|quot|#39);/g, (code) => CHARS[code] ?? code)
    .replaceAll(/\n{3,}/g, '\n\n')
    .replaceAll(/^\n+|\n+$/g, '')
  return simpleHtml(htmlOf(marks)) === read ? marks : null
}

/** White space and spellings that mean the same made equal. */
const simpleHtml = (html: string) =>
  html
    .replaceAll(/[\t\r\n ]+/g, ' ')
    .replaceAll(/<br ?\/?>/g, '<br>')
    .replaceAll(/<(\/?)b>/g, '<$1strong>')
    .replaceAll(/<(\/?)i>/g, '<$1em>')
    .replaceAll(/ ?(<\/?(?:p|ul|li|h[1-3])>|<br>) ?/g, '$1')
    .replaceAll(/&quot;|&#39;/g, (code) => CHARS[code] ?? code)
    .trim()
