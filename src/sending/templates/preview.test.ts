import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestService } from '../../../test/support/service.ts'

test('the render operation', async (t) => {
  const service = await startTestService(t)
  const { domain } = service
  const render = (json: unknown) => service.call('POST', '/sendwright/v1/templates/render', { json })
  const nothing = { subject: null, headers: {}, html: '', text: '', missing: [], variables: [], errors: [] }

  await t.test('gives the parts of a stored template, and names what was missing', async () => {
    const form = {
      name: 'order',
      template: '<p>Hi {{name}}, {{nothing}}</p><a href="https://example.com/{{id}}">Look</a>',
      headers: '{"Subject": "Order {{id}}", "From": "{{name}} <shop@example.com>"}',
    }
    await service.call('POST', `/v3/${domain}/templates`, { form })
    const answer = await render({ domain, template: 'Order', variables: { name: 'A & B', id: 7 } })
    assert.deepEqual(answer.body, {
      subject: 'Order 7',
      headers: { Subject: 'Order 7', From: 'A & B <shop@example.com>' },
      html: '<p>Hi A &amp; B, </p><a href="https://example.com/7">Look</a>',
      text: 'Hi A & B,\n\nLook (https://example.com/7)',
      missing: ['nothing'],
      variables: ['id', 'name', 'nothing'].map((name) => ({ path: [name], kind: 'text' })),
      errors: [],
    })
  })

  await t.test(
    'marks what was missing on request, and names what the template uses wherever it is',
    async () => {
      const answer = await render({
        content: '{{#each lines}}{{title}}: {{price}};{{/each}}{{#if vip}}{{gift}}{{/if}}',
        headers: { Subject: 'For {{name}}' },
        variables: { lines: [{ title: 'Tea' }] },
        mark_missing: true,
      })
      assert.equal(answer.body.html, 'Tea: {{price}};')
      assert.equal(answer.body.subject, 'For {{name}}')
      assert.deepEqual(answer.body.missing, ['name', 'price'])
      assert.deepEqual(answer.body.variables, [
        { path: ['name'], kind: 'text' },
        { path: ['lines'], kind: 'list' },
        { path: ['lines', '[]', 'title'], kind: 'text' },
        { path: ['lines', '[]', 'price'], kind: 'text' },
        { path: ['vip'], kind: 'condition' },
        { path: ['gift'], kind: 'text' },
      ])
    },
  )

  await t.test('renders the requested version, and templates of the account', async () => {
    await service.call('POST', '/v4/templates', { form: { name: 'acc', template: 'one' } })
    await service.call('POST', '/v4/templates/acc/versions', { form: { tag: 'v2', template: 'two' } })
    assert.equal((await render({ template: 'acc' })).body.html, 'one')
    assert.equal((await render({ template: 'acc', version: 'v2' })).body.html, 'two')
    assert.equal((await render({ domain, template: 'acc' })).body.html, 'one')
  })

  await t.test('replaces recipient variables before Handlebars and after it', async () => {
    const answer = await render({
      content: '{{greeting}} %recipient.n% %recipient.none% %recipient.o% %recipient.z%',
      headers: { Subject: 'For %recipient.name%' },
      variables: { greeting: 'Hi %recipient.name%', list: ['%recipient.n%'] },
      recipient_variables: { name: '<b>\r\nX: y', n: 1, o: { a: true }, z: null },
    })
    assert.equal(answer.body.html, 'Hi &lt;b&gt;\r\nX: y 1 %recipient.none% {"a":true} ')
    assert.equal(answer.body.subject, 'For <b> X: y')
  })

  await t.test('renders MJML', async () => {
    const content =
      '<mjml><mj-body><mj-section><mj-column><mj-text>{{a}}</mj-text></mj-column></mj-section></mj-body></mjml>'
    const { body } = await render({ content, engine: 'mjml', variables: { a: 'x<y' } })
    assert.match(body.html, /^<!doctype html>.*x&lt;y/s)
    assert.equal(body.text, 'x<y')
  })

  await t.test('says what is wrong with the content', async () => {
    const faults: [json: object, error: string][] = [
      [
        { content: '{{#if a}}' },
        'Invalid parameter: template line 1: the template ends inside a block or expression',
      ],
      [{ content: 'x', engine: 'x' }, 'Invalid parameter: engine x is not supported'],
      [
        { content: '{{a}}{{a}}{{a}}{{a}}{{a}}{{a}}', variables: { a: 'x'.repeat(900_000) } },
        'the output is over 5 MB',
      ],
    ]
    for (const [json, error] of faults) {
      const answer = await render(json)
      assert.deepEqual([answer.status, answer.body], [200, { ...nothing, errors: [error] }])
    }
  })

  await t.test('answers each fault of the request', async () => {
    const deep = JSON.parse(`${'{"a":'.repeat(101)}1${'}'.repeat(101)}`) as unknown
    const exactlyOne = "Exactly one of 'template' and 'content' must be given"
    const faults: [json: unknown, status: number, message: string][] = [
      [{}, 400, exactlyOne],
      [{ template: 'a', content: 'b' }, 400, exactlyOne],
      [{ template: 'nowhere' }, 400, "template 'nowhere' not found"],
      [{ domain: 'nowhere.example', content: 'x' }, 404, 'domain not found'],
      [{ content: 'x', variables: [] }, 400, "'variables' parameter is not a valid JSON"],
      [
        { content: 'x', recipient_variables: 'x' },
        400,
        "'recipient_variables' parameter is not a valid JSON",
      ],
      [{ content: 'x', headers: { Bcc: 'x' } }, 400, 'Invalid parameter: header Bcc is not supported'],
      [
        { content: 'x', variables: deep, recipient_variables: { a: 1 } },
        400,
        "'variables' parameter nests too deeply",
      ],
      [{ content: 'x', variables: { a: 'x'.repeat(1024 * 1024) } }, 413, 'request size exceeds 1MiB limit'],
    ]
    for (const [json, status, message] of faults) {
      const answer = await render(json)
      assert.deepEqual([answer.status, answer.body], [status, { message }])
    }
  })
})
