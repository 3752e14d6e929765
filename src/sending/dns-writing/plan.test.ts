import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quotedText } from '../../protocols/dns/presentation.ts'
import {
  type Plan,
  type PlanEntry,
  planRecords,
  planUndo,
  type Wanted,
  WRITTEN_PURPOSES,
  type WrittenPurpose,
  writtenKey,
} from './plan.ts'
import { type RecordSet, setKey, valuesAfter, type Zone } from './provider.ts'

const ZONE: Zone = { name: 'example.com', id: 'z', ttlMin: null }
const HOST = 'spf.service.example'
const txt = (value: string) => quotedText(value)

type Sets = Map<string, RecordSet>

const set = (
  name: string,
  type: string,
  values: readonly string[],
  lock: string | null = null,
): RecordSet => ({
  ...{ name, type, ttlSeconds: 300, values, handles: values, lock },
})
const setsOf = (...sets: RecordSet[]): Sets => new Map(sets.map((one) => [setKey(one), one]))

const WANTED: Wanted[] = [
  { purpose: 'dkim', name: 'k1._domainkey.example.com', type: 'TXT', values: [txt('k=rsa; p=MIIB')] },
  { purpose: 'spf', name: 'example.com', type: 'TXT', values: [txt(`v=spf1 include:${HOST} ~all`)] },
  { purpose: 'tracking', name: 'email.example.com', type: 'CNAME', values: ['track.service.example'] },
  {
    purpose: 'mx',
    name: 'example.com',
    type: 'MX',
    values: ['10 mxa.service.example', '10 mxb.service.example'],
  },
  {
    purpose: 'return-path-spf',
    name: 'b.example.com',
    type: 'TXT',
    values: [txt(`v=spf1 include:${HOST} ~all`)],
  },
  { purpose: 'return-path-mx', name: 'b.example.com', type: 'MX', values: ['10 mxa.service.example'] },
  { purpose: 'mta-sts-host', name: 'mta-sts.example.com', type: 'A', values: ['192.0.2.7'] },
  { purpose: 'mta-sts', name: '_mta-sts.example.com', type: 'TXT', values: [txt('v=STSv1; id=2')] },
  { purpose: 'dmarc', name: '_dmarc.example.com', type: 'TXT', values: [txt('v=DMARC1; p=none')] },
  {
    purpose: 'tls-rpt',
    name: '_smtp._tls.example.com',
    type: 'TXT',
    values: [txt('v=TLSRPTv1; rua=mailto:a@b')],
  },
]

const ZONES = new Map(WANTED.map(({ name }) => [name, ZONE]))

function plan(
  sets: Sets,
  { replace = [] as WrittenPurpose[], written = [] as string[], wanted = WANTED } = {},
) {
  return planRecords(
    wanted,
    { zones: ZONES, sets },
    { includeHost: HOST, written: new Set(written), replace: new Set(replace) },
  )
}

const entryOf = ({ entries }: Plan, purpose: WrittenPurpose): PlanEntry | undefined =>
  entries.find((entry) => entry.purpose === purpose)

/** The sets after changes, as a provider has them. */
function after(sets: Sets, { changes }: Plan): Sets {
  const next = new Map(sets)
  for (const change of changes) {
    const values = valuesAfter(sets.get(setKey(change))?.values ?? [], change)
    if (values.length === 0) next.delete(setKey(change))
    else next.set(setKey(change), { ...set(change.name, change.type, values), ttlSeconds: change.ttlSeconds })
  }
  return next
}

test('an empty zone gets every record, and then nothing is left to write', () => {
  const first = plan(setsOf())
  assert.deepEqual(
    first.entries.map(({ action }) => action),
    WANTED.map(() => 'add'),
  )
  const again = plan(after(setsOf(), first))
  assert.deepEqual(
    [again.changes, again.entries.map(({ action }) => action)],
    [[], WANTED.map(() => 'unchanged')],
  )
})

