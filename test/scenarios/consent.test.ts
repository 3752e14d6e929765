/** Double opt-in, the form of a list, topics behind unsubscribe links and the consent trail, over HTTP and SMTP. */
import assert from 'node:assert/strict'
import { before, type TestContext, test } from 'node:test'
import { newId } from '../../src/base/ids.ts'
import { createSealer } from '../../src/platform/store/secrets/sealing.ts'
import { createTokens } from '../../src/sending/tracking/links/tokens.ts'
import { eachDatabase } from '../support/databases.ts'
import { LINK_SECRET, linksOf } from '../support/links.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { createSink, type Sink } from '../support/smtp-sink.ts'

interface Scene {
  service: TestService
  sink: Sink
}

async function startScene(t: TestContext, database: 'sqlite' | 'postgres'): Promise<Scene> {
  const sink = await createSink({ host: ownAddress() })
  t.after(() => sink.close())
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_SECRET: LINK_SECRET,
      SENDWRIGHT_DELIVERY: `smtp://${sink.host}:${sink.port}`,
      SENDWRIGHT_TRUSTED_PROXIES: '127.0.0.0/8',
    },
    { database },
  )
  return { service, sink }
}

let scene: Scene
before(async (t) => {
  scene = await startScene(t as TestContext, 'sqlite')
})

const NOBODY = newId()

let made = 0

/** A new list with these consent settings. */
async function newList({ service }: Scene, settings: Record<string, string> = {}) {
  const address = `news${++made}@${service.domain}`
  const form = { address, name: `List ${made}` }
  assert.equal((await service.call('POST', '/v3/lists', { form })).status, 200)
  const { status, body, text } = await service.call('PUT', `/sendwright/v1/lists/${address}/consent`, {
    form: { title: `Weekly news ${made}`, ...settings },
  })
  assert.equal(status, 200, text)
  return { address, formUrl: String(body.form_url), consent: body }
}

let people = 0
const person = () => `Reader${++people}@example.org`

const mailsTo = ({ sink }: Scene, address: string) =>
  sink.messages.filter(({ envelope }) => envelope.to.some((to) => to.toLowerCase() === address.toLowerCase()))

/** The link of the confirmation mail. */
async function linkTo(its: Scene, address: string): Promise<string> {
  const message = await eventually('the confirmation mail', async () => mailsTo(its, address)[0])
  const link = /http:\/\/\S+\/confirm\/[\w-]+/.exec(message.raw.toString().replaceAll('=\r\n', ''))?.[0]
  assert.ok(link, message.raw.toString())
  return link
}

const post = (
  url: string,
  fields: Record<string, string | readonly string[]>,
  headers: Record<string, string> = {},
) => {
  const pairs = Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one]))
  const body = new URLSearchParams(pairs as [string, string][])
  return fetch(url, {
    method: 'POST',
    body,
    redirect: 'manual',
    headers: { 'x-forwarded-for': client(), ...headers },
  })
}

let clients = 0
/** Another network for each call, as the form counts them. */
const client = () => `2001:db8:${(++clients).toString(16)}::1`

async function memberOf({ service }: Scene, list: string, address: string) {
  const { status, body } = await service.call('GET', `/v3/lists/${list}/members/${address}`)
  return status === 404 ? null : (body.member as { subscribed: boolean; pending?: true })
}

async function trailOf({ service }: Scene, address: string) {
  const { status, body, text } = await service.call('GET', `/sendwright/v1/people/${address}/consent`)
  assert.equal(status, 200, text)
  return body.items as Record<string, string>[]
}

const actions = (trail: readonly Record<string, string>[]) =>
  trail.map(({ action, source }) => `${action} ${source}`)

