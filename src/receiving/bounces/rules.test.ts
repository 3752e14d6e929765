import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { ConfigError, readConfig } from '../../platform/config/config.ts'
import { compilePattern } from '../../protocols/smtp/reply-pattern.ts'
import { classify } from './classify.ts'
import { ENTITY_NAMES, entityName, loadRules, RuleFileError, type RuleSet } from './rules.ts'

const RULE = {
  'rule-id': 'acme-gone',
  'entity-id': 'acme',
  category: 'BOUNCE',
  critical: false,
  'reply-class': '5xx',
  patterns: ['left the company'],
  explanation: 'Acme knows nobody of that name.',
  samples: ['550 That person left the company'],
}

async function fileOf(t: TestContext, document: unknown): Promise<string> {
  const file = join(await temporaryFolder(t), 'rules.json')
  await writeFile(file, typeof document === 'string' ? document : JSON.stringify(document))
  return file
}

const ruleOf = (rules: RuleSet, text: string) =>
  classify(rules, {
    code: Number(text.slice(0, 3)),
    enhanced: null,
    text: text.slice(4),
    envelope: { recipients: [], senders: [] },
    permanent: true,
  }).ruleId

test('our rules: 105, each of an entity with a name', () => {
  const rules = loadRules(null)
  assert.equal(rules.rules.length, 105)
  assert.equal(rules.version, '2026-11-28')
  for (const { id, entity } of rules.rules) assert.ok(ENTITY_NAMES[entity], id)
})

test('all patterns of our rules compile', () => {
  for (const { patterns } of loadRules(null).rules)
    for (const { source, needed } of patterns) assert.deepEqual(compilePattern(source).needed, needed, source)
})

test("an operator's rules come before ours that prove as much; ours can be switched off or replaced", async (t) => {
  const rules = loadRules(
    await fileOf(t, {
      version: 'acme-3',
      off: ['generic-spam', 'generic-full'],
      rules: [RULE, { ...RULE, 'rule-id': 'generic-full', patterns: ['no room'], 'reply-class': 'any' }],
    }),
  )
  assert.equal(rules.version, '2026-11-28+acme-3')
  assert.equal(ruleOf(rules, '550 5.1.1 user unknown: left the company'), 'acme-gone')
  assert.equal(ruleOf(rules, '450 5.1.1 left the company'), 'unclassified')
  assert.equal(ruleOf(rules, '550 spam'), 'unclassified')
  assert.equal(ruleOf(rules, '452 no room'), 'generic-full')
  assert.equal(ruleOf(rules, '452 mailbox full'), 'unclassified')
  assert.equal(entityName('acme'), 'acme')
})

test('all faults of the file are reported together, and with those of the other settings', async (t) => {
  const file = await fileOf(t, {
    version: '',
    off: ['no-such-rule'],
    rules: [
      { ...RULE, 'rule-id': 'Not An Id', category: 'NONE' },
      { ...RULE, patterns: ['(a+)+\\1', 'ok'] },
      { ...RULE, patterns: [], samples: 'none', critical: 1, 'reply-class': '6xx' },
      { ...RULE, 'rule-id': 'unclassified' },
      'no rule',
    ],
  })
  const env = { SENDWRIGHT_BOUNCE_RULES: file, SENDWRIGHT_PORT: 'x' }
  const error = catching(() => readConfig(env, { bounceRules: loadRules }))
  assert.ok(error instanceof ConfigError)
  assert.equal(error.faults.length, 2)
  const fault = error.faults.find((text) => text.startsWith('SENDWRIGHT_BOUNCE_RULES: ')) ?? ''
  for (const part of [
    'version: 1 to 64',
    'rule "Not An Id": rule-id',
    'rule "Not An Id": category: one of BOUNCE',
    'rule "acme-gone": pattern "(a+)+\\1": invalid escape sequence: `\\1`',
    'rule "acme-gone": patterns: 1 to 50',
    'samples:',
    'critical:',
    'reply-class:',
    'rule "unclassified": the id is taken',
    'rule number 5: is not an object',
  ]) {
    assert.ok(fault.includes(part), `${part} in ${fault}`)
  }
  const documents: [document: unknown, says: RegExp][] = [
    ['{', /is not JSON/],
    ['[]', /is not a JSON object/],
    [{ version: '1', off: ['no-such-rule'] }, /there is no rule "no-such-rule"/],
    [{ version: '1', rules: [{ ...RULE, 'rule-id': 'spamhaus' }] }, /rule "spamhaus": the id is taken/],
    [{ version: '1', rules: {} }, /rules: not a list/],
  ]
  for (const [document, says] of documents) {
    const bad = await fileOf(t, document)
    assert.throws(
      () => loadRules(bad),
      (thrown) => thrown instanceof RuleFileError && says.test(thrown.message),
    )
  }
  assert.throws(() => loadRules('/no/such/file'), /cannot be read/)
})

function catching(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  return null
}
