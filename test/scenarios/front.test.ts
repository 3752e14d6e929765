/** Clients of two pods at one address: the front finds the pod of each, over HTTP and SMTP. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import Mailgun from 'mailgun.js'
import { basic, directoryRows, type TestFront, type TestPod, testFront, testPods } from '../support/front.ts'
import { eventually } from '../support/service.ts'
import { type Dialogue, openDialogue, plainLogin } from '../support/smtp-dialogue.ts'

const PASSWORD = 'long enough'

async function call(
  { url }: TestFront,
  path: string,
  {
    headers = {},
    form,
    method = form ? 'POST' : 'GET',
  }: { headers?: Record<string, string>; form?: Record<string, string>; method?: string } = {},
) {
  const answer = await fetch(url + path, {
    method,
    headers,
    redirect: 'manual',
    ...(form && { body: new URLSearchParams(form) }),
  })
  const text = await answer.text()
  return { status: answer.status, text, headers: answer.headers }
}

const mailgunOf = ({ url }: TestFront, { key }: TestPod) =>
  new Mailgun(FormData).client({ username: 'api', key, url })

async function eventsOf(front: TestFront, { domain, key }: TestPod, event: string): Promise<number> {
  const authorization = basic(key)
  const { text } = await call(front, `/v3/${domain}/events?event=${event}`, { headers: { authorization } })
  return JSON.parse(text).items.length
}

async function dialogueWith(t: TestContext, { front, host }: TestFront): Promise<Dialogue> {
  const dialogue = await openDialogue(t, { host, port: front.smtp.port })
  assert.match((await dialogue.reply()) ?? '', /^220 front\.example /)
  assert.match((await dialogue.say('EHLO client.example')) ?? '', /250-STARTTLS/)
  return dialogue
}

const MAIL = 'Subject: Hello\r\nFrom: a@sender.example\r\n\r\nHi.\r\n.'

test('HTTP: each key reaches its own pod, and what no pod has is refused as a node does', async (t) => {
  const rows = directoryRows()
  const [one, two] = await testPods(t, rows)
  const front = await testFront(t, rows.query)

  await t.test('the public JavaScript client, once per pod', async () => {
    for (const pod of [one, two]) {
      const mailgun = mailgunOf(front, pod)
      const sent = await mailgun.messages.create(pod.domain, {
        ...{
          from: `Shop <shop@${pod.domain}>`,
          to: ['alice@example.org'],
          subject: 'Order 17',
          text: 'Thank you.',
        },
        attachment: { filename: 'order.txt', data: 'one book' },
      })
      assert.equal(sent.message, 'Queued. Thank you.')
      await eventually('a delivered event', async () => (await eventsOf(front, pod, 'delivered')) === 1)
      assert.deepEqual(
        (await mailgun.domains.list()).map(({ name }) => name),
        [pod.domain],
      )
    }
  })

  await t.test('an unknown key, no key, and a key of the other pod', async () => {
    const wrong = await call(front, '/v4/domains', {
      headers: { authorization: basic('no-such-key-anywhere') },
    })
    assert.deepEqual([wrong.status, JSON.parse(wrong.text)], [401, { message: 'Invalid private key' }])
    assert.match(wrong.headers.get('www-authenticate') ?? '', /^Basic realm=/)
    assert.equal((await call(front, `/v3/${two.domain}/messages`, { form: {} })).status, 401)
    const foreign = await call(front, `/v3/domains/${two.domain}`, {
      headers: { authorization: basic(one.key) },
    })
    assert.equal(foreign.status, 404)
  })

  await t.test(
    'a sign-in by key leads to its pod, and so does the cookie with the name of the pod',
    async () => {
      const signedIn = await call(front, '/sendwright/v1/session', { form: { key: two.key } })
      assert.equal(signedIn.status, 200, signedIn.text)
      const [cookie = ''] = signedIn.headers.getSetCookie()
      assert.match(cookie, /^sendwright_session=/)
      assert.equal(
        (await call(front, '/sendwright/v1/session', { form: { key: `${one.key}?` } })).status,
        401,
      )
    },
  )

  await t.test('a page without any name, and health', async () => {
    assert.equal((await call(front, '/openapi.json')).status, 200)
    assert.deepEqual((await call(front, '/health/ready')).text, '{"status":"ok"}')
    assert.notEqual((await call(front, '/metrics')).status, 200, 'figures are not for clients')
    const status = await fetch(`http://${front.host}:${front.front.statusPort}/metrics`)
    const text = await status.text()
    assert.match(text, /sendwright_front_requests_total\{pod="two",status="200"\} [1-9]/)
    assert.ok(!`${text}${JSON.stringify(front.lines)}`.includes(one.key), 'no secret in figures or log')
  })

  await t.test('what was found once serves on while the directory is away; the rest gets 503', async () => {
    rows.isAway = true
    const domains = await mailgunOf(front, two).domains.list()
    assert.deepEqual(
      domains.map(({ name }) => name),
      [two.domain],
    )
    const unknown = await call(front, '/v4/domains', {
      headers: { authorization: basic('another-unknown-key') },
    })
    assert.deepEqual([unknown.status, unknown.headers.get('retry-after')], [503, '5'])
    assert.equal((await call(front, '/health/ready')).status, 200)
    rows.isAway = false
    await eventually('the directory again', async () => {
      const { status } = await call(front, '/v4/domains', {
        headers: { authorization: basic('another-unknown-key') },
      })
      return status === 401
    })
  })
})

test('SMTP: a login or the recipient names the pod', async (t) => {
  const rows = directoryRows()
  const [one, two] = await testPods(t, rows)
  const front = await testFront(t, rows.query)
  const user = `app@${two.domain}`
  const made = await call(front, `/v3/domains/${two.domain}/credentials`, {
    headers: { authorization: basic(two.key) },
    form: { login: 'app', password: PASSWORD },
  })
  assert.equal(made.status, 200, made.text)
  rows.entries.set(`login ${user}`, 'two')
  for (const pod of [one, two])
    await mailgunOf(front, pod).routes.create({
      ...{
        priority: '1' as unknown as number,
        description: 'All',
        expression: 'catch_all()',
        action: ['store()'],
      },
    })

  await t.test('STARTTLS ends at the front, and the node takes the password and the mail', async () => {
    const dialogue = await dialogueWith(t, front)
    assert.match((await dialogue.say(`MAIL FROM:<${user}>`)) ?? '', /^250 /)
    await dialogue.say('RSET')
    assert.match((await dialogue.say('STARTTLS')) ?? '', /^220 /)
    await dialogue.secure()
    await dialogue.say('EHLO client.example')
    assert.match((await dialogue.say(`AUTH PLAIN ${plainLogin(user, 'wrong')}`)) ?? '', /^535 5\.7\.8 /)
    assert.match(
      (await dialogue.say(`AUTH PLAIN ${plainLogin('nobody@nowhere.example', 'x')}`)) ?? '',
      /^535 /,
    )
    assert.match((await dialogue.say(`AUTH PLAIN ${plainLogin(user, PASSWORD)}`)) ?? '', /^235 /)
    for (let count = 0; count < 2; count++) {
      assert.match((await dialogue.say(`MAIL FROM:<${user}>`)) ?? '', /^250 /)
      assert.match((await dialogue.say('RCPT TO:<alice@example.org>')) ?? '', /^250 /)
      assert.match((await dialogue.say('DATA')) ?? '', /^354 /)
      assert.match((await dialogue.say(MAIL)) ?? '', /^250 /)
    }
    dialogue.write('QUIT\r\n')
    assert.deepEqual(
      (await dialogue.rest()).map((reply) => reply.slice(0, 3)),
      ['221'],
    )
    assert.equal(await eventsOf(front, two, 'accepted'), 2)
  })

  await t.test(
    'without a login the recipients decide; those of another pod are for another message',
    async () => {
      const dialogue = await dialogueWith(t, front)
      assert.match((await dialogue.say('MAIL FROM:<a@sender.example>')) ?? '', /^250 /)
      assert.match((await dialogue.say('RCPT TO:<x@unknown.example>')) ?? '', /^550 /)
      assert.match(
        (await dialogue.say(`RCPT TO:<x@${two.domain}>`)) ?? '',
        /^250 /,
        'the refused one binds to nothing',
      )
      assert.match((await dialogue.say(`RCPT TO:<x@${one.domain}>`)) ?? '', /^452 4\.5\.3 /)
      assert.match((await dialogue.say(`RCPT TO:<y@${two.domain}>`)) ?? '', /^250 /)
      assert.match((await dialogue.say('DATA')) ?? '', /^354 /)
      assert.match((await dialogue.say(MAIL)) ?? '', /^250 /)
      assert.match((await dialogue.say('MAIL FROM:<a@sender.example>')) ?? '', /^250 /)
      // Pipelined, with the content right behind it (RFC 2920).
      dialogue.write(`RCPT TO:<x@${one.domain}>\r\nDATA\r\n`)
      assert.match((await dialogue.reply()) ?? '', /^250 /)
      assert.match((await dialogue.reply()) ?? '', /^354 /)
      dialogue.write(`${MAIL}\r\nMAIL FROM:<b@sender.example>\r\n`)
      assert.match((await dialogue.reply()) ?? '', /^250 /)
      assert.match((await dialogue.reply()) ?? '', /^250 /)
      for (const pod of [one, two])
        await eventually(`mail of pod ${pod.name}`, async () => (await eventsOf(front, pod, 'stored')) === 1)
    },
  )

  await t.test(
    'a line end that nodes refuse never reaches one, and a client that leaves delivers nothing',
    async () => {
      const dialogue = await dialogueWith(t, front)
      const begin = async (of: Dialogue) => {
        await of.say('MAIL FROM:<a@sender.example>')
        assert.match((await of.say(`RCPT TO:<x@${one.domain}>`)) ?? '', /^250 /)
        assert.match((await of.say('DATA')) ?? '', /^354 /)
      }
      await begin(dialogue)
      dialogue.write('Subject: a\r\n\r\nb\r\n.\nMAIL FROM:<smuggled@sender.example>\r\n')
      assert.deepEqual(
        (await dialogue.rest()).map((reply) => reply.slice(0, 9)),
        ['554 5.6.0'],
      )
      const leaving = await dialogueWith(t, front)
      await begin(leaving)
      leaving.write('Subject: cut\r\n\r\nb\r\n')
      leaving.destroy()
      assert.equal(await eventsOf(front, one, 'stored'), 1)
    },
  )

  await t.test(
    'a pod without a node gets temporary replies, and so does the rest while the directory is away',
    async () => {
      const dialogue = await dialogueWith(t, front)
      await dialogue.say('MAIL FROM:<a@sender.example>')
      rows.entries.set('domain moved.example', 'three')
      rows.pods.push({ name: 'three', http: '[]', smtp: JSON.stringify([`${front.host}:1`]) })
      await eventually('the new pod', async () =>
        (await dialogue.say('RCPT TO:<x@moved.example>'))?.startsWith('451 '),
      )
      rows.isAway = true
      assert.match((await dialogue.say('RCPT TO:<x@never-seen.example>')) ?? '', /^451 /)
      assert.match((await dialogue.say(`RCPT TO:<x@${one.domain}>`)) ?? '', /^250 /)
    },
  )
})
