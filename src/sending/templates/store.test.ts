import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import { BadRequest } from '../../base/process/errors.ts'
import { systemClock } from '../../base/time/clock.ts'
import { lockedAccount } from '../../platform/store/account-rows.ts'
import type { Store } from '../../platform/store/store.ts'
import { type Domain, newDomainRow } from '../domains/domain.ts'
import type { DomainDirectory } from '../domains/names/directory.ts'
import { createTemplateChoice } from './choose.ts'
import {
  deleteTemplates,
  findTemplate,
  insertTemplate,
  insertVersion,
  listTemplates,
  listVersions,
  updateVersion,
} from './store.ts'
import type { TemplateScope } from './template.ts'

const ACCOUNT: TemplateScope = { accountId: 'a1', domain: null }
const DOMAIN: TemplateScope = { accountId: 'a1', domain: { id: 'd1', name: 'example.com' } }

async function withAccount(store: Store): Promise<void> {
  const account = {
    id: 'a1',
    parent_id: null,
    name: 'A',
    signing_key_sealed: Buffer.from('x'),
    created_at: 1,
  }
  await store.db.insertInto('accounts').values(account).execute()
  const domain = newDomainRow({
    id: 'd1',
    account_id: 'a1',
    name: 'example.com',
    type: 'custom',
    state: 'active',
    created_at: 1,
  })
  await store.db.insertInto('domains').values(domain).execute()
}

const add = (store: Store, scope: TemplateScope, name: string, tags: readonly string[] = []) =>
  lockedAccount(store, scope.accountId, async (tx) => {
    const template = await insertTemplate(tx, scope, { name, description: '', createdBy: '', createdAt: 1 })
    for (const [index, tag] of tags.entries()) {
      const content = `${scope.domain ? 'domain' : 'account'} ${tag}`
      await insertVersion(tx, template.id, {
        tag,
        content,
        mjml: '',
        headers: { Subject: tag },
        sample: { tag },
        comment: '',
        active: index === 0,
        createdAt: 100 - index,
      })
    }
    return template
  })

eachStore(
  'lists by name within a scope, versions by age, and removes versions with their template',
  async (store) => {
    await withAccount(store)
    for (const name of ['b', 'a b', 'é', 'Z'.toLowerCase()]) await add(store, DOMAIN, name)
    const account = await add(store, ACCOUNT, 'b', ['new', 'old'])
    const names = async (scope: TemplateScope) =>
      (await listTemplates(store.db, scope)).map(({ name }) => name)
    assert.deepEqual(await names(DOMAIN), ['a b', 'b', 'z', 'é'])
    assert.deepEqual(await names(ACCOUNT), ['b'])
    assert.deepEqual(
      (await listVersions(store.db, account.id)).map(({ tag }) => tag),
      ['old', 'new'],
    )
    await lockedAccount(store, 'a1', (tx) => deleteTemplates(tx, [account.id]))
    assert.deepEqual(await listVersions(store.db, account.id), [])
    assert.equal((await findTemplate(store.db, DOMAIN, 'b'))?.name, 'b')
  },
)

eachStore('a version made active makes the others inactive', async (store) => {
  await withAccount(store)
  const { id } = await add(store, DOMAIN, 't', ['one', 'two'])
  const active = async () => (await listVersions(store.db, id)).filter((version) => version.active)
  const [one] = await active()
  assert.equal(one?.tag, 'one')
  const two = (await listVersions(store.db, id)).find(({ tag }) => tag === 'two')
  await lockedAccount(store, 'a1', (tx) => updateVersion(tx, id, two?.id ?? '', { active: true }))
  assert.deepEqual(
    (await active()).map(({ tag }) => tag),
    ['two'],
  )
})

eachStore('templates of a domain go with it', async (store) => {
  await withAccount(store)
  const { id } = await add(store, DOMAIN, 't', ['one'])
  await store.db.deleteFrom('domains').where('id', '=', 'd1').execute()
  assert.deepEqual(await listVersions(store.db, id), [])
})

eachStore('changes of one account wait for each other', async (store) => {
  await withAccount(store)
  const addUnlessThere = () =>
    lockedAccount(store, 'a1', async (tx) => {
      if ((await listTemplates(tx, DOMAIN)).length > 0) return false
      await insertTemplate(tx, DOMAIN, { name: 'x', description: '', createdBy: '', createdAt: 1 })
      return true
    })
  const results = await Promise.all(Array.from({ length: 8 }, addUnlessThere))
  assert.equal(results.filter(Boolean).length, 1)
})

eachStore('sending chooses the domain template by name, by id, then the account template', async (store) => {
  await withAccount(store)
  const domains = {
    byName: async (name) => (name === 'example.com' ? ({ id: 'd1', accountId: 'a1' } as Domain) : null),
  } as Pick<DomainDirectory, 'byName'> as DomainDirectory
  const { choose, changed } = createTemplateChoice({ store, domains, clock: systemClock })
  const content = async (name: string, tag?: string) =>
    (await choose('a1', 'example.com', name, tag)).version.content
  const account = await add(store, ACCOUNT, 'shared', ['v1', 'v2'])
  assert.equal(await content('SHARED'), 'account v1')
  const domain = await add(store, DOMAIN, 'shared', ['v1'])
  assert.equal(await content('SHARED'), 'account v1', 'remembered')
  changed()
  assert.equal(await content('SHARED'), 'domain v1')
  assert.equal(await content(account.id), 'account v1')
  assert.equal(await content(domain.id.toUpperCase()), 'domain v1')
  const chosen = await choose('a1', null, 'Shared', 'V2')
  assert.equal(chosen.templateName, 'shared')
  assert.equal(chosen.version.tag, 'v2')
  assert.deepEqual(chosen.source.headers, { Subject: 'v2' })
  const same = await choose('a1', 'example.com', account.id, 'v2')
  assert.equal(same.source.key, chosen.source.key, 'equal contents have one key')

  await add(store, DOMAIN, 'empty')
  const faults: [name: string, tag: string | undefined, text: string][] = [
    ['None', undefined, "template 'None' not found"],
    ['shared', 'V3', "version 'V3' of template 'shared' not found"],
    ['empty', undefined, "template 'empty' has no active version"],
  ]
  for (const [name, tag, text] of faults) {
    await assert.rejects(choose('a1', 'example.com', name, tag), new BadRequest(text))
  }
  await assert.rejects(choose('a2', 'example.com', 'shared'), new BadRequest("template 'shared' not found"))
})
