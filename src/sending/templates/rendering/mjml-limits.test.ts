// Slow: it compiles for as long as a document may take.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMjmlCompiler } from './mjml.ts'

test('a document that takes too long is stopped, and the next one is compiled', async (t) => {
  const compiler = createMjmlCompiler()
  t.after(() => compiler.close())
  /** Each rule is tried with each paragraph: a minute and more of a fast processor for ten thousand, and little memory. */
  const inlined = (count: number) => {
    const rules = Array.from({ length: count }, (_, at) => `.c${at} p, div > p.d${at} { color: red }`)
    return `<mjml><mj-head><mj-style inline="inline">${rules.join('\n')}</mj-style></mj-head>
      <mj-body><mj-section><mj-column><mj-text>${'<p>x</p>'.repeat(count)}</mj-text></mj-column></mj-section></mj-body></mjml>`
  }
  const stopped = await compiler.compile(inlined(10_000))
  assert.equal(stopped.kind === 'failed' && stopped.why, 'MJML takes too long')
  assert.equal((await compiler.compile(inlined(1))).kind, 'compiled')
})
