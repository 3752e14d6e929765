import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import MailgunModule from 'mailgun.js'
import { hasTest } from '../support/coverage.ts'
import {
  CLIENT_PROOFS,
  LIST_PROOFS,
  type Proof,
  SUPPRESSION_PROOFS,
  TEMPLATE_PROOFS,
} from './templates-lists-suppressions.ts'

const source = (file: string) => readFileSync(join(import.meta.dirname, '../..', file), 'utf8')

for (const [area, proofs] of Object.entries({
  templates: TEMPLATE_PROOFS,
  'mailing lists': LIST_PROOFS,
  suppressions: SUPPRESSION_PROOFS,
})) {
  test(`${area}: every proof is an existing test`, () => {
    const missing = Object.entries<Proof>(proofs).flatMap(([what, [file, ...names]]) =>
      names.filter((name) => !hasTest(file, name)).map((name) => `${what}: ${file}: ${name}`),
    )
    assert.deepEqual(missing, [])
  })
}

/** Everything that the specification lists for these areas. */
const SPECIFIED = {
  templates: `list templates|create template|list versions|add version|get template|delete template|get version|
    update version|delete version|copy version|page|limit|p|name|description|createdBy|template|tag|comment|headers|
    active|new_version_name exists|id|createdAt|version|versions|engine|mjml|parsedhandlebar|
    headers of the message win|400 41st version`,
  lists: `create list|list lists|page lists|get list|update list|delete list|list members|page members|add member|
    members.json|members.csv|get member|update member|delete member|list address|list name|description|access_level|
    reply_preference|created_at|members_count|list_id|member address|member name|vars|subscribed|upsert|task-id|
    over 100 entries in the background|400 1,001 entries|400 member exists|400 CSV rows|404 list|429`,
  suppressions: `list|read|add one|add many|import|remove|clear`,
}

test('everything that the specification lists has a proof', () => {
  const unproven = (names: string, proofs: Record<string, Proof>) =>
    names
      .split('|')
      .map((name) => name.trim())
      .filter((name) => !(name in proofs))
  assert.deepEqual(unproven(SPECIFIED.templates, TEMPLATE_PROOFS), [])
  assert.deepEqual(unproven(SPECIFIED.lists, LIST_PROOFS), [])
  assert.deepEqual(unproven(SPECIFIED.suppressions, SUPPRESSION_PROOFS), [])
})

test('every call that the public JavaScript client has for these areas is made in a test', () => {
  const Mailgun = MailgunModule as unknown as typeof MailgunModule.default
  const client = new Mailgun(FormData).client({ username: 'api', key: 'k' })
  const parts: Record<string, object> = {
    'domains.domainTemplates': client.domains.domainTemplates,
    lists: client.lists,
    'lists.members': client.lists.members,
    suppressions: client.suppressions,
  }
  for (const [part, { file, calls, others = '' }] of Object.entries(CLIENT_PROOFS)) {
    const words = (text: string) => text.split(/\s+/).filter((word) => word !== '')
    assert.deepEqual(publicCalls(parts[part] as object), [...words(calls), ...words(others)].sort(), part)
    const text = source(file)
    for (const call of words(calls)) assert.ok(text.includes(`.${call}(`), `${part}.${call} in ${file}`)
  }
})

/** Methods that call the service; the others only read its responses. */
const publicCalls = (part: object) =>
  Object.getOwnPropertyNames(Object.getPrototypeOf(part))
    .filter(
      (name) =>
        !/^(?:constructor|parse|_|prepare|checkAnd|validateQuery|getModel|create(?:WhiteList|Unsubscribe)$)/.test(
          name,
        ),
    )
    .sort()
