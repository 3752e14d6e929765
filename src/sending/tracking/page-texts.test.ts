import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LANGUAGES } from '../../base/languages.ts'
import { builtIn } from './page-template.ts'
import { ENGLISH, fill, pageLanguage, TEXTS } from './page-texts.ts'
import { PAGES, preferencePage } from './unsubscribe-pages.ts'

const placeholders = (text: string) => [...text.matchAll(/\{\w+\}/g)].map(String).sort()

test('each language has every text with the same placeholders, safe in HTML, and none of another', () => {
  for (const lang of LANGUAGES) {
    for (const [name, text] of Object.entries(TEXTS[lang])) {
      const english = TEXTS.en[name as keyof typeof TEXTS.en]
      assert.deepEqual(placeholders(text), placeholders(english), `${lang} ${name}`)
      assert.doesNotMatch(text, /[<>"&]/, `${lang} ${name}`)
      // Some short words are the same in two languages.
      if (lang !== 'en' && text.length > 12) assert.notEqual(text, english, `${lang} ${name}`)
    }
  }
})

test('a page says its language, and no placeholder is left', () => {
  const subject = { recipient: 'alice@example.org', sender: 'mg.example.com' }
  for (const lang of LANGUAGES) {
    for (const scope of ['domain', 'tags', 'list'] as const) {
      for (const make of Object.values(PAGES)) {
        const html = builtIn(make({ ...subject, scope }, { lang, texts: TEXTS[lang] }))
        assert.match(html, new RegExp(`<html lang="${lang}">`))
        assert.doesNotMatch(html.replace(/<style>[\s\S]*<\/style>/, ''), /[{}]/)
      }
    }
  }
  assert.equal(fill('{a} {b}', { a: '{b}' }), '{b} {b}')
  assert.equal(pageLanguage('de-AT').lang, 'de')
})

test('the page of topics escapes titles, and cannot switch on what the sender switched off', () => {
  const topics = [
    { id: 'one', title: '<b>"One"', isOn: true, isFixed: false },
    { id: 'two', title: 'Two', isOn: false, isFixed: true },
  ]
  const subject = { recipient: 'alice@example.org', sender: null, scope: 'domain' } as const
  const all = { isOn: true, isFixed: false }
  const page = builtIn(preferencePage(subject, { topics, all, isSaved: true }, ENGLISH))
  assert.match(page, /&lt;b&gt;&quot;One&quot;/)
  assert.match(page, /value="one" checked/)
  assert.match(page, /value="two" disabled/)
  assert.deepEqual(page.match(/name="shown" value="\w+"/g), ['name="shown" value="one"'])
  assert.match(page, /role="status"/)
  const off = builtIn(
    preferencePage(subject, { topics, all: { isOn: false, isFixed: true }, isSaved: false }, ENGLISH),
  )
  assert.doesNotMatch(off, /<form|<input|<button/)
})
