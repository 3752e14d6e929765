/** Every template call of the public JavaScript client, against the running service. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { startTestService } from '../../../test/support/service.ts'

// The package's types name a default export inside the default export; at run time there is only one.
const Mailgun = MailgunModule as unknown as typeof MailgunModule.default

/** The client's types name an object and an enum; in a form both are text. */
const json = (headers: object) => JSON.stringify(headers) as never
const YES = 'yes' as never

async function startClient(t: TestContext) {
  const service = await startTestService(t)
  const client = new Mailgun(FormData).client({ username: 'api', key: service.key, url: service.url })
  return { templates: client.domains.domainTemplates, domain: service.domain }
}

test('templates: create, read, update, delete one and all', async (t) => {
  const { templates, domain } = await startClient(t)
  const created = await templates.create(domain, {
    name: 'Welcome',
    description: 'first mail',
    template: '<p>Hi {{name}}</p>',
    tag: 'v1',
    comment: 'a comment',
    createdBy: 'me',
    headers: json({ Subject: 'Hello {{name}}', 'Reply-To': 'reply@example.com' }),
  })
  assert.equal(created.name, 'welcome')
  assert.ok(created.createdAt instanceof Date && Number.isFinite(created.createdAt.getTime()))
  assert.deepEqual(created.version?.headers, { Subject: 'Hello {{name}}', 'Reply-To': 'reply@example.com' })
  assert.equal(created.version?.active, true)

  assert.equal((await templates.get(domain, 'welcome')).version, undefined)
  const withVersion = await templates.get(domain, 'welcome', { active: YES })
  assert.equal(withVersion.version?.template, '<p>Hi {{name}}</p>')

  const updated = await templates.update(domain, 'welcome', { description: 'changed' })
  assert.deepEqual(updated, { status: 200, message: 'template has been updated', templateName: 'welcome' })
  const destroyed = await templates.destroy(domain, 'welcome')
  assert.deepEqual(destroyed, { status: 200, message: 'template has been deleted', templateName: 'welcome' })
  assert.deepEqual(await templates.destroyAll(domain), {
    status: 200,
    message: 'templates have been deleted',
  })
})

test('versions: create, read, list, update, delete', async (t) => {
  const { templates, domain } = await startClient(t)
  await templates.create(domain, { name: 'a', description: '', template: 'one' })
  const added = await templates.createVersion(domain, 'a', { tag: 'V2', template: 'two', active: YES })
  assert.equal(added.message, 'new version of the template has been stored')
  assert.equal(added.template.version?.tag, 'v2')
  assert.equal((await templates.getVersion(domain, 'a', 'v2')).version?.template, 'two')

  const listed = await templates.listVersions(domain, 'a')
  assert.deepEqual(
    listed.template.versions?.map(({ tag, active }) => [tag, active]),
    [
      ['initial', false],
      ['v2', true],
    ],
  )
  const headers = { From: 'x@example.com' }
  const change = { template: 'new', comment: 'c', headers: json(headers) }
  assert.deepEqual(await templates.updateVersion(domain, 'a', 'initial', change), {
    status: 200,
    message: 'version has been updated',
    templateName: 'a',
    templateVersion: { tag: 'initial' },
  })
  assert.deepEqual((await templates.getVersion(domain, 'a', 'initial')).version?.headers, headers)
  const destroyed = await templates.destroyVersion(domain, 'a', 'v2')
  assert.deepEqual(destroyed.templateVersion, { tag: 'v2' })
})

test('lists are paged forwards and backwards by the links that the client reads', async (t) => {
  const { templates, domain } = await startClient(t)
  for (const name of ['c', 'a', 'e', 'b', 'd']) {
    await templates.create(domain, { name, description: '', template: 'x' })
  }
  const names = (page: { items: { name: string }[] }) => page.items.map(({ name }) => name).join('')
  const follow = (link: { page?: string } | undefined) =>
    templates.list(domain, { page: (link?.page ?? '') as `?${string}` })
  const first = await templates.list(domain, { limit: 2 })
  const second = await follow(first.pages.next)
  const third = await follow(second.pages.next)
  const beyond = await follow(third.pages.next)
  assert.deepEqual([first, second, third, beyond].map(names), ['ab', 'cd', 'e', ''])
  assert.equal(names(await follow(second.pages.previous)), 'ab')
  assert.equal(names(await follow(beyond.pages.previous)), 'cd', 'the page before the last item')
  assert.equal(names(await follow(first.pages.last)), 'de')
  assert.equal(names(await follow(third.pages.first)), 'ab')
})