eachDatabase((database) => {
  test('a member who must confirm gets no post until it does, and its link works once', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, database)
    const { service, sink } = its
    const { address: list } = await newList(its, { confirm: 'yes' })
    const reader = person()
    const added = await service.call('POST', `/v3/lists/${list}/members`, { form: { address: reader } })
    assert.equal(added.status, 200, added.text)
    assert.deepEqual([added.body.member.subscribed, added.body.member.pending], [false, true])
    const link = await linkTo(its, reader)
    await service.call('POST', `/v3/lists/${list}/members`, {
      form: { address: 'Else@example.org', confirm: 'no' },
    })
    await service.send({ to: list, subject: 'First post' })
    await eventually('the copy of the other member', async () => mailsTo(its, 'else@example.org')[0])
    assert.equal(mailsTo(its, reader).length, 1)

    for (const method of ['GET', 'HEAD'])
      for (let n = 0; n < 3; n++) assert.equal((await fetch(link, { method })).status, 200)
    assert.deepEqual(await memberOf(its, list, reader), {
      address: reader,
      name: '',
      vars: {},
      subscribed: false,
      pending: true,
    })

    const answers = await Promise.all(Array.from({ length: 6 }, () => post(link, { action: 'confirm' })))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 404, 404, 404, 404, 404])
    const [member, trail] = [await memberOf(its, list, reader), await trailOf(its, reader.toLowerCase())]
    assert.deepEqual([member?.subscribed, member?.pending], [true, undefined])
    assert.deepEqual(actions(trail), ['confirmed mail', 'pending api'])
    assert.match(trail[0]?.['ip'] ?? '', /^2001:db8:/)
    assert.equal(trail[0]?.['list'], list)
    assert.match(trail[0]?.['list_title'] ?? '', /^Weekly news/)
    assert.ok(trail[1]?.['by'])
    await service.send({ to: list, subject: 'Second post' })
    await eventually('the second post', async () => mailsTo(its, reader)[1])
    assert.equal((await fetch(link)).status, 404)
    assert.equal(
      sink.messages.filter(({ raw }) => /^Subject: Please confirm/m.test(raw.toString())).length >= 1,
      true,
    )
  })

  test('uploads are asked as well, and their trail is one of their batch', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, database)
    const { service } = its
    const { address: list } = await newList(its)
    const readers = Array.from({ length: 130 }, person)
    const upload = (form: Record<string, string>) =>
      service.call('POST', `/v3/lists/${list}/members.json`, {
        form: { members: JSON.stringify(readers), ...form },
      })
    assert.equal((await upload({ confirm: 'yes' })).status, 200)
    const pending = async () =>
      (await service.call('GET', `/v3/lists/${list}/members?pending=yes&limit=1`)).body.total_count as number
    await eventually('all to be pending', async () => (await pending()) === 130)
    const last = readers.at(-1) as string
    const link = await linkTo(its, last)
    assert.equal((await post(link, { action: 'confirm' })).status, 200)
    assert.equal(await pending(), 129)
    assert.deepEqual(actions(await trailOf(its, last)), ['confirmed mail', 'pending import'])
    assert.equal((await upload({ upsert: 'yes' })).status, 200)
    await eventually('all to be subscribed', async () => (await pending()) === 0)
    assert.deepEqual(actions(await trailOf(its, readers[0] as string)), ['imported import', 'pending import'])
    assert.deepEqual(
      actions(await trailOf(its, last)),
      ['confirmed mail', 'pending import'],
      'nothing changed',
    )
  })

  test('a crowd at the form gets one mail to one address, and learns nothing', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, database)
    const { service } = its
    const { address: list, formUrl } = await newList(its, { form: 'yes' })
    const [reader, member] = [person(), person()]
    await service.call('POST', `/v3/lists/${list}/members`, { form: { address: member } })
    const crowd = await Promise.all(Array.from({ length: 20 }, () => post(formUrl, { email: reader })))
    const known = await post(formUrl, { email: member })
    const texts = new Set(await Promise.all([...crowd, known].map((answer) => answer.text())))
    assert.equal(texts.size, 1, 'the same page for new, pending and subscribed addresses')
    assert.ok([...crowd, known].every(({ status }) => status === 200))
    const link = await linkTo(its, reader)
    assert.equal((await post(link, { action: 'decline' })).status, 200)
    assert.equal(await memberOf(its, list, reader), null)
    await post(formUrl, { email: reader })
    assert.equal(
      await memberOf(its, list, reader),
      null,
      'declining makes no room for another mail of the day',
    )
    assert.deepEqual([mailsTo(its, reader).length, mailsTo(its, member).length], [1, 0])
    const trail = await trailOf(its, reader)
    assert.deepEqual(actions(trail), ['declined mail', 'pending form'])
    assert.match(trail[1]?.['ip'] ?? '', /^2001:db8:/)
  })

  test('topics behind the unsubscribe link are switched one by one, and by one click', async (t) => {
    const its = database === 'sqlite' ? scene : await startScene(t, database)
    const { service } = its
    const topics = [
      { tag: 'News', title: 'Company news' },
      { tag: 'offers', title: 'Offers <b>' },
    ]
    const path = `/sendwright/v1/domains/${service.domain}/topics`
    const set = await service.call('PUT', path, { form: { active: 'yes', topics: JSON.stringify(topics) } })
    assert.deepEqual([set.status, set.body.topics], [200, topics], set.text)
    await service.call('PUT', `/v3/domains/${service.domain}/tracking/unsubscribe`, {
      form: { active: 'yes' },
    })
    const { address: list } = await newList(its)
    const reader = person()
    await service.call('POST', `/v3/lists/${list}/members`, { form: { address: reader } })
    await service.send({ to: reader, 'o:tag': ['news', 'other'], subject: 'With a topic' })
    const message = await eventually('the mail', async () => mailsTo(its, reader)[0])
    const links = await linksOf(service, message)
    const url = links.unsubscribe()
    const page = await (await fetch(url)).text()
    assert.match(page, /Company news/)
    assert.match(page, /Offers &lt;b&gt;/)
    assert.match(page, /Weekly news/)
    const ids = [...page.matchAll(/name="shown" value="([\w-]+)"/g)].map(([, id]) => id as string)
    assert.equal(ids.length, 3)
    const tagsOf = async () => {
      const { status, body } = await service.call('GET', `/v3/${service.domain}/unsubscribes/${reader}`)
      return status === 404 ? [] : (body.tags as string[])
    }
    assert.deepEqual(await tagsOf(), [], 'GET changes nothing')
    // Only the second stays on.
    const saved = await post(url, { action: 'preferences', shown: ids, on: [ids[1] as string] })
    assert.match(await saved.text(), /role="status"/)
    assert.deepEqual(await tagsOf(), ['News'])
    assert.equal((await memberOf(its, list, reader))?.subscribed, false)
    await post(url, { action: 'preferences', shown: ids, on: ids })
    assert.deepEqual(await tagsOf(), [])
    assert.equal((await memberOf(its, list, reader))?.subscribed, true)
    await post(url, { action: 'unsubscribe-all' })
    assert.deepEqual(await tagsOf(), ['*'])
    await post(url, { action: 'resubscribe-all' })
    assert.deepEqual(await tagsOf(), [])

    const field = /^List-Unsubscribe: ?(?:\r\n )?<([^>]+)>/m.exec(
      message.raw.toString().replaceAll('\r\n ', ' '),
    )?.[1]
    const oneClick = String(field).replaceAll(' ', '')
    assert.equal((await post(oneClick, { 'List-Unsubscribe': 'One-Click' })).status, 200)
    assert.deepEqual(await tagsOf(), ['news'], 'the topic of the mail, and no other tag')
    assert.deepEqual(actions(await trailOf(its, reader)).slice(0, 3), [
      'unsubscribed one_click',
      'resubscribed preference_page',
      'unsubscribed preference_page',
    ])
    for (let n = 0; n < 12; n++) assert.equal((await post(url, { action: 'unsubscribe-all' })).status, 200)
    await service.call('PUT', path, { form: { active: 'no' } })
    assert.doesNotMatch(await (await fetch(url)).text(), /Company news/)
  })
})