const CASES: [string, RecordSet[], WrittenPurpose, Partial<PlanEntry>][] = [
  [
    'an SPF record is extended before its end',
    [set('example.com', 'TXT', [txt('v=spf1 a ?all'), txt('google-site-verification=1')])],
    'spf',
    { action: 'change', remove: [txt('v=spf1 a ?all')], add: [txt(`v=spf1 a include:${HOST} ?all`)] },
  ],
  [
    'a redirect stays the end',
    [set('example.com', 'TXT', [txt('v=spf1 redirect=_spf.x.example')])],
    'spf',
    {
      action: 'change',
      remove: [txt('v=spf1 redirect=_spf.x.example')],
      add: [txt(`v=spf1 include:${HOST} redirect=_spf.x.example`)],
    },
  ],
  [
    'an SPF record that includes the service already stays',
    [set('example.com', 'TXT', [txt(`v=spf1 mx include:${HOST.toUpperCase()} -all`)])],
    'spf',
    { action: 'unchanged' },
  ],
  [
    'two SPF records are left',
    [set('example.com', 'TXT', [txt('v=spf1 a -all'), txt('v=spf1 mx -all')])],
    'spf',
    { action: 'left', reason: 'there are several SPF records, which must be one' },
  ],
  [
    'a DMARC policy is left',
    [set('_dmarc.example.com', 'TXT', [txt('v=DMARC1; p=reject')])],
    'dmarc',
    { action: 'left', reason: 'there is a policy' },
  ],
  [
    'MX of others is left',
    [set('example.com', 'MX', ['1 mx.other.example', '10 mxa.service.example'])],
    'mx',
    { action: 'left', reason: 'the domain receives its mail elsewhere' },
  ],
  [
    'half of the own MX is completed',
    [set('example.com', 'MX', ['10 mxa.service.example'])],
    'mx',
    { action: 'add', add: ['10 mxb.service.example'] },
  ],
  [
    'a CNAME is not put beside other records',
    [set('email.example.com', 'TXT', [txt('x')])],
    'tracking',
    { action: 'left', reason: 'the name has records of type TXT' },
  ],
  [
    'nothing is put beside a CNAME',
    [set('k1._domainkey.example.com', 'CNAME', ['other.example'])],
    'dkim',
    { action: 'left', reason: 'the name has records of type CNAME' },
  ],
  [
    'a host keeps the addresses that it has',
    [set('mta-sts.example.com', 'AAAA', ['2001:db8::1'])],
    'mta-sts-host',
    { action: 'left', reason: 'the name has records of type AAAA' },
  ],
  [
    'another key under the selector is left',
    [set('k1._domainkey.example.com', 'TXT', [txt('k=rsa; p=OTHER')])],
    'dkim',
    { action: 'left', reason: 'another key stands there' },
  ],
  [
    'the same text in other strings is the same record',
    [set('k1._domainkey.example.com', 'TXT', ['"k=rsa; " "p=MIIB"'])],
    'dkim',
    { action: 'unchanged' },
  ],
  [
    'a set with a routing policy is left',
    [set('example.com', 'TXT', [txt('x')], 'it has a routing policy, or is an alias')],
    'spf',
    { action: 'left', reason: 'it has a routing policy, or is an alias' },
  ],
  [
    'a delegated name is left',
    [set('b.example.com', 'NS', ['ns.other.example'])],
    'return-path-mx',
    { action: 'left', reason: 'it is delegated to other servers' },
  ],
]

for (const [what, sets, purpose, expected] of CASES)
  test(what, () => {
    const { purpose: _p, name: _n, type: _t, ...entry } = entryOf(plan(setsOf(...sets)), purpose) as PlanEntry
    assert.deepEqual(entry, { add: [], remove: [], reason: '', ...expected })
  })

test('rivals are replaced where the caller says so, or this service has written them', () => {
  const mx = set('example.com', 'MX', ['1 mx.other.example'])
  const replaced = { action: 'change', remove: mx.values, add: WANTED[3]?.values }
  const { action, remove, add } = entryOf(plan(setsOf(mx), { replace: ['mx'] }), 'mx') as PlanEntry
  assert.deepEqual({ action, remove, add }, replaced)
  const old = set('_mta-sts.example.com', 'TXT', [txt('v=STSv1; id=1'), txt('something else')])
  const written = [writtenKey('_mta-sts.example.com', 'TXT', txt('v=STSv1; id=1'))]
  assert.equal(entryOf(plan(setsOf(old)), 'mta-sts')?.action, 'left')
  assert.deepEqual(entryOf(plan(setsOf(old), { written }), 'mta-sts')?.remove, [txt('v=STSv1; id=1')])
  // Not for these: a policy, and SPF records that nobody but their owner can merge.
  const kept = setsOf(
    set('_dmarc.example.com', 'TXT', [txt('v=DMARC1; p=reject')]),
    set('example.com', 'TXT', [txt('v=spf1 a -all'), txt('v=spf1 mx -all')]),
  )
  const all = plan(kept, { replace: [...WRITTEN_PURPOSES] })
  assert.deepEqual([entryOf(all, 'dmarc')?.action, entryOf(all, 'spf')?.action], ['left', 'left'])
})

test('where the mail goes elsewhere no reports about TLS are asked for', () => {
  const { entries } = plan(setsOf(set('example.com', 'MX', ['1 mx.other.example'])))
  assert.equal(
    entries.some(({ purpose }) => purpose === 'tls-rpt'),
    false,
  )
})

