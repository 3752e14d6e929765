import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Unavailable } from '../../../base/process/errors.ts'
import { createRenderer, type Renderer, type RenderRequest } from './render.ts'
import type { RenderResult } from './render-messages.ts'

function startRenderer(t: TestContext, options: { workersMax?: number } = {}): Renderer {
  const renderer = createRenderer(options)
  t.after(() => renderer.close())
  return renderer
}

const request = (content: string, variables: RenderRequest['variables'] = {}): RenderRequest => ({
  accountId: 'a',
  template: { key: content, content, headers: {} },
  variables,
})

const outcome = (result: RenderResult) => (result.kind === 'failed' ? result.cause : result.html)

/** The parser takes a minute over this and cannot be asked to stop: only ending its thread does. */
const ENDLESS = '{{^if a}}'.repeat(11_000)

test('renders html escaped, and header fields unescaped in one line', async (t) => {
  const renderer = startRenderer(t)
  const result = await renderer.render({
    accountId: 'a',
    template: {
      key: '1',
      content: '<p>{{name}}, {{city}}</p>',
      headers: { Subject: 'For {{name}}', From: '{{from}}' },
    },
    variables: { name: 'A & B', from: 'x@example.com\r\nBcc: y@example.com\u2028\u0085z\0' },
    missing: true,
  })
  assert.deepEqual(result, {
    kind: 'rendered',
    html: '<p>A &amp; B, </p>',
    text: null,
    headers: { Subject: 'For A & B', From: 'x@example.com Bcc: y@example.com z' },
    missing: ['city'],
    variables: ['name', 'from', 'city'].map((name) => ({ path: [name], kind: 'text' })),
  })
})

test('makes text of the rendered html on request, without escapes', async (t) => {
  const renderer = startRenderer(t)
  const html = '<h1>{{title}}</h1><ul><li>{{a}}</li></ul><a href="https://example.com/{{a}}">Go</a>'
  const result = await renderer.render({ ...request(html, { title: 'R & D', a: 'x' }), text: true })
  assert.equal(result.kind === 'rendered' && result.text, 'R & D\n\n* x\n\nGo (https://example.com/x)')
})

test('renders a thousand recipients in their order', async (t) => {
  const renderer = startRenderer(t)
  const results = await Promise.all(
    Array.from({ length: 1000 }, (_, n) => renderer.render(request('Hi {{n}}', { n }))),
  )
  assert.deepEqual(
    results.map(outcome),
    results.map((_, n) => `Hi ${n}`),
  )
})

test('content under the same key is compiled once, and again under another key', async (t) => {
  const renderer = startRenderer(t, { workersMax: 1 })
  const template = (key: string, content: string) => ({
    ...request(''),
    template: { key, content, headers: {} },
  })
  assert.equal(outcome(await renderer.render(template('k', 'one'))), 'one')
  assert.equal(outcome(await renderer.render(template('k', 'two'))), 'one')
  assert.equal(outcome(await renderer.render(template('l', 'two'))), 'two')
})

test('a job that cannot be interrupted is ended with its thread, the others of its batch are done', async (t) => {
  const renderer = startRenderer(t, { workersMax: 1 })
  const jobs = [request('first'), request(ENDLESS), request('third')].map((job) => renderer.render(job))
  assert.deepEqual((await Promise.all(jobs)).map(outcome), ['first', 'time', 'third'])
})

test('loops, output and depth end their own rendering only', async (t) => {
  const renderer = startRenderer(t, { workersMax: 1 })
  const list = Array(1000).fill(1)
  const loop =
    '{{#each a}}{{#each @root.a}}{{#each @root.a}}{{#each @root.a}}{{/each}}{{/each}}{{/each}}{{/each}}'
  const nest = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown
  const jobs = [
    request('before'),
    request(loop, { a: list }),
    request('{{#each a}}{{#each ../a}}0123456789{{/each}}{{/each}}', { a: list }),
    request('{{a}}', { a: nest(200) }),
    request('after'),
  ].map((job) => renderer.render(job))
  assert.deepEqual((await Promise.all(jobs)).map(outcome), ['before', 'time', 'output', 'depth', 'after'])
})

test('variables too large for the thread fail their own rendering only', async (t) => {
  const renderer = startRenderer(t, { workersMax: 1 })
  const huge = Array.from({ length: 1_500_000 }, () => ({ x: 1 }))
  const jobs = [request('before'), request('{{a.0}}', { a: huge }), request('after')]
  const results = await Promise.all(jobs.map((job) => renderer.render(job)))
  assert.deepEqual(results.map(outcome), ['before', 'memory', 'after'])
})

test('variables that nest too deeply to be copied fail their own rendering only', async (t) => {
  const renderer = startRenderer(t)
  const deep: unknown[] = []
  let inner = deep
  for (let level = 0; level < 100_000; level++) {
    const next: unknown[] = []
    inner.push(next)
    inner = next
  }
  const results = await Promise.all(
    [request('a'), request('b', { deep }), request('c')].map((job) => renderer.render(job)),
  )
  assert.deepEqual(results.map(outcome), ['a', 'depth', 'c'])
})

test('accounts take turns: one with heavy templates does not hold up another', async (t) => {
  const renderer = startRenderer(t, { workersMax: 1 })
  const order: string[] = []
  const run = async (accountId: string, name: string, content: string) => {
    await renderer.render({ ...request(content), accountId })
    order.push(name)
  }
  const heavy = Array.from({ length: 300 }, (_, n) => run('heavy', `heavy ${n}`, 'x'))
  await Promise.all([...heavy, run('light', 'light', 'y')])
  assert.equal(order.indexOf('light'), 100, 'after the first batch of the other')
})

test('check says why content or header fields cannot be stored', async (t) => {
  const renderer = startRenderer(t)
  const check = (content: string, headers = {}) => renderer.check('a', { key: content, content, headers })
  assert.equal(await check('{{a}}', { Subject: '{{b}}' }), null)
  assert.equal(await check('\n{{#foo bar}}{{/foo}}'), 'line 2: unknown helper "foo"')
  assert.equal(
    await check('empty', { Subject: '{{> x}}' }),
    'header Subject: line 1: partials are not supported',
  )
  assert.equal(await check(ENDLESS), 'takes over 500 ms')
})

test('after close nothing is rendered, and what waited fails', async () => {
  const renderer = createRenderer({ workersMax: 1 })
  const waiting = renderer.render(request('x'))
  const rejected = assert.rejects(waiting, Unavailable)
  await renderer.close()
  await rejected
  await assert.rejects(renderer.render(request('x')), Unavailable)
})