test('a form is closed until it is opened, and leads where its list says', async () => {
  const { service } = scene
  const closed = await newList(scene)
  assert.equal(closed.consent.form_url, undefined)
  const open = await newList(scene, {
    form: 'yes',
    redirect_url: 'https://shop.example/thanks',
    language: 'de',
  })
  const page = await fetch(open.formUrl)
  assert.match(
    page.headers.get('content-security-policy') ?? '',
    /form-action 'self' https:\/\/shop\.example;/,
  )
  assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /script|unsafe/)
  assert.match(await page.text(), /<html lang="de">/)
  const french = await fetch(open.formUrl, { headers: { 'accept-language': 'fr-CH, en;q=0.5' } })
  assert.match(await french.text(), /<html lang="fr">/)
  const reader = person()
  const answer = await post(open.formUrl, { email: reader })
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, 'https://shop.example/thanks'])
  const message = await eventually('the German mail', async () => mailsTo(scene, reader)[0])
  assert.match(message.raw.toString(), /innerhalb von 7 Tagen/)
  assert.doesNotMatch(message.raw.toString(), /List-Unsubscribe/)
  assert.match(message.raw.toString(), /Auto-Submitted: auto-generated/)
  assert.match(open.consent.form_html, /^<form method="post" action="http/)
  const hidden = new URL(open.formUrl)
  await service.call('PUT', `/sendwright/v1/lists/${open.address}/consent`, { form: { form: 'no' } })
  const gone = await fetch(hidden)
  const never = await fetch(new URL('/subscribe/nothing', hidden))
  assert.deepEqual([gone.status, never.status], [404, 404])
  assert.equal(await gone.text(), await never.text())
})

