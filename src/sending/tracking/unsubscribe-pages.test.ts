import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { PAGE_POLICY } from '../../platform/http/answer/pages.ts'
import { builtIn } from './page-template.ts'
import { maskAddress, PAGES } from './unsubscribe-pages.ts'

test('an address is shown so that only its owner knows it', () => {
  for (const [address, shown] of [
    ['alice@example.org', 'a***@example.org'],
    ['ab@example.org', 'a***@example.org'],
    ['a@example.org', '***@example.org'],
    ['"a@b"@example.org', '"***@example.org'],
    ['\u{1f600}x@example.org', '\u{1f600}***@example.org'],
    ['nothing', '***'],
  ] as const) {
    assert.equal(maskAddress(address), shown)
  }
})

test('pages are escaped, name what is unsubscribed, and load nothing', () => {
  const hostile = {
    recipient: '<b>"x\'&@example.org',
    sender: '<script>alert(1)</script>',
    scope: 'list',
  } as const
  for (const make of Object.values(PAGES)) {
    const html = builtIn(make(hostile))
    assert.doesNotMatch(html, /<script|<b>|src=|href=|https?:/)
    assert.match(html, /^<!doctype html>\n<html lang="en">/)
    assert.match(html, /&lt;\*\*\*@example\.org/)
    assert.equal(html.match(/<h1>/g)?.length, 1)
  }
  const subject = { recipient: 'alice@example.org', sender: 'mg.example.com' }
  assert.match(
    builtIn(PAGES.ask({ ...subject, scope: 'domain' })),
    /Stop all mail from <strong>mg\.example\.com<\/strong>/,
  )
  assert.match(builtIn(PAGES.ask({ ...subject, scope: 'tags' })), /Stop mail of this kind from/)
  assert.match(builtIn(PAGES.done({ ...subject, scope: 'domain' })), /gets no more mail from/)
  assert.match(builtIn(PAGES.ask({ ...subject, scope: 'domain', sender: null })), /from this sender/)
})

test("the policy allows the page's style sheet and nothing else", () => {
  const html = builtIn(PAGES.ask({ recipient: 'a@example.org', sender: null, scope: 'domain' }))
  const style = /<style>([\s\S]*)<\/style>/.exec(html)?.[1] ?? ''
  assert.ok(PAGE_POLICY.includes(`'sha256-${createHash('sha256').update(style).digest('base64')}'`))
  assert.doesNotMatch(PAGE_POLICY, /unsafe|script|\*|https?:/)
})
