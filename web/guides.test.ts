/** Markdown of `docs/` as pages. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { anchorOf, GUIDES, pageLink, renderGuide, slugOf } from './guides.ts'

const DOCS = join(import.meta.dirname, '../docs')
const titleOf = (file: string) => `title of ${file}`
const files = GUIDES.flatMap(({ files }) => files)

test('links lead to pages, to other hosts, or nowhere', () => {
  const cases: [href: string, file: string, expected: string | null][] = [
    ['backup.md', 'install', '/docs/guides/backup'],
    ['api/alerts.md#5-x', 'going-live', '/docs/guides/api-alerts#5-x'],
    ['../settings.md', 'api/accounts', '/docs/guides/settings'],
    ['webhooks.md', 'api/accounts', '/docs/guides/api-webhooks'],
    ['docs/publishing.md', '../CHANGELOG', '/docs/guides/publishing'],
    ['../CHANGELOG.md', 'install', '/docs/guides/changelog'],
    ['#there', 'install', '#there'],
    ['https://example.com/a', 'install', 'https://example.com/a'],
    ['decisions/0001-x.md', 'install', null],
    ['../README.md', 'install', null],
    ['javascript:alert(1)', 'install', null],
  ]
  for (const [href, file, expected] of cases) assert.equal(pageLink(href, file), expected, href)
})

test('markup in Markdown is shown, not obeyed; code is a part of its own', () => {
  const markdown =
    '# A `b` & c\n\n<!-- not run: x -->\n```sh\n<a> "b"\n```\n\n## Two\n\nx <b onclick="y">z</b>\n'
  assert.deepEqual(renderGuide(markdown, 'install', titleOf), {
    title: 'A b & c',
    headings: ['Two'],
    parts: [
      { kind: 'code', language: 'sh', text: '<a> "b"' },
      {
        kind: 'html',
        html: '<h2 id="two">Two</h2>\n<p>x &lt;b onclick=&quot;y&quot;&gt;z&lt;/b&gt;</p>\n',
      },
    ],
  })
  assert.throws(() => renderGuide('no title', 'install', titleOf), /docs\/install\.md has no title/)
})

test('a link whose text is the name of a guide has its title', () => {
  const { parts } = renderGuide('# A\n\n[backup.md](backup.md) [this](backup.md#x)', 'install', titleOf)
  assert.deepEqual(parts, [
    {
      kind: 'html',
      html: '<p><a href="/docs/guides/backup">title of backup</a> <a href="/docs/guides/backup#x">this</a></p>\n',
    },
  ])
})

test('every guide exists, has a page of its own, and its links to headings lead to one', () => {
  assert.equal(new Set(files.map(slugOf)).size, files.length)
  const anchors = new Map(
    files.map((file) => [slugOf(file), anchorsIn(readFileSync(join(DOCS, `${file}.md`), 'utf8'))]),
  )
  for (const file of files) {
    const { parts } = renderGuide(readFileSync(join(DOCS, `${file}.md`), 'utf8'), file, titleOf)
    for (const part of parts)
      for (const [, href = ''] of part.kind === 'html' ? part.html.matchAll(/<a href="([^"]+)"/g) : []) {
        const [path, anchor] = href.split('#')
        const slug = path === '' ? slugOf(file) : /^\/docs\/guides\/(.+)$/.exec(path ?? '')?.[1]
        if (slug === undefined) continue
        assert.ok(anchors.has(slug), `${file}: ${href}`)
        if (anchor !== undefined) assert.ok(anchors.get(slug)?.has(anchor), `${file}: ${href}`)
      }
  }
})

const anchorsIn = (markdown: string) =>
  new Set([...markdown.matchAll(/^#{1,4} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading)))

test('links of all documents lead to files', () => {
  for (const file of files)
    for (const [, href = ''] of readFileSync(join(DOCS, `${file}.md`), 'utf8').matchAll(
      /\]\(([^)#]+)(?:#[^)]*)?\)/g,
    ))
      if (!/^https?:/.test(href)) assert.ok(existsSync(join(DOCS, file, '..', href)), `${file}: ${href}`)
})