test('links of others, used ones and guesses look the same', async () => {
  const { address: list } = await newList(scene, { confirm: 'yes' })
  const reader = person()
  await scene.service.call('POST', `/v3/lists/${list}/members`, { form: { address: reader } })
  const link = await linkTo(scene, reader)
  assert.equal((await post(link, {})).status, 400, 'neither button')
  assert.equal((await post(link, { action: 'confirm' })).status, 200)
  const base = link.slice(0, link.lastIndexOf('/') + 1)
  const token = link.slice(base.length)
  const foreign = createTokens(createSealer('another secret, another installation')).confirm(NOBODY)
  const own = createTokens(createSealer(LINK_SECRET))
  const links = [token, foreign, own.open(NOBODY), own.confirm(NOBODY), 'x', `${token}x`, '%00']
  const pages = await Promise.all(
    links.flatMap((one) => [fetch(base + one), post(base + one, { action: 'confirm' })]),
  )
  assert.deepEqual(new Set(pages.map(({ status }) => status)), new Set([404]))
  const texts = await Promise.all(pages.map((page) => page.text()))
  assert.equal(new Set(texts).size, 1)
})

test('a stored template replaces the text of the mail; one that is gone does not keep people out', async () => {
  const { service } = scene
  const template = {
    name: 'ask-first',
    template: '<p>Hello, <a href="{{confirm_url}}">{{list_title}}</a></p>',
    headers: JSON.stringify({ Subject: 'Our own question' }),
  }
  const stored = await service.call('POST', `/v3/${service.domain}/templates`, { form: template })
  assert.equal(stored.status, 200, stored.text)
  const { address: list } = await newList(scene, { confirm: 'yes', template: 'ask-first' })
  const [first, second] = [person(), person()]
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: first } })
  const message = await eventually('the mail', async () => mailsTo(scene, first)[0])
  assert.match(message.raw.toString(), /^Subject: Our own question/m)
  assert.equal((await post(await linkTo(scene, first), { action: 'confirm' })).status, 200)
  await service.call('PUT', `/sendwright/v1/lists/${list}/consent`, { form: { template: 'gone' } })
  await service.call('POST', `/v3/lists/${list}/members`, { form: { address: second } })
  const plain = await eventually('the other mail', async () => mailsTo(scene, second)[0])
  assert.match(plain.raw.toString(), /^Subject: Please confirm/m)
})

/** Stores a template of the domain's with this content. */
async function storeTemplate({ service }: Scene, name: string, template: string): Promise<void> {
  const path = `/v3/${service.domain}/templates`
  const change = await service.call('PUT', `${path}/${name}/versions/initial`, { form: { template } })
  if (change.status === 200) return
  const { status, text } = await service.call('POST', path, { form: { name, template, tag: 'initial' } })
  assert.equal(status, 200, text)
}

/** More than 200,000 characters, with a title of at least 23. */
const LONG = '{{title}}'.repeat(9_000)

const policyOf = (page: Response) => page.headers.get('content-security-policy') ?? ''

