/** Posts to mailing lists by mail that must not be distributed, or not as often: robots, loops, bounces, hostile headers. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { test } from 'node:test'
import {
  type Event,
  eventsOf,
  fieldsOf,
  type Mail,
  RECEIVED,
  recipientsOf,
  startScene,
} from '../support/list-mail.ts'
import { eventually } from '../support/service.ts'
import type { SinkMessage } from '../support/smtp-sink.ts'

test('automatic mail, reports and mail of lists are taken and dropped', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, ['bob@members.example'])
  await newList('other', { access_level: 'everyone' }, [])
  const automatic: [what: string, mail: Omit<Mail, 'to'>][] = [
    ['null sender', { sender: '' }],
    ['vacation', { fields: ['Auto-Submitted: auto-replied'] }],
    ['an old robot', { fields: ['Precedence: bulk'] }],
    ['another', { fields: ['X-Autoreply: yes'] }],
    [
      'a bounce with a sender',
      { fields: ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'] },
    ],
    ['from a daemon', { from: 'Mail <MAILER-DAEMON@good.example>' }],
    ['its own List-Id', { fields: [`List-Id: <open.${service.domain}>`] }],
    ["another list's", { fields: [`List-Id: Words <OTHER.${service.domain}>`] }],
    ['its own X-Loop', { fields: [`X-Loop: ${list.toUpperCase()}`] }],
    [
      'many passes',
      { fields: Array.from({ length: 6 }, (_, n) => `Received: from a by mail.test.example id ${n};`) },
    ],
  ]
  for (const [what, mail] of automatic) assert.equal(await scene.post({ to: list, ...mail }), RECEIVED, what)
  assert.equal(
    await scene.post({ to: list, fields: ['List-Id: <foreign.example>', 'Auto-Submitted: no'] }),
    RECEIVED,
  )
  await sink.waitFor(1)
  await eventsOf(scene, '?event=delivered', 1)
  assert.equal((await eventsOf(scene, '?event=accepted', 2)).length, 2)
  assert.equal(sink.messages.length, 1)
})

test('lists that are members of each other and of themselves make no loop, and a robot that answers none', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const [first, second] = [`first@${service.domain}`, `second@${service.domain}`]
  const open = { access_level: 'everyone' }
  await newList('first', open, [second, first, 'bob@members.example'])
  await newList('second', open, [first, second, 'cleo@members.example'])
  assert.equal(await scene.post({ to: first }), RECEIVED)
  await sink.waitFor(1)
  // The copy to the other list came in, and was taken.
  const delivered = await eventsOf(scene, '?event=delivered', 2)
  assert.deepEqual(delivered.map(({ recipient }) => recipient).sort(), ['bob@members.example', second])
  // A robot of a member answers the return path, then the list, in the ways that robots do.
  const [copy] = sink.messages as [SinkMessage]
  const robot = {
    from: 'Bob <bob@good.example>',
    fields: ['Auto-Submitted: auto-replied', 'In-Reply-To: <x@y>'],
  }
  assert.equal(await scene.post({ ...robot, to: copy.envelope.from, sender: '' }), RECEIVED)
  assert.equal(await scene.post({ ...robot, to: first }), RECEIVED)
  assert.equal(await scene.post({ to: second, text: 'marker' }), RECEIVED)
  await sink.waitFor(2)
  assert.deepEqual(recipientsOf(sink.messages), ['bob@members.example', 'cleo@members.example'])
  await eventsOf(scene, '?event=accepted', 6)
})

test('a bounce of a copy is a bounce of its member in the domain of the list', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, [
    'bob@members.example',
    'cleo@members.example',
  ])
  sink.on('RCPT TO:<bob@members.example>', '550 5.1.1 no such user')
  assert.equal(await scene.post({ to: list }), RECEIVED)
  const [cleo] = (await sink.waitFor(1)) as [SinkMessage]
  const [failed] = (await eventsOf(scene, '?event=failed', 1)) as [Event]
  assert.deepEqual([failed.recipient, failed['severity']], ['bob@members.example', 'permanent'])
  assert.equal((failed['mailing-list'] as Record<string, unknown>)['address'], list)
  await eventually('suppression', async () => {
    const { status } = await service.call('GET', `/v3/${service.domain}/bounces/bob@members.example`)
    return status === 200
  })
  // A late bounce, to the return path of the copy.
  const report = [
    '--b',
    'Content-Type: text/plain',
    '',
    'Failed.',
    '--b',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; mx.members.example',
    '',
    'Final-Recipient: rfc822; cleo@members.example',
    'Action: failed',
    'Status: 5.1.1',
    '',
    '--b--',
  ]
  const bounce = {
    to: cleo.envelope.from,
    from: 'MAILER-DAEMON@members.example',
    sender: '',
    fields: ['Content-Type: multipart/report; report-type=delivery-status; boundary=b'],
    text: report.join('\r\n'),
  }
  assert.equal(await scene.post(bounce), RECEIVED)
  const late = await eventsOf(scene, '?event=failed', 2)
  assert.ok(late.some(({ recipient }) => recipient === 'cleo@members.example'))
  assert.equal(await scene.post({ to: list, text: 'again' }), RECEIVED)
  const stopped = await eventsOf(scene, '?event=failed', 4)
  assert.equal(stopped.filter(({ reason }) => reason === 'suppress-bounce').length, 2)
})

test('hostile headers: 1 MB of them, a name that is a header, no Message-Id and Date', async (t) => {
  const scene = await startScene(t)
  const { newList, sink } = scene
  const list = await newList('open', { access_level: 'everyone', name: 'Open "list", <all>' }, [
    'bob@members.example',
  ])
  const large = (bytes: number) =>
    Array.from({ length: Math.ceil(bytes / 1_000) }, (_, n) => `X-F${n}: ${'x'.repeat(990)}`)
  assert.match(await scene.post({ to: list, fields: large(1_100_000) }), /^554 5\.6\.0 /)
  assert.equal(await scene.post({ to: list, fields: large(900_000) }), RECEIVED)
  await sink.waitFor(1)
  assert.ok((sink.messages[0] as SinkMessage).raw.length > 900_000)
  const name = `=?utf-8?q?a=0D=0ABcc:_x=40y.example?= <ann@good.example>`
  assert.equal(await scene.post({ to: list, from: name }), RECEIVED)
  const [, copy] = (await sink.waitFor(2)) as [SinkMessage, SinkMessage]
  assert.deepEqual(fieldsOf(copy, 'bcc'), [])
  assert.equal(fieldsOf(copy, 'from').length, 1)
  assert.match(fieldsOf(copy, 'from')[0] ?? '', new RegExp(`<${list}>$`))
})

test('what is dropped, and what is sent again, leaves nothing on the disk', async (t) => {
  const scene = await startScene(t)
  const { newList, sink, service } = scene
  const list = await newList('open', { access_level: 'everyone' }, ['bob@members.example'])
  const files = async () => {
    const all = await readdir(service.config.dataFolder, { recursive: true, withFileTypes: true })
    return all.filter((file) => file.isFile() && /\/(?:spool|blobs)(?:\/|$)/.test(file.parentPath)).length
  }
  const text = `${'x'.repeat(76)}\r\n`.repeat(40_000)
  assert.equal(await scene.post({ to: list, text, fields: ['Auto-Submitted: auto-replied'] }), RECEIVED)
  assert.equal(await files(), 0)
  const id = '<large@client.example>'
  assert.equal(await scene.post({ to: list, text, id }), RECEIVED)
  await sink.waitFor(1)
  assert.equal(await files(), 1)
  assert.equal(await scene.post({ to: list, text, id }), RECEIVED)
  // In memory as it comes in, then a file.
  assert.equal(await scene.post({ to: list, text: text.slice(0, 400_000), id }), RECEIVED)
  assert.equal(await files(), 1)
  assert.equal(
    (await service.call('PUT', `/v4/domains/${service.domain}`, { form: { spam_action: 'block' } })).status,
    200,
  )
  const spam = { from: 'Pat <pat@spam.example>', fields: ['Date: twice'] }
  scene.internet.dns.set('_dmarc.spam.example', 'TXT', ['v=DMARC1; p=reject'])
  scene.internet.dns.set('spam.example', 'TXT', ['v=spf1 -all'])
  assert.equal(await scene.post({ to: list, text, ...spam }), RECEIVED)
  await eventsOf(scene, '?event=rejected', 1)
  assert.equal(await files(), 1)
})