test('what was changed since is not undone', () => {
  const before = setsOf(set('example.com', 'TXT', [txt('v=spf1 a -all')]))
  const written = plan(before)
  const now = after(before, written)
  now.set('TXT example.com', set('example.com', 'TXT', [txt('v=spf1 a mx -all')]))
  const undo = planUndo(written.changes, { zones: ZONES, sets: now })
  const spf = undo.entries.find(({ name }) => name === 'example.com' && name)
  assert.deepEqual([spf?.action, spf?.reason], ['left', 'it was changed since'])
  assert.deepEqual(after(now, undo).get('TXT example.com')?.values, [txt('v=spf1 a mx -all')])
})

test('a change that was not made has nothing to undo', () => {
  const before = setsOf(set('example.com', 'TXT', [txt('v=spf1 a -all')]))
  const undo = planUndo(plan(before).changes, { zones: ZONES, sets: before })
  assert.deepEqual(undo.changes, [])
})

/** Numbers that look random and are the same in each run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield state / 2 ** 32
  }
}

const FOREIGN: Readonly<Record<string, readonly string[]>> = {
  TXT: [
    ...[
      'v=spf1 a -all',
      'v=spf1 include:x.example ?all',
      `v=spf1 include:${HOST} ~all`,
      'v=DMARC1; p=reject',
    ],
    ...['google-site-verification=1', 'v=STSv1; id=1', 'v=TLSRPTv1; rua=mailto:x@y', 'k=rsa; p=OTHER', ''],
  ].map(txt),
  MX: ['1 mx.other.example', '10 mxa.service.example', '0 .', '20 mxb.service.example'],
  A: ['192.0.2.1', '192.0.2.7'],
  AAAA: ['2001:db8::1'],
  CNAME: ['other.example', 'track.service.example'],
  NS: ['ns.other.example'],
  CAA: ['0 issue "ca.example"'],
}

test('whatever stands in a zone: foreign records are there after the apply, and all is as before after the undo', () => {
  const random = numbers(7)
  const chance = (share: number) => random.next().value < share
  const names = [...new Set(WANTED.map(({ name }) => name)), 'www.example.com']
  let written = 0
  for (let round = 0; round < 3_000; round++) {
    const before: Sets = new Map()
    for (const name of names)
      for (const [type, values] of Object.entries(FOREIGN)) {
        const chosen = values.filter(() => chance(0.25))
        if (chosen.length > 0 && chance(0.4)) {
          const one = set(
            name,
            type,
            type === 'CNAME' ? chosen.slice(0, 1) : chosen,
            chance(0.05) ? 'locked' : null,
          )
          before.set(setKey(one), one)
        }
      }
    const replace = WRITTEN_PURPOSES.filter(() => chance(0.1))
    const apply = plan(before, { replace })
    const now = after(before, apply)
    written += apply.changes.length
    const own = new Set(WANTED.map(({ name, type }) => `${type} ${name}`))
    for (const [key, { values, lock, ttlSeconds }] of before) {
      const change = apply.changes.find((one) => setKey(one) === key)
      if (!own.has(key) || lock !== null)
        assert.equal(change, undefined, `${key} is nobody's but its owner's`)
      const replaced = apply.entries.filter(
        ({ purpose, action }) => action === 'change' && (replace.includes(purpose) || /spf/.test(purpose)),
      )
      const mayGo = new Set(replaced.flatMap((entry) => (setKey(entry) === key ? entry.remove : [])))
      for (const value of values) assert.ok(mayGo.has(value) || now.get(key)?.values.includes(value), key)
      if (change) assert.equal(change.ttlSeconds, ttlSeconds)
    }
    for (const [key, { values }] of now) {
      const spf = (list: readonly string[]) => list.filter((value) => value.startsWith('"v=spf1')).length
      assert.ok(spf(values) <= Math.max(1, spf(before.get(key)?.values ?? [])), `${key}: a second SPF record`)
    }
    const again = plan(now, { replace })
    assert.deepEqual(again.changes, [], 'a second apply has nothing to do')
    const back = after(now, planUndo(apply.changes, { zones: ZONES, sets: now }))
    const linesOf = (sets: Sets) =>
      [...sets.values()].flatMap(({ name, type, ttlSeconds, values }) =>
        values.map((value) => `${name} ${ttlSeconds} ${type} ${value}`),
      )
    assert.deepEqual(linesOf(back).sort(), linesOf(before).sort())
  }
  assert.ok(written > 3_000, `${written} changes`)
})