test("a list's pages have its template, in a sandbox, and without a usable one they are built in", async () => {
  const { service } = scene
  await storeTemplate(
    scene,
    'own-pages',
    '<html lang="{{lang}}"><title>{{title}}</title><h1>{{page}} of {{list_title}}, {{address}}</h1>{{{forms}}}</html>',
  )
  const { address: list, formUrl } = await newList(scene, {
    ...{ form: 'yes', title: 'Ours & yours', page_template: 'own-pages' },
    redirect_url: 'https://shop.example/thanks',
  })
  const consent = `/sendwright/v1/lists/${list}/consent`
  const form = await fetch(formUrl, { headers: { 'accept-language': 'it' } })
  const policy = policyOf(form)
  for (const rule of [
    "default-src 'none'",
    'sandbox allow-forms',
    "form-action 'self' https://shop.example",
    "base-uri 'none'",
  ])
    assert.ok(policy.split('; ').includes(rule), policy)
  const formText = await form.text()
  assert.match(
    formText,
    /^<html lang="it"><title>[^<]*Ours &amp; yours<\/title><h1>form of Ours &amp; yours, <\/h1><form/,
  )
  const fault = await post(formUrl, { email: 'nobody' })
  assert.equal(fault.status, 400)
  assert.match(await fault.text(), /<h1>form of [^<]*<\/h1><p class="fault" id="fault" role="alert">/)
  assert.equal((await post(formUrl, { email: person() })).status, 303)
  await service.call('PUT', consent, { form: { redirect_url: '' } })
  const reader = person()
  assert.match(await (await post(formUrl, { email: reader })).text(), /<h1>sent of /)
  const link = await linkTo(scene, reader)
  assert.match(
    await (await fetch(link)).text(),
    /<h1>confirm of Ours &amp; yours, R\*\*\*@example\.org<\/h1>/,
  )
  assert.match(await (await post(link, { action: 'confirm' })).text(), /<h1>confirmed of /)
  const spent = await fetch(link)
  assert.equal(spent.status, 404)
  assert.doesNotMatch(policyOf(spent), /sandbox/)

  const builtIn = async (why: string) => {
    const page = await fetch(formUrl, { headers: { 'accept-language': 'en' } })
    assert.equal(page.status, 200)
    assert.doesNotMatch(policyOf(page), /sandbox|unsafe/)
    assert.match(await page.text(), /<h1>Subscribe to <bdi>Ours/, why)
  }
  for (const broken of ['<h1>No form</h1>', '{{forms}}', `{{{forms}}}${LONG}`]) {
    await storeTemplate(scene, 'own-pages', broken)
    await builtIn(broken.slice(0, 30))
  }
  await service.call('DELETE', `/v3/${service.domain}/templates/own-pages`)
  await builtIn('gone')
  const cleared = await service.call('PUT', consent, { form: { page_template: '' } })
  assert.deepEqual([cleared.status, cleared.body.page_template], [200, undefined])
})

test('a template that cannot show all pages is refused, in every language', async () => {
  const { service } = scene
  const { address: list } = await newList(scene, { form: 'yes' })
  const setList = (page_template: string) =>
    service.call('PUT', `/sendwright/v1/lists/${list}/consent`, { form: { page_template } })
  const setDomain = (page_template: string) =>
    service.call('PUT', `/sendwright/v1/domains/${service.domain}/topics`, { form: { page_template } })
  const cases = [
    [
      'no-forms',
      '<h1>{{title}}</h1>',
      /page 'form' in 'en' has neither \{\{\{content\}\}\} nor \{\{\{forms\}\}\}/,
    ],
    ['escaped-forms', '{{forms}}', /page 'form' in 'en' has neither/],
    ['one-page', '{{#equal page "form"}}{{{forms}}}{{/equal}}', /page 'sent' in 'en' has neither/],
    ['one-language', '{{#equal lang "en"}}{{{content}}}{{/equal}}', /page 'form' in 'de' has neither/],
  ] as const
  for (const [name, template, fault] of cases) {
    const stored = await service.call('POST', `/v3/${service.domain}/templates`, { form: { name, template } })
    assert.equal(stored.status, 200, stored.text)
    for (const set of [setList, setDomain]) {
      const { status, body } = await set(name)
      assert.equal(status, 400)
      assert.match(body.message, new RegExp(`^template '${name}' cannot show pages: page '`))
    }
    assert.match((await setList(name)).body.message, fault)
  }
  for (const set of [setList, setDomain]) {
    const { status, body } = await set('nowhere')
    assert.deepEqual([status, body.message], [400, "template 'nowhere' not found"])
    assert.equal((await set('a\nb')).status, 400)
    assert.equal((await set('x'.repeat(256))).status, 400)
  }
  const after = await service.call('GET', `/sendwright/v1/domains/${service.domain}/topics`)
  assert.equal(after.body.page_template, undefined, 'nothing was changed')
})

