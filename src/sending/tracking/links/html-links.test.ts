import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type DefaultTreeAdapterTypes, parseFragment } from 'parse5'
import { findHtmlPlaces, findHtmlPlacesInSteps, LINKS_MAX } from './html-links.ts'
import { replaceAt, targetOf } from './link-places.ts'

/** The html with `[url]` in place of each link. */
function shown(html: string): string {
  const { places } = findHtmlPlaces(html)
  return replaceAt(
    html,
    places.map(({ start, end, url }) => ({ start, end, text: url === null ? '' : `[${url}]` })),
  )
}

/** [what, html, with `[url]` in the places; missing: nothing changes]. */
const HTML: [what: string, html: string, changed?: string][] = [
  ['double quotes', '<a href="http://a.b/c">x</a>', '<a href="[http://a.b/c]">x</a>'],
  ['single quotes', "<a href='https://a.b/'>x</a>", "<a href='[https://a.b/]'>x</a>"],
  ['no quotes', '<a href=https://a.b/c class=x>', '<a href=[https://a.b/c] class=x>'],
  ['no quotes at the end of the tag', '<a href=https://a.b/c>x', '<a href=[https://a.b/c]>x'],
  ['upper case and blanks', '<A\n HREF \t=\r\n "HTTPS://A.B/" >', '<A\n HREF \t=\r\n "[HTTPS://A.B/]" >'],
  ['area', '<area shape=x href="http://a.b/">', '<area shape=x href="[http://a.b/]">'],
  ['several', '<a href="http://a"><a href="http://b">', '<a href="[http://a]"><a href="[http://b]">'],
  ['the first of two', '<a href="http://a" href="http://b">', '<a href="[http://a]" href="http://b">'],
  ['the first of two, which is none', '<a href="#" href="http://b">'],
  ['spaces around the URL', '<a href="  http://a/ ">', '<a href="[http://a/]">'],
  ['a tag that closes itself', '<a href="http://a/"/>', '<a href="[http://a/]"/>'],
  ['attributes without blanks', '<a class="x"href="http://a/"id=y>', '<a class="x"href="[http://a/]"id=y>'],
  ['entities', '<a href="http://a/?b=1&amp;c=&#50;">', '<a href="[http://a/?b=1&c=2]">'],
  ['a scheme in entities', '<a href="&#104;ttp&colon;//a/">', '<a href="[http://a/]">'],
  ['an entity name that is a parameter', '<a href="http://a/?x&copy=1">', '<a href="[http://a/?x&copy=1]">'],
  ['text like a tag', '<p title="<a href=\'http://a\'>">'],
  [
    'other elements',
    '<link href="http://a"><img src="http://a"><base href="http://a"><form action="http://a">',
  ],
  ['other attributes', '<a name="http://a" data-href="http://a" xhref=http://a>'],
  ['no value', '<a href><a href=><a href="">'],
  [
    'other schemes',
    '<a href="mailto:a@b"><a href="#x"><a href="data:,x"><a href="javascript:x()"><a href="ftp://a/"><a href="/x"><a href="//a/">',
  ],
  ['http without slashes', '<a href="http:a.b"><a href="https:/a.b"><a href="http:\\\\a.b">'],
  ['no URL', '<a href="http://"><a href="http://a b/"><a href="https://[/">'],
  ['control characters', '<a href="http://a/\nb"><a href="ht&Tab;tp://a"><a href="http://a/&#10;b">'],
  ['a comment', '<!-- <a href="http://a"> -->'],
  ['a conditional comment', '<!--[if mso]><a href="http://a">x</a><![endif]-->'],
  [
    'a revealed conditional comment',
    '<!--[if !mso]><!--><a href="http://a">x</a><!--<![endif]-->',
    '<!--[if !mso]><!--><a href="[http://a]">x</a><!--<![endif]-->',
  ],
  ['style', '<style>/* <a href="http://a"> */</style>'],
  ['script', '<script>"<a href=\'http://a\'>"</script>'],
  ['textarea and title', '<textarea><a href="http://a"></textarea><title><a href="http://a"></title>'],
  ['a closing tag', '</a href="http://a">'],
  ['a tag that never ends', '<a href="http://a"'],
  ['a quote that never ends', '<a href="http://a>x</a>'],
  ['not tracked', '<a href="http://a" disable-tracking=true>', '<a href="http://a">'],
  ['not tracked, quoted', '<a disable-tracking="true" href="http://a">', '<a href="http://a">'],
  [
    'not tracked, single quotes',
    "<a disable-tracking='TRUE'\n\tclass=x href=http://a>",
    '<a\n\tclass=x href=http://a>',
  ],
  [
    'not tracked, without blanks behind',
    '<a class=x disable-tracking="true"href="http://a">',
    '<a class=x href="http://a">',
  ],
  ['not tracked, before a slash', '<a href=http://a disable-tracking="true"/>', '<a href=http://a />'],
  ['not tracked, no link', '<a href="#" disable-tracking=true>', '<a href="#">'],
  [
    'tracked after all',
    '<a href="http://a" disable-tracking=false>',
    '<a href="[http://a]" disable-tracking=false>',
  ],
  [
    'the attribute elsewhere',
    '<p disable-tracking=true><a href="http://a">',
    '<p disable-tracking=true><a href="[http://a]">',
  ],
]

