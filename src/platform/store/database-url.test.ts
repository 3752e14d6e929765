import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serversOf } from './database-url.ts'

test('a database URL names one server or several, each with its own port', () => {
  for (const [text, servers] of [
    ['postgres://u:p@db/mail', ['postgres://u:p@db/mail']],
    ['postgres:///mail?host=/run/postgresql', ['postgres:///mail?host=/run/postgresql']],
    [
      'postgres://u:p@ss@a:5432,b:5433/mail?target_session_attrs=read-write',
      [
        'postgres://u:p@ss@a:5432/mail?target_session_attrs=read-write',
        'postgres://u:p@ss@b:5433/mail?target_session_attrs=read-write',
      ],
    ],
    ['postgresql://[::1]:5432,[::2]/mail', ['postgresql://[::1]:5432/mail', 'postgresql://[::2]/mail']],
  ] as const)
    assert.deepEqual(serversOf(text), servers)
})

test('what no server can be reached by, or written through, is refused', () => {
  const many = Array.from({ length: 17 }, (_, number) => `db${number}`).join(',')
  for (const [text, fault] of [
    ['mysql://u@a/mail', /expected postgres:/],
    ['postgres://a:5432,/mail', /expected postgres:/],
    ['postgres://a,b:port/mail', /expected postgres:/],
    ['postgres://a/mail?target_session_attrs=prefer-standby', /can be written/],
    [`postgres://${many}/mail`, /17 servers/],
  ] as const)
    assert.throws(() => serversOf(text), fault)
})
