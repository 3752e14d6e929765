import assert from 'node:assert/strict'
import { test } from 'node:test'
import { evaluate, parseExpression } from './expression.ts'

const HEADERS: Record<string, string[]> = {
  subject: ['Hello from Köln'],
  received: ['from a', 'from b by c'],
  'x-long': ['a'.repeat(100_000)],
}
const verdict = (expression: string, recipient = 'Bob+Sales@Example.com', isFirstMatch = true) =>
  evaluate(parseExpression(expression), {
    recipient,
    headers: (name) => HEADERS[name] ?? [],
    isFirstMatch,
  })

const TRUE = [
  'match_recipient(".*@example.com")',
  "  MATCH_RECIPIENT ( 'bob' ) ",
  'match_recipient("^bob\\+(.*)@example\\.com$")',
  'match_recipient("(?i)BOB\\+[A-Z]+@")',
  'match_recipient("bob\\x2b\\w{5}@")',
  'match_recipient("b[^A-N]b")',
  'match_recipient("(?:alice|bob).+?@(?P<Domain>[\\w.]+)\\Z")',
  'match_header("subject", "KÖLN")',
  'match_header("Subject", "hello.*k[À-Þ]ln$")',
  'match_header("received", "by c")',
  'match_recipient("alice") or match_recipient("bob")',
  'not match_recipient("alice") and not match_header("x-none", ".*")',
  'match_recipient("x") and match_recipient("y") or match_recipient("bob")',
  'match_recipient("bob") or match_recipient("x") and match_recipient("y")',
  '(match_recipient("x") or catch_all()) and match_recipient("bob")',
  'catchall()',
  `match_recipient("${'(?:'.repeat(200)}bob${')'.repeat(200)}")`,
  "match_header('subject', 'fro\\'?m')",
]
const FALSE = [
  'match_recipient("sales")',
  'match_recipient("example.com")',
  'match_header("x-none", ".*")',
  'match_header("subject", "^from")',
  'match_recipient("bob") and match_header("subject", "bye")',
  'not (match_recipient("bob") or match_recipient("x"))',
]

test('expressions are true or false as Python reads their patterns', () => {
  for (const expression of TRUE) assert.equal(verdict(expression).kind, 'true', expression)
  for (const expression of FALSE) assert.equal(verdict(expression).kind, 'false', expression)
  assert.equal(verdict('catch_all()', 'a@b.example', false).kind, 'false')
})

test('captures are those of the first call that is true, as they were written', () => {
  const captured = (expression: string) => {
    const found = verdict(expression)
    return found.kind === 'true' ? found.captures : null
  }
  assert.deepEqual(captured('match_recipient("(?P<who>[a-z]+)\\+(sales)?(x)?@")'), {
    numbered: ['Bob+Sales@', 'Bob', 'Sales', null],
    named: { who: 'Bob' },
  })
  assert.equal(
    captured('match_recipient("x(.)") or match_header("subject", "from (.*)") or match_recipient("(b)")')
      ?.numbered[1],
    'Köln',
  )
  assert.equal(captured('match_recipient("(b)ob") and match_header("subject", "(H)")')?.numbered[1], 'B')
  assert.equal(captured('not match_recipient("(x)")'), null)
})

test('before the headers are known, a call on them may be true', () => {
  const kind = (expression: string) =>
    evaluate(parseExpression(expression), { recipient: 'bob@example.com', headers: null, isFirstMatch: true })
      .kind
  assert.equal(kind('match_header("subject", "x")'), 'maybe')
  assert.equal(kind('not match_header("subject", "x")'), 'maybe')
  assert.equal(kind('match_recipient("bob") and match_header("subject", "x")'), 'maybe')
  assert.equal(kind('match_recipient("alice") and match_header("subject", "x")'), 'false')
  assert.equal(kind('match_recipient("bob") or match_header("subject", "x")'), 'true')
})

const INVALID: [expression: string, reason: RegExp][] = [
  ['', /unexpected end/],
  ['match_recipient(".*"', /"\)" is expected/],
  ['match_recipient(.*)', /unexpected "."|string is expected/],
  ['match_recipient("a) ', /string is not closed/],
  ['match_header("subject")', /"," is expected/],
  ['match_body("x")', /unknown function/],
  ['catch_all() catch_all()', /unexpected "catch_all"/],
  ['and', /"\(" is expected/],
  ['match_recipient("a") xor catch_all()', /unexpected "xor"/],
  ['match_recipient("(")', /missing closing/],
  ['match_recipient(")")', /missing \(/],
  ['match_recipient("[a")', /missing closing \]/],
  ['match_recipient("[z-a]")', /range/],
  ['match_recipient("a(?=b)")', /look-ahead/],
  ['match_recipient("(?<!a)b")', /look-ahead/],
  ['match_recipient("(a)\\1")', /back references/],
  ['match_recipient("(?P<a>x)(?P=a)")', /back references/],
  ['match_recipient("(?(1)a|b)")', /conditionals/],
  ['match_recipient("\\q")', /unknown escape/],
  ['match_recipient("**")', /repetition|missing argument/],
  // 3,000 characters that would compile to 800,000 instructions.
  [`match_recipient("${'x{0,1000}'.repeat(300)}")`, /too large/],
  [`match_recipient("${'((a{99}){99}){99}'}")`, /too large/],
  [`match_recipient("${'(a|b)'.repeat(750)}")`, /too large/],
  [`${'('.repeat(60)}catch_all()${')'.repeat(60)}`, /levels of brackets/],
  [`catch_all()${' or catch_all()'.repeat(100)}`, /more than 100 calls/],
  [`match_recipient("${'a'.repeat(5000)}")`, /4096/],
]

test('invalid expressions are refused with a reason', () => {
  for (const [expression, reason] of INVALID)
    assert.throws(() => parseExpression(expression), reason, expression.slice(0, 60))
})

test('a pattern that may take long on a text is false, and is reported', () => {
  let reported = 0
  const subject = {
    recipient: 'a@b.example',
    headers: (name: string) => HEADERS[name] ?? [],
    isFirstMatch: true,
    tooCostly: () => void reported++,
  }
  const costly = parseExpression('match_header("x-long", "(?:(\\w?)(a|b)?){90}$")')
  assert.equal(evaluate(costly, subject).kind, 'false')
  assert.equal(reported, 1)
  assert.equal(evaluate(parseExpression('match_header("x-long", "a$")'), subject).kind, 'true')
  assert.equal(reported, 1)
})