for (const [what, html, changed = html] of HTML) {
  test(`html: ${what}`, () => assert.equal(shown(html), changed))
}

/** [html, with `^` after the first opening and `$` before the last closing tag of the body]. */
const BODIES: [html: string, marked: string][] = [
  ['<html><BODY class="x">hi</body></html>', '<html><BODY class="x">^hi$</body></html>'],
  ['<body><body>a</body>b</BODY >c', '<body>^<body>a</body>b$</BODY >c'],
  ['<body>a<!-- </body> --><style></body></style>', '<body>^a<!-- </body> --><style></body></style>'],
  ['<p>a', '<p>a'],
  ['<bodyx>a</bodyx>', '<bodyx>a</bodyx>'],
]
for (const [html, marked] of BODIES) {
  test(`the body of ${html}`, () => {
    const { bodyStart, bodyEnd } = findHtmlPlaces(html)
    const marks = [
      { at: bodyStart, text: '^' },
      { at: bodyEnd, text: '$' },
    ].flatMap(({ at, text }) => (at === null ? [] : [{ start: at, end: at, text }]))
    assert.equal(replaceAt(html, marks), marked)
  })
}

const PIECES = [
  ...'&;#x=?/.:%+-_~!*() éß漢\u00a0',
  ...'&amp; &amp &lt; &gt &quot; &copy &copy; &copy= &notit; &notin; &nbsp; &#65; &#65 &#x41; &#X41 &#0; &#128; &#xD800;'.split(
    ' ',
  ),
  ...'&#1114112; &#; &#x; &Tab; &NewLine; &colon; &CounterClockwiseContourIntegral; &unknown; &para &parallel;'.split(
    ' ',
  ),
  ...['a', 'b=1', 'utm_source=x', '10', 'http://', 'https://example.com/'],
]
const QUOTES = ['"', "'", '']

test('R42: the URLs of 100,000 hrefs are those that a reference parser reads', () => {
  const piece = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...PIECES) }, fc.string({ maxLength: 3 }))
  const href = fc.record({ pieces: fc.array(piece, { maxLength: 8 }), quote: fc.constantFrom(...QUOTES) })
  let compared = 0
  let links = 0
  fc.assert(
    fc.property(fc.array(href, { minLength: 200, maxLength: 200, size: 'max' }), (hrefs) => {
      const written = hrefs.map(({ pieces, quote }) => {
        const value = `https://e.com/${pieces.join('')}`
        const fits = quote === '' ? value.replaceAll(/[\s>]/g, '_') : value.replaceAll(quote, '_')
        return `<a href=${quote}${fits}${quote}>`
      })
      const html = written.join('</a>')
      const found = findHtmlPlaces(html).places.map(({ url }) => url)
      const expected = hrefsOf(html).flatMap((value) => targetOf(value)?.url ?? [])
      assert.deepEqual(found, expected)
      compared += hrefs.length
      links += found.length
    }),
    { seed: 42, numRuns: 500 },
  )
  assert.ok(compared >= 100_000, `${compared}`)
  assert.ok(links >= 60_000, `${links} of them are links`)
})