test('pages behind the unsubscribe link have the template of the domain', async () => {
  const { service } = scene
  await storeTemplate(scene, 'own-leaving', '<h1>{{page}} {{sender}} {{address}}</h1>{{{content}}}')
  const path = `/sendwright/v1/domains/${service.domain}/topics`
  const set = await service.call('PUT', path, { form: { page_template: 'own-leaving' } })
  assert.deepEqual([set.status, set.body.page_template], [200, 'own-leaving'], set.text)
  const unsubscribe = `/v3/domains/${service.domain}/tracking/unsubscribe`
  await service.call('PUT', unsubscribe, { form: { active: 'yes' } })
  const reader = person()
  await service.send({ to: reader, subject: 'Leave us' })
  const message = await eventually('the mail', async () => mailsTo(scene, reader)[0])
  const url = (await linksOf(service, message)).unsubscribe()
  const heading = async (page: Response) => {
    assert.match(policyOf(page), /sandbox allow-forms/)
    return /<h1>(\w+) (\S+) (\S+)<\/h1>/.exec(await page.text())?.slice(1)
  }
  const about = [service.domain, 'R***@example.org']
  assert.deepEqual(await heading(await fetch(url)), ['unsubscribe', ...about])
  assert.deepEqual(await heading(await post(url, { action: 'unsubscribe' })), ['unsubscribed', ...about])
  assert.deepEqual(await heading(await post(url, { action: 'resubscribe' })), ['resubscribed', ...about])
  const topics = JSON.stringify([{ tag: 'news', title: 'News' }])
  await service.call('PUT', path, { form: { active: 'yes', topics } })
  assert.deepEqual(await heading(await fetch(url)), ['preferences', ...about], 'kept by a change of topics')
  await service.call('PUT', path, { form: { active: 'no', topics: '[]', page_template: '' } })
  assert.doesNotMatch(policyOf(await fetch(url)), /sandbox/)
})

test('hostile bodies and settings are refused with a page or a text', async () => {
  const { service } = scene
  const { address: list, formUrl } = await newList(scene, {
    form: 'yes',
    title: '<script>"&',
    language: 'pl',
  })
  for (const email of [
    '',
    'no address',
    '<script>alert(1)</script>',
    'a@b\0c',
    'x'.repeat(3000),
    'a@example.org, b@example.org',
  ]) {
    const answer = await post(formUrl, { email }, { 'accept-language': 'en' })
    const page = await answer.text()
    assert.equal(answer.status, 400, page)
    assert.doesNotMatch(page, /<script|onerror/)
    assert.match(page, /role="alert"/)
  }
  const long = await post(formUrl, { email: 'x'.repeat(10_000) })
  assert.equal(long.status, 413)
  const consent = (form: Record<string, string>) =>
    service.call('PUT', `/sendwright/v1/lists/${list}/consent`, { form })
  for (const form of [
    { redirect_url: 'javascript:alert(1)' },
    { redirect_url: 'https://a:b@c.example/' },
    { language: 'xx' },
    { title: 'a\nb' },
    { title: 'x'.repeat(101) },
    { expire_days: '0' },
    { expire_days: '31' },
  ] as Record<string, string>[])
    assert.equal((await consent(form)).status, 400, JSON.stringify(form))
  const topics = (value: unknown) =>
    service.call('PUT', `/sendwright/v1/domains/${service.domain}/topics`, {
      form: { topics: JSON.stringify(value) },
    })
  for (const value of [
    {},
    [{ tag: 'a' }],
    [{ tag: '*', title: 'All' }],
    [{ tag: 'a', title: '' }],
    [null],
    Array.from({ length: 21 }, (_, n) => ({ tag: `t${n}`, title: 'T' })),
    [
      { tag: 'a', title: 'A' },
      { tag: 'A', title: 'B' },
    ],
  ])
    assert.equal((await topics(value)).status, 400, JSON.stringify(value))
})

test('from one network the form takes ten posts a minute', async () => {
  const { formUrl } = await newList(scene, { form: 'yes' })
  const headers = { 'x-forwarded-for': '203.0.113.7' }
  const answers: number[] = []
  for (let n = 0; n < 11; n++) answers.push((await post(formUrl, { email: 'bad' }, headers)).status)
  assert.deepEqual(answers, [...Array(10).fill(400), 429])
})
