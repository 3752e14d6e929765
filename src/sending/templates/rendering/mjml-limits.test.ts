// Slow: it compiles for as long as a document may take.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMjmlCompiler } from './mjml.ts'

test('a document that takes too long is stopped, and the next one is compiled', async (t) => {
  const compiler = createMjmlCompiler()
  t.after(() => compiler.close())
  const texts = (count: number) =>
    `<mjml><mj-body><mj-section><mj-column>${'<mj-text>x</mj-text>'.repeat(count)}</mj-column></mj-section></mj-body></mjml>`
  const stopped = await compiler.compile(texts(60_000))
  // A fast processor reaches the other limit first.
  assert.match(stopped.kind === 'failed' ? stopped.why : '', /^MJML takes too (?:long|much memory)$/)
  assert.equal((await compiler.compile(texts(1))).kind, 'compiled')
})