/** As parse5 reads them. */
function hrefsOf(html: string): string[] {
  const walk = (node: DefaultTreeAdapterTypes.Node): string[] => {
    const own = 'attrs' in node ? node.attrs.flatMap(({ name, value }) => (name === 'href' ? value : [])) : []
    const children = 'childNodes' in node ? node.childNodes.flatMap(walk) : []
    return [...own, ...children]
  }
  return walk(parseFragment(html))
}

test('nothing outside the places changes, whatever the html', () => {
  const bits = [
    '<a ',
    'href=',
    '"',
    "'",
    '>',
    '<',
    '/',
    'http://a.b/',
    ' ',
    '&amp;',
    '<!--',
    '-->',
    'disable-tracking=true',
    '<body>',
    '</body>',
    '<style>',
    '</style>',
    '<textarea>',
    'é',
    '\0',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...bits), { maxLength: 40 }), (pieces) => {
      const html = pieces.join('')
      const { places } = findHtmlPlaces(html)
      let at = 0
      for (const { start, end, url } of places) {
        assert.ok(start >= at && end >= start && end <= html.length)
        if (url !== null) assert.match(html.slice(start, end), /^ *http/)
        else assert.match(html.slice(start, end), /disable-tracking/)
        at = end
      }
    }),
    { seed: 42, numRuns: 5_000 },
  )
})

test('html read in steps has the same places', async () => {
  const bits = [
    '<a ',
    'href=',
    '"',
    ' ',
    '>',
    '<',
    'http://a.b/',
    '&amp;',
    '<!--',
    '-->',
    '<style>',
    '</style>',
  ]
  const more = ['disable-tracking=true', '<body>', '</body>', '<textarea>', '</textarea>', 'é', "'", '</a>']
  const html = fc.array(fc.constantFrom(...bits, ...more), { maxLength: 40 }).map((pieces) => pieces.join(''))
  await fc.assert(
    fc.asyncProperty(html, fc.integer({ min: 1, max: 30 }), async (text, stepChars) => {
      assert.deepEqual(await findHtmlPlacesInSteps(text, stepChars), findHtmlPlaces(text))
    }),
    { seed: 42, numRuns: 2_000 },
  )
})

test('a million attributes to remove are processed in time', () => {
  const { places } = findHtmlPlaces(`<a ${'disable-tracking=true '.repeat(1_000_000)}>`)
  assert.equal(places.length, LINKS_MAX)
})

const HOSTILE = [
  '<a',
  '<a href="',
  '<a href=\'x" ',
  '<!--',
  '<a href=x disable-tracking=true ',
  '&',
  '<a href="&#x',
  '<script><a',
  '</body',
  '<body>',
  '<a href="https://a.b/&amp;">',
]

test('megabytes of hostile html cost no more than their length', () => {
  const time = (html: string) => {
    const start = process.cpuUsage()
    findHtmlPlaces(html)
    const { user, system } = process.cpuUsage(start)
    return (user + system) / 1000
  }
  for (const bit of HOSTILE) {
    // Quadratic work would need minutes, not the second that a slow machine may take.
    assert.ok(time(bit.repeat(2_000_000 / bit.length)) < 5_000, JSON.stringify(bit))
  }
  for (const html of [
    `<a href="${'&'.repeat(2_000_000)}">`,
    `<a ${' '.repeat(2_000_000)}disable-tracking=true>`,
  ]) {
    assert.ok(time(html) < 5_000)
  }
})

test('links after the first 10,000 stay as they are', () => {
  assert.equal(findHtmlPlaces('<a href="http://a">'.repeat(LINKS_MAX + 5)).places.length, LINKS_MAX)
})
