/** What a message's HTML uses, and which mail programs show it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkHtml } from './html-check.ts'

const featuresOf = async (html: string) => (await checkHtml(html)).findings.map(({ feature }) => feature)

test('elements, attributes, style rules, units and images are recognised', async () => {
  const cases: [string, string][] = [
    ['<video src="a.mp4"></video>', '<video> element'],
    ['<td background="https://example.com/a.png">', 'background attribute'],
    ['<input type="CheckBox">', '<input type="checkbox"> element'],
    ['<p style="border-radius: 4px">', 'border-radius'],
    ['<p style="Display:FLEX">', 'display:flex'],
    [
      '<style>@media (prefers-color-scheme: dark) { p { color: #fff } }</style>',
      '@media (prefers-color-scheme)',
    ],
    ['<style>@import url("a.css");</style>', '@import'],
    ['<style>a:hover { color: red }</style>', ':hover'],
    ['<style>p::before { content: "" }</style>', '::before'],
    ['<p style="width: calc(100% - 1rem)">', 'CSS calc() function'],
    ['<p style="width: calc(100% - 1rem)">', 'rem unit'],
    ['<p style="color: var(--main)">', 'CSS Variables (Custom Properties)'],
    ['<p style="background: linear-gradient(red, blue)">', 'linear-gradient()'],
    ['<img src="https://example.com/a.WEBP?x=1">', 'webP image format'],
    ['<img src="data:image/png;base64,AA==">', 'Base 64 image format'],
  ]
  for (const [html, feature] of cases) {
    const found = await featuresOf(html)
    assert.ok(found.includes(feature), `${html}: ${feature} is not among ${found.join('; ')}`)
  }
})

test('text, comments and strings of styles are no features', async () => {
  assert.deepEqual(await featuresOf('display:flex <!-- <video> --> <p>a:hover { }</p>'), [])
  assert.deepEqual(await featuresOf('<style>/* p { display: flex } */ p { } /* a:hover { }</style>'), [
    '<style> element',
  ])
  assert.deepEqual((await checkHtml('')).score, 100)
})

test('a finding counts programs, and names those that do not show it', async () => {
  const { findings, clients, score, complete } = await checkHtml(
    '<p style="display:flex"><b style="display: flex">',
  )
  const [flex] = findings.filter(({ feature }) => feature === 'display:flex')
  assert.ok(flex && complete && score < 100)
  assert.equal(flex.uses, 2)
  assert.equal(flex.supported + flex.partly + flex.unsupported + flex.unknown, clients)
  assert.equal(flex.unsupported_in.length, flex.unsupported)
  assert.ok(flex.unsupported_in.includes('Outlook (Windows)'))
  assert.equal(flex.url, 'https://www.caniemail.com/features/css-display-flex/')
})

test('hostile html is read to a limit', async () => {
  const deep = await checkHtml('<div>'.repeat(100_000))
  assert.equal(deep.complete, false)
  for (const piece of ['/*', '{', ':', '(', '@media (', 'a:', '1px', '<style>', '<p style="']) {
    const { complete } = await checkHtml(`<style>${piece.repeat(700_000 / piece.length)}`)
    assert.equal(complete, false, piece)
  }
})
