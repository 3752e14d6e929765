/**
 * Templates of other services in the syntax of this one (docs/api/templates.md, Rendering), where the two mean the same.
 * What has no equal here stays as it is: compiling the result finds it, and the template is reported instead of taken.
 */

/** A converted text, or why it cannot be. */
export type Converted = { text: string; fault: null } | { text: null; fault: string }

const converted = (text: string): Converted => ({ text, fault: null })
const failed = (fault: string): Converted => ({ text: null, fault })

const UNSUBSCRIBE_URL = '%unsubscribe_url%'
const UNSUBSCRIBE_LINK = `<a href="${UNSUBSCRIBE_URL}">Unsubscribe</a>`

/** An expression without braces inside, plain or raw. Text literals with braces in them are left to the compiler. */
const EXPRESSION = /\{\{(\{?)([^{}]*)\}?\}\}/g
/** A path such as `a.b`, `../a`, `this` or `@index`. */
const PATH = /^(?:\.\.\/)*@?[\p{L}_$][\p{L}\p{N}_$.-]*$/u

/**
 * Dynamic templates of SendGrid, which are Handlebars with a few helpers of their own: `equals` is `equal`, `notEquals` is
 * its opposite, `insert x "default=y"` is a condition, and the tags for unsubscribing are one address here.
 */
export function fromSendgrid(source: string): Converted {
  if (/<%\s*(?:body|subject)\s*%>/.test(source))
    return failed('is a legacy template, which wraps the text of each mail')
  const linked = source
    .replace(/<%\s*asm_(?:group|global)_unsubscribe_url\s*%>/g, UNSUBSCRIBE_LINK)
    .replace(/<%\s*asm_preferences_url\s*%>/g, UNSUBSCRIBE_LINK)
    .replace(/<%\s*asm_\w+_raw_url\s*%>/g, UNSUBSCRIBE_URL)
  const open: string[] = []
  let fault: string | null = null
  const text = linked.replace(EXPRESSION, (all, _brace: string, inside: string) => {
    const [word = '', ...rest] = inside.trim().split(/\s+/)
    const values = rest.join(' ')
    if (['unsubscribe', 'unsubscribe_preferences'].includes(word) && rest.length === 0) return UNSUBSCRIBE_URL
    if (word.startsWith('#')) open.push(word.slice(1))
    if (word === '#equals') return `{{#equal ${values}}}`
    if (word === '#notEquals') return `{{#equal ${values}}}{{else}}`
    if (word === 'else' && open.at(-1) === 'notEquals')
      fault = 'has an {{else}} inside {{#notEquals}}: exchange the two parts and use {{#equals}}'
    if (word.startsWith('/')) open.pop()
    if (word === '/equals' || word === '/notEquals') return '{{/equal}}'
    if (word !== 'insert') return all
    const given = /^(\S+)(?:\s+"default=([^"]*)")?$/.exec(values)
    if (!given || !PATH.test(given[1] as string)) return all
    const [, path, usual] = given
    return usual === undefined ? `{{${path}}}` : `{{#if ${path}}}{{${path}}}{{else}}${usual}{{/if}}`
  })
  return fault === null ? converted(text) : failed(fault)
}

/**
 * Templates of Amazon SES. It writes values into HTML as they are, and applications escape them: so do three braces
 * here. `escapes`: for texts that are not HTML, two braces stay.
 */
export function fromSes(source: string, { isHtml }: { isHtml: boolean }): Converted {
  return converted(
    source.replace(EXPRESSION, (all, brace: string, inside: string) => {
      const path = inside.trim()
      if (path === 'amazonSESUnsubscribeUrl') return UNSUBSCRIBE_URL
      return isHtml && brace === '' && PATH.test(path) && path !== 'else' ? `{{{${path}}}}` : all
    }),
  )
}

/**
 * Templates of Postmark, which are Mustachio: a section enters a value if there is one, as `with` does; `each` repeats it;
 * `^` is `unless`; and a section is closed by its name, a list by `each`.
 */
export function fromPostmark(source: string): Converted {
  const open: { block: string; name: string }[] = []
  let fault: string | null = null
  const text = source.replace(EXPRESSION, (all, brace: string, inside: string) => {
    const expression = inside.trim()
    const begin = /^([#^])\s*(?:(each)\s+)?(\S+)$/.exec(expression)
    if (begin) {
      const [, sign, each, name = ''] = begin
      const block = sign === '^' ? 'unless' : each ? 'each' : 'with'
      open.push({ block, name: each ? 'each' : name })
      return `{{#${block} ${pathOf(name)}}}`
    }
    if (expression.startsWith('/')) {
      const last = open.pop()
      const name = expression.slice(1).trim()
      if (!last || (name !== '' && name !== last.name)) fault ??= `closes {{/${name}}}, which is not open`
      return `{{/${last?.block}}}`
    }
    if (expression === '@content') fault ??= 'is a layout: put it around its templates'
    if (/^pm:unsubscribe(?:_url)?$/.test(expression))
      return expression.endsWith('url') || brace === '{' ? UNSUBSCRIBE_URL : UNSUBSCRIBE_LINK
    if (expression.startsWith('!')) return all
    if (expression === '.') return brace === '{' ? '{{{this}}}' : '{{this}}'
    return all
  })
  if (fault === null && open.length > 0) fault = `does not close {{#${open.at(-1)?.name}}}`
  return fault === null ? converted(text) : failed(fault)
}

const pathOf = (name: string) => (name === '.' ? 'this' : name)
