import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { createProgressBar } from './progress-bar.ts'

function terminal(isTTY: boolean) {
  const out = new PassThrough()
  return Object.assign(out, { isTTY, columns: 60 }) as unknown as NodeJS.WriteStream
}

test('a bar is drawn on a terminal within its width, and nowhere else', () => {
  const out = terminal(true)
  const bar = createProgressBar(out)
  bar.show(0.5, 'x'.repeat(200))
  bar.note('waiting')
  bar.end()
  const text = String((out as unknown as PassThrough).read())
  assert.match(text, /^\r\[#{12}\.{12}\] +50% x+\u001b\[K\r\u001b\[Kwaiting\n/)
  assert.ok((text.split('\u001b')[0] as string).length <= 61)

  const file = terminal(false)
  const none = createProgressBar(file)
  none.show(0.5, 'x')
  none.note('waiting')
  none.end()
  assert.equal((file as unknown as PassThrough).read(), null)
})
